"""The real Claude Code binary against the scripted endpoint, driven by the vendor's own client."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import anyio
import anyio.to_thread
import pytest

from flowstate.testing.agent_home import (
    DUMMY_KEY,
    DUMMY_OAUTH_TOKEN,
    CleanHome,
    clean_home,
    require_clean_environment,
)
from flowstate.testing.messages_api import ScriptedMessagesApi, ScriptedTurn
from flowstate.testing.scripted_turns import (
    ApiError,
    Turn,
    rate_limit_headers,
    redacted_thinking,
    text,
    thinking,
    tool_call,
)

sdk = pytest.importorskip("claude_agent_sdk")

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.live,
    # Under trio the client leaves generators of its own to the garbage collector.
    pytest.mark.filterwarnings("ignore:Async generator 'claude_agent_sdk:ResourceWarning"),
]

LIMIT = 60.0
"""Seconds for one run; on a quiet machine it takes less than two."""


@pytest.fixture(autouse=True)
def _nothing_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK adds its ``env`` to what the process has, so the process has next to nothing."""
    for name in os.environ.keys() - {"PATH"}:
        monkeypatch.delenv(name)


async def connected(home: CleanHome, **more: str) -> Any:
    """A client whose binary lives in the home and works in its ``work`` directory."""
    work = anyio.Path(home.path, "work")
    await work.mkdir(exist_ok=True)
    env = {**home.env, **more}
    await anyio.to_thread.run_sync(require_clean_environment, {**os.environ, **env})
    return sdk.ClaudeSDKClient(
        sdk.ClaudeAgentOptions(
            cwd=str(work),
            env=env,
            permission_mode="acceptEdits",
            allowed_tools=["Bash(cat note.txt)"],
            setting_sources=[],
            model="claude-sonnet-4-5",
        )
    )


async def run(
    api: ScriptedMessagesApi, *, env: Mapping[str, str] | None = None, oauth: bool = False
) -> list[Any]:
    """Every message of one run, its result last."""
    with anyio.fail_after(LIMIT):
        async with (
            clean_home(api, oauth=oauth) as home,
            await connected(home, **(env or {})) as client,
        ):
            await client.query("Do what the script says")
            return [message async for message in client.receive_response()]


async def test_a_run_writes_a_file_reads_it_by_a_command_and_answers() -> None:
    """Tools run for real; their results come back to the endpoint; any character passes."""
    words = "é 😀 \u2028 \ud800"
    async with ScriptedMessagesApi(
        Turn(
            thinking("hm"),
            redacted_thinking(),
            text("Writing."),
            tool_call("Write", file_path="note.txt", content="hé\u2028llo\n"),
        ),
        Turn(tool_call("Bash", command="cat note.txt", description="Show it")),
        Turn(text(words)),
    ) as api:
        with anyio.fail_after(LIMIT):
            async with clean_home(api) as home:
                async with await connected(home) as client:
                    await client.query("Write a note")
                    messages = [message async for message in client.receive_response()]
                written = await anyio.Path(home.path, "work", "note.txt").read_text("utf-8")

    result = messages[-1]
    assert (result.subtype, result.is_error, result.result) == ("success", False, words)
    assert written == "hé\u2028llo\n"
    first, second, third = api.conversation()
    assert "Write a note" in first.user_texts[-1]
    assert {"Write", "Bash"} <= set(first.tool_names)
    assert "created successfully" in second.tool_results[0].text
    assert "hé\u2028llo" in third.tool_results[0].text
    assert DUMMY_KEY not in repr(api.requests)
    assert {r.kind for r in api.requests} == {"conversation"}
    assert {r.answered_from for r in api.requests} == {"script"}


async def test_an_overloaded_service_is_asked_again() -> None:
    """Claude Code tells its retry and then goes on as if nothing had been."""
    async with ScriptedMessagesApi(ApiError(529), Turn(text("at last"))) as api:
        messages = await run(api, env={"CLAUDE_CODE_MAX_RETRIES": "1"})

    retries = [m for m in messages if getattr(m, "subtype", "") == "api_retry"]
    assert [retry.data["error_status"] for retry in retries] == [529]
    assert messages[-1].result == "at last"
    assert len(api.conversation()) == 2


async def test_a_service_that_stays_overloaded_ends_the_run() -> None:
    """One retry was allowed and both were refused: the result is an error that says so."""
    async with ScriptedMessagesApi(ApiError(529), ApiError(529)) as api:
        messages = await run(api, env={"CLAUDE_CODE_MAX_RETRIES": "1"})

    assert messages[-1].is_error
    assert messages[-1].api_error_status == 529
    assert len(api.conversation()) == 2


async def test_a_hanging_turn_ends_when_it_is_released() -> None:
    """The run has no result until then, and a right one after."""
    async with ScriptedMessagesApi(Turn(text("patience"), hang=True)) as api:
        results: list[Any] = []

        async def one() -> None:
            results.append((await run(api))[-1])

        with anyio.fail_after(LIMIT):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(one)
                await api.wait_for_request(1)
                await anyio.sleep(0.3)
                assert results == []
                api.release()

    assert results[0].result == "patience"


async def test_an_interrupt_reaches_a_run_whose_turn_hangs() -> None:
    """Stopping a run needs no answer from the endpoint."""
    async with ScriptedMessagesApi(Turn(text("patience"), hang=True)) as api:
        with anyio.fail_after(LIMIT):
            async with clean_home(api) as home, await connected(home) as client:
                await client.query("Wait")
                await api.wait_for_request(1)
                await client.interrupt()
                messages = [message async for message in client.receive_response()]

    assert messages[-1].subtype == "error_during_execution"


async def test_a_stream_that_breaks_off_is_asked_for_again() -> None:
    """A cut connection is a network error to Claude Code: it asks once more."""
    script: list[ScriptedTurn] = [Turn(text("half"), drop_after=1), Turn(text("whole"))]
    async with ScriptedMessagesApi(*script) as api:
        messages = await run(api, env={"CLAUDE_CODE_MAX_RETRIES": "2"})

    assert messages[-1].result == "whole"
    assert len(api.conversation()) == 2


async def test_a_subscription_is_told_of_its_limit() -> None:
    """On the dummy token the headers become an event; the token isn't kept."""
    headers = rate_limit_headers("allowed_warning", utilization=0.91, surpassed=0.9)
    async with ScriptedMessagesApi(Turn(text("ok"), headers=headers)) as api:
        messages = await run(api, oauth=True)

    told = [m.rate_limit_info for m in messages if type(m).__name__ == "RateLimitEvent"]
    assert (told[-1].status, told[-1].utilization) == ("allowed_warning", 0.91)
    assert DUMMY_OAUTH_TOKEN not in repr(api.requests)


async def test_a_sub_agent_takes_the_turns_of_its_route() -> None:
    """Its prompt begins its conversation, and so its marker picks the queue."""
    async with ScriptedMessagesApi(
        Turn(tool_call("Agent", description="Sub", prompt="SUB-A go", subagent_type="Explore")),
        Turn(text("main goes on")),
        Turn(text("main was told")),
    ) as api:
        api.route("SUB-A", Turn(text("sub answers")))
        with anyio.fail_after(LIMIT):
            async with clean_home(api) as home, await connected(home) as client:
                await client.query("Delegate")
                await api.wait_for_request(4)

    assert sorted(r.answered_from for r in api.conversation()) == ["route SUB-A"] + ["script"] * 3
