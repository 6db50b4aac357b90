"""All that one Batch remembers: environments, queues, definitions, jobs. Mutable, no I/O.

Whoever reads or changes it holds `lock`.
"""

from __future__ import annotations

import re
import threading
import uuid
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from sandbox.batch import states
from sandbox.batch.account import Account
from sandbox.batch.rules import refusal


class Resource:
    """A compute environment or a job queue: its document as AWS describes it."""

    def __init__(self, name: str, arn: str, detail: dict[str, Any]) -> None:
        self.name = name
        self.arn = arn
        self.detail = detail
        self.replace_after_s: float | None = None
        """Its instances are to be replaced, and may keep their jobs for so long."""
        self.faults: list[str] = []
        """What makes it INVALID when its current change is through."""

    def move(self, status: str, reason: str | None = None) -> None:
        self.detail["status"] = states.move(states.RESOURCE_MOVES, self.detail["status"], status)
        self.detail["statusReason"] = reason


class Array:
    """An array job's children. Those that nothing has happened to have no object."""

    __slots__ = (
        "again",
        "children",
        "counts",
        "ended",
        "held",
        "pairs",
        "seen",
        "size",
        "unstarted",
        "unstarted_status",
    )

    def __init__(self, size: int) -> None:
        self.size = size
        self.children: dict[int, Job] = {}
        self.unstarted = deque(range(size))
        """Indexes whose turn has not come yet."""
        self.unstarted_status = states.SUBMITTED
        """The state of the children that have no object and are not held."""
        self.held: dict[int, int] = {}
        """Children that wait for other children, and for how many. They are PENDING."""
        self.pairs: list[str] = []
        """Ids of the arrays whose children they wait for."""
        self.seen: dict[str, int] = {}
        """By id of an array, how many of its `ended` have been looked at."""
        self.ended: list[int] = []
        """Indexes of the children that are over, in that order."""
        self.again: deque[Job] = deque()
        """Children that wait for another attempt."""
        self.counts = {states.SUBMITTED: size}
        """Children by state."""

    def move_unstarted(self, status: str) -> None:
        """All children that have not begun go to another state together."""
        old, self.unstarted_status = self.unstarted_status, status
        for child in self.children.values():
            if child.status == old:
                child.move(status)
        rest = self.counts.pop(old, 0)
        self.counts[status] = self.counts.get(status, 0) + rest

    def hold(self, pairs: list[str], *, first: int, others: int) -> None:
        """From now on each child waits by itself: child 0 for `first`, the rest for `others`."""
        self.pairs = pairs
        self.held = {index: others if index else first for index in self.unstarted}
        self.unstarted.clear()
        self.unstarted_status = states.RUNNABLE
        for index in [index for index, count in self.held.items() if not count]:
            self._go(index)

    def release(self, index: int) -> None:
        """One that the child waits for is done."""
        if index in self.held:
            self.held[index] -= 1
            if not self.held[index]:
                self._go(index)

    def ended_since(self, job_id: str, other: Array) -> list[int]:
        """Indexes of `other`'s children that ended since this was asked last."""
        new = other.ended[self.seen.get(job_id, 0) :]
        self.seen[job_id] = len(other.ended)
        return new

    def take_unstarted(self, parent: Job) -> list[Job]:
        """The children that have not begun; none is held or waits for its turn any more."""
        taken = [parent.child(index) for index in (*self.held, *self.unstarted)]
        self.held.clear()
        self.unstarted.clear()
        return taken

    def look(self, parent: Job, index: int) -> Job:
        """The child of that index, to be read only."""
        return self.children.get(index) or parent.look_at_child(index)

    def _go(self, index: int) -> None:
        del self.held[index]
        child = self.children.get(index)
        if child is None:
            self.counts[states.PENDING] -= 1
            self.counts[states.RUNNABLE] = self.counts.get(states.RUNNABLE, 0) + 1
        elif child.status == states.PENDING:
            child.move(states.RUNNABLE)
        self.unstarted.append(index)


class Nodes:
    """A multi-node job's nodes."""

    __slots__ = ("children", "main")

    def __init__(self, children: list[Job], main: int) -> None:
        self.children = children
        self.main = main

    @property
    def main_node(self) -> Job:
        return self.children[self.main]


class Job:
    """A single job, a parent (it has an `array` or `nodes`), or a child of one (a `parent`)."""

    __slots__ = (
        "arn",
        "array",
        "attempts",
        "blocked_ms",
        "cancelled",
        "created_ms",
        "ended",
        "id",
        "index",
        "name",
        "nodes",
        "parent",
        "ran",
        "spec",
        "started_ms",
        "status",
        "status_reason",
        "stop",
        "stopped_ms",
        "terminated",
    )

    def __init__(self, job_id: str, arn: str, spec: dict[str, Any], created_ms: int) -> None:
        self.id = job_id
        self.arn = arn
        self.name: str = spec["jobName"]
        self.spec = spec
        """What SubmitJob and the definition say, merged; shared by all children of an array."""
        self.created_ms = created_ms
        self.status = states.SUBMITTED
        self.status_reason: str | None = None
        self.started_ms: int | None = None
        self.stopped_ms: int | None = None
        self.blocked_ms: int | None = None
        """Since when it has been RUNNABLE with a reason why it can't start."""
        self.attempts: list[dict[str, Any]] = []
        self.ran: dict[str, Any] = {}
        """Where it runs or ran, and how its containers ended; as the last of its attempts."""
        self.cancelled = False
        self.terminated = False
        self.stop: str | None = None
        """The reason with which a started job is to be stopped."""
        self.parent: Job | None = None
        self.index: int | None = None
        self.array: Array | None = None
        self.nodes: Nodes | None = None
        self.ended: Any = None
        """Of a multi-node job, how its main node ended, until all nodes have."""

    def move(self, status: str, reason: str | None = None) -> None:
        """Another state; the parent's counts follow."""
        old, self.status = self.status, states.move(states.JOB_MOVES, self.status, status)
        if reason is not None:
            self.status_reason = reason
        if self.parent is not None and self.parent.array is not None:
            counts = self.parent.array.counts
            counts[old] -= 1
            counts[status] = counts.get(status, 0) + 1
            if status in states.OVER:
                assert self.index is not None
                self.parent.array.ended.append(self.index)
        if self.nodes and status in {states.PENDING, states.RUNNABLE, states.FAILED}:
            for node in self.nodes.children:  # they begin one by one, and wait together
                if node.status not in states.OVER:
                    node.move(status, reason)

    def child(self, index: int) -> Job:
        """The child of that index, made when something happens to it."""
        assert self.array is not None
        if index not in self.array.children:
            self.array.children[index] = self.look_at_child(index)
        return self.array.children[index]

    def look_at_child(self, index: int) -> Job:
        """The child of that index, to be read only: looking at it leaves nothing behind."""
        assert self.array is not None
        if index in self.array.children:
            return self.array.children[index]
        child = Job(f"{self.id}:{index}", f"{self.arn}:{index}", self.spec, self.created_ms)
        child.parent, child.index = self, index
        held = index in self.array.held
        child.status = states.PENDING if held else self.array.unstarted_status
        return child


class Front(NamedTuple):
    """The head of a queue at one time: since when each job is at its place."""

    at_ms: int
    since_ms: dict[str, int]
    """By ARN of the job, in the queue's order."""


class Store:
    """The account's Batch resources in one region."""

    def __init__(self, account: Account) -> None:
        self.account = account
        self.lock = threading.RLock()
        self.environments: dict[str, Resource] = {}
        self.queues: dict[str, Resource] = {}
        self.policies: dict[str, Resource] = {}
        self.definitions: dict[str, list[dict[str, Any] | None]] = {}
        """By name, all revisions; revision N at N - 1, None once it has vanished."""
        self.inactive: dict[str, int] = {}
        """By ARN, since when a definition is INACTIVE, in milliseconds."""
        self.jobs: dict[str, Job] = {}
        self.tags: dict[str, dict[str, str]] = {}
        self.waiting: dict[str, deque[Job]] = {}
        """By queue ARN, jobs that are not over, in order of submission."""
        self.fronts: dict[str, Front] = {}
        """By queue ARN, what waits there first."""

    def kept(self) -> dict[str, Any]:
        """What another store needs to go on from here."""
        return {key: value for key, value in vars(self).items() if key not in _PASSING}

    def restore(self, kept: dict[str, Any]) -> None:
        """Goes on from there."""
        vars(self).update(kept)

    def environment(self, name_or_arn: str) -> Resource | None:
        return self.environments.get(self._name("compute-environment", name_or_arn))

    def queue(self, name_or_arn: str) -> Resource | None:
        return self.queues.get(self._name("job-queue", name_or_arn))

    def policy(self, arn: str) -> Resource | None:
        return self.policies.get(self._name("scheduling-policy", arn))

    def existing_environment(self, name_or_arn: str) -> Resource:
        """Raises ClientError when there is none."""
        found = self.environment(name_or_arn)
        if found is None:
            raise refusal("what is named exists", f"{name_or_arn} does not exist")
        return found

    def existing_queue(self, name_or_arn: str) -> Resource:
        """Raises ClientError when there is none."""
        found = self.queue(name_or_arn)
        if found is None:
            raise refusal("what is named exists", f"JobQueue {name_or_arn} not found")
        return found

    def look_at(self, job_id: str) -> Job | None:
        """The job of that id, to be read only."""
        return self._find(job_id, Job.look_at_child)

    def find_job(self, job_id: str) -> Job | None:
        """The job of that id, to be changed."""
        return self._find(job_id, Job.child)

    def _find(self, job_id: str, child_of: Callable[[Job, int], Job]) -> Job | None:
        job_id = self._name("job", job_id)  # clients use either
        if "#" in job_id:
            return self._find_node(*job_id.split("#", 1))
        parent_id, colon, index = job_id.partition(":")
        job = self.jobs.get(parent_id)
        if job is None or not colon:
            return job
        legal = job.array and re.fullmatch(r"0|[1-9][0-9]{0,4}", index)
        if not job.array or not legal or int(index) >= job.array.size:
            return None
        return child_of(job, int(index))

    def _find_node(self, parent_id: str, index: str) -> Job | None:
        job = self.jobs.get(parent_id)
        legal = job and job.nodes and re.fullmatch(r"0|[1-9][0-9]{0,3}", index)
        if not job or not job.nodes or not legal or int(index) >= len(job.nodes.children):
            return None
        return job.nodes.children[int(index)]

    def _name(self, kind: str, name_or_arn: str) -> str:
        """The name of a resource; none for an ARN of another kind, account or Region."""
        if not name_or_arn.startswith("arn:"):
            return name_or_arn
        mine = self.account.arn(kind, "")
        return name_or_arn[len(mine) :] if name_or_arn.startswith(mine) else ""

    def find_definition(self, name_or_arn: str) -> dict[str, Any] | None:
        """The definition of that name (its latest active revision), name:revision or ARN."""
        name, colon, revision = self._name("job-definition", name_or_arn).partition(":")
        revisions = self.definitions.get(name, [])
        if colon:
            legal = re.fullmatch("[1-9][0-9]{0,8}", revision)
            return (
                revisions[int(revision) - 1] if legal and int(revision) <= len(revisions) else None
            )
        active = [d for d in revisions if d and d["status"] == "ACTIVE"]
        return active[-1] if active else None

    def definition(self, name_or_arn: str) -> dict[str, Any]:
        """As find_definition.

        Raises ClientError when there is none.
        """
        found = self.find_definition(name_or_arn)
        if found is None:
            bare = not set(name_or_arn) & set("/:")
            missing = (
                f"JobDefinition name {name_or_arn} does not exist or is not in ACTIVE status"
                if bare
                else f"JobDefinition {name_or_arn} not found."
            )
            raise refusal("what is named exists", missing)
        return found


_PASSING = frozenset({"account", "fronts", "lock"})


def new_id() -> str:
    """A job's, task's or instance's id."""
    return str(uuid.uuid4())
