"""
The caller's view of one request: its status, its items as they happen, its output.

A run goes on whether anybody looks or not: leaving a reader cancels nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar, final

from flowstate.errors import RequestCancelled, RequestInterrupted, UnknownQuestion
from flowstate.ids import Identity, RequestId
from flowstate.item.item import Item
from flowstate.item.visibility import Visibility
from flowstate.run.questions import Question
from flowstate.store.record import RequestStatus
from flowstate.stream.cursor import Cursor
from flowstate.stream.reader import EventReader, read_events

if TYPE_CHECKING:
    from flowstate.request.execution import Execution

O_co = TypeVar("O_co", covariant=True)


class SideChainCounts(NamedTuple):
    """The side chains of a request, as of one moment."""

    begun: int
    """Since the request started."""
    running: int
    """Of these: not ended yet."""
    failed: int
    """Of these: ended by an error, which is an item."""


@final
class Run(Generic[O_co]):
    """A request that was dispatched in this process. Made by ``Runtime.dispatch``."""

    __slots__ = ("_execution",)

    def __init__(self, execution: Execution) -> None:
        self._execution = execution

    def __repr__(self) -> str:
        return f"<run {self.id} of {self.action!r}: {self.status}>"

    @property
    def id(self) -> RequestId:
        """The request's id."""
        return self._execution.request_id

    @property
    def action(self) -> str:
        """The name of the action."""
        return self._execution.action.name

    @property
    def identity(self) -> Identity:
        """Who it runs for."""
        return self._execution.identity

    @property
    def status(self) -> RequestStatus:
        """Where it is in its life, as of now."""
        return self._execution.status

    @property
    def waiting_behind(self) -> str | None:
        """The id of the request just ahead of it while it waits, else None."""
        return self._execution.standing.behind

    @property
    def side_chains(self) -> SideChainCounts:
        """How many side chains it has begun so far, and what became of them."""
        chains = self._execution.side_chains
        return SideChainCounts(chains.begun, chains.running, chains.failed)

    async def started(self) -> bool:
        """Wait until it runs (True), or has ended before it could (False)."""
        await self._execution.begun.wait()
        return self._execution.ran

    def items(self, *, visibility: Visibility = "client") -> SettledItems:
        """Each item once, as it settles; ends when the request is over."""
        return SettledItems(self.events(visibility=visibility))

    def events(
        self, *, after: Cursor | None = None, visibility: Visibility = "client"
    ) -> EventReader:
        """
        Everything that happens to items, streamed text included.

        Args:
            after: go on behind this cursor; None begins at the first event.
            visibility: ``trace`` shows the engine's own items too.
        """
        return read_events(self._execution.source(), after, visibility)

    async def output(self) -> O_co:
        """
        The output, once the main chain has ended.

        Raises:
            Exception: the block raised; its own exception, with a note of where.
            RequestCancelled: it was cancelled.
            RequestInterrupted: its lease or its Runtime went away.
            QueueTimeout: its turn did not come in time.
        """
        await self._execution.decided.wait()
        match self._execution.outcome:
            case ("completed", value):
                result: O_co = value
                return result
            case ("failed", Exception() as error):
                raise error
            case ("cancelled", reason):
                raise RequestCancelled(self.id, str(reason))
            case outcome:
                raise RequestInterrupted(self.id, str(outcome and outcome[1]))

    async def finished(self) -> RequestStatus:
        """Wait until all of it is stored and its place given back; gives the last status."""
        await self._execution.over.wait()
        return self._execution.status

    @property
    def questions(self) -> tuple[Question, ...]:
        """The questions that wait for an answer now, in the order they were asked."""
        pauses = self._execution.pauses
        return () if pauses is None else pauses.open

    async def asked(self) -> tuple[Question, ...]:
        """Wait until there are questions, and give them; empty once there will be none any more."""
        pauses = self._execution.pauses
        return () if pauses is None else await pauses.asked()

    async def answer(self, question_id: str, answer: object) -> None:
        """
        Answer an open question. What asked goes on at once, or, if the request is suspended, when
        it has been admitted anew, as a request that arrives is.

        Args:
            question_id: ``Question.id``.
            answer: validated against the type that the step declares.

        Raises:
            UnknownQuestion: no such question is open.
            InvalidValue: the answer doesn't fit; the question stays open.
            RequestRefused: suspended, the policy is ``reject`` and another request is in flight;
                the question stays open.
        """
        pauses = self._execution.pauses
        if pauses is None:
            raise UnknownQuestion(question_id, ())
        await pauses.answer(question_id, answer)

    def cancel(self, reason: str = "cancelled by the caller") -> None:
        """
        Ask it to stop; returns at once. A request that has ended is left as it is.

        Nothing new starts from now on; what runs is cancelled where it waits.
        """
        self._execution.cancel(reason)


@final
class SettledItems:
    """An async iterator over items in their last state. Leaving it early costs nothing."""

    __slots__ = ("_events",)

    def __init__(self, events: EventReader) -> None:
        self._events = events

    def __aiter__(self) -> SettledItems:
        return self

    async def __anext__(self) -> Item:
        while True:
            event = await self._events.__anext__()
            if event.kind == "settled" and event.item is not None:
                return event.item
