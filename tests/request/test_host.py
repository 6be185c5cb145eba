"""A library in somebody else's house: the host's log context, its logging, its secrets."""

from __future__ import annotations

import logging
from contextvars import ContextVar
from typing import Any

import anyio
import pytest
import structlog

from flowstate import Context, Runtime, handler, sequencer
from tests.request.desk import flow_of

pytestmark = pytest.mark.anyio

own: ContextVar[str] = ContextVar("own", default="unset")


@handler
async def works(value: int, ctx: Context) -> int:
    ctx.log.info("working")
    structlog.contextvars.bind_contextvars(inside="yes")
    own.set("by the flow")
    if value > 1:
        raise ValueError("second call")
    return value


async def test_the_hosts_log_context_stays_as_it_was() -> None:
    """Still bound afterwards, and nothing of ours in it, whether the flow completes or fails."""
    flow, ask = flow_of(sequencer("turn", int).side_chain(works).step(works))
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(trace_id="h1")
    try:
        async with Runtime(flow) as runtime:
            for value in (1, 2):
                run = await runtime.dispatch(ask, value, session="s1")
                await run.finished()
                assert structlog.contextvars.get_contextvars() == {"trace_id": "h1"}
                assert own.get() == "unset"
    finally:
        structlog.contextvars.clear_contextvars()


async def test_a_run_sees_the_hosts_log_context() -> None:
    """A request runs in a copy of the context of whoever sent it."""
    seen: list[Any] = []

    @handler
    async def looks(value: int) -> int:
        seen.append(dict(structlog.contextvars.get_contextvars()))
        return value

    flow, ask = flow_of(looks)
    structlog.contextvars.clear_contextvars()
    async with Runtime(flow) as runtime:
        with structlog.contextvars.bound_contextvars(trace_id="h1"):
            run = await runtime.dispatch(ask, 1, session="s1")
        await run.output()
    assert seen == [{"trace_id": "h1"}]


async def test_nothing_global_is_configured(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither structlog nor logging, also where the host configured nothing; no secret is told."""
    monkeypatch.setenv("API_KEY", "sk-very-secret")
    structlog.reset_defaults()
    handlers, level = list(logging.root.handlers), logging.root.level
    flow, ask = flow_of(sequencer("turn", int).side_chain(works).step(works))
    async with Runtime(flow) as runtime:
        for value in (1, 2):
            await (await runtime.dispatch(ask, value, session="s1")).finished()
    assert not structlog.is_configured()
    assert logging.root.handlers == handlers
    assert logging.root.level == level
    captured = capsys.readouterr()
    assert "sk-very-secret" not in captured.out + captured.err


async def test_log_lines_name_the_request() -> None:
    """Each line says which request, session, flow and action it is of."""
    flow, ask = flow_of(works)
    with structlog.testing.capture_logs() as lines:
        async with Runtime(flow) as runtime:
            run = await runtime.dispatch(ask, 1, session="s1")
            await run.finished()
    (line,) = [line for line in lines if line["event"] == "working"]
    assert (line["request"], line["session"]) == (run.id, "s1")
    assert (line["flow"], line["action"]) == ("coding", "ask")


async def test_requests_don_t_share_context_variables() -> None:
    """What one sets, another of the same Runtime doesn't see."""
    seen: list[str] = []

    @handler
    async def looks(value: int) -> int:
        seen.append(own.get())
        own.set(f"request {value}")
        await anyio.sleep(0.001)
        return value

    flow, ask = flow_of(looks)
    async with Runtime(flow) as runtime:
        runs = [await runtime.dispatch(ask, number, session=f"s{number}") for number in range(4)]
        for run in runs:
            await run.output()
    assert seen == ["unset"] * 4
