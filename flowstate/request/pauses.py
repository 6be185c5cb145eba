"""
The pauses of a request that asks people: suspended while nothing of it can go on, admitted anew
when it is answered.

    running    still, and its items stored → suspended: place and slot given back
    suspended  an answer: place taken as on arrival, or refused and the question stays open
               → accepted, waiting → running: those with answers go on
    running    an answer: that branch goes on at once

The run stays in memory all the while, parked where it asked; so a request that is suspended when
its Runtime is left, or its process dies, is interrupted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, final

import anyio

from flowstate.errors import UnknownQuestion
from flowstate.run.questions import Question, Questions
from flowstate.run.services import Services

if TYPE_CHECKING:
    from flowstate.request.execution import Execution


@final
class Pauses:
    """One a request whose plan asks. ``watch`` is its task; the rest is called beside it."""

    def __init__(self, execution: Execution, services: Services) -> None:
        self._execution = execution
        self._services = services
        self._questions: Questions = services.questions
        self._questions.answerable = True
        self._questions.on_change = self._wake
        services.side_chains.on_end = self._wake
        self._phase: Literal["running", "suspended", "resuming"] = "running"
        self._scope = anyio.CancelScope()
        self._turning = anyio.Lock()
        """Held while it turns from running to suspended, and while an answer is taken."""
        self._changed = anyio.Event()
        self._answered = anyio.Event()
        self._ended = anyio.Event()
        self._leaving = False

    @property
    def open(self) -> tuple[Question, ...]:
        """The questions that wait for an answer."""
        return self._questions.open

    async def asked(self) -> tuple[Question, ...]:
        """Wait until a question is open, or none will be; gives those that are."""
        while not self.open and not self._ended.is_set():
            await self._changed.wait()
        return self.open

    async def answer(self, question_id: str, answer: object) -> None:
        """
        Answer a question.

        Raises:
            UnknownQuestion: it isn't open.
            InvalidValue: the answer doesn't fit; the question stays open.
            RequestRefused: suspended, and not admitted now; the question stays open.
            StoreError: suspended, and it could not be recorded; the question stays open.
        """
        async with self._turning:
            answer = self._questions.checked(question_id, answer)
            if self._phase != "suspended":
                self._questions.accept(question_id, answer)
                if self._phase == "running":
                    self._questions.release()
                return
            # Admitted or not, nothing between: whoever answers is told which.
            with anyio.CancelScope(shield=True):
                await self._execution.readmit()
            if self._scope.cancel_called:
                # Stopped meanwhile; the place is given back with the rest.
                raise UnknownQuestion(question_id, ())
            self._questions.accept(question_id, answer)
            self._phase = "resuming"
            self._answered.set()

    def leave(self) -> None:
        """The Runtime is being left: nobody will answer any more."""
        self._leaving = True
        if self._phase == "suspended":
            self._break_off()

    def end(self) -> None:
        """The request is being stopped: neither suspend nor resume it any more."""
        self._scope.cancel()

    async def ended(self) -> None:
        """Stop, and wait until nothing of this is under way."""
        self._scope.cancel()
        await self._ended.wait()
        async with self._turning:
            return

    async def watch(self) -> None:
        """The task: suspend and resume as it comes, until ``end``."""
        try:
            with self._scope:
                while True:
                    await self._turn()
        except Exception as error:
            self._services.log.error("not_suspended_or_resumed", error=str(error))
            self._execution.break_off(("failed", error))
        finally:
            self._ended.set()
            self._wake()

    async def _turn(self) -> None:
        """One suspension, once there is one."""
        while not self._still:
            await self._changed.wait()
        async with self._turning:
            # The questions are stored before anybody hears that the request waits for them.
            await self._execution.outbox.flushed()
            if not self._still:
                return
            self._answered = anyio.Event()
            await self._execution.suspend()
            self._phase = "suspended"
        self._wake()
        if self._leaving:
            self._break_off()
        await self._answered.wait()
        await self._execution.start()
        self._phase = "running"
        self._questions.release()

    @property
    def _still(self) -> bool:
        return self._questions.still and self._services.side_chains.running == 0

    def _break_off(self) -> None:
        self._execution.break_off(
            ("interrupted", "the Runtime was left while the request waited for an answer")
        )

    def _wake(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()
