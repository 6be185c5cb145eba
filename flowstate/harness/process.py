"""
An agent's processes, from outside: signal one safely, and find those that a run left behind.

Every process of a run carries a marker in its environment (``MARKER``), inherited by whatever it
starts. A command that an agent runs in a session of its own survives the agent's SIGKILL and is
nobody's child any more, but it still carries the marker. Looking for it needs ``/proc``: on other
systems nothing is found, and what an agent left behind stays.

No event loop in here; all functions return at once or within a scan or two of ``/proc``.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import final

MARKER = "FLOWSTATE_RUN"
"""The environment variable that marks a run's processes; its value is the run's own id."""

_ROUNDS = 5
_LOOK_AGAIN = 0.005
"""Seconds between the two looks that have to find nothing; an exec takes less."""

_PROC = Path("/proc")


@final
class ProcessHandle:
    """
    One process that is not ours to wait for. Holds a descriptor of it where the system has such
    a thing, so that a signal never reaches a later process of the same id.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._descriptor: int | None = None
        self._gone = False
        if sys.platform == "linux":
            try:
                self._descriptor = os.pidfd_open(pid)
            except ProcessLookupError:
                self._gone = True
            except OSError:
                self._descriptor = None

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal; False if the process is gone."""
        if self._gone:
            return False
        try:
            if self._descriptor is not None and sys.platform == "linux":
                signal.pidfd_send_signal(self._descriptor, number)
            else:
                os.kill(self.pid, number)
        except ProcessLookupError:
            return False
        except PermissionError:
            return False
        return True

    @property
    def alive(self) -> bool:
        """Whether it is still running; a process that ended and was not waited for is not."""
        if self._gone:
            return False
        if self._descriptor is not None:
            poll = select.poll()
            poll.register(self._descriptor, select.POLLIN)
            return not poll.poll(0)
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True

    def close(self) -> None:
        """Let go of the descriptor. A second call does nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)
        self._gone = True


def marked_processes(value: str) -> list[int]:
    """The ids of all live processes that carry this marker, this process excepted."""
    entry = f"{MARKER}={value}".encode()
    found: list[int] = []
    try:
        names = os.listdir(_PROC)
    except OSError:
        return []
    for name in names:
        if name.isdigit() and int(name) != os.getpid() and _carries(int(name), entry):
            found.append(int(name))
    return sorted(found)


def signal_marked(value: str, number: signal.Signals) -> list[int]:
    """Send a signal to every process that carries this marker; returns their ids."""
    entry = f"{MARKER}={value}".encode()
    reached: list[int] = []
    for pid in marked_processes(value):
        handle = ProcessHandle(pid)
        try:
            # Looked at again with the handle open: from here on the id can't be another's.
            if _carries(pid, entry) and handle.signal(number):
                reached.append(pid)
        finally:
            handle.close()
    return reached


def kill_marked(value: str) -> list[int]:
    """
    SIGKILL every process that carries this marker, also those started meanwhile; returns their ids.

    Blocks for some milliseconds: a process in the middle of its exec shows no environment, so that
    nothing is left is believed only when it is seen twice.
    """
    killed: list[int] = []
    seen_none = False
    for _ in range(_ROUNDS):
        reached = signal_marked(value, signal.SIGKILL)
        found = [pid for pid in reached if pid not in killed]
        if not found and seen_none:
            break
        seen_none = not found
        killed.extend(found)
        if seen_none:
            time.sleep(_LOOK_AGAIN)
    return killed


def _carries(pid: int, entry: bytes) -> bool:
    try:
        environment = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        # Gone meanwhile, or another user's. A process that ended has an empty environment.
        return False
    return entry in environment.split(b"\0")
