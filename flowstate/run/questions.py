"""
Questions to people: which are open in a run, and whether anything of it can go on without answers.

A question parks the task that asks it, and no other. What can still go on is counted in *movers*:
the main chain is one, every further worker of a fork that holds questions is one more, and a parked
one isn't. Nothing moves and a question is open: the run is *still*, and whoever started it may
suspend it. Forks that hold no question aren't counted: they move within their mover.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import anyio
import anyio.lowlevel
from pydantic import PydanticUserError, TypeAdapter
from pydantic_core import to_jsonable_python

from flowstate.errors import InvalidValue, NobodyToAsk, UnknownQuestion
from flowstate.item.book import LiveItem
from flowstate.item.content import Suspension
from flowstate.plan.program import Ask, Place
from flowstate.run.frame import Frame
from flowstate.run.gate import Gate


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question that is open."""

    id: str
    """The execution path of the step that asks: unique in its request."""
    name: str
    """As its author called it."""
    text: Any
    """What the person is shown, if its author said: JSON."""
    answer_type: object
    """The annotation that an answer must fit."""
    schema: dict[str, Any] | None
    """The same as JSON Schema; None where the type has none."""


Answerer: TypeAlias = Callable[[Question], object]
"""Answers at once, in place of a person: for runs without a Runtime."""


@final
class Questions:
    """The questions of one run."""

    def __init__(self, answerer: Answerer | None = None) -> None:
        self._answerer = answerer
        self._open: dict[str, _Asked] = {}
        self._movers = 1
        self.answerable = False
        """Whether whoever started the run answers questions by ``accept`` and ``release``."""
        self.on_change: Callable[[], object] | None = None
        """Called when a question was opened, or something stopped moving. Must not raise."""

    def __repr__(self) -> str:
        return f"<Questions: {len(self._open)} open, {self._movers} movers>"

    @property
    def open(self) -> tuple[Question, ...]:
        """The open questions that have no answer yet, in the order they were asked."""
        return tuple(asked.question for asked in self._open.values() if asked.waits)

    @property
    def still(self) -> bool:
        """Whether a question is open and nothing moves."""
        # What parks behind a closed gate is about to be cancelled, and moves then.
        return (
            self._movers == 0
            and bool(self._open)
            and not any(asked.gate.closed for asked in self._open.values())
        )

    # --- told by the run ------------------------------------------------------------------------

    def joined(self) -> None:
        """Another task moves from now on."""
        self._movers += 1

    def left(self) -> None:
        """A task that moved has ended, and nobody goes on in its place."""
        self._movers -= 1
        self._changed()

    async def ask(
        self, frame: Frame, place: Place, turns: tuple[int, ...], what: Ask, text: Any
    ) -> Any:
        """
        Wait for the answer to a question.

        Raises:
            InvalidValue: the text is no JSON, or an answerer's answer doesn't fit.
            NobodyToAsk: the run has nobody who could answer.
        """
        path = frame.path(place, turns)
        question = Question(
            id=path,
            name=what.name,
            text=_jsonable(text, path),
            answer_type=what.answer_type,
            schema=_schema(what.answer_type),
        )
        if self._answerer is None and not self.answerable:
            raise NobodyToAsk(path, what.name)
        step = frame.services.book.writer(path, place.site.name, parent=frame.container)
        content = Suspension(
            name=question.name,
            question_id=question.id,
            question=question.text,
            answer_schema=question.schema,
        )
        item = step.open(content)
        asked = _Asked(question, what.check, frame.gate)
        try:
            if self._answerer is not None:
                await anyio.lowlevel.checkpoint()
                asked.accept(asked.checked(self._answerer(question)))
            else:
                await self._park(asked)
        except Exception:
            item.settle(status="failed")
            raise
        except BaseException:
            item.settle(status="incomplete")
            raise
        _settle(item, content, asked.answer)
        return asked.answer

    async def _park(self, asked: _Asked) -> None:
        self._open[asked.question.id] = asked
        self._movers -= 1
        self._changed()
        try:
            await asked.released.wait()
        finally:
            # An answer has counted it in again; a cancellation makes it move, too.
            if self._open.pop(asked.question.id, None) is not None:
                self._movers += 1

    def _changed(self) -> None:
        if self.on_change is not None:
            self.on_change()

    # --- told by whoever answers ----------------------------------------------------------------

    def checked(self, question_id: str, answer: object) -> object:
        """
        The answer, if it can be given to this question.

        Raises:
            UnknownQuestion: no such question is open, or it is answered already.
            InvalidValue: the answer doesn't fit; the question stays open.
        """
        asked = self._open.get(question_id)
        if asked is None or not asked.waits:
            raise UnknownQuestion(question_id, [question.id for question in self.open])
        return asked.checked(answer)

    def accept(self, question_id: str, answer: object) -> None:
        """Keep the answer, which is checked; the question is closed, its task still parked."""
        self._open[question_id].accept(answer)

    def release(self) -> None:
        """Let those go on that have their answers."""
        for question_id, asked in tuple(self._open.items()):
            if asked.accepted:
                del self._open[question_id]
                self._movers += 1
                asked.released.set()


@final
class _Asked:
    """A question and its answer."""

    __slots__ = ("accepted", "answer", "check", "gate", "question", "released")

    def __init__(self, question: Question, check: Callable[[Any], Any] | None, gate: Gate) -> None:
        self.question = question
        self.check = check
        self.gate = gate
        self.released = anyio.Event()
        self.accepted = False
        self.answer: Any = None

    @property
    def waits(self) -> bool:
        """Whether an answer would still be of use."""
        return not self.accepted and not self.gate.closed

    def checked(self, answer: object) -> object:
        return answer if self.check is None else self.check(answer)

    def accept(self, answer: object) -> None:
        self.answer = answer
        self.accepted = True


def _settle(item: LiveItem, content: Suspension, answer: Any) -> None:
    try:
        shown = to_jsonable_python(answer, fallback=repr, inf_nan_mode="strings")
    except Exception:
        # Its own serializer raised. The answer counts all the same.
        shown = repr(answer)
    item.settle(content.model_copy(update={"answer": shown}))


def _jsonable(text: Any, where: str) -> Any:
    try:
        return to_jsonable_python(text)
    except Exception as error:
        raise InvalidValue(where, "JSON (the question)", type(text).__name__, str(error)) from error


def _schema(annotation: Any) -> dict[str, Any] | None:
    try:
        return TypeAdapter(annotation).json_schema()
    except PydanticUserError:
        return None
