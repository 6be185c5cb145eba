"""
How a run ended, and what it used: the results of its turns, read as a handle's fields.

A run has one result a turn. The last one decides; tokens are the sum of all, since each result
counts its own turn only. A result that says ``success`` and is flagged as an error is a failure.
Claude Code's internal diagnostics are never shown. Pure; knows no items and no process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, final

from flowstate.blocks.claude_code.heard import ApiFailureHeard, ResultHeard
from flowstate.harness.handle import HarnessOutcome, HarnessUsage
from flowstate.item.content import ErrorReport

IS_ERROR: Final = "is_error"
"""The code of a run that ended on an API error: its result says ``success``, and is flagged."""

NO_RESULT: Final = "no_result"
"""The code of a run whose stream ended without any result."""

_LIMITS: Final = frozenset({"error_max_turns", "error_max_budget_usd"})
_DIAGNOSTIC: Final = "[ede_diagnostic]"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """What the agent itself reported of its end."""

    status: Literal["completed", "errored"]
    outcome: HarnessOutcome
    result_subtype: str | None
    error: ErrorReport | None = None
    """What went wrong, in Claude Code's own words where it has any; None for a completed run."""
    reason: str | None = None
    """The same, in few words."""


def outcome_of(
    results: Sequence[ResultHeard], failure: ApiFailureHeard | None = None
) -> RunOutcome:
    """
    The outcome that the last result tells.

    Args:
        results: those of the run, in order.
        failure: the last API failure of the main thread, for a run that ends without a result.

    >>> outcome_of([ResultHeard(subtype="success", is_error=True, text="Invalid API key")]).reason
    'Invalid API key'
    """
    if not results:
        told = failure.text if failure is not None else ""
        text = told or "Claude Code ended without a result."
        return _errored(NO_RESULT, text, told or "no result", "failed", None)
    last = results[-1]
    if not last.is_error and not last.subtype.startswith("error"):
        return RunOutcome(status="completed", outcome="finished", result_subtype=last.subtype)
    code = IS_ERROR if last.subtype == "success" else last.subtype
    outcome: HarnessOutcome = "stopped-at-limit" if last.subtype in _LIMITS else "failed"
    told = _visible(last.text or "") or "; ".join(filter(None, map(_visible, last.errors)))
    if told:
        return _errored(code, told, told, outcome, last.subtype)
    if aborted(last):
        return _errored(code, "Claude Code was interrupted.", "interrupted", outcome, last.subtype)
    text = f"Claude Code's run failed ({last.subtype})."
    return _errored(code, text, code, outcome, last.subtype)


def final_message_of(said: str | None, results: Sequence[ResultHeard]) -> str | None:
    """The last message of the main thread; else the text of a result that is no error."""
    if said is not None or not results or results[-1].is_error:
        return said
    return results[-1].text


def aborted(result: ResultHeard) -> bool:
    """Whether the turn was broken off from outside, by an interrupt or a refusal that stops it."""
    return (result.terminal_reason or "").startswith("aborted")


def _errored(
    code: str, text: str, reason: str, outcome: HarnessOutcome, subtype: str | None
) -> RunOutcome:
    return RunOutcome(
        status="errored",
        outcome=outcome,
        result_subtype=subtype,
        error=ErrorReport(code=code, message=text),
        reason=reason,
    )


def _visible(text: str) -> str:
    lines = (line for line in text.splitlines() if not line.lstrip().startswith(_DIAGNOSTIC))
    return "\n".join(lines).strip()


@final
class TokenCount:
    """
    The tokens of a run's main thread: rising while messages stream, then what the results say.

    Cached input is not in it, as it isn't in Claude Code's ``input_tokens``.
    """

    def __init__(self) -> None:
        self._settled: tuple[int, int] | None = None
        self._turn: dict[str | None, tuple[int, int]] = {}
        self._streaming: str | None = None

    def begin(self, message_id: str | None, input_: int | None, output: int | None) -> None:
        """A message begins; its input is known, its output has hardly begun."""
        self._streaming = message_id
        self._raise(message_id, input_, output)

    def count(self, input_: int | None, output: int | None) -> None:
        """The message that streams has come to this."""
        self._raise(self._streaming, input_, output)

    def speak(self, message_id: str | None, input_: int | None) -> None:
        """A message was said, which may never have streamed."""
        if input_ is not None and message_id not in self._turn:
            self._raise(message_id, input_, None)

    def settle(self, result: ResultHeard) -> None:
        """
        A turn is over: its result's own count replaces what was counted meanwhile.

        A result without a count leaves it standing. One of a turn that was broken off leaves out
        the message it broke off in, so there the larger number stands.
        """
        input_ = sum(tokens for tokens, _ in self._turn.values())
        output = sum(tokens for _, tokens in self._turn.values())
        told = result.input_tokens is not None or result.output_tokens is not None
        if told and aborted(result):
            input_ = max(input_, result.input_tokens or 0)
            output = max(output, result.output_tokens or 0)
        elif told:
            input_, output = result.input_tokens or 0, result.output_tokens or 0
        if told or self._turn:
            before = self._settled or (0, 0)
            self._settled = (before[0] + input_, before[1] + output)
        self._turn.clear()
        self._streaming = None

    @property
    def usage(self) -> HarnessUsage | None:
        """The run's tokens so far; None before any were reported."""
        if self._settled is None and not self._turn:
            return None
        input_, output = self._settled or (0, 0)
        return HarnessUsage(
            input_tokens=input_ + sum(tokens for tokens, _ in self._turn.values()),
            output_tokens=output + sum(tokens for _, tokens in self._turn.values()),
        )

    def _raise(self, message_id: str | None, input_: int | None, output: int | None) -> None:
        # The numbers of one message are totals, and only rise; a repeated one changes nothing.
        known = self._turn.get(message_id)
        if known is None and input_ is None and output is None:
            return
        before = known or (0, 0)
        self._turn[message_id] = (max(before[0], input_ or 0), max(before[1], output or 0))
