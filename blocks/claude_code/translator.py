"""
What Claude Code says, as effects: items, the status line, activity.

Pure: told one heard thing at a time, it answers with what that means. No clock but the one handed
in, no process, no context. It holds, whatever is lost, repeated, out of order or cut short:

- Nothing raises. An item is opened once, and settled once.
- Nothing is left after ``end``: no open item, no status. After it, nothing more is said.

Texts are ``flowstate.blocks.claude_code.speech``'s, tools and sub-agents ``calls``'s, the status
line ``status_line``'s; here is which of them hears what, and how a run begins and ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never, final

from flowstate.blocks.claude_code import wording
from flowstate.blocks.claude_code.calls import Calls
from flowstate.blocks.claude_code.heard import (
    Answered,
    ApiFailureHeard,
    AssistantHeard,
    Called,
    CompactionHeard,
    Heard,
    ResultHeard,
    RetryHeard,
    SessionHeard,
    Spoken,
    StateHeard,
    StreamCounted,
    Streamed,
    StreamStarted,
    TaskEnded,
    TaskProgressed,
    TaskStarted,
    Took,
    UsageHeard,
)
from flowstate.blocks.claude_code.outcome import (
    RunOutcome,
    TokenCount,
    final_message_of,
    outcome_of,
)
from flowstate.blocks.claude_code.speech import Speech
from flowstate.blocks.claude_code.status_line import RunStatusLine
from flowstate.harness.clean_text import clean_text
from flowstate.harness.effect import Effect, KeepStatus, OpenItem, SessionNamed, SettleItem
from flowstate.harness.handle import HarnessUsage
from flowstate.item.content import ErrorReport


@final
class Translator:
    """
    The translation of one run.

    Args:
        now: seconds on a clock that only goes forward.
        forward_partial_messages: whether messages and thoughts grow piece by piece, or come whole.
        activity: whether messages and calls are told as activity, too.

    Attributes:
        session_id: the conversation that Claude Code confirmed; None before.
        model: the one that its first message named.
        cost_total_usd: the last total that it reported: of the conversation, earlier runs included.
    """

    def __init__(
        self,
        *,
        now: Callable[[], float],
        forward_partial_messages: bool = True,
        activity: bool = True,
    ) -> None:
        self.session_id: str | None = None
        self.model: str | None = None
        self.cost_total_usd: float | None = None
        self._now = now
        self._begun = now()
        self._speech = Speech(forward=forward_partial_messages, activity=activity)
        self._line = RunStatusLine()
        self._tokens = TokenCount()
        self._calls = Calls(self._line, activity=activity)
        self._results: list[ResultHeard] = []
        self._failure: ApiFailureHeard | None = None
        self._state: str | None = None
        self._seen: set[str] = set()
        self._ended = False

    # --- what is known so far -------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """Whether there is a result and Claude Code says that it is idle, in either order."""
        return bool(self._results) and self._state == "idle"

    @property
    def tools_observed(self) -> tuple[str, ...]:
        """The distinct names of the tools that were called, in the order of first use."""
        return tuple(self._calls.tools)

    @property
    def results(self) -> tuple[ResultHeard, ...]:
        """The results of the turns so far."""
        return tuple(self._results)

    @property
    def outcome(self) -> RunOutcome:
        """How the run ended, as its last result tells."""
        return outcome_of(self._results, self._failure)

    @property
    def final_message(self) -> str | None:
        """The last message of the main thread."""
        return final_message_of(self._speech.final_message, self._results)

    @property
    def usage(self) -> HarnessUsage | None:
        """The tokens so far; None before any were reported."""
        return self._tokens.usage

    # --- the run --------------------------------------------------------------------------------

    def started(self) -> list[Effect]:
        """The run begins now, before anything is loaded for it; its duration counts from here."""
        self._begun = self._now()
        self._line.notice(wording.STARTING)
        return self._line.effects()

    def feed(self, heard: Heard) -> list[Effect]:
        """What one heard thing means; after ``end``, nothing."""
        if self._ended:
            return []
        effects = self._translate(heard)
        if self._line.changed:
            effects += self._line.effects()
        return effects

    def hold(self, call_id: str) -> None:
        """
        A person is to decide this call later, and the turn stops for it.

        Its result, and those of calls that were refused because the turn stopped, then say nothing
        of what became of them: their items end incomplete, neither done nor failed.
        """
        self._calls.hold(call_id)

    def end(
        self, reason: str | None = None, *, code: str = "run_failed", held: bool = False
    ) -> list[Effect]:
        """
        The run is over. A second call does nothing.

        Args:
            reason: why we heard no outcome (an exception, a cancel); None when the results tell.
            code: the code of the error item that goes with ``reason``.
            held: the run waits for a person's decision: it neither completed nor failed.
        """
        if self._ended:
            return []
        self._ended = True
        effects = self._speech.end()
        effects += self._calls.end()
        self._line.reset()
        cleared = self._line.effects()
        if reason is None and held:
            return effects + cleared
        outcome = self.outcome
        if reason is not None:
            error, why = ErrorReport(code=code, message=clean_text(reason)), clean_text(reason)
        elif outcome.error is not None:
            error, why = outcome.error, outcome.reason or outcome.error.code
        else:
            effects += cleared
            effects.append(KeepStatus(wording.completed(self._now() - self._begun)))
            return effects
        effects += [OpenItem("run/error", error), SettleItem("run/error")]
        effects += cleared
        effects.append(KeepStatus(wording.errored(why)))
        return effects

    def __repr__(self) -> str:
        state = "ended" if self._ended else self._state or "not begun"
        return f"Translator({state}, {len(self._calls)} calls, {len(self._results)} results)"

    # --- one heard thing ------------------------------------------------------------------------

    def _translate(self, heard: Heard) -> list[Effect]:
        match heard:
            case Streamed():  # most of what is heard
                return self._streamed(heard)
            case AssistantHeard():
                return self._assistant(heard)
            case Answered():
                self._line.output()
                return self._calls.answered(heard)
            case StreamStarted():
                return self._stream_started(heard)
            case StreamCounted():
                if heard.parent is None:
                    self._tokens.count(heard.input_tokens, heard.output_tokens)
            case SessionHeard():
                return self._session(heard)
            case StateHeard(state=state):
                self._state = state
            case RetryHeard():
                self._line.notice(wording.retrying(heard.attempt, heard.attempts, heard.delay_ms))
            case CompactionHeard():
                self._line.notice(wording.COMPACTED)
            case ApiFailureHeard():
                self._failure = heard if heard.parent is None else self._failure
            case TaskStarted():
                return self._calls.task_started(heard)
            case TaskProgressed():
                self._calls.task_progressed(heard)
            case TaskEnded():
                return self._calls.task_ended(heard)
            case ResultHeard():
                return self._result(heard)
            case UsageHeard() | Took():
                pass
            case _:
                assert_never(heard)
        return []

    def _session(self, heard: SessionHeard) -> list[Effect]:
        self.model = self.model or heard.model
        if self.session_id is not None:
            return []
        self.session_id = heard.session_id
        return [SessionNamed(heard.session_id)]

    def _stream_started(self, heard: StreamStarted) -> list[Effect]:
        if heard.parent is None:
            self.model = self.model or heard.model
            self._tokens.begin(heard.message_id, heard.input_tokens, heard.output_tokens)
        effects = self._calls.finish_on_server(heard.parent)
        effects += self._speech.begin(heard.message_id, heard.parent)
        return effects

    def _streamed(self, heard: Streamed) -> list[Effect]:
        self._line.output()
        if heard.kind == "arguments":
            return []
        parent = heard.parent
        if parent is None:
            return self._speech.stream(heard.index, heard.kind, heard.text, None, None)
        effects: list[Effect] = []
        group = self._calls.group(parent, effects)
        effects += self._speech.stream(heard.index, heard.kind, heard.text, parent, group)
        return effects

    def _assistant(self, heard: AssistantHeard) -> list[Effect]:
        if not self._first(heard.uuid):
            return []
        self._line.output()
        if heard.parent is None:
            self.model = self.model or heard.model
            self._tokens.speak(heard.message_id, heard.input_tokens)
        effects: list[Effect] = []
        group = self._calls.group(heard.parent, effects) if heard.blocks else None
        for block in heard.blocks:
            match block:
                case Spoken(kind=kind, text=text):
                    effects += self._speech.say(heard.message_id, kind, text, heard.parent, group)
                case Called():
                    effects += self._calls.called(block, group)
                case Answered():
                    effects += self._calls.answered(block)
                case _:
                    assert_never(block)
        return effects

    def _result(self, heard: ResultHeard) -> list[Effect]:
        if not self._first(heard.uuid):
            return []
        self._line.output()
        self._results.append(heard)
        self._tokens.settle(heard)
        if heard.total_cost_usd is not None:
            self.cost_total_usd = heard.total_cost_usd
        return self._calls.finish_on_server(None)

    def _first(self, uuid: str | None) -> bool:
        """Whether this is the first time that we hear it; what has no id is always new."""
        if uuid is None:
            return True
        if uuid in self._seen:
            return False
        self._seen.add(uuid)
        return True
