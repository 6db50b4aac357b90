"""The own machine's supervisor: takes tasks from the store, runs them in order, writes down what
becomes of them. One process a folder, of its own session, asleep unless something happens.

It decides nothing about the order (placement.py), knows what it must from the store and from the
attempts' files alone, and may be killed at any moment.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import selectors
import signal
import socket
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from submit.local import wire
from submit.local.attempts import Files
from submit.local.crew import LOOK_S, Crew
from submit.local.desk import Desk
from submit.local.machine import boot_id, this_machine
from submit.local.seats import Seats
from submit.local.store import Store
from submit.shared_file import shared_path

if TYPE_CHECKING:
    from collections.abc import Callable

LINGER_S = 5.0
"""How long a supervisor with nothing to do waits for more."""
_PIECE = 1 << 16
_BACKLOG = 16


def main(folder: str) -> None:
    """Becomes the supervisor of that folder, in a process of its own; returns at once, when it
    listens. Nothing happens when there is one already.
    """
    os.umask(0o077)
    ready, tell = os.pipe()
    if os.fork():
        os.close(tell)
        os._exit(0 if os.read(ready, 1) else 1)
    os.close(ready)
    try:
        serve(Path(folder), lambda: _tell(tell))
    except BaseException:  # noqa: BLE001 # the last word of a process without a terminal
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def serve(folder: Path, ready: Callable[[], None]) -> None:
    """Runs what stands in the store, until nothing is left; calls `ready` when it listens."""
    with (folder / wire.LOCK).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _await_other(folder)
            ready()
            return
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")  # for people
        lock.flush()
        with Store(folder) as store, selectors.DefaultSelector() as selector:
            supervisor = _Supervisor(folder, store, selector)
            try:
                supervisor.open()
                ready()
                supervisor.run()
            finally:
                supervisor.close()


def _tell(fd: int) -> None:
    os.write(fd, b".")
    os.close(fd)


def _await_other(folder: Path) -> None:
    """Until the one that has the lock listens, or has gone."""
    for _ in range(200):
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            wire.connect(folder).close()
            return
        time.sleep(0.025)


class _Caller(msgspec.Struct, kw_only=True):
    """A connection, and the tasks whose end it waits for."""

    line: socket.socket
    incoming: wire.Incoming
    attends: tuple[str, ...] = ()


class _Supervisor:
    def __init__(self, folder: Path, store: Store, selector: selectors.BaseSelector) -> None:
        self._folder = folder
        self._selector = selector
        boot = boot_id()
        self._crew = Crew(Files(folder), selector, boot)
        machine, seats = this_machine(os.environ), Seats(shared_path(os.environ))
        self._desk = Desk(store, self._crew, Files(folder), machine, boot, seats)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._callers: dict[int, _Caller] = {}
        self._ending = False

    def open(self) -> None:
        """Finds out what has become of the runs of an earlier supervisor, then listens."""
        self._desk.recover()
        (self._folder / wire.SOCKET).unlink(missing_ok=True)
        with wire.short_path(self._folder) as path:
            self._listener.bind(path)
        self._listener.listen(_BACKLOG)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._wake_on_signals()

    def run(self) -> None:
        """Until there is nothing left to do, or it is told to go; runs go on without it."""
        idle_since = time.monotonic()
        while not self._ending:
            pause = self._desk.pause_s
            if pause is None:
                pause = self._pause(idle_since)
            for key, _ in self._selector.select(pause):
                key.data()
            self._desk.turn()
            self._tell_ends()
            if not self._desk.is_idle or self._callers:
                idle_since = time.monotonic()
            elif time.monotonic() - idle_since >= LINGER_S:
                return

    def close(self) -> None:
        """Takes back what was claimed and not started, and hangs up."""
        self._desk.release()
        for caller in list(self._callers.values()):
            self._hang_up(caller)
        self._listener.close()
        (self._folder / wire.SOCKET).unlink(missing_ok=True)

    def _pause(self, idle_since: float) -> float | None:
        if self._desk.is_idle and not self._callers:
            return max(0.0, idle_since + LINGER_S - time.monotonic())
        pause = self._crew.pause()
        if self._desk.waits_for_others:
            return LOOK_S if pause is None else min(pause, LOOK_S)
        return pause

    def _wake_on_signals(self) -> None:
        read, write = os.pipe()
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._end())
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self._selector.register(read, selectors.EVENT_READ, lambda: os.read(read, _PIECE))

    def _end(self) -> None:
        self._ending = True

    def _accept(self) -> None:
        line, _ = self._listener.accept()
        line.setblocking(False)
        caller = _Caller(line=line, incoming=wire.Incoming())
        self._callers[line.fileno()] = caller
        self._selector.register(line, selectors.EVENT_READ, lambda: self._hear(caller))

    def _hear(self, caller: _Caller) -> None:
        try:
            piece = caller.line.recv(_PIECE)
            messages = caller.incoming.add(piece)
        except BlockingIOError:
            return
        except (OSError, msgspec.DecodeError):
            piece, messages = b"", []
        for message in messages:
            self._do(caller, message)
        if not piece:
            self._hang_up(caller)
            # Whoever dies between the store and "look" has put something there all the same.
            self._desk.look()
            self._desk.cancel(caller.attends)

    def _do(self, caller: _Caller, message: wire.Message) -> None:
        if isinstance(message, wire.Environment):
            self._desk.keep(message)
        elif isinstance(message, wire.Attend):
            caller.attends = message.tasks
        self._desk.look()
        self._answer(caller)

    def _tell_ends(self) -> None:
        for caller in list(self._callers.values()):
            if caller.attends and self._desk.are_over(caller.attends):
                caller.attends = ()
                self._answer(caller)

    def _answer(self, caller: _Caller) -> None:
        with contextlib.suppress(OSError):  # one byte: it fits, or nobody is there
            caller.line.send(wire.DONE)

    def _hang_up(self, caller: _Caller) -> None:
        self._selector.unregister(caller.line)
        del self._callers[caller.line.fileno()]
        caller.line.close()
