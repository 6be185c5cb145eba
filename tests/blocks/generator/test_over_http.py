"""Anthropic's real client, over HTTP, against a scripted endpoint on loopback."""

from __future__ import annotations

import gc
import math
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from pydantic import BaseModel
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider

from flowstate import Context, Retry, define_capability, handler, run_block, sequencer
from flowstate.blocks.generator import (
    ModelAnswerError,
    ModelRequestError,
    ModelUnusableError,
    ModelUsage,
    TransientModelError,
    generator,
)
from flowstate.errors import TimedOut
from flowstate.item.content import Message, Reasoning, ToolOutput
from flowstate.testing import (
    ApiError,
    RecordingSink,
    ScriptedMessagesApi,
    Turn,
    text,
    thinking,
    tool_call,
)
from flowstate.testing.scripted_turns import Usage

pytestmark = [
    pytest.mark.anyio,
    # Cancelled between two events, the vendor's client leaves its (closed) stream's generators to
    # the garbage collector, which trio alone tells of.
    pytest.mark.filterwarnings("ignore:Async generator .* was garbage collected:ResourceWarning"),
]

MODEL = "claude-scripted-1"
KEY = "sk-test-0123456789"


class Review(BaseModel):
    """What is thought of a draft."""

    risk: int


@handler
async def lookup(term: str) -> str:
    """Looks a term up."""
    return f"{term} is known"


@pytest.fixture
async def api() -> AsyncIterator[ScriptedMessagesApi]:
    """The endpoint, without turns yet."""
    async with ScriptedMessagesApi() as scripted:
        yield scripted
    gc.collect()  # what it tells belongs to this test


def model(api: ScriptedMessagesApi) -> AnthropicModel:
    """A model whose requests reach the endpoint alone."""
    return AnthropicModel(MODEL, provider=AnthropicProvider(api_key=KEY, base_url=api.url))


def connections(api: ScriptedMessagesApi) -> int:
    """How many established connections this machine holds to the endpoint."""
    port = f":{int(api.url.rpartition(':')[2]):04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]]
    return sum(row[2].endswith(port) and row[3] == "01" for row in rows)


async def no_connection(api: ScriptedMessagesApi) -> bool:
    """Whether none is left; the kernel takes a moment to close one."""
    if sys.platform != "linux":
        pytest.skip("it reads the kernel's table of connections: not available")
    for _ in range(400):
        if not connections(api):
            return True
        await anyio.sleep(0.005)
    return False


async def test_a_streamed_answer(api: ScriptedMessagesApi) -> None:
    """Text and thinking come in pieces; usage is what the service counted."""
    said = "The quick brown fox jumps over the lazy dog, and once more."
    used = Usage(input=11, output=7, cache_read=5, cache_write=3)
    api.script(Turn(thinking("Let me think about this fox."), text(said), usage=used))
    heard: list[ModelUsage] = []
    block = generator(
        "tell",
        model=model(api),
        instructions="Be brief.",
        on_usage=lambda usage, ctx: heard.append(usage),
    )
    sink = RecordingSink()
    assert await run_block(block, "Tell me", emit=sink) == said
    reasoning, message = sink.items
    assert reasoning.content == Reasoning(text="Let me think about this fox.")
    assert message.content == Message(text=said)
    assert len(sink.streamed(message)) > 1
    (usage,) = heard
    assert usage == ModelUsage(
        model=MODEL,
        turn=1,
        input_tokens=19,
        output_tokens=7,
        cache_read_tokens=5,
        cache_write_tokens=3,
    )
    (request,) = api.conversation()
    assert request.user_texts == ("Tell me",)
    assert request.system_text == "Be brief."
    assert request.body["stream"] is True
    assert await no_connection(api)


async def test_a_tool_loop_with_a_typed_output(api: ScriptedMessagesApi) -> None:
    """Tools, results and the output tool as the provider wants them, an error flagged as one."""

    @handler
    async def fail(term: str) -> str:
        raise LookupError("no such term")

    api.script(
        Turn(text("I look."), tool_call("lookup", value="tea"), tool_call("fail", value="x")),
        Turn(tool_call("final_result", risk="high")),
        Turn(tool_call("final_result", risk=2)),
    )
    block = generator("ask", output=Review, model=model(api), tools=[lookup, fail])
    sink = RecordingSink()
    assert await run_block(block, "go", emit=sink) == Review(risk=2)
    first, second, third = api.conversation()
    assert first.tool_names == ("lookup", "fail", "final_result")
    results = [(result.text, result.is_error) for result in second.tool_results]
    assert results == [("tea is known", False), ("LookupError: no such term", True)]
    (corrected,) = third.tool_results
    assert corrected.is_error
    assert "valid integer" in corrected.text
    assert [call.is_error for call in sink.contents(ToolOutput)] == [False, True]
    assert await no_connection(api)


async def test_what_capabilities_say_reaches_the_request(api: ScriptedMessagesApi) -> None:
    """Context entries are in the system prompt, tools among the tools."""
    memory = define_capability(
        "memory",
        str,
        lambda ctx: "",
        context=["Remember the tea.", lambda ctx: f"You are {ctx.path}."],
        tools=[lookup.as_tool("Looks a term up.")],
    )
    api.script(Turn(text("ok")))
    block = generator("ask", model=model(api), instructions="Be brief.", uses=[memory])
    await run_block(sequencer("turn", str).step(block), "go")
    (request,) = api.conversation()
    assert request.system_text.split("\n") == [
        "Be brief.",
        *([""] if "" in request.system_text.split("\n") else []),
        "Remember the tea.",
        *([""] if "" in request.system_text.split("\n") else []),
        "You are turn/ask.",
    ]
    (tool,) = request.body["tools"]
    assert (tool["name"], tool["description"]) == ("lookup", "Looks a term up.")


@pytest.mark.parametrize("status", [429, 529, 500])
async def test_an_overloaded_service_is_a_transient_error(
    api: ScriptedMessagesApi, status: int
) -> None:
    """The status, and when to come back; the vendor's error is the cause; no key anywhere."""
    refused = ApiError(status, message=f"busy, {KEY}", headers={"retry-after": "7"})
    api.script(refused)
    block = generator("ask", model=model(api), settings={"max_retries": 0})
    with pytest.raises(TransientModelError, match=f"HTTP status {status}") as caught:
        await run_block(block, "go")
    error = caught.value
    assert (error.status, error.retry_after) == (status, 7.0)
    assert error.model == MODEL
    assert error.__cause__ is not None
    assert KEY not in str(error)
    assert "[redacted]" in str(error)
    assert len(api.conversation()) == 1
    assert await no_connection(api)


async def test_http_retries_are_the_client_s_and_retry_is_the_block_s(
    api: ScriptedMessagesApi,
) -> None:
    """``max_retries`` repeats a request, ``retry`` the whole block."""
    soon = {"retry-after": "0"}
    api.script(ApiError(529, headers=soon), Turn(text("one")))
    assert await run_block(generator("a", model=model(api), settings={"max_retries": 1}), "go") == (
        "one"
    )
    api.script(ApiError(529, headers=soon), Turn(text("two")))
    block = generator(
        "b",
        model=model(api),
        settings={"max_retries": 0},
        retry=Retry(attempts=2, retry_on=(TransientModelError,), delay=0.0),
    )
    assert await run_block(block, "go") == "two"


@pytest.mark.parametrize("status", [400, 401, 404])
async def test_a_refused_request_is_no_transient_error(
    api: ScriptedMessagesApi, status: int
) -> None:
    """What another try would meet again."""
    api.script(ApiError(status))
    with pytest.raises(ModelRequestError) as caught:
        await run_block(generator("ask", model=model(api)), "go")
    assert not isinstance(caught.value, TransientModelError)
    assert caught.value.status == status


async def test_an_answer_that_breaks_off_is_transient(api: ScriptedMessagesApi) -> None:
    """The connection is lost in the middle: what was said stays as an incomplete item."""
    api.script(Turn(text("The quick brown fox jumps over the lazy dog."), drop_after=5))
    sink = RecordingSink()
    block = generator("ask", model=model(api), settings={"max_retries": 0})
    with pytest.raises(TransientModelError):
        await run_block(block, "go", emit=sink)
    (message,) = sink.of_type(Message)
    assert message.status == "incomplete"
    assert sink.open == []
    assert await no_connection(api)


async def test_an_answer_cut_off_at_its_limit_is_no_answer(api: ScriptedMessagesApi) -> None:
    """``max_tokens`` was reached: the error names the setting."""
    api.script(Turn(text("The quick"), stop_reason="max_tokens"))
    with pytest.raises(ModelAnswerError, match="max_tokens"):
        await run_block(generator("ask", model=model(api)), "go")
    api.script(Turn(text("No."), stop_reason="refusal"))
    with pytest.raises(ModelAnswerError, match="withheld"):
        await run_block(generator("ask", model=model(api)), "go")


@pytest.mark.parametrize("where", ["before the answer", "in the answer"])
async def test_a_cancel_closes_the_connection(api: ScriptedMessagesApi, where: str) -> None:
    """Whether headers came or not: the stream is closed, the item incomplete, usage told."""
    heard: list[ModelUsage] = []
    if where == "in the answer":
        api.script(Turn(text("The quick brown fox jumps over the lazy dog."), hang=True))
    else:
        api.script(Turn(text("never"), delay=math.inf))

    async def hook(usage: ModelUsage, ctx: Context) -> None:
        await anyio.lowlevel.checkpoint()
        heard.append(usage)

    sink = RecordingSink()
    block = generator("ask", model=model(api), on_usage=hook)
    async with anyio.create_task_group() as tasks:

        async def run() -> None:
            await run_block(block, "go", emit=sink)
            raise AssertionError("it went on")

        tasks.start_soon(run)
        await api.wait_for_request(1)
        if where == "in the answer":
            while not sink.items or not sink.streamed(sink.items[0]):  # noqa: ASYNC110
                await anyio.sleep(0.005)
        assert connections(api) == 1
        tasks.cancel_scope.cancel()
    assert sink.open == []
    assert [item.status for item in sink.items] == (
        ["incomplete"] if where == "in the answer" else []
    )
    assert [usage.complete for usage in heard] == ([False] if where == "in the answer" else [])
    assert await no_connection(api)


async def test_losers_of_a_race_close_theirs(api: ScriptedMessagesApi) -> None:
    """The race returns the first answer when the others have ended, their connections with them."""
    api.route("slow", Turn(text("The quick brown fox jumps over the lazy dog."), hang=True))
    api.route("fast", Turn(text("won")))
    shared = model(api)
    slow = generator("slow", model=shared, prompt=lambda q: f"slow {q}")
    fast = generator("fast", model=shared, prompt=lambda q: f"fast {q}")
    sink = RecordingSink()
    with anyio.fail_after(30):
        assert await run_block(sequencer("r", str).race(slow, fast), "q", emit=sink) == "won"
    assert sink.open == []
    assert await no_connection(api)


async def test_one_model_serves_many_runs_at_once(api: ScriptedMessagesApi) -> None:
    """A failing branch cancels its siblings; for_each gives results in the order of its input."""
    api.script(*[lambda request: Turn(text(f"re {request.user_texts[0]}")) for _ in range(6)])
    shared = model(api)
    echo = generator("echo", model=shared)
    entries = [f"entry {n}" for n in range(6)]
    many = sequencer("many", list[str]).for_each(echo, max_concurrency=3)
    assert await run_block(many, entries) == [f"re {entry}" for entry in entries]

    @handler
    async def fail(value: str) -> str:
        await api.wait_for_request(7)
        raise ValueError("sibling")

    api.script(Turn(text("never"), delay=math.inf))
    both = sequencer("both", str).parallel(a=echo, b=fail)
    with pytest.raises(ValueError, match="sibling"):
        await run_block(both, "go")
    assert await no_connection(api)


async def test_a_model_that_its_author_holds_open_keeps_its_connections(
    api: ScriptedMessagesApi,
) -> None:
    """``async with model:`` around the runs spares each run a new connection."""
    api.script(Turn(text("one")), Turn(text("two")))
    shared = model(api)
    async with shared:
        assert await run_block(generator("a", model=shared), "go") == "one"
        assert connections(api) == 1
        assert await run_block(generator("b", model=shared), "go") == "two"
        assert connections(api) == 1
    assert await no_connection(api)


async def test_a_model_s_name_is_looked_up(
    api: ScriptedMessagesApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key and the address come from the environment, when the run starts."""
    block = generator("ask", model=f"anthropic:{MODEL}")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(ModelUnusableError, match="ANTHROPIC_API_KEY") as caught:
        await run_block(block, "go")
    assert f"anthropic:{MODEL}" in str(caught.value)
    assert type(caught.value.__cause__).__name__ == "UserError"
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", api.url)
    api.script(Turn(text("found")))
    assert await run_block(block, "go") == "found"
    assert await no_connection(api)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("nobody:nothing", "Unknown model"),
        ("claude", "Unknown model"),
        ("cohere:command", "install"),
    ],
)
async def test_a_model_that_cannot_be_used_says_why(name: str, problem: str) -> None:
    """An unknown provider, a name without one, a provider whose package is missing."""
    with pytest.raises(ModelUnusableError, match=problem) as caught:
        await run_block(generator("ask", model=name), "go")
    assert repr(name) in str(caught.value)
    assert caught.value.model == name


async def test_surrogates_do_not_break_the_next_request(api: ScriptedMessagesApi) -> None:
    """What a model says with a lone surrogate is sent back without it: JSON can't carry it."""
    api.script(
        Turn(text("half \ud800."), tool_call("lookup", value="a\udc00b")), Turn(text("done"))
    )
    sink = RecordingSink()
    block = generator("ask", model=model(api), tools=[lookup])
    assert await run_block(block, "go \ud83d", emit=sink) == "done"
    assert len(api.conversation()) == 2


async def test_a_timeout_closes_the_connection(api: ScriptedMessagesApi) -> None:
    """The block's own limit is a cancel like any other."""
    api.script(Turn(text("never"), delay=math.inf))
    with pytest.raises(TimedOut):
        await run_block(generator("ask", model=model(api), timeout=0.3), "go")
    assert await no_connection(api)


async def test_context_reaches_what_the_author_wrote(api: ScriptedMessagesApi) -> None:
    """The resolvers see the node they are asked for."""
    seen: list[str] = []

    def choose(ctx: Context) -> Any:
        seen.append(ctx.path)
        return model(api)

    api.script(Turn(text("one")), Turn(text("two")))
    block = generator("ask", model=choose)
    looped = sequencer("turn", str).do_until(lambda t: t == "two", block, max_iterations=3)
    assert await run_block(looped, "go") == "two"
    assert seen == ["turn/ask/iter[0]", "turn/ask/iter[1]"]
