"""
A loopback endpoint that speaks the Anthropic Messages API and says what a test has scripted.

The real Claude Code binary runs against it without a key and without a network::

    async with ScriptedMessagesApi(
        Turn(tool_call("Write", file_path="a.txt", content="hello")),
        Turn(text("Done.")),
    ) as api, clean_home(api) as home:
        ...  # start the binary with home.env
        assert api.conversation()[1].tool_results[0].is_error is not True

It serves from a thread with a loop of its own, so that it answers whatever the test's loop does
and works alike under asyncio and trio. It knows nothing of Claude Code's process; it only tells
the requests of a conversation, which take scripted turns, from the small ones that the binary
makes beside it, which are answered by themselves.

Invariants: it listens on 127.0.0.1 alone; no credential that a request carries is kept; leaving
the context ends every answer, whatever it waits for, and the thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import threading
import time
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast, final

import anyio
import anyio.to_thread

from flowstate.errors import DefinitionError
from flowstate.testing.loopback_server import LoopbackServer
from flowstate.testing.received_request import ReceivedRequest, RequestKind
from flowstate.testing.scripted_turns import ApiError, Turn, text
from flowstate.testing.turn_encoding import error_body, events, json_bytes, message

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

MODEL = "claude-scripted-1"
"""The one model that the endpoint lists, and the name it answers with when none was asked for."""

REDACTED = "[redacted]"

_CREDENTIAL_HEADERS = frozenset({"authorization", "proxy-authorization", "x-api-key", "cookie"})


Answer: TypeAlias = Turn | ApiError

ScriptedTurn: TypeAlias = Answer | Callable[[ReceivedRequest], Answer]
"""A turn, a refusal, or a quick function that makes one of what was received."""


@final
class ScriptedMessagesApi:
    """
    An async context manager that serves scripted turns at :attr:`url`, each turn once, in order.

    A script that has run out answers every request with a text that says so, so that a run ends.
    A function among the turns runs in the endpoint's thread and has to be quick. If one raises,
    the request gets such a text too, and leaving the context raises what the function raised.

    Args:
        turns: the turns of every conversation that no :meth:`route` takes.

    Raises:
        DefinitionError: on entering, if starlette or uvicorn isn't installed, or if it was entered
            before.
        OSError: on entering, if no loopback port can be listened on.
    """

    def __init__(self, *turns: ScriptedTurn) -> None:
        self._lock = threading.Lock()  # guards the five below; held only for moments
        self._script: deque[ScriptedTurn] = deque(turns)
        self._routes: dict[str, deque[ScriptedTurn]] = {}
        self._requests: list[ReceivedRequest] = []
        self._gate = asyncio.Event()  # what is received until the next release() waits on it
        self._failures: list[BaseException] = []
        self._thread: LoopbackServer | None = None

    def script(self, *turns: ScriptedTurn) -> None:
        """Add turns behind those that are still to come."""
        with self._lock:
            self._script.extend(turns)

    def route(self, marker: str, *turns: ScriptedTurn) -> None:
        """
        Give conversations whose first user message holds ``marker`` turns of their own.

        So a sub-agent, whose prompt is the first message of its conversation, is told from the
        main thread. The first route that fits is taken; routing to it again adds turns.
        """
        with self._lock:
            self._routes.setdefault(marker, deque()).extend(turns)

    @property
    def url(self) -> str:
        """Where it listens, ``http://127.0.0.1:<port>``; known while the context is open."""
        if self._thread is None:
            raise DefinitionError(
                "ScriptedMessagesApi", "it has no URL yet", "Enter it with `async with` first."
            )
        return f"http://127.0.0.1:{self._thread.port}"

    @property
    def requests(self) -> tuple[ReceivedRequest, ...]:
        """Every request until now, in the order of arrival; from any thread."""
        with self._lock:
            return tuple(self._requests)

    def conversation(self) -> tuple[ReceivedRequest, ...]:
        """The requests that a model would answer: those that take a scripted turn."""
        return tuple(r for r in self.requests if r.kind == "conversation")

    async def wait_for_request(
        self,
        number: int,
        timeout: float = 30.0,  # noqa: ASYNC109 - so that its error can tell what did come
    ) -> ReceivedRequest:
        """
        Wait until the conversation's request of that number (from 1) is received; return it.

        Raises:
            TimeoutError: it didn't come within ``timeout`` seconds; tells what did.
        """
        with anyio.move_on_after(timeout):
            # Another thread fills the record. Looking at it now and then keeps that thread from
            # ever waiting for the loop of a test, which may be stuck or gone.
            while len(received := self.conversation()) < number:  # noqa: ASYNC110
                await anyio.sleep(0.005)
            return received[number - 1]
        raise TimeoutError(f"request {number} didn't come within {timeout:g} s: {self!r}")

    def release(self) -> None:
        """Let every answer go on that waits now; requests received later wait anew."""
        with self._lock:
            gate, self._gate = self._gate, asyncio.Event()
        if self._thread is not None:
            self._thread.call(gate.set)

    async def __aenter__(self) -> Self:
        if self._thread is not None:
            raise DefinitionError(
                "ScriptedMessagesApi", "it was entered before", "Make a new one for each use."
            )
        self._thread = LoopbackServer(self._receive)
        try:
            # In a worker, for the imports and the start block.
            await anyio.to_thread.run_sync(self._thread.start)
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._stop()
        for failure in self._failures:
            if exc is None:
                raise failure
            exc.add_note(f"A scripted turn raised as well: {failure!r}")

    async def _stop(self) -> None:
        if self._thread is not None:
            with self._lock:
                gate = self._gate  # stays open: what comes now doesn't wait any more
            self._thread.call(gate.set)
            with anyio.CancelScope(shield=True):  # bounded by the limits of stop()
                await anyio.to_thread.run_sync(self._thread.stop)

    def __repr__(self) -> str:
        with self._lock:
            left = len(self._script) + sum(map(len, self._routes.values()))
            kinds = [request.kind for request in self._requests]
        counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
        return f"<ScriptedMessagesApi: {left} turns left; received {counts or 'nothing'}>"

    # From here on: in the endpoint's thread.

    async def _receive(self, http: Request) -> Response:
        from starlette.requests import ClientDisconnect
        from starlette.responses import Response

        try:
            raw = await http.body()
        except ClientDisconnect:
            return Response()  # nobody is there to get it
        headers = {name.lower(): value for name, value in http.headers.items()}
        body = _parsed(_without_credentials(raw, headers))
        request = ReceivedRequest(
            kind=_kind(http.method, http.url.path, body),
            method=http.method,
            path=http.url.path,
            headers=MappingProxyType(
                {n: REDACTED if n in _CREDENTIAL_HEADERS else v for n, v in headers.items()}
            ),
            body=MappingProxyType(body),
            received_at=time.time(),
            answered_from="endpoint",
        )
        with self._lock:
            gate = self._gate
            chosen: ScriptedTurn | None = None
            if request.kind == "conversation":
                source, chosen = self._take(request)
                request = replace(request, answered_from=source)
            self._requests.append(request)
        match request.kind:
            case "conversation":
                return await self._answer(http, request, self._made(chosen, request), gate)
            case "aux":
                return await self._answer(http, request, Turn(text(_filled_in(body))), gate)
            case "count_tokens":
                return _json(200, {"input_tokens": max(1, len(raw) // 4)})
            case "models":
                return _json(200, _models(request.path))
            case "other":
                missing = ApiError(404, message=f"the scripted endpoint has no {request.path}")
                return _json(404, error_body(missing, request_id=_new_id("req")))

    def _take(self, request: ReceivedRequest) -> tuple[str, ScriptedTurn | None]:
        first = next(iter(request.user_texts), "")
        source, turns = "script", self._script
        for marker, routed in self._routes.items():
            if marker in first:
                source, turns = f"route {marker}", routed
                break
        return (source, turns.popleft()) if turns else ("exhausted", None)

    def _made(self, chosen: ScriptedTurn | None, request: ReceivedRequest) -> Answer:
        if chosen is None:
            return Turn(text("(The script has no further turn.)"))
        if isinstance(chosen, Turn | ApiError):
            return chosen
        try:
            return chosen(request)
        except BaseException as error:  # pytest.fail's too; leaving raises it
            with self._lock:
                self._failures.append(error)
            return Turn(text(f"(The scripted turn raised {type(error).__name__}.)"))

    async def _answer(
        self, http: Request, request: ReceivedRequest, turn: Answer, gate: asyncio.Event
    ) -> Response:
        from starlette.responses import StreamingResponse

        await _pause(gate, turn.delay)
        if isinstance(turn, ApiError):
            body = error_body(turn, request_id=_new_id("req"))
            return _json(turn.status, body, turn.headers)
        model = str(request.body.get("model") or MODEL)
        if request.body.get("stream") is True or turn.drop_after is not None:
            return StreamingResponse(
                self._stream(http, turn, model, gate),
                headers={
                    "cache-control": "no-cache",
                    "request-id": _new_id("req"),
                    **turn.headers,
                },
                media_type="text/event-stream",
            )
        if turn.hang:
            await gate.wait()
        return _json(200, message(turn, message_id=_new_id("msg"), model=model), turn.headers)

    async def _stream(
        self, http: Request, turn: Turn, model: str, gate: asyncio.Event
    ) -> AsyncIterator[bytes]:
        for number, event in enumerate(events(turn, message_id=_new_id("msg"), model=model)):
            if number == turn.drop_after:
                break
            if turn.hang and event.name == "message_delta":
                await gate.wait()
            yield event.encode()
            if turn.chunk_delay:
                await _pause(gate, turn.chunk_delay)
        if turn.drop_after is not None and self._thread is not None:
            await self._thread.cut(http)


def _kind(method: str, path: str, body: Mapping[str, Any]) -> RequestKind:
    if method == "GET" and (path == "/v1/models" or path.startswith("/v1/models/")):
        return "models"
    if method != "POST" or not body:
        return "other"
    if path == "/v1/messages/count_tokens":
        return "count_tokens"
    if path != "/v1/messages":
        return "other"
    # Beside its conversations the binary probes the quota with one token, and asks for JSON (a
    # title, a summary) without offering a tool.
    asks_for_json = bool(_schema(body)) and not body.get("tools")
    return "aux" if body.get("max_tokens") == 1 or asks_for_json else "conversation"


def _schema(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """The JSON Schema that an answer has to fit, empty if any text will do."""
    found: object = body
    for name in ("output_config", "format", "schema"):
        found = cast("dict[str, object]", found).get(name) if isinstance(found, Mapping) else None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _filled_in(body: Mapping[str, Any]) -> str:
    """What an auxiliary request is answered with: every text it wants is ``scripted``."""
    properties = _schema(body).get("properties")
    names = list(cast("dict[str, object]", properties)) if isinstance(properties, dict) else []
    return json.dumps(dict.fromkeys(names, "scripted")) if names else "scripted"


def _models(path: str) -> dict[str, object]:
    name = path.removeprefix("/v1/models").strip("/") or MODEL
    model: dict[str, object] = {
        "type": "model",
        "id": name,
        "display_name": name,
        "created_at": "2026-01-01T00:00:00Z",
    }
    if path.rstrip("/") != "/v1/models":
        return model
    return {"data": [model], "has_more": False, "first_id": name, "last_id": name}


def _without_credentials(raw: bytes, headers: Mapping[str, str]) -> bytes:
    """The body without the credentials of the headers, which a command's output may repeat."""
    for name in _CREDENTIAL_HEADERS & headers.keys():
        secret = headers[name].rpartition(" ")[2]
        if len(secret) >= 8:  # a shorter one would tear ordinary words out
            raw = raw.replace(secret.encode(), REDACTED.encode())
    return raw


def _parsed(raw: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw.decode("utf-8", "replace"))
    except ValueError:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _json(status: int, value: object, headers: Mapping[str, str] | None = None) -> Response:
    from starlette.responses import Response

    return Response(
        json_bytes(value),
        status_code=status,
        headers={"request-id": _new_id("req"), **(headers or {})},
        media_type="application/json",
    )


def _new_id(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex[:24]}"


async def _pause(gate: asyncio.Event, seconds: float) -> None:
    """Sleep, or less if the gate opens before."""
    if seconds > 0:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if seconds == math.inf else seconds):
                await gate.wait()
