"""submit.tracking.keys: where the key is looked for, and what is wrong with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from submit.errors import Refused, SubmitError, WrongUse
from submit.tracking.keys import find_key

A, B, C = ("a" * 40, "local-" + "b" * 40, "c" * 40)


def netrc(home: Path, text: str, mode: int = 0o600) -> dict[str, str]:
    path = home / ".netrc"
    path.write_text(text)
    path.chmod(mode)
    return {"HOME": str(home)}


ENTRY = f"machine api.wandb.ai\n login user\n password {C}\n"


def test_the_nearest_counts(tmp_path: Path) -> None:
    environ = netrc(tmp_path, ENTRY)
    assert find_key(A, environ | {"WANDB_API_KEY": B}) == A
    assert find_key(None, environ | {"WANDB_API_KEY": B}) == B
    assert find_key(None, environ) == C
    assert find_key(None, {"HOME": str(tmp_path / "none")}) is None


def test_the_host_is_that_of_the_server(tmp_path: Path) -> None:
    environ = netrc(tmp_path, f"{ENTRY}machine wb.lab:8080\n login user\n password {B}\n")
    assert find_key(None, environ | {"WANDB_BASE_URL": "https://wb.lab:8080/"}) == B
    assert find_key(None, environ | {"WANDB_BASE_URL": "https://other.lab"}) is None
    only_default = netrc(tmp_path, f"default\n login user\n password {C}\n")
    assert find_key(None, only_default) is None


def test_another_netrc_may_be_named(tmp_path: Path) -> None:
    environ = netrc(tmp_path, ENTRY)
    (tmp_path / ".netrc").rename(tmp_path / "keys")
    assert find_key(None, environ) is None
    assert find_key(None, environ | {"NETRC": str(tmp_path / "keys")}) == C


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o620])
def test_a_netrc_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    environ = netrc(tmp_path, ENTRY, mode)
    with pytest.raises(Refused) as found:
        find_key(None, environ)
    assert found.value.hint == f"chmod 600 {tmp_path / '.netrc'}"
    assert f"mode {mode:03o}" in found.value.message
    assert find_key(None, environ | {"WANDB_BASE_URL": "https://other.lab"}) is None


@pytest.mark.parametrize(
    ("text", "said"), [("machine\n", "line"), ("hunter2\n", "line"), ("\xff", "no UTF-8")]
)
def test_a_netrc_that_is_none(tmp_path: Path, text: str, said: str) -> None:
    environ = netrc(tmp_path, "")
    (tmp_path / ".netrc").write_bytes(text.encode("latin-1"))
    with pytest.raises(Refused, match=said) as found:
        find_key(None, environ)
    assert "hunter2" not in found.value.message


@pytest.mark.parametrize("key", ["short", "a b" * 20, "é" * 40, A + "\n", "x-" + "y" * 39])
def test_what_can_be_no_key_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(WrongUse) as found:
        find_key(key, {})
    error: SubmitError = found.value
    assert key.strip() not in error.message + error.hint


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc on this system")
def test_ps_no_longer_shows_a_key_that_was_typed() -> None:
    code = (
        "import pathlib, sys\n"
        "from submit.tracking.hiding import hide_argument\n"
        "hide_argument(sys.argv[2])\n"
        "print(pathlib.Path('/proc/self/cmdline').read_bytes().split(b'\\0')[-4:-1], sys.argv[2])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "--wandb-key", A, "é last"],
        capture_output=True,
        check=True,
        text=True,
    )
    shown = [b"--wandb-key", b"x" * 40, "é last".encode()]
    assert done.stdout == f"{shown} {A}\n"
