"""The scripted endpoint: its turns as values and as bytes, its answers, its record, its end."""

from __future__ import annotations

import http.client
import json
import logging
import math
import socket
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowstate.errors import DefinitionError
from flowstate.testing.messages_api import ScriptedMessagesApi
from flowstate.testing.received_request import ReceivedRequest
from flowstate.testing.scripted_turns import (
    ApiError,
    Block,
    Turn,
    Usage,
    rate_limit_headers,
    redacted_thinking,
    text,
    thinking,
    tool_call,
)
from flowstate.testing.turn_encoding import events, json_bytes, message

KEY = "sk-ant-dummy-that-must-not-be-kept"

THREAD = "scripted-messages-api"


# --- a client, and a reader of what it gets -----------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the endpoint answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    complete: bool

    def json(self) -> Any:
        return json.loads(self.body)

    def events(self) -> list[tuple[str, Any]]:
        """The server-sent events, as (name, data)."""
        found: list[tuple[str, Any]] = []
        for event in self.body.decode().split("\n\n")[:-1]:
            name, data = event.split("\n")
            found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
        return found

    def said(self) -> str:
        """The text of the answer, streamed or not."""
        if self.headers["content-type"].startswith("application/json"):
            return "".join(block.get("text", "") for block in self.json()["content"])
        deltas = (data["delta"] for name, data in self.events() if name == "content_block_delta")
        return "".join(delta.get("text", "") for delta in deltas)


def ask(
    url: str,
    body: object = None,
    *,
    path: str = "/v1/messages?beta=true",
    method: str = "POST",
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """Send one request and read the whole answer, or what comes before it breaks off."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
    try:
        connection.request(method, path, json.dumps(body), {"x-api-key": KEY, **(headers or {})})
        response = connection.getresponse()
        complete = True
        try:
            raw = response.read()
        except http.client.IncompleteRead as broken:
            raw, complete = broken.partial, False
        names = {name.lower(): value for name, value in response.getheaders()}
        return Reply(status=response.status, headers=names, body=raw, complete=complete)
    finally:
        connection.close()


async def asked(url: str, body: object = None, **options: Any) -> Reply:
    """The same without blocking the loop."""
    return await anyio.to_thread.run_sync(
        partial(ask, url, body, **options), abandon_on_cancel=True
    )


def prompt(words: str, *, stream: bool = True, **more: object) -> dict[str, object]:
    """A request of a conversation that has just begun."""
    return {
        "model": "claude-x",
        "max_tokens": 100,
        "stream": stream,
        "messages": [{"role": "user", "content": [{"type": "text", "text": words}]}],
        **more,
    }


def endpoint_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == THREAD]


# --- turns as values ----------------------------------------------------------------------------


def test_a_turn_that_calls_a_tool_stops_for_it() -> None:
    """The stop reason follows from the blocks unless it is given."""
    call = tool_call("Bash", command="ls")

    assert Turn(text("a")).stop_reason == "end_turn"
    assert Turn(text("a"), call).stop_reason == "tool_use"
    assert Turn(call, stop_reason="max_tokens").stop_reason == "max_tokens"


def test_a_tool_call_keeps_its_own_copy_of_the_input() -> None:
    """Changing what was handed in doesn't change the script."""
    edits = ["a"]
    call = tool_call("Edit", {"edits": edits}, name="n")
    edits.append("b")

    assert dict(call.input) == {"edits": ["a"], "name": "n"}


@pytest.mark.parametrize("value", [math.nan, object(), b"bytes"])
def test_an_input_that_is_no_json_is_refused(value: object) -> None:
    """The error names the tool; it comes when the script is written, not when it is played."""
    with pytest.raises(DefinitionError, match=r"tool_call\('Write'\)"):
        tool_call("Write", content=value)


def test_options_that_cannot_be_played_are_refused() -> None:
    """Negative times and counts, statuses of success, header values with line ends."""
    with pytest.raises(DefinitionError, match="delay"):
        Turn(delay=-1)
    with pytest.raises(DefinitionError, match="chunk_delay"):
        Turn(chunk_delay=math.nan)
    with pytest.raises(DefinitionError, match="drop_after"):
        Turn(drop_after=-1)
    with pytest.raises(DefinitionError, match="tokens"):
        Turn(usage=Usage(output=-1))
    with pytest.raises(DefinitionError, match="200"):
        ApiError(200)
    with pytest.raises(DefinitionError, match="x-note"):
        Turn(headers={"x-note": "a\r\nset-cookie: b"})
    with pytest.raises(DefinitionError, match="delay"):
        ApiError(500, delay=-1)


def test_a_refusal_has_the_type_that_the_service_uses() -> None:
    """Type and message follow from the status unless they are given."""
    assert ApiError(529).type == "overloaded_error"
    assert ApiError(418).type == "api_error"
    assert ApiError(429, type="mine", message="slow down").message == "slow down"


def test_rate_limit_headers_tell_a_window() -> None:
    """Only what was given is told; the reset time is one in the future."""
    headers = rate_limit_headers(
        "allowed_warning", window="seven_day", utilization=0.9, surpassed=0.75
    )

    assert headers["anthropic-ratelimit-unified-status"] == "allowed_warning"
    assert headers["anthropic-ratelimit-unified-representative-claim"] == "seven_day"
    assert headers["anthropic-ratelimit-unified-7d-utilization"] == "0.9"
    assert headers["anthropic-ratelimit-unified-7d-surpassed-threshold"] == "0.75"
    assert int(headers["anthropic-ratelimit-unified-7d-reset"]) > time.time()
    assert "anthropic-ratelimit-unified-overage-status" not in headers


# --- turns as bytes -----------------------------------------------------------------------------

anything = st.text(st.characters(exclude_categories=()), max_size=80)  # surrogates too
blocks = st.one_of(
    anything.map(text),
    anything.map(thinking),
    st.just(redacted_thinking()),
    st.builds(tool_call, st.just("Write"), st.dictionaries(anything, anything, max_size=3)),
)


def joined(turn: Turn) -> list[dict[str, Any]]:
    """The content that a client puts together from a streamed turn."""
    content: list[dict[str, Any]] = []
    inputs: dict[int, str] = {}
    for event in events(turn, message_id="msg_1", model="m"):
        sent = event.encode()
        assert sent.endswith(b"\n\n")
        assert sent.count(b"\n") == 3  # one line for the name, one for the data, one empty
        data = json.loads(sent.split(b"\n")[1].removeprefix(b"data: "))
        if event.name == "content_block_start":
            content.append(data["content_block"])
        if event.name == "content_block_delta":
            block = content[int(data["index"])]
            delta: dict[str, Any] = data["delta"]
            match delta["type"]:
                case "text_delta":
                    block["text"] += delta["text"]
                case "thinking_delta":
                    block["thinking"] += delta["thinking"]
                case "signature_delta":
                    block["signature"] += delta["signature"]
                case "input_json_delta":
                    index = data["index"]
                    inputs[index] = inputs.get(index, "") + delta["partial_json"]
                case other:
                    raise AssertionError(other)
    for index, pieces in inputs.items():
        content[index]["input"] = json.loads(pieces)
    return content


@given(st.lists(blocks, max_size=4))
def test_the_pieces_of_a_turn_join_to_its_message(made: list[Block]) -> None:
    """Streamed or not, the same content arrives, whatever characters it holds."""
    turn = Turn(*made)
    whole = json.loads(json_bytes(message(turn, message_id="msg_1", model="m")))

    # Two lone surrogates that happen to be a pair are one character to any reader of JSON.
    assert json.loads(json.dumps(joined(turn))) == json.loads(json.dumps(whole["content"]))


def test_a_text_is_sent_as_it_is() -> None:
    """Multi-byte characters and U+2028 go as UTF-8, a lone surrogate as its JSON escape."""
    assert json_bytes("é😀\u2028") == '"é😀\u2028"'.encode()
    assert json_bytes("\ud800") == b'"\\ud800"'


def test_calls_in_one_message_have_ids_of_their_own() -> None:
    """Ids follow from the message and the place, or are the ones given."""
    turn = Turn(tool_call("A"), tool_call("B"))
    ids = [block["id"] for block in joined(turn)]

    assert ids == ["toolu_1_0", "toolu_1_1"]


def test_usage_is_told_at_both_ends_of_a_stream() -> None:
    """The input and caches when it starts, the output when it ends."""
    turn = Turn(text("a"), usage=Usage(input=1, output=2, cache_read=3, cache_write=4))
    sent = {event.name: event.data for event in events(turn, message_id="msg_1", model="m")}
    start: Any = sent["message_start"]["message"]

    assert start["usage"] == {
        "input_tokens": 1,
        "output_tokens": 1,
        "cache_read_input_tokens": 3,
        "cache_creation_input_tokens": 4,
    }
    assert sent["message_delta"]["usage"] == {"output_tokens": 2}


# --- answers ------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_turns_are_played_in_order_and_then_the_script_says_that_it_is_over() -> None:
    """A run that asks for more than was scripted ends with a text that says why."""
    async with ScriptedMessagesApi(Turn(text("one"))) as api:
        api.script(Turn(text("two")))
        said = [(await asked(api.url, prompt("go"))).said() for _ in range(3)]

        assert said[:2] == ["one", "two"]
        assert "no further turn" in said[2]
        assert [r.answered_from for r in api.requests] == ["script", "script", "exhausted"]


@pytest.mark.anyio
async def test_an_answer_streams_only_if_it_was_asked_to() -> None:
    """Without ``stream`` the finished message is sent as JSON, headers and model alike."""
    turn = Turn(text("é\u2028\ud800"), headers={"x-note": "n"}, model="claude-other")
    async with ScriptedMessagesApi(turn, turn) as api:
        streamed = await asked(api.url, prompt("go"))
        whole = await asked(api.url, prompt("go", stream=False))

    assert streamed.headers["content-type"].startswith("text/event-stream")
    assert streamed.said() == whole.said() == "é\u2028\ud800"
    assert streamed.headers["x-note"] == whole.headers["x-note"] == "n"
    assert streamed.events()[0][1]["message"]["model"] == whole.json()["model"] == "claude-other"
    assert whole.json()["stop_reason"] == "end_turn"


@pytest.mark.anyio
async def test_a_marker_in_the_first_user_message_picks_another_queue() -> None:
    """So a sub-agent's conversation takes its own turns; later messages don't count."""
    async with ScriptedMessagesApi(Turn(text("main"))) as api:
        api.route("SUB-A", Turn(text("sub")))
        sub = await asked(api.url, prompt("please do SUB-A now"))
        later = prompt("go")
        later["messages"] = [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "SUB-A"},
            {"role": "user", "content": "SUB-A"},
        ]
        main = await asked(api.url, later)
        over = await asked(api.url, prompt("SUB-A"))

        assert (sub.said(), main.said()) == ("sub", "main")
        assert "no further turn" in over.said()
        assert [r.answered_from for r in api.requests] == ["route SUB-A", "script", "exhausted"]


@pytest.mark.anyio
async def test_a_function_answers_from_what_was_received() -> None:
    """It gets the request as it is recorded."""

    def echo(request: ReceivedRequest) -> Turn:
        return Turn(text(request.user_texts[-1].upper()))

    async with ScriptedMessagesApi(echo, lambda r: ApiError(400)) as api:
        assert (await asked(api.url, prompt("hello"))).said() == "HELLO"
        assert (await asked(api.url, prompt("hello"))).status == 400


@pytest.mark.anyio
async def test_a_function_that_raises_fails_the_test_that_scripted_it() -> None:
    """The run gets an answer so that it ends; leaving the context raises the function's error."""

    def wrong(request: ReceivedRequest) -> Turn:
        raise LookupError("no such thing")

    with pytest.raises(LookupError, match="no such thing"):
        async with ScriptedMessagesApi(wrong) as api:
            assert "LookupError" in (await asked(api.url, prompt("go"))).said()
    assert not endpoint_threads()

    async def fails_itself() -> None:
        async with ScriptedMessagesApi(wrong) as api:
            await asked(api.url, prompt("go"))
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine") as caught:
        await fails_itself()
    assert "LookupError" in caught.value.__notes__[0]


@pytest.mark.anyio
async def test_a_refusal_carries_status_type_and_headers() -> None:
    """What a client decides its retry by."""
    async with ScriptedMessagesApi(ApiError(529, headers={"retry-after": "7"})) as api:
        reply = await asked(api.url, prompt("go"))

    assert (reply.status, reply.headers["retry-after"]) == (529, "7")
    assert reply.json()["error"]["type"] == "overloaded_error"


@pytest.mark.anyio
async def test_requests_beside_the_conversation_take_no_turn() -> None:
    """A quota probe and a title are answered by themselves, the title in the form it asks for."""
    schema = {"type": "object", "properties": {"title": {"type": "string"}}}
    wanted = {"format": {"type": "json_schema", "schema": schema}}
    async with ScriptedMessagesApi(Turn(text("main"))) as api:
        probe = await asked(api.url, {**prompt("quota"), "max_tokens": 1})
        title = await asked(api.url, prompt("a title", output_config=wanted))
        main = await asked(api.url, prompt("go", tools=[{"name": "Bash"}], output_config=wanted))

        assert probe.status == 200
        assert json.loads(title.said()) == {"title": "scripted"}
        assert main.said() == "main"
        assert [r.kind for r in api.requests] == ["aux", "aux", "conversation"]
        assert [r.tool_names for r in api.conversation()] == [("Bash",)]


@pytest.mark.anyio
async def test_the_smaller_paths_are_answered() -> None:
    """Token counts, the list of models, one model; anything else is a 404 that says its path."""
    async with ScriptedMessagesApi() as api:
        count = await asked(api.url, prompt("go"), path="/v1/messages/count_tokens")
        models = await asked(api.url, path="/v1/models?limit=5", method="GET")
        model = await asked(api.url, path="/v1/models/claude-y", method="GET")
        head = await asked(api.url, path="/", method="HEAD")
        other = await asked(api.url, path="/api/hello", method="GET")
        kinds = [r.kind for r in api.requests]

    assert count.json()["input_tokens"] > 0
    assert models.json()["data"][0]["type"] == "model"
    assert model.json()["id"] == "claude-y"
    assert (head.status, other.status) == (404, 404)
    assert "/api/hello" in other.json()["error"]["message"]
    assert kinds == ["count_tokens", "models", "models", "other", "other"]


@pytest.mark.anyio
@pytest.mark.parametrize("body", [None, [1], "x", {"messages": 3}, {"messages": [3, {"role": 1}]}])
async def test_a_body_of_any_shape_gets_an_answer(body: object) -> None:
    """Nothing that a client sends breaks the endpoint."""
    async with ScriptedMessagesApi() as api:
        reply = await asked(api.url, body)
        received = api.requests[0]

    assert reply.status in {200, 404}
    assert received.user_texts == ()
    assert received.system_text == ""
    assert received.tool_names == ()
    assert received.tool_results == ()


# --- late, hanging and broken answers -----------------------------------------------------------


@pytest.mark.anyio
async def test_a_hanging_turn_goes_on_when_it_is_released() -> None:
    """Everything but its end was sent before; a turn received later hangs anew."""
    turn = Turn(text("slow"), hang=True)
    replies: list[Reply] = []

    async def one(url: str) -> None:
        replies.append(await asked(url, prompt("go")))

    async with ScriptedMessagesApi(turn, turn) as api:
        for number in (1, 2):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(one, api.url)
                await api.wait_for_request(number)
                await anyio.sleep(0.1)
                assert len(replies) == number - 1
                api.release()

    assert [reply.said() for reply in replies] == ["slow", "slow"]
    assert all(reply.events()[-1][0] == "message_stop" for reply in replies)


@pytest.mark.anyio
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    "turn",
    [
        Turn(text("x"), hang=True),
        Turn(text("x"), delay=math.inf),
        Turn(text("x" * 200), chunk_delay=3600),
        ApiError(500, delay=3600),
    ],
)
async def test_leaving_never_waits_for_an_answer(turn: Turn | ApiError, stream: bool) -> None:
    """Whatever an answer waits for, it ends with the context, and so does the thread."""

    async def one(url: str) -> None:
        await asked(url, prompt("go", stream=stream))

    async with anyio.create_task_group() as tasks:
        async with ScriptedMessagesApi(turn) as api:
            tasks.start_soon(one, api.url)
            await api.wait_for_request(1)
            await anyio.sleep(0.05)
            started = time.monotonic()
        assert time.monotonic() - started < 4
        assert not endpoint_threads()


@pytest.mark.anyio
async def test_leaving_does_not_wait_for_a_client_that_stops_reading() -> None:
    """A connection whose client reads nothing is cut off."""
    huge = Turn(text("x" * 3_000_000))
    async with ScriptedMessagesApi(huge) as api:
        address = urlsplit(api.url)
        body = json.dumps(prompt("go")).encode()
        head = f"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
        with socket.socket() as client:
            await anyio.to_thread.run_sync(client.connect, (address.hostname, address.port))
            await anyio.to_thread.run_sync(client.sendall, head.encode() + body)
            await api.wait_for_request(1)
            started = time.monotonic()
            await api.__aexit__(None, None, None)
    assert time.monotonic() - started < 4
    assert not endpoint_threads()


@pytest.mark.anyio
@pytest.mark.parametrize("events_sent", [0, 3])
async def test_a_dropped_answer_breaks_off_after_so_many_events(events_sent: int) -> None:
    """What was to be sent before arrives; the connection ends without the stream's end."""
    async with ScriptedMessagesApi(Turn(text("hello"), drop_after=events_sent)) as api:
        reply = await asked(api.url, prompt("go"))
        after = await asked(api.url, prompt("go"))

    assert not reply.complete
    assert len(reply.events()) == events_sent
    assert after.complete


# --- the record ---------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_no_credential_is_kept() -> None:
    """Neither in a header nor where a command's output repeats it, in the record or its repr."""
    token = "sk-ant-oat01-dummy-too"
    body = prompt(f"env says ANTHROPIC_API_KEY={KEY} and {token}")
    async with ScriptedMessagesApi() as api:
        headers = {"authorization": f"Bearer {token}", "x-note": "kept"}
        await asked(api.url, body, headers=headers, path=f"/v1/messages?key={KEY}")
        received = api.requests[0]

    assert received.headers["x-api-key"] == received.headers["authorization"] == "[redacted]"
    assert received.headers["x-note"] == "kept"
    assert received.user_texts == ("env says ANTHROPIC_API_KEY=[redacted] and [redacted]",)
    assert KEY not in repr(received)
    assert token not in repr(received)


@pytest.mark.anyio
async def test_a_request_tells_what_a_test_asks_about() -> None:
    """The prompts, the system prompt, the tools, and the results of the last calls only."""
    body = {
        "system": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        "tools": [{"name": "Read"}, {"name": "Bash"}],
        "messages": [
            {"role": "user", "content": "do it"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1"}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t2"}]},
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t2",
                        "content": [{"type": "text", "text": "out"}],
                        "is_error": True,
                    }
                ],
            },
            {"role": "user", "content": [{"type": "text", "text": "and that"}]},
        ],
    }
    async with ScriptedMessagesApi() as api:
        await asked(api.url, body)
        received = await api.wait_for_request(1)

    assert received.user_texts == ("do it", "and that")
    assert received.system_text == "a\nb"
    assert received.tool_names == ("Read", "Bash")
    (result,) = received.tool_results
    assert (result.tool_use_id, result.text, result.is_error) == ("t2", "out", True)
    assert (received.method, received.path) == ("POST", "/v1/messages")


@pytest.mark.anyio
async def test_waiting_for_a_request_that_does_not_come_says_what_did() -> None:
    """The error counts what was received and what is left of the script."""
    async with ScriptedMessagesApi(Turn(), Turn()) as api:
        await asked(api.url, prompt("go"))
        with pytest.raises(TimeoutError, match="1 turns left; received 1 conversation"):
            await api.wait_for_request(2, timeout=0.05)


@pytest.mark.anyio
async def test_concurrent_requests_each_take_one_turn() -> None:
    """Twenty at once get twenty different turns and are all recorded."""
    said: set[str] = set()

    async def one(url: str) -> None:
        said.add((await asked(url, prompt("go"))).said())

    turns = [Turn(text(str(number))) for number in range(20)]
    async with ScriptedMessagesApi(*turns) as api:
        async with anyio.create_task_group() as tasks:
            for _ in turns:
                tasks.start_soon(one, api.url)
        assert len(api.requests) == 20

    assert said == {str(number) for number in range(20)}


# --- its life -----------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_it_listens_on_loopback_and_is_gone_afterwards() -> None:
    """The port is closed and the thread ended when the context is left."""
    async with ScriptedMessagesApi() as api:
        address = urlsplit(api.url)
        assert address.hostname == "127.0.0.1"
        assert len(endpoint_threads()) == 1

    assert not endpoint_threads()
    with pytest.raises(ConnectionRefusedError):
        await asked(f"http://{address.netloc}", prompt("go"))


@pytest.mark.anyio
async def test_a_cancelled_block_leaves_no_thread() -> None:
    """Leaving by cancellation stops the endpoint like any other way."""
    with anyio.move_on_after(0.1) as scope:
        async with ScriptedMessagesApi():
            await anyio.sleep_forever()

    assert scope.cancelled_caught
    assert not endpoint_threads()


@pytest.mark.anyio
async def test_it_is_entered_once() -> None:
    """Outside its context it has no URL; entering it again is refused."""
    api = ScriptedMessagesApi()
    with pytest.raises(DefinitionError, match="no URL"):
        _ = api.url
    async with api:
        with pytest.raises(DefinitionError, match="entered before"):
            await api.__aenter__()
        assert (await asked(api.url, prompt("go"))).status == 200
    api.release()  # does nothing, and no harm


@pytest.mark.anyio
async def test_a_missing_library_is_told_with_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The import happens when it is entered, so that the package needs no web server."""
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    api = ScriptedMessagesApi()

    with pytest.raises(DefinitionError, match=r"uvicorn.*flowstate-engine\[testing\]"):
        await api.__aenter__()
    assert not endpoint_threads()


@pytest.mark.anyio
async def test_a_start_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """No port to listen on, and a server that breaks: both leave no thread."""

    def full(*args: object, **options: object) -> socket.socket:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(socket, "create_server", full)
    with pytest.raises(OSError, match=r"can't listen.*open files"):
        await ScriptedMessagesApi().__aenter__()
    monkeypatch.undo()

    def broken(*args: object, **options: object) -> None:
        raise ValueError("unknown option")

    monkeypatch.setattr("uvicorn.Config", broken)
    with pytest.raises(RuntimeError, match="unknown option"):
        await ScriptedMessagesApi().__aenter__()
    assert not endpoint_threads()


@pytest.mark.anyio
async def test_it_is_quiet_and_leaves_logging_alone(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nothing is logged or printed, and no logger is changed for other servers."""
    names = ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi")
    loggers = [logging.getLogger(name) for name in names]

    def settings() -> list[object]:
        return [(x.level, x.propagate, list(x.handlers), list(x.filters)) for x in loggers]

    before = settings()
    with caplog.at_level(1):
        async with ScriptedMessagesApi(Turn(text("a"), drop_after=2)) as api:
            await asked(api.url, prompt("go"))
            await asked(api.url, prompt("go"))
            loggers[1].warning("another server's own")

    assert [r.getMessage() for r in caplog.records if r.name.startswith("uvicorn")] == [
        "another server's own"
    ]
    assert settings() == before
    assert capfd.readouterr() == ("", "")
