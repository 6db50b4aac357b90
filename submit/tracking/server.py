"""What a Weights & Biases server knows of runs. Speaks wandb's public API, loaded when needed."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from submit.errors import Refused, ServiceFailed, WrongUse
from submit.experiment import ID_LENGTH, nth_run, run_spans
from submit.records import Kept
from submit.results import Metrics, Outcome, outcome
from submit.tracking.keys import base_url, find_key
from submit.tracking.records import Tracked

OUR_IDS = f"^[a-z2-7]{{{ID_LENGTH}}}-[0-9]+$"
"""Run ids that submit gives (submit.experiment.wandb_run_id)."""
AT_ONCE = 200
"""Runs of one answer."""
CURVE_POINTS = 500
TIMEOUT_S = 30
ENDS_WITHIN_S = 5.0
"""How long wandb's helper process is waited for."""


def fetch_tracked(environ: Mapping[str, str], path: str, states: Sequence[str]) -> list[Tracked]:
    """The runs of ours in the project ENTITY/PROJECT that are in one of these states.

    One call per 200. Raises WrongUse, Refused and ServiceFailed in words.
    """
    filters = {"$and": [{"state": {"$in": list(states)}}, {"name": {"$regex": OUR_IDS}}]}
    with _asking(environ, path) as api:
        runs = api.runs(path, filters=filters, per_page=AT_ONCE)
        found = [(*run.id.rpartition("-")[::2], run.state) for run in runs]
    return [
        Tracked(experiment=experiment, index=int(index), state=state)
        for experiment, index, state in found
        if state in states and len(experiment) == ID_LENGTH and index.isdecimal()
    ]


def fetch_outcomes(
    environ: Mapping[str, str], kept: Kept, path: str, *, curves: bool
) -> list[Outcome]:
    """The last metrics of each of the experiment's runs that are in that project; with `curves`
    also what they logged on the way, one call more for each.
    """
    found: dict[int, Outcome] = {}
    there = run_spans(kept.experiment)
    with _asking(environ, path) as api:
        filters = {"name": {"$regex": f"^{kept.id}-[0-9]+$"}}
        for run in api.runs(path, filters=filters, per_page=AT_ONCE, lazy=False):
            experiment, _, number = run.id.rpartition("-")
            if experiment != kept.id or not number.isdecimal():
                continue
            if not any(first <= int(number) <= last for first, last in there):
                continue
            last = numbers(run.summary_metrics)
            last.pop("_step", None)
            said = run.history(samples=CURVE_POINTS, pandas=False) if curves else []
            one = outcome(nth_run(kept.experiment, int(number), kept.id), [[*map(numbers, said)]])
            if last:
                found[int(number)] = msgspec.structs.replace(one, metrics=last)
    return [found[index] for index in sorted(found)]


def numbers(logged: Mapping[str, Any]) -> Metrics:
    """The numbers that a run logged; of wandb's own only the step."""
    return {
        name: float(value)
        for name, value in logged.items()
        if isinstance(value, (int, float))
        and not isinstance(value, bool)
        and (name == "_step" or not name.startswith("_"))
    }


@contextlib.contextmanager
def _asking(environ: Mapping[str, str], path: str) -> Iterator[Any]:
    """Wandb's public API, with the key that is found; its helper process ends with it.

    Whatever goes wrong within is told in words.
    """
    parts = path.split("/")
    if len(parts) != 2 or not all(parts):  # noqa: PLR2004 # an entity and a project
        raise WrongUse(
            "wandb-project",
            f"{path!r} is no ENTITY/PROJECT",
            "both as in https://wandb.ai/ENTITY/PROJECT",
        )
    key = find_key(None, environ)
    if key is None:
        raise Refused(
            "no-wandb-key",
            "there is no key here to ask Weights & Biases with",
            "wandb login, or export WANDB_API_KEY=…",
        )
    # Set before wandb is loaded: it tells people on their terminals what it does.
    os.environ.setdefault("WANDB_SILENT", "true")
    try:
        import wandb  # noqa: PLC0415 # takes half a second
    except ModuleNotFoundError as err:
        raise WrongUse(
            "no-wandb", f"{err.name} is not installed", "pip install 'runfleet[wandb]'"
        ) from err
    try:
        where = {"entity": parts[0], "project": parts[1]}
        if environ.get("WANDB_BASE_URL"):
            where["base_url"] = base_url(environ)
        yield wandb.Api(where, api_key=key, timeout=TIMEOUT_S)
    # The API lets a server's odd answers through as whatever Python makes of them.
    except Exception as err:
        raise _in_words(err, path) from err
    finally:
        _end_helper(wandb.teardown)


def _end_helper(teardown: Callable[[], None]) -> None:
    """Ends wandb's helper process, by force when it goes on for ever asking a server that does not
    answer.
    """
    helper = _helper()
    ending = threading.Thread(target=teardown, daemon=True)
    ending.start()
    ending.join(ENDS_WITHIN_S)
    if ending.is_alive() and helper:
        helper.kill()
        ending.join(ENDS_WITHIN_S)


def _helper() -> subprocess.Popen[bytes] | None:
    """The helper process of this one. wandb has no name of its own for it; where a later wandb keeps
    it elsewhere, it goes on until this process ends.
    """
    from wandb.sdk import wandb_setup  # noqa: PLC0415 # loaded by then

    found: Any = wandb_setup._singleton  # noqa: SLF001 # see above
    for name in ("_connection", "_proc", "_process"):
        found = getattr(found, name, None)
    return found if isinstance(found, subprocess.Popen) else None


def _in_words(err: Exception, path: str) -> Exception:
    from wandb.errors import AuthenticationError  # noqa: PLC0415 # loaded by then

    said = str(err).strip().splitlines()[0] if str(err).strip() else type(err).__name__
    # wandb calls it so, too, when nobody answers.
    if isinstance(err, AuthenticationError) and "did not respond" not in said:
        return ServiceFailed(
            "wandb-key", f"Weights & Biases refuses the key: {said}", "wandb login --relogin"
        )
    if isinstance(err, ValueError) and "Could not find project" in said:
        return WrongUse(
            "no-wandb-project",
            f"Weights & Biases has no project {path} that this key may see",
            "look it up in its address: https://wandb.ai/ENTITY/PROJECT",
        )
    return ServiceFailed(
        "wandb", f"Weights & Biases could not be asked about {path}: {said}", "the same line again"
    )
