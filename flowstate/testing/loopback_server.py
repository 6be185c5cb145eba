"""
An HTTP server on a free loopback port, in a thread with a loop of its own.

It serves whatever a scripted endpoint responds, so that the endpoint answers whatever the loop of
a test does, under asyncio and trio alike. It knows no API. starlette and uvicorn are imported when
it starts; it listens on 127.0.0.1 alone, changes no logging, and its thread ends with ``stop``.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import socket
import threading
from collections.abc import Awaitable, Callable, Generator
from typing import TYPE_CHECKING, cast, final

from flowstate.errors import DefinitionError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send
    from uvicorn import Server
    from uvicorn.protocols.http.h11_impl import H11Protocol

_START_LIMIT = 10.0
_STOP_LIMIT = 5.0
_GRACE = 0.5
"""Seconds for released answers to end by themselves; then their connections are cut."""


@final
class LoopbackServer:
    """Serves one ASGI application on a free loopback port; start and stop block the caller."""

    def __init__(self, respond: Callable[[Request], Awaitable[Response]]) -> None:
        self._respond = respond
        self._turn = threading.Lock()  # a stop waits for a start that is under way
        self._ready = threading.Event()
        self._stopping = asyncio.Event()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: Server | None = None
        self._failure: BaseException | None = None
        self.port = 0

    def start(self) -> None:
        with self._turn:
            try:
                for name in ("starlette.requests", "starlette.responses", "uvicorn"):
                    importlib.import_module(name)
            except ImportError as error:
                raise DefinitionError(
                    "ScriptedMessagesApi",
                    f"{error.name} isn't installed",
                    "Run: pip install 'flowstate-engine[testing]'",
                ) from error
            try:
                listening = socket.create_server(("127.0.0.1", 0))
            except OSError as error:
                raise OSError(
                    error.errno, f"the scripted endpoint can't listen on 127.0.0.1: {error}"
                ) from error
            self.port = listening.getsockname()[1]
            self._thread = threading.Thread(
                target=self._run, args=(listening,), name="scripted-messages-api", daemon=True
            )
            self._thread.start()
            ready = self._ready.wait(_START_LIMIT)
            if not ready or self._failure is not None:
                raise RuntimeError(
                    f"the scripted endpoint didn't start: {self._failure or 'it took too long'}"
                ) from self._failure

    def stop(self) -> None:
        with self._turn:
            if self._thread is None:
                return
            self.call(self._stopping.set)
            self._thread.join(_STOP_LIMIT)
            if self._thread.is_alive():
                raise RuntimeError(
                    f"the scripted endpoint's thread goes on {_STOP_LIMIT:g} s after its stop: "
                    "a function among its turns seems to block"
                )

    def call(self, act: Callable[[], object]) -> None:
        """Have the server's loop do something soon; nothing if that loop is gone."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(act)

    async def cut(self, http: Request) -> None:
        """Close the connection of a request whose answer isn't complete, after what was sent."""
        for connection in self._connections():
            if connection.client == http.client:
                connection.transport.close()
        # Starlette cancels the answer as soon as it notices that the client is gone.
        await asyncio.sleep(_STOP_LIMIT)
        raise RuntimeError("the connection that a scripted turn cuts is still there")

    def _run(self, listening: socket.socket) -> None:
        try:
            with listening, _unheard():
                asyncio.run(self._serve(listening))
        except BaseException as error:  # start() raises it
            self._failure = error
        finally:
            self._ready.set()

    async def _serve(self, listening: socket.socket) -> None:
        from starlette.requests import Request
        from uvicorn import Config, Server

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            response = await self._respond(Request(scope, receive))
            await response(scope, receive, send)

        # log_config=None leaves logging alone, and so does access_log=True: False would change
        # a logger that belongs to every server of the process.
        config = Config(
            app, http="h11", ws="none", lifespan="off", proxy_headers=False, log_config=None
        )
        self._server = server = Server(config)
        self._loop = asyncio.get_running_loop()
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        while not (server.started or serving.done()):  # noqa: ASYNC110 - uvicorn has no event
            await asyncio.sleep(0.001)
        self._ready.set()
        stopping = asyncio.create_task(self._stopping.wait())
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        server.should_exit = True
        await asyncio.wait({serving}, timeout=_GRACE)
        for connection in self._connections():
            connection.transport.abort()
        await serving

    def _connections(self) -> list[H11Protocol]:
        found = self._server.server_state.connections if self._server is not None else ()
        return cast("list[H11Protocol]", list(found))


@contextlib.contextmanager
def _unheard() -> Generator[None]:
    """Keep what this thread's server logs to itself, its errors excepted."""
    here = threading.get_ident()

    def heard(record: logging.LogRecord) -> bool:
        return record.thread != here or record.levelno >= logging.ERROR

    names = ("uvicorn.error", "uvicorn.access", "uvicorn.asgi", "asyncio")
    loggers = [logging.getLogger(name) for name in names]
    for logger in loggers:
        logger.addFilter(heard)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(heard)
