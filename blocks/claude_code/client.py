"""
The owner of one Claude Code process: one task that starts and ends it, one that listens to it.

Every call into the SDK's client happens in these two tasks. They are shielded as a whole, so a
cancellation of the run never reaches them half-way: the run says ``finish`` or ``stop``, and the
owner ends the process within its patience. Nothing is raised out of the owner; what went wrong
is in ``failure``, and how the process was ended is in ``report``.

The listener always drains: with a hundred messages unread the SDK stops reading, and then an
interrupt would wait for its answer for ever. What is heard goes into the run's inbox, which is
never full. The owner knows nothing of items and state, and of what is heard only when a run is
over.
"""

from __future__ import annotations

import contextlib
import signal
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any, cast, final

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from flowstate.blocks.claude_code.heard import Heard, SessionHeard, Took
from flowstate.blocks.claude_code.hearing import hear
from flowstate.blocks.claude_code.inbox import Inbox, take_nothing
from flowstate.blocks.claude_code.last_words import LAST_WORDS_SECONDS, connect
from flowstate.blocks.claude_code.sdk import Sdk
from flowstate.blocks.claude_code.steering import Line, Lines
from flowstate.blocks.claude_code.stopping import (
    FINISH_SECONDS,
    Patience,
    StopReport,
    enforce,
    wind_down,
)
from flowstate.blocks.claude_code.watch import OF_NO_NOTE, RunWatch
from flowstate.harness.launcher import PrivateFiles
from flowstate.harness.process import ProcessHandle, kill_marked, signal_marked

if TYPE_CHECKING:
    from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, Message

CONNECT_SECONDS = 60.0
"""How long Claude Code may take to start; eight at once on two cores took 14 seconds."""


LINE_SECONDS = 10.0
"""How often a line that was sent is looked after; idle agents begin on one within milliseconds."""


class NotStarted(Exception):
    """Claude Code did not answer within the time it may take to start."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"Claude Code did not start within {seconds:g} s")


@final
class ClientOwner:
    """
    Owns one ``ClaudeSDKClient`` from connecting to the end of its process.

    Args:
        sdk: the SDK's module.
        build: makes the client's options; may block, it runs in a worker thread. Files that it
            writes are removed when the process has ended.
        prompt: what the agent is asked; None only connects, until ``stop`` or ``finish``.
        run_id: the marker that the process carries in its environment.
        take: takes what is heard where it is heard, or leaves it to ``next``: False. See ``Inbox``.
        admit: told what Claude Code said of itself when it was connected. If it raises, that is
            the failure, and the process is ended without having got the prompt.
    """

    def __init__(
        self,
        *,
        sdk: Sdk,
        build: Callable[[PrivateFiles], ClaudeAgentOptions],
        prompt: str | None,
        run_id: str,
        take: Callable[[Heard], bool] = take_nothing,
        admit: Callable[[Mapping[str, Any]], None] | None = None,
        connect_seconds: float = CONNECT_SECONDS,
        patience: Patience | None = None,
    ) -> None:
        self.failure: Exception | None = None
        """Why nothing more is heard: what the SDK raised, or ``NotStarted``. None: no reason."""
        self.info: Mapping[str, Any] = {}
        """What Claude Code said of itself when it was connected; empty before."""
        self.report = StopReport()
        self._prompt_id = str(uuid.uuid4())
        self.watch = RunWatch(self._prompt_id)
        self.lines = Lines(self._hush_if_over)
        """Further lines for the agent. While one is open the run isn't over."""
        self.done = anyio.Event()
        """Set when the process and both tasks have ended."""
        self._sdk = sdk
        self._build = build
        self._prompt = prompt
        self._run_id = run_id
        self._admit = admit
        self._connect_seconds = connect_seconds
        self._patience = patience or Patience()
        self._client: ClaudeSDKClient | None = None
        self._process: ProcessHandle | None = None
        self._inbox = Inbox(take)
        self._starting = anyio.CancelScope()
        self._started = anyio.Event()
        self._until_started = anyio.CancelScope()
        self._leaving = anyio.Event()
        self._hurried = anyio.Event()
        self._quiet = anyio.Event()
        self._turn = anyio.Event()
        """Set when a turn begins; a new one for each."""
        self._told_over = False
        self._leaving_since: float | None = None

    # --- from the run's task ----------------------------------------------------------------

    async def next(self) -> Heard | None:
        """What was left to the run; None once the run is over, or once nothing more will come."""
        return await self._inbox.next()

    def rest(self) -> list[Heard]:
        """What was heard and not yet taken; for after the end."""
        return self._inbox.rest()

    async def connected(self) -> bool:
        """Wait until Claude Code has started and said who it is; False if it never will."""
        await self._started.wait()
        return self._client is not None and bool(self.info)

    def finish(self) -> None:
        """The run is over: let the process exit by itself."""
        self.lines.close()
        if self._leaving_since is None:
            self._leaving_since = anyio.current_time()
            self._leaving.set()

    def stop(self) -> None:
        """End the run now, wherever it is, and the process within the patience."""
        if self.done.is_set() or self._hurried.is_set():
            return
        self._hurried.set()
        self._starting.cancel()
        self._until_started.cancel()
        self.finish()

    async def run(self) -> None:
        """Own the process until it has ended. Started once, in the task group of the run."""
        with anyio.CancelScope(shield=True):
            files = PrivateFiles()
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._enforce)
                    await self._live(tasks, files)
                    tasks.cancel_scope.cancel()
            finally:
                if not files.empty:
                    await anyio.to_thread.run_sync(files.remove)
                if self._process is not None:
                    self._process.close()
                self._inbox.close()
                self.lines.end()
                self.done.set()

    def __repr__(self) -> str:
        phase = (
            "done"
            if self.done.is_set()
            else "stopping"
            if self._hurried.is_set()
            else "finishing"
            if self._leaving.is_set()
            else "running"
            if self._started.is_set()
            else "starting"
        )
        return f"ClientOwner({phase}, {self.watch!r})"

    # --- the owner's tasks ------------------------------------------------------------------

    async def _live(self, tasks: TaskGroup, files: PrivateFiles) -> None:
        listened = anyio.Event()
        try:
            with self._starting:
                options = await anyio.to_thread.run_sync(self._build, files)
                client = self._client = self._sdk.ClaudeSDKClient(options)
                early = await connect(client, starting=self._is_starting, failed=self._fail)
                await self._know_process(client)
                self._started.set()
                tasks.start_soon(self._listen, client, early, listened)
        except Exception as error:
            self._fail(error)
        if not self._started.is_set() or self._client is None:
            # Connecting failed or was broken off: the SDK has ended the process itself.
            self._started.set()
            self._hush()
            self._note_seconds()
            await self._sweep()
            return
        await self._ask(self._client)
        tasks.start_soon(self._carry, self._client, tasks)
        await self._leaving.wait()
        if self.failure is not None:
            # The last words of a process that died may still be on their way.
            await anyio.sleep(LAST_WORDS_SECONDS)
        over = self.watch.over and not self.lines.pending
        going = self.report.begun and self.failure is None and not over
        await wind_down(
            self, self.report, self._patience, interrupt=going and self._hurried.is_set()
        )
        await listened.wait()
        if self.failure is not None:
            self.report.settled = False
        self._note_seconds()
        await self._sweep()

    def _is_starting(self) -> bool:
        return not self._started.is_set() and not self._hurried.is_set()

    async def _ask(self, client: ClaudeSDKClient) -> None:
        # Outside the scope that a stop cancels: a prompt is sent whole or not at all. Should the
        # process not read it, the signals of a stop end the writing, too.
        if self._prompt is None or self._hurried.is_set():
            return
        try:
            if self._admit is not None:
                self._admit(self.info)
            self.report.begun = True
            await client.query(_message(self._prompt, self._prompt_id))
        except Exception as error:
            self._fail(error)
            self._hush()

    async def _carry(self, client: ClaudeSDKClient, tasks: TaskGroup) -> None:
        """Write the lines that are sent, one after the other and each whole."""
        while (line := await self.lines.next_to_write()) is not None:
            try:
                await client.query(_message(line.text, line.id))
            except Exception as error:
                self._fail(error)
                self._hush()
                return
            tasks.start_soon(self._look_after, line)

    async def _look_after(self, line: Line) -> None:
        # A line that comes too late for a turn begins another. Should there ever be a release that
        # drops one, the run must not wait for it for ever.
        while not line.decided.is_set():
            with anyio.move_on_after(LINE_SECONDS):
                await line.decided.wait()
            if self.watch.over:
                self.lines.refuse(line)

    async def _listen(
        self, client: ClaudeSDKClient, early: list[Message], listened: anyio.Event
    ) -> None:
        put = self._inbox.put
        try:
            for heard in (heard for message in early for heard in hear(message)):
                self._note(heard)
                put(heard)
            async for message in client.receive_messages():
                for heard in hear(message):
                    if type(heard) in OF_NO_NOTE:  # most of what is heard
                        put(heard)
                        continue
                    self._note(heard)
                    put(heard)
                    self._hush_if_over()
        except anyio.ClosedResourceError:
            # Disconnected with messages unread; nobody waits for them any more.
            pass
        except Exception as error:
            self._fail(error)
        finally:
            self._hush()
            self.lines.end()
            listened.set()

    def _note(self, heard: Heard) -> None:
        self.watch.note(heard)
        match heard:
            case Took(uuids=uuids):
                self.lines.took(uuids)
            case SessionHeard():
                self._turn.set()
            case _:
                pass

    async def _enforce(self) -> None:
        with self._until_started:
            self._until_started.deadline = anyio.current_time() + self._connect_seconds
            await self._started.wait()
        if self._is_starting():
            self._fail(NotStarted(self._connect_seconds))
            self.stop()
        await self._leaving.wait()
        with anyio.move_on_after(FINISH_SECONDS):
            await self._hurried.wait()
        await enforce(self, self.report, self._patience)

    async def _know_process(self, client: ClaudeSDKClient) -> None:
        self.info = await client.get_server_info() or {}
        pid = self.info.get("pid")
        if isinstance(pid, int):
            self._process = ProcessHandle(pid)

    @property
    def account(self) -> Mapping[str, Any]:
        """Where Claude Code says that its credential comes from; empty if it doesn't."""
        account = self.info.get("account")
        return cast("dict[str, Any]", account) if isinstance(account, dict) else {}

    async def _sweep(self) -> None:
        """Kill what a process that died, or was killed, left running in sessions of its own."""
        result_error: type[Exception] = self._sdk.ResultError
        orderly = self.failure is None or isinstance(self.failure, result_error)
        if not orderly or self.report.terminated or self.report.killed:
            await anyio.to_thread.run_sync(kill_marked, self._run_id)

    def _fail(self, error: Exception) -> None:
        if self.failure is None:
            self.failure = error

    def _hush_if_over(self) -> None:
        # Once it is being stopped, the run doesn't wait for a line any more.
        if self.watch.over and (self._hurried.is_set() or not self.lines.pending):
            self._hush()

    def _hush(self) -> None:
        """Wake whoever waits for more: the run is over, or nothing more will come."""
        self.lines.close()
        self._quiet.set()
        self._turn.set()
        if not self._told_over:
            self._told_over = True
            self._inbox.mark_over()

    def _note_seconds(self) -> None:
        if self._leaving_since is not None:
            self.report.seconds = anyio.current_time() - self._leaving_since

    # --- as something that can be ended: see `Stoppable` ------------------------------------

    async def interrupt(self) -> None:
        """Break the turn off."""
        assert self._client is not None
        self._turn = anyio.Event()
        await self._client.interrupt()

    async def settle(self) -> bool:
        """
        Wait until the agent is idle, or nothing more will come of it.

        A turn that was broken off can be followed by another: one for a line that was waiting, or
        for the end of a sub-agent. That is broken off as well.
        """
        while not self._quiet.is_set():
            await self._turn.wait()
            if not self._quiet.is_set():
                with contextlib.suppress(Exception):
                    await self.interrupt()
        return self.watch.over

    async def end_background(self) -> None:
        """Stop background commands and sub-agents, which would hold up the exit for seconds."""
        assert self._client is not None
        for task in self.watch.live_tasks:
            await self._client.stop_task(task)

    async def disconnect(self) -> None:
        """Close the process's input and wait for its exit."""
        assert self._client is not None
        await self._client.disconnect()

    async def signal(self, number: signal.Signals) -> bool:
        """Signal the process; before it has told its id, whatever carries the run's marker."""
        if number == signal.SIGKILL:
            # A killed agent ends none of its commands, and they may hold its pipes open.
            return bool(await anyio.to_thread.run_sync(kill_marked, self._run_id)) or (
                self._process is not None and self._process.signal(number)
            )
        if self._process is not None:
            return self._process.signal(number)
        return bool(await anyio.to_thread.run_sync(signal_marked, self._run_id, number))


async def _message(text: str, message_id: str) -> AsyncIterator[dict[str, Any]]:
    """A user's message, with an id by which the turn that takes it in is told from others."""
    yield {
        "type": "user",
        "message": {"role": "user", "content": text},
        "parent_tool_use_id": None,
        "uuid": message_id,
    }
