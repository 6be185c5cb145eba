"""OpenAI's real client, over HTTP, against canned chat completions on loopback."""

from __future__ import annotations

import gc
import json
from collections.abc import AsyncIterator
from typing import Any, TypeAlias

import anyio
import anyio.to_thread
import pytest
from pydantic import BaseModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from flowstate import handler, run_block
from flowstate.blocks.generator import ModelUsage, TransientModelError, generator
from flowstate.item.content import Message, ToolOutput
from flowstate.testing import RecordingSink
from flowstate.testing.loopback_server import LoopbackServer

pytestmark = [
    pytest.mark.anyio,
    # The vendor's client leaves the generators of an ended stream to the garbage collector, which
    # trio alone tells of.
    pytest.mark.filterwarnings("ignore:Async generator .* was garbage collected:ResourceWarning"),
]

Delta: TypeAlias = dict[str, Any]


class Review(BaseModel):
    """What is thought of a draft."""

    risk: int


class Endpoint:
    """Answers each request with the next of its scripts: deltas, or an HTTP status."""

    def __init__(self) -> None:
        self.scripts: list[list[Delta] | int] = []
        self.bodies: list[dict[str, Any]] = []
        self.url = ""

    async def respond(self, request: Request) -> Response:
        """One answer, in the endpoint's thread."""
        self.bodies.append(json.loads(await request.body()))
        script = self.scripts.pop(0)
        if isinstance(script, int):
            return JSONResponse({"error": {"message": "busy", "type": "x"}}, status_code=script)
        return StreamingResponse(_sent(script), media_type="text/event-stream")


async def _sent(deltas: list[Delta]) -> AsyncIterator[str]:
    ends = "tool_calls" if any("tool_calls" in delta for delta in deltas) else "stop"
    usage = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
    choices: list[Delta] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": ends})
    for choice in choices:
        yield _event({"choices": [choice]})
    yield _event({"choices": [], "usage": usage})
    yield "data: [DONE]\n\n"


def _event(fields: dict[str, Any]) -> str:
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "gpt-scripted"}
    return f"data: {json.dumps(chunk | fields)}\n\n"


def _called(name: str, call_id: str, arguments: str) -> Delta:
    function = {"name": name, "arguments": arguments}
    return {"tool_calls": [{"index": 0, "id": call_id, "type": "function", "function": function}]}


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    """The endpoint, without scripts yet."""
    made = Endpoint()
    server = LoopbackServer(made.respond)
    await anyio.to_thread.run_sync(server.start)
    made.url = f"http://127.0.0.1:{server.port}/v1"
    try:
        yield made
    finally:
        await anyio.to_thread.run_sync(server.stop)
        gc.collect()  # what it tells belongs to this test


@handler
async def lookup(term: str) -> str:
    """Looks a term up."""
    return f"{term} is known"


async def test_a_tool_loop_with_a_typed_output(endpoint: Endpoint) -> None:
    """The same generator, another provider: text, a call, its result, the output, the usage."""
    endpoint.scripts = [
        [{"content": "I "}, {"content": "look."}, _called("lookup", "c1", '{"value": "tea"}')],
        [_called("final_result", "c2", '{"risk": 3}')],
    ]
    heard: list[ModelUsage] = []
    block = generator(
        "ask",
        output=Review,
        model=OpenAIChatModel(
            "gpt-scripted", provider=OpenAIProvider(api_key="none", base_url=endpoint.url)
        ),
        instructions="Be brief.",
        tools=[lookup],
        on_usage=lambda usage, ctx: heard.append(usage),
    )
    sink = RecordingSink()
    assert await run_block(block, "go", emit=sink) == Review(risk=3)
    assert sink.contents(Message) == [Message(text="I look.")]
    assert [call.output for call in sink.contents(ToolOutput)] == ["tea is known"]
    first, second = endpoint.bodies
    assert first["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "go"},
    ]
    assert [tool["function"]["name"] for tool in first["tools"]] == ["lookup", "final_result"]
    assert second["messages"][-1] == {
        "role": "tool",
        "tool_call_id": "c1",
        "content": "tea is known",
    }
    assert [(usage.input_tokens, usage.output_tokens) for usage in heard] == [(9, 4), (9, 4)]


async def test_an_overloaded_service_is_a_transient_error(endpoint: Endpoint) -> None:
    """As with any provider, with the status that it gave."""
    endpoint.scripts = [503]
    model = OpenAIChatModel(
        "gpt-scripted", provider=OpenAIProvider(api_key="none", base_url=endpoint.url)
    )
    with pytest.raises(TransientModelError, match="HTTP status 503"):
        await run_block(generator("ask", model=model, settings={"max_retries": 0}), "go")
