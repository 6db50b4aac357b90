"""Moves time on: resources become VALID, jobs get machines and slots, attempts end, parents are over.

One thread ticks; one thread an attempt, never more attempts than there are slots (but for a
multi-node job that has more nodes than that). All decisions are taken under the store's lock.
"""

from __future__ import annotations

import threading
import traceback
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path

from sandbox.batch import attempts, nodes, progress, shares, states, turns
from sandbox.batch.attempts import MAIN_ENDED, Ended, Running
from sandbox.batch.containers import ContainerExecutor
from sandbox.batch.executor import Executor
from sandbox.batch.jobs import end, terminate_all
from sandbox.batch.machines import Machine, Machines
from sandbox.batch.placement import Placement, needs_of, place, vcpus
from sandbox.batch.retention import forget, forget_definitions
from sandbox.batch.sequence import Part
from sandbox.batch.store import Job, Resource, Store
from sandbox.batch.tasks import containers
from sandbox.conditions import Conditions

TICK_SECONDS = 0.25
"""Whatever changes wakes the scheduler; a tick is for what time alone brings about."""
FORGETTING_MS = 3_600_000
"""How often jobs are looked at that have been over for long."""
_STARTED = frozenset({states.STARTING, states.RUNNING})


class Scheduler:
    """`start` begins to tick; `close` ends all attempts and returns when they are gone."""

    def __init__(
        self,
        store: Store,
        executor: Executor | ContainerExecutor,
        machines: Machines,
        conditions: Conditions,
        *,
        slots: int,
        work_dir: Path,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._executor = executor
        self.machines = machines
        self._conditions = conditions
        self._slots = slots
        self._work_dir = work_dir
        self._clock = clock
        self._running: dict[str, Running] = {}
        self._placed: dict[str, Placement] = {}
        """By id, where the nodes of a multi-node job run."""
        self._coming = 0
        """Slots that are kept for jobs whose machines are on their way, in this round."""
        self._sessions: dict[int, Part] = {}
        """By process, the containers that have one."""
        self._next_forgetting_ms = 0
        self.ended = 0
        """Attempts that are over."""
        self._threads: set[threading.Thread] = set()
        self._wake = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._loop, name="batch-scheduler", daemon=True)

    def start(self) -> None:
        with self._store.lock:
            for waiting in self._store.waiting.values():
                for job in waiting:
                    self._lose_what_ran(job)
        self._thread.start()

    def wake(self) -> None:
        """Something has changed: the next tick is now."""
        self._wake.set()

    def now_ms(self) -> int:
        return int(self._clock() * 1000)

    def close(self) -> None:
        """Stops all attempts; their processes are gone when it returns."""
        self._closed = True
        self._wake.set()
        self._thread.join()
        with self._store.lock:
            for running in self._running.values():
                running.end("the sandbox was stopped")
            threads = list(self._threads)
        for thread in threads:
            thread.join()

    def interrupt(self, job_id: str, notice_s: float = 0.0) -> str | None:
        """EC2 takes the machine of a running job; its id, None when the job does not run."""
        with self._store.lock:
            job = self._store.look_at(job_id)
            if job and job.nodes:
                job = job.nodes.main_node
            running = self._running.get(job.id) if job else None
            if running is None or running.job.status != states.RUNNING:
                return None
            now = self.now_ms()
            self.machines.announce_loss(running.machine, now, notice_s)
            self._tend_machines(now)
        self._wake.set()
        return running.machine.id

    def find_machine(self, secret: str) -> Machine | None:
        """The machine whose metadata endpoint has that secret."""
        with self._store.lock:
            return self.machines.find(secret=secret)

    def role_on(self, machine: Machine, job_id: str) -> str | None:
        """The role of a job that runs on the machine; None when it has none, or is not there."""
        with self._store.lock:
            running = self._running.get(job_id)
            if running is None or running.machine is not machine:
                return None
            role: str | None = containers(running.job.spec)[0].get("jobRoleArn")
            return role

    def running_jobs(self) -> list[str]:
        """Ids of the jobs and nodes that have a slot now."""
        with self._store.lock:
            return list(self._running)

    def sessions(self) -> dict[int, Part]:
        """The containers that have a process, by its id."""
        with self._store.lock:
            return dict(self._sessions)

    def _loop(self) -> None:
        while not self._closed:
            with self._store.lock:
                self._tick()
                due = self.machines.next_event(self.now_ms())
            self._wake.wait(TICK_SECONDS if due is None else min(TICK_SECONDS, due + 0.001))
            self._wake.clear()

    def _tick(self) -> None:
        now = self.now_ms()
        self._settle_resources()
        self._tend_machines(now)
        if now >= self._next_forgetting_ms:
            forget(self._store, now)
            forget_definitions(self._store, now)
            self._next_forgetting_ms = now + FORGETTING_MS
        self.machines.next_round()
        self._coming = 0
        for queue in sorted(self._store.queues.values(), key=lambda q: -q.detail["priority"]):
            self._advance(queue)
            self._store.fronts[queue.arn] = turns.front(
                self._store.fronts.get(queue.arn), self._store.waiting.get(queue.arn, ()), now
            )
        for running in self._running.values():
            if not running.reasons:
                progress.stop_in_time(running, now)

    def _settle_resources(self) -> None:
        for kind in (self._store.queues, self._store.environments):
            for resource in list(kind.values()):
                status = resource.detail["status"]
                if status in {"CREATING", "UPDATING"}:
                    progress.settle(resource)
                elif status == "DELETING" and self._may_go(resource):
                    resource.move("DELETED")
                    del kind[resource.name]
                    self._store.tags.pop(resource.arn, None)
                    self._store.fronts.pop(resource.arn, None)

    def _tend_machines(self, now: int) -> None:
        for machine in self.machines.tend(self._store.environments.values(), now):
            self._lose(machine)

    def _lose(self, machine: Machine) -> None:
        reason = f"Host EC2 (instance {machine.id}) terminated."
        self._conditions.note("lost", instance=machine.id, type=machine.type.name)
        for job_id in machine.jobs:
            job = self._store.look_at(job_id)
            if job and job.parent and job.parent.nodes:
                for running in self._nodes_of(job.parent):
                    running.end(reason)  # one node lost, all lost
            elif job_id in self._running:
                self._running[job_id].end(reason)

    def _lose_what_ran(self, job: Job) -> None:
        """After a restart: the machines of the life before are gone, with all that ran there."""
        members = job.array.children.values() if job.array else [job]
        for member in members:
            if member.status not in _STARTED:
                continue
            reason = f"Host EC2 (instance {attempts.instance_of(member.ran)}) terminated."
            if member.nodes:
                for node in member.nodes.children:
                    if node.status not in states.OVER:
                        node.move(states.FAILED, reason)
            ended = Ended(reason, member.ran, None, None, succeeded=False, may_retry=True)
            self._end_attempt(member, ended, self.now_ms())

    def _nodes_of(self, job: Job) -> list[Running]:
        assert job.nodes is not None
        ids = (node.id for node in job.nodes.children)
        return [self._running[job_id] for job_id in ids if job_id in self._running]

    def _may_go(self, resource: Resource) -> bool:
        """Ends what is left in a queue; an environment whose role is gone stays, INVALID."""
        if resource.faults:
            progress.settle(resource)
            resource.faults = []
            return False
        for job in self._store.waiting.get(resource.arn, ()):
            terminate_all(job, "The job queue was deleted", self.now_ms())
        self._advance(resource)
        return not self._store.waiting.get(resource.arn)

    def _advance(self, queue: Resource) -> None:
        waiting = self._store.waiting.get(queue.arn, deque())
        for job in waiting:
            progress.settle_job(self._store, job, self.now_ms())
        if any(job.status in states.OVER for job in waiting):
            left = [job for job in waiting if job.status not in states.OVER]
            waiting = self._store.waiting[queue.arn] = deque(left)
        if "schedulingPolicyArn" in queue.detail:
            self._take_turns(queue, list(waiting))
            return
        for job in waiting:
            free = self._slots - self._used()
            if free <= 0:
                return
            for candidate in turns.runnable(job, free):
                if not self._try_start(queue, candidate):
                    break  # its siblings ask for the same

    def _take_turns(self, queue: Resource, waiting: list[Job]) -> None:
        """Starts one job after another, each time of the share that has the least."""
        policy = shares.existing(self._store, queue.detail["schedulingPolicyArn"])
        while self._used() < self._slots:
            use: Counter[str] = Counter()
            for running in self._running.values():
                if running.job.spec["jobQueue"] == queue.arn:
                    use[shares.share_of(running.job)] += vcpus(running.job)
            job = shares.next_turn(policy.detail["fairsharePolicy"], waiting, use)
            if job is None:
                return
            ready = turns.runnable(job, 1)
            begun = bool(ready) and self._try_start(queue, ready[0])
            if not begun or ready[0].status == states.RUNNABLE:  # its machine is to come first
                waiting.remove(job)

    def _used(self) -> int:
        """Slots that are taken: by attempts, by nodes that come after their main node, and by
        jobs whose machines are on their way.
        """
        following = sum(
            node.status == states.RUNNABLE
            for job_id in self._placed
            for node in _nodes(self._store.jobs[job_id])
        )
        return len(self._running) + following + self._coming

    def _try_start(self, queue: Resource, job: Job) -> bool:
        """Begins the job where it fits, perhaps once its machine is up.

        Else it stays RUNNABLE, and says why if that is for good.
        """
        count = len(job.nodes.children) if job.nodes else 1
        if self._running and self._used() + count > self._slots:
            if job.blocked_ms is None:
                self._coming = self._slots  # it gets its turn: nothing overtakes it
            return False
        now = self.now_ms()
        found = place(self._store, self.machines, queue, job, now)
        if isinstance(found, Placement):
            job.status_reason = job.blocked_ms = None
            if found.is_ready(now):
                self._begin(queue, job, found)
            else:
                self._coming += count
            return True
        if found != job.status_reason or job.blocked_ms is None:
            job.blocked_ms = now if found else None
        job.status_reason = found
        progress.give_up(queue, job, now)
        return False

    def _begin(self, queue: Resource, job: Job, placement: Placement) -> None:
        job.move(states.STARTING)
        if job.nodes:
            for node, machine, need in zip(
                job.nodes.children, placement.machines, needs_of(job), strict=True
            ):
                self.machines.take(machine, node.id, need)
            self._placed[job.id] = placement
            self._begin_node(queue.name, job, job.nodes.main)
            return
        if job.parent and job.parent.array:
            array = job.parent.array
            if job.attempts:
                array.again.remove(job)
            else:
                assert job.index is not None
                array.unstarted.remove(job.index)
        machine, need = placement.machines[0], needs_of(job)[0]
        self.machines.take(machine, job.id, need)
        self._run_in_thread(attempts.begin(job, queue.name, placement.environment, machine, need))

    def _begin_node(self, queue_name: str, job: Job, index: int) -> None:
        assert job.nodes is not None
        node = job.nodes.children[index]
        environment, machines = self._placed[job.id]
        main_address = None if index == job.nodes.main else machines[job.nodes.main].address
        node.move(states.STARTING)
        self._run_in_thread(
            attempts.begin(
                node, queue_name, environment, machines[index], needs_of(job)[index], main_address
            )
        )

    def _run_in_thread(self, running: Running) -> None:
        self._running[running.job.id] = running
        thread = threading.Thread(target=self._run, args=(running,), daemon=True)
        self._threads.add(thread)
        thread.start()

    def _run(self, running: Running) -> None:
        try:
            ended = attempts.run(
                running,
                account=self._store.account,
                executor=self._executor,
                conditions=self._conditions,
                work_dir=self._work_dir,
                started=lambda part, pid: self._started(running, part, pid),
            )
        except Exception as err:  # noqa: BLE001 # a mistake of ours: the job must not hang for it
            traceback.print_exception(err)
            reason = f"the sandbox failed: {err!r}"
            ran = {"container": {"reason": reason}}
            ended = Ended("Task failed to start", ran, reason, None, False, may_retry=False)
        with self._store.lock:
            self.ended += 1
            for pid in running.pids:
                self._sessions.pop(pid, None)
            del self._running[running.job.id]
            self._finish(running, ended)
            self._threads.discard(threading.current_thread())
        self._wake.set()

    def _started(self, running: Running, part: Part, pid: int) -> None:
        job = running.job
        with self._store.lock:
            self._sessions[pid] = part
            running.pids.append(pid)
            if job.status != states.STARTING:
                return  # not its first container
            job.move(states.RUNNING)
            job.started_ms = self.now_ms()
            job.ran = attempts.describe(running, self._store.account)
            parent = job.parent
            if parent is None:
                return
            if parent.nodes and job is parent.nodes.main_node:
                parent.move(states.RUNNING)
                parent.started_ms = job.started_ms
                for index, node in enumerate(parent.nodes.children):
                    if node is not job and node.status == states.RUNNABLE:
                        self._begin_node(running.queue_name, parent, index)
            elif parent.started_ms is None:
                parent.started_ms = job.started_ms

    def _finish(self, running: Running, ended: Ended) -> None:
        job, now = running.job, self.now_ms()
        if job.parent and job.parent.nodes:
            self._finish_node(job.parent, job, ended, now)
            return
        self.machines.give_back(running.machine, job.id, running.need, now)
        self._end_attempt(job, ended, now)

    def _end_attempt(self, job: Job, ended: Ended, now: int) -> None:
        """The attempt is over; with it the job, unless it gets another."""
        progress.note_attempt(job, ended, now)
        if not ended.succeeded and ended.may_retry and progress.gets_another(job, ended):
            job.started_ms = None
            if job.nodes:
                job.nodes.children = [nodes.renew(node) for node in job.nodes.children]
            job.move(states.RUNNABLE)
            if job.parent and job.parent.array:
                job.parent.array.again.append(job)
            return
        job.move(states.SUCCEEDED if ended.succeeded else states.FAILED, ended.status_reason)
        job.stopped_ms = now

    def _finish_node(self, parent: Job, node: Job, ended: Ended, now: int) -> None:
        """The main node's end is the job's; the others end with it."""
        assert parent.nodes is not None
        progress.note_attempt(node, ended, now)
        node.move(states.SUCCEEDED if ended.succeeded else states.FAILED, ended.status_reason)
        node.stopped_ms = now
        if node is parent.nodes.main_node:
            parent.ended = ended
            for other in self._nodes_of(parent):
                other.end(MAIN_ENDED)
        if parent.ended and not self._nodes_of(parent):
            self._finish_nodes(parent, parent.ended, now)

    def _finish_nodes(self, parent: Job, ended: Ended, now: int) -> None:
        """All nodes have ended: the job is over, or gets another attempt as a whole."""
        assert parent.nodes is not None
        placement = self._placed.pop(parent.id)
        for node, machine, need in zip(
            parent.nodes.children, placement.machines, needs_of(parent), strict=True
        ):
            self.machines.give_back(machine, node.id, need, now)
            if node.status not in states.OVER:
                end(node, MAIN_ENDED, now)
        parent.ended = None
        self._end_attempt(parent, ended, now)


def _nodes(job: Job) -> list[Job]:
    return job.nodes.children if job.nodes else []
