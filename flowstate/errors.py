"""
Every error flowstate raises, by phase and by whose fault it is.

The message is built here, from arguments: call sites never format text. Each message names the
value, the place and the way out. An exception raised by a user's own block is never wrapped: it
travels bare, with a note that tells its execution path, so that ``rescue(ValueError, ...)`` means
the same at any depth. Cancellation is not an error and appears nowhere in this file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final


class FlowError(Exception):
    """The root of every error that flowstate itself raises."""


# --- the author's fault, found before anything runs ---------------------------------------------


@final
class DefinitionError(FlowError):
    """
    A block, action, flow or option was written in a way that can never work.

    Attributes:
        where: the name of the thing at fault.
    """

    def __init__(self, where: str, problem: str, way_out: str) -> None:
        super().__init__(f"{where}: {problem}. {way_out}")
        self.where = where


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing wrong with a composition: where, what, and how to put it right."""

    where: str
    """The path of the step, as the author named it."""
    problem: str
    """What doesn't fit, with both sides named."""
    way_out: str
    """What to write instead."""

    def __str__(self) -> str:
        return f"{self.where}: {self.problem}\n      → {self.way_out}"


@final
class PlanError(FlowError):
    """
    A composition doesn't fit together; carries ALL faults, in the order of the steps.

    Attributes:
        faults: every fault found, never empty.
    """

    def __init__(self, name: str, faults: Sequence[Fault]) -> None:
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        lines = "\n".join(f"  {i}. {fault}" for i, fault in enumerate(faults, 1))
        super().__init__(f"{name!r} can't be built, {count}:\n{lines}")
        self.faults = tuple(faults)


# --- raised while a flow runs -------------------------------------------------------------------


@final
class InvalidValue(FlowError):
    """
    A value doesn't fit the type declared where it was made or where it enters.

    The validation error of pydantic is its ``__cause__``.
    """

    def __init__(self, where: str, expected: str, got: str, details: str) -> None:
        super().__init__(f"{where}: expected {expected}, got {got}: {details}")
        self.where = where


@final
class UndeclaredState(FlowError):
    """A block asked for a state cell that nothing in its flow declares."""

    def __init__(self, where: str, scope: str, model: str) -> None:
        super().__init__(
            f"{where}: no {scope} state {model} is declared. "
            f"Add uses=[{scope}_state({model})] to the block that reads it."
        )


@final
class UndeclaredResource(FlowError):
    """A block asked for a resource collection that nothing in its flow declares."""

    def __init__(self, where: str, scope: str, pattern: str) -> None:
        super().__init__(
            f"{where}: no {scope} resource {pattern!r} is declared. "
            "Add it to the block that reads it: uses=[...]."
        )


@final
class UndeclaredCapability(FlowError):
    """A block asked for a capability that nothing in its plan uses."""

    def __init__(self, where: str, capability: str) -> None:
        super().__init__(
            f"{where}: nothing uses the capability {capability!r}. Add it to the block: uses=[...]."
        )


@final
class NoMatchingBranch(FlowError):
    """``branch`` found no arm whose condition holds, and has no ``otherwise``."""

    def __init__(self, where: str, value: object) -> None:
        super().__init__(
            f"{where}: no arm matches {_short(value)}. Give branch(...) an otherwise=block."
        )


@final
class WrongRoute(FlowError):
    """A router selected something that is not one of its routes."""

    def __init__(self, where: str, chosen: object, routes: Sequence[str]) -> None:
        super().__init__(
            f"{where}: select returned {_short(chosen)}, which is none of its routes "
            f"({', '.join(routes)}). Return one of those blocks or its name."
        )


@final
class LoopExhausted(FlowError):
    """A loop reached ``max_iterations`` before its condition ended it."""

    def __init__(self, where: str, iterations: int) -> None:
        super().__init__(
            f"{where}: still not done after {iterations} iterations. Raise max_iterations, or say "
            "on_exhausted='keep' to go on with the last value."
        )


@final
class NobodyToAsk(FlowError):
    """A step asks a person, and the run was started where nobody can answer."""

    def __init__(self, where: str, name: str) -> None:
        super().__init__(
            f"{where}: nobody can answer {name!r} here. Dispatch it through a Runtime, or give "
            "run_block(..., answers=function)."
        )
        self.where = where


@final
class TimedOut(FlowError):
    """A block took longer than its ``timeout`` (one attempt) or ``deadline`` (all of them)."""

    def __init__(self, where: str, limit: str, seconds: float) -> None:
        super().__init__(f"{where}: {limit} of {seconds:g} s passed")
        self.where = where


# --- requests: admission, life cycle ------------------------------------------------------------


class RequestError(FlowError):
    """A request didn't end with an output."""

    def __init__(self, request_id: str, message: str) -> None:
        super().__init__(message)
        self.request_id = request_id


@final
class RequestRefused(RequestError):
    """
    ``concurrency="reject"``: another request of the same key is in flight.

    Attributes:
        in_flight: the id of that request.
    """

    def __init__(self, request_id: str, action: str, key: str, in_flight: str) -> None:
        super().__init__(
            request_id,
            f"action {action!r} refused: request {in_flight!r} is in flight for {key}. "
            "Wait for it, cancel it, or use concurrency='queue'.",
        )
        self.in_flight = in_flight


@final
class QueueTimeout(RequestError):
    """A queued request waited its ``wait`` and its turn had not come."""

    def __init__(self, request_id: str, seconds: float, behind: str | None) -> None:
        who = f" behind request {behind!r}" if behind else ""
        super().__init__(
            request_id,
            f"request {request_id!r} waited {seconds:g} s{who}. "
            "Use queue(wait=...) to wait longer.",
        )
        self.behind = behind


@final
class RequestCancelled(RequestError):
    """The request was cancelled; asked for its output, there is none."""

    def __init__(self, request_id: str, reason: str) -> None:
        super().__init__(request_id, f"request {request_id!r} was cancelled: {reason}")
        self.reason = reason


@final
class RequestInterrupted(RequestError):
    """The process or the lease behind the request was lost; it may be sent again."""

    def __init__(self, request_id: str, reason: str) -> None:
        super().__init__(request_id, f"request {request_id!r} was interrupted: {reason}")
        self.reason = reason


@final
class UnknownQuestion(FlowError):
    """An answer was given to a question that isn't open: never asked, withdrawn or answered."""

    def __init__(self, question_id: str, open_ids: Sequence[str]) -> None:
        known = ", ".join(map(repr, open_ids)) or "none"
        super().__init__(f"question {question_id!r} is not open. Open are: {known}.")
        self.question_id = question_id


@final
class RuntimeClosed(FlowError):
    """The Runtime is not open: it was never entered, or it has been left."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: the Runtime is not open. Use `async with Runtime(...) as ...`.")


# --- the store ----------------------------------------------------------------------------------


class StoreError(FlowError):
    """A store could not do what it was asked; the database's own error is the cause."""


@final
class VersionConflict(StoreError):
    """A versioned write found another version than the one it was based on."""

    def __init__(self, key: str, expected: int, found: int) -> None:
        super().__init__(f"{key}: version {expected} expected, {found} found. Read it again.")
        self.expected = expected
        self.found = found


@final
class NoSuchEntry(StoreError):
    """A resource collection has no entry under the id that was to be changed."""

    def __init__(self, key: str) -> None:
        super().__init__(f"{key}: there is no such entry to change. Use create or upsert.")
        self.key = key


@final
class StatusConflict(StoreError):
    """A request was to be written in a status that doesn't follow from the one it has."""

    def __init__(self, request_id: str, expected: str, found: str) -> None:
        super().__init__(f"request {request_id!r} is {found}, not {expected}; nothing was written")
        self.request_id = request_id
        self.expected = expected
        self.found = found


@final
class CorruptRow(StoreError):
    """A stored row doesn't fit its model. It is left as it is."""

    def __init__(self, key: str, model: str, details: str) -> None:
        super().__init__(f"{key}: the stored row doesn't fit {model} and was left alone: {details}")
        self.key = key


@final
class StaleFence(StoreError):
    """A write came from a run whose lease has passed to another."""

    def __init__(self, key: str, token: int, current: int) -> None:
        super().__init__(f"{key}: fence {token} is stale, {current} is current; nothing written")
        self.token = token
        self.current = current


@final
class LeaseLost(FlowError):
    """A run's place on its key is gone; the run is stopped."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"the place on {key} is gone: {reason}")


# --- coding agents ------------------------------------------------------------------------------


class HarnessError(FlowError):
    """A coding agent could not be started, or its outcome could not be heard."""


def _short(value: object, limit: int = 120) -> str:
    """A value's repr, cut so that an error stays readable and large inputs stay out of it."""
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
