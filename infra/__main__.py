"""`python -m infra`: what can be told of a project's stacks without building anything."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from infra.capacity import LIMIT, Share, StackFile, read_stack, share_out
from infra.catalog import parse_catalog
from infra.data import instance_types_csv
from infra.reference import settings_page
from infra.settings import NAMESPACE

USAGE = """\
Usage: python -m infra capacity [--json] [FOLDER]
       python -m infra settings [FOLDER]

capacity: what each stack of the project in FOLDER (this one, if left out) uses of the compute environments
and queues that AWS gives an account in a region, and which of them fit. Reads Pulumi.<stack>.yaml;
asks nobody.

settings: the page on settings, as Markdown.

Exit status: 0 all fit; 1 some do not, or have mistakes; 2 wrong use, or a file that can not be read
(the others are counted all the same).
"""
DONE, NO_ROOM, WRONG_USE = 0, 1, 2


def main(arguments: Sequence[str]) -> int:
    """The exit status."""
    if not arguments or arguments[0] in {"-h", "--help", "help"} or {"-h", "--help"} & {*arguments}:
        sys.stdout.write(USAGE)
        return DONE if arguments else WRONG_USE
    options = [argument for argument in arguments[1:] if argument != "--json"]
    if (
        arguments[0] not in {"capacity", "settings"}
        or len(options) > 1
        or any(o.startswith("-") for o in options)
    ):
        sys.stderr.write(f"no such command or option: {' '.join(arguments)}\n\n{USAGE}")
        return WRONG_USE
    folder = Path(options[0] if options else ".")
    try:
        if arguments[0] == "settings":
            declared = _read_config(folder / "Pulumi.yaml").items()
            own = {
                key: entry
                for key, entry in declared
                if isinstance(entry, dict) and "default" in entry
            }
            sys.stdout.write(settings_page(own))
            return DONE
        files, unreadable = _read_project(folder)
    except Unreadable as err:
        sys.stderr.write(f"{err}\n")
        return WRONG_USE
    shares = share_out(files)
    sys.stdout.write(_as_json(shares) if "--json" in arguments else _as_text(shares))
    sys.stderr.writelines(f"not counted: {why}\n" for why in unreadable)
    good = all(s.fits and not s.file.mistakes for found in shares.values() for s in found)
    return WRONG_USE if unreadable else DONE if good else NO_ROOM


class Unreadable(Exception):
    """There is no project, or a file of it is broken: what to do about it."""


def _read_project(folder: Path) -> tuple[list[StackFile], list[Unreadable]]:
    """What its stacks ask for, and which of their files can not be read."""
    file = folder / "Pulumi.yaml"
    if _read_yaml(file).get("name") != NAMESPACE:
        raise Unreadable(f"{folder} is not the {NAMESPACE} project: cd to it, or name its folder")
    common = _of_all_stacks(_read_config(file))
    catalog = parse_catalog(instance_types_csv())
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or ""
    found, unreadable = [], []
    for file in sorted(folder.glob("Pulumi.*.yaml")):
        stack = file.name.removeprefix("Pulumi.").removesuffix(".yaml")
        try:
            config = {**common, **_read_config(file)}
        except Unreadable as err:
            unreadable.append(err)
        else:
            secret = frozenset(key for key, value in config.items() if _is_secret(value))
            texts = {key: _text(value) for key, value in config.items()}
            found.append(read_stack(stack, texts, catalog, region=region, secret_keys=secret))
    if not found and not unreadable:
        raise Unreadable(f"{folder} has no Pulumi.<stack>.yaml: pulumi stack init <team>")
    return found, unreadable


def _of_all_stacks(declared: Mapping[str, Any]) -> dict[str, Any]:
    """What the project says for each stack that does not say it itself: a declaration with a
    default or a value, or just the value.
    """
    values = {
        key if ":" in key else f"{NAMESPACE}:{key}": entry.get("value", entry.get("default"))
        if isinstance(entry, dict)
        else entry
        for key, entry in declared.items()
    }
    return {key: value for key, value in values.items() if value is not None}


def _read_config(file: Path) -> dict[str, Any]:
    config = _read_yaml(file).get("config") or {}
    if not isinstance(config, dict):
        raise Unreadable(f"{file}: config is not a map of keys")
    return {str(key): value for key, value in config.items()}


def _read_yaml(file: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as err:
        raise Unreadable(f"{file} can not be read: {err.strerror}") from err
    except (UnicodeDecodeError, yaml.YAMLError) as err:
        raise Unreadable(f"{file} is not YAML: {err}") from err
    if not isinstance(content, dict | None):
        raise Unreadable(f"{file} is not a map of keys")
    return content or {}


def _is_secret(value: object) -> bool:
    return isinstance(value, dict) and "secure" in value


def _text(value: object) -> str:
    """As Pulumi hands it to a program."""
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _as_text(shares: Mapping[str, Sequence[Share]]) -> str:
    lines = []
    for place, found in shares.items():
        width = max(len("stack"), *(len(share.file.stack) for share in found))
        lines.append(f"{place}: AWS gives {LIMIT.told()}")
        lines.append(f"  {'stack':{width}}  environments  queues  with those above")
        for share in found:
            use, total = share.file.use, share.total
            verdict = "fits" if share.fits else "DOES NOT FIT"
            if share.file.mistakes:
                verdict += ", as far as it can be read"
            lines.append(
                f"  {share.file.stack:{width}}  {use.environments:12}  {use.queues:6}  "
                f"{total.environments:3} and {total.queues:3}  {verdict}"
            )
            lines += [f"      {m.path}: {m.problem}" for m in share.file.mistakes]
        lines.append("")
    return "\n".join(lines)


def _as_json(shares: Mapping[str, Sequence[Share]]) -> str:
    rows = [
        {
            "place": place,
            "stack": share.file.stack,
            "environments": share.file.use.environments,
            "queues": share.file.use.queues,
            "fits": share.fits,
            "mistakes": [f"{m.path}: {m.problem}" for m in share.file.mistakes],
        }
        for place, found in shares.items()
        for share in found
    ]
    return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
