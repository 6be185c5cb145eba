"""Signalling an agent's processes, and finding those that it left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator

import pytest

from flowstate.harness import process as process_module
from flowstate.harness.process import (
    MARKER,
    ProcessHandle,
    kill_marked,
    marked_processes,
    signal_marked,
)

linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

SLEEP = "import sys, time; print('up', flush=True); time.sleep(60)"


@pytest.fixture(name="value")
def _value() -> Iterator[str]:
    value = uuid.uuid4().hex
    yield value
    kill_marked(value)


def _sleeper(value: str | None, program: str = SLEEP) -> subprocess.Popen[str]:
    environment = {**os.environ, MARKER: value} if value else dict(os.environ)
    process = subprocess.Popen(
        [sys.executable, "-IS", "-c", program],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


def _end(process: subprocess.Popen[str]) -> int:
    if process.poll() is None:
        process.kill()
    # Its output isn't read to the end: what it left behind may hold the pipe open.
    process.wait(timeout=10)
    assert process.stdout is not None
    process.stdout.close()
    return process.returncode


def test_a_handle_signals_and_sees_the_end(value: str) -> None:
    """A signal reaches the process; once it has ended it isn't alive and can't be reached."""
    process = _sleeper(value)
    handle = ProcessHandle(process.pid)

    assert handle.alive
    assert handle.signal(signal.SIGTERM)
    assert _end(process) == -signal.SIGTERM
    assert not handle.alive
    assert not handle.signal(signal.SIGTERM)

    handle.close()
    handle.close()
    assert not handle.signal(signal.SIGTERM)


def test_a_process_that_is_gone_is_not_reached() -> None:
    """A handle made too late neither raises nor signals."""
    process = subprocess.Popen([sys.executable, "-IS", "-c", ""])
    process.wait(timeout=10)
    handle = ProcessHandle(process.pid)

    assert not handle.alive
    assert not handle.signal(signal.SIGKILL)
    handle.close()


@linux
def test_only_marked_processes_are_found(value: str) -> None:
    """A process with another marker, or none, is never touched."""
    ours, other, plain = _sleeper(value), _sleeper(uuid.uuid4().hex), _sleeper(None)
    try:
        assert marked_processes(value) == [ours.pid]
        assert kill_marked(value) == [ours.pid]
        assert _end(ours) == -signal.SIGKILL
        assert other.poll() is None
        assert plain.poll() is None
    finally:
        for process in (ours, other, plain):
            _end(process)


@linux
def test_orphans_in_sessions_of_their_own_are_found(value: str) -> None:
    """A command whose parent was killed is nobody's child any more, and still killed."""
    parent = _sleeper(
        value,
        "import subprocess, sys, time; subprocess.Popen([sys.executable, '-IS', '-c', "
        "'import time; time.sleep(60)'], start_new_session=True); "
        "print('up', flush=True); time.sleep(60)",
    )
    try:
        # A process in the middle of its exec shows no environment for a moment.
        deadline = time.monotonic() + 10
        while len(marked_processes(value)) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(marked_processes(value)) == 2
    finally:
        ended = _end(parent)
    assert ended == -signal.SIGKILL
    assert len(marked_processes(value)) == 1

    assert len(kill_marked(value)) == 1
    deadline = time.monotonic() + 10
    while marked_processes(value) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert marked_processes(value) == []


def test_one_look_that_finds_nothing_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process in the middle of its exec shows no environment, and is found by the next look."""
    looks = iter([[], [41], [41], [], []])
    monkeypatch.setattr(process_module, "signal_marked", lambda value, number: next(looks))

    assert kill_marked("any") == [41]


@linux
def test_other_signals_can_be_sent_to_all(value: str) -> None:
    """Before its id is known, an agent is told to end by its marker."""
    process = _sleeper(value)

    assert signal_marked(value, signal.SIGTERM) == [process.pid]
    assert _end(process) == -signal.SIGTERM


def test_this_process_is_never_found(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """A server that itself runs below an agent doesn't kill itself."""
    monkeypatch.setenv(MARKER, value)

    assert marked_processes(value) == []
