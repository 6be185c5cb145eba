"""Ctrl-C and SIGTERM, seen from outside."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flowstate.store.opening import open_store

FLOW = """
import anyio, sys
from flowstate import action, define_flow, handler

@handler
async def wait(text: str) -> str:
    print("at work", file=sys.stderr, flush=True)
    try:
        await anyio.sleep(60)
    finally:
        print("cleaned up", file=sys.stderr, flush=True)
    return text

@handler
def stuck(text: str) -> str:
    import time
    print("at work", file=sys.stderr, flush=True)
    time.sleep(60)
    return text

slow = define_flow("slow", actions=[action("wait", wait), action("stuck", stuck)])
"""


def start(folder: Path, action: str, *more: str) -> subprocess.Popen[str]:
    (folder / "slow.py").write_text(FLOW)
    process = subprocess.Popen(
        [sys.executable, "-m", "flowstate", "run", "slow.py:slow", action, "--session", "s",
         "--input", '"x"', "--store", "slow.db", *more],
        cwd=folder,
        env={**os.environ, "PYTHONUTF8": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    assert process.stderr is not None
    for line in process.stderr:
        if "at work" in line:
            break
    return process


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["Ctrl-C", "SIGTERM"]
)
def test_a_signal_cancels_the_run_cleanly(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """Clean-up runs, the status is stored, the exit code names the signal."""
    process = start(tmp_path, "wait", "--json")
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert "cleaned up" in err
    assert "Traceback" not in err
    end = json.loads(out.splitlines()[-1])
    assert (end["type"], end["status"]) == ("end", "cancelled")

    async def status() -> str:
        store = open_store(f"sqlite:///{tmp_path / 'slow.db'}")
        await store.open()
        try:
            record = await store.request(end["requestId"])
            assert record is not None
            return record.status
        finally:
            await store.close()

    assert asyncio.run(status()) == "cancelled"


def test_a_person_is_told_that_it_stops(tmp_path: Path) -> None:
    """Without --json, among the lines of the run."""
    process = start(tmp_path, "wait")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Ctrl-C: stopping" in out
    assert "✗ cancelled" in out


def test_a_third_signal_leaves_a_handler_that_never_returns(tmp_path: Path) -> None:
    """A thread can't be stopped; the second signal says that it goes on."""
    process = start(tmp_path, "stuck")
    began = time.monotonic()
    for _ in range(3):
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert time.monotonic() - began < 25
    assert "Still stopping" in out
