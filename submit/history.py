"""What became of a job's single runs, as the ledger keeps it: one small blob a job. Pure.

Only what will not change any more is kept: AWS Batch forgets a job a week after its end.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from submit.backends import RunStatus
from submit.states import BAD, OVER, RunState

History = Mapping[int, RunStatus]
"""By a run's number in the job."""


def encode_history(history: History) -> bytes:
    """Some 25 bytes a run, most of them the random part of its log's name."""
    return zlib.compress(msgspec.msgpack.encode(list(history.values())))


def decode_history(blob: bytes) -> dict[int, RunStatus]:
    """What encode_history wrote."""
    statuses = msgspec.msgpack.decode(zlib.decompress(blob), type=list[RunStatus])
    return {status.child: status for status in statuses}


def add(history: History, seen: Iterable[RunStatus]) -> dict[int, RunStatus]:
    """With those that have ended; a brief word does not take the place of a whole one."""
    merged = dict(history)
    for status in seen:
        known = merged.get(status.child)
        if status.state in OVER and (known is None or known.brief or not status.brief):
            merged[status.child] = status
    return dict(sorted(merged.items()))


def is_whole(history: History, child: int) -> bool:
    """Whether all of that run is known."""
    return child in history and not history[child].brief


def refine(counts: Mapping[RunState, int], history: History) -> dict[RunState, int]:
    """A job's counts, with each run that is known to have failed, been lost or cancelled counted
    as that: of an array the service tells only how many ended badly.
    """
    refined = Counter(counts)
    blanket = next((state for state in counts if state in BAD), None)
    for status in history.values():
        if blanket and status.state in BAD and refined[blanket] > 0:
            refined[blanket] -= 1
            refined[status.state] += 1
    return {state: refined[state] for state in RunState if refined[state]}


def last_word(
    counts: Mapping[RunState, int], history: History, child: int, *, over: bool
) -> RunState:
    """What is still known of a run when the service tells no more: if all that is not in the
    history ended alike, it ended so too.
    """
    if child in history:
        return history[child].state
    rest = Counter(counts)
    rest.subtract(status.state for status in history.values())
    left = [state for state, count in rest.items() if count > 0]
    return left[0] if over and len(left) == 1 and left[0] in OVER else RunState.UNKNOWN
