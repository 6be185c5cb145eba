"""Which conversation a run continues, and where it writes down the one it is in."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from flowstate.blocks.claude_code import conversation as conversation_module
from flowstate.blocks.claude_code.conversation import (
    KEPT_RUNS,
    DetachedConversation,
    SdkAgentRun,
    SdkAgentRuns,
    SessionBinding,
    SessionBindings,
    SessionConversation,
    checked_id,
)
from flowstate.context import Context
from flowstate.harness.failure import UnknownConversationError, harness_failure_kind
from tests.blocks.claude_code.fake_context import FakeContext, FakeScope

pytestmark = pytest.mark.anyio

ONE = "11111111-2222-4333-8444-555555555555"
TWO = "aaaaaaaa-2222-4333-8444-555555555555"


def _ctx(session: FakeScope | None = None, request_id: str = "req_1") -> Context:
    scope = session or FakeScope("s1", (SdkAgentRuns,))
    return FakeContext(scope, request_id).as_context()


async def _named(agent: str, ctx: Context, session_id: str) -> None:
    """A run of an agent that turned out to be in this conversation."""
    conversation = SessionConversation(agent, ctx)
    await conversation.wanted()
    await conversation.confirm(session_id)


@pytest.mark.parametrize("nothing", [None, ""])
def test_nothing_and_an_empty_text_are_fresh(nothing: str | None) -> None:
    """Both mean that there is no conversation to continue."""
    assert checked_id(nothing) is None


@pytest.mark.parametrize("text", ["a title", "--flag", ONE + "\n", ONE[:-1], "{" + ONE + "}", 7])
def test_what_is_no_id_is_an_unknown_conversation(text: object) -> None:
    """Claude Code would take a title for an id, so only a UUID gets near it."""
    with pytest.raises(UnknownConversationError) as caught:
        checked_id(text)

    assert harness_failure_kind(caught.value) == "unknown-conversation"
    assert checked_id(ONE.upper()) == ONE.upper()


async def test_a_session_continues_the_last_run_of_the_same_agent() -> None:
    """The next request finds what the last one wrote; another agent has its own conversation."""
    session = FakeScope("s1", (SdkAgentRuns,))
    first = SessionConversation("coder", _ctx(session))
    assert await first.wanted() is None
    await first.confirm(ONE)
    await _named("reviewer", _ctx(session), TWO)

    assert await SessionConversation("coder", _ctx(session)).wanted() == ONE
    assert await SessionConversation("reviewer", _ctx(session)).wanted() == TWO
    assert await SessionConversation("other", _ctx(session)).wanted() is None


async def test_the_state_has_the_documented_shape() -> None:
    """A list of runs, oldest first, readable by anyone who has the session."""
    ctx = _ctx(request_id="req_7")
    await _named("coder", ctx, ONE)

    runs = await ctx.session[SdkAgentRuns].get()
    assert runs.model_dump(mode="json", by_alias=True) == {
        "runs": [
            {
                "agent": "coder",
                "sessionId": ONE,
                "requestId": "req_7",
                "path": "turn/agent",
                "costTotalUsd": None,
            }
        ],
        "waiting": [],
    }


async def test_a_conversation_that_is_gone_is_not_asked_for_again() -> None:
    """Forgetting takes all its runs out, so the next run falls back or starts afresh."""
    session = FakeScope("s1", (SdkAgentRuns,))
    for session_id in (ONE, TWO, TWO):
        await _named("coder", _ctx(session), session_id)
    last = SessionConversation("coder", _ctx(session))
    await last.wanted()
    await last.forget(TWO)

    assert await SessionConversation("coder", _ctx(session)).wanted() == ONE


async def test_totals_are_remembered_for_the_next_run() -> None:
    """Claude Code counts a conversation's cost, so each run starts from where the last ended."""
    session = FakeScope("s1", (SdkAgentRuns,))
    fresh = SessionConversation("coder", _ctx(session))
    await fresh.wanted()
    assert fresh.total_before_usd == 0.0
    await fresh.confirm(ONE)
    await fresh.note_total(ONE, 0.25)

    second = SessionConversation("coder", _ctx(session))
    await second.wanted()
    assert second.total_before_usd == 0.25
    await second.confirm(ONE)

    third = SessionConversation("coder", _ctx(session))
    await third.wanted()
    assert third.total_before_usd is None


def test_old_runs_are_forgotten() -> None:
    """A session's state doesn't grow without end."""
    runs = SdkAgentRuns()
    for number in range(KEPT_RUNS + 5):
        runs = runs.with_run(
            SdkAgentRun(agent="a", session_id=ONE, request_id=str(number), path="p")
        )

    assert [run.request_id for run in runs.runs][::49] == ["5", "54"]


async def test_detached_the_author_decides() -> None:
    """Both functions may be plain or async, get the run's context, and either may be missing."""
    ctx = _ctx()
    named: list[tuple[str, Context]] = []

    async def resume(given: Context) -> str:
        assert given is ctx
        return ONE

    async def on_session(session_id: str, given: Context) -> None:
        named.append((session_id, given))

    asynchronous = DetachedConversation(resume, on_session, ctx)
    assert await asynchronous.wanted() == ONE
    assert asynchronous.total_before_usd is None
    await asynchronous.confirm(TWO)
    assert named == [(TWO, ctx)]

    plain = DetachedConversation(lambda _: "", lambda *told: named.append(told), ctx)
    assert await plain.wanted() is None
    assert plain.total_before_usd == 0.0
    await plain.confirm(ONE)
    assert named[-1] == (ONE, ctx)

    neither = DetachedConversation(None, None, ctx)
    assert await neither.wanted() is None
    await neither.confirm(ONE)
    await neither.forget(ONE)
    await neither.release(None)


class Connections:
    """A provider that keeps something heavier behind the session's own continuity."""

    def __init__(self, *, failing: bool = False, endless: bool = False) -> None:
        self.told: list[object] = []
        self._thin = SessionBindings()
        self._failing = failing
        self._endless = endless

    async def resolve(self, ctx: Context, *, agent: str) -> SessionBinding:
        self.told.append(("resolve", agent))
        return await self._thin.resolve(ctx, agent=agent)

    async def release(self, binding: SessionBinding, error: BaseException | None) -> None:
        self.told.append(("release", binding.conversation_id, error))
        if self._endless:
            await anyio.sleep_forever()
        await anyio.lowlevel.checkpoint()
        self.told.append("released")
        if self._failing:
            raise OSError("it was gone already")


async def test_a_provider_takes_the_place_of_the_thin_one() -> None:
    """It is asked for the binding, and lets go of it once, with what the run raised."""
    provider = Connections()
    session = FakeScope("s1", (SdkAgentRuns,))
    await _named("coder", _ctx(session), ONE)
    conversation = SessionConversation("coder", _ctx(session), provider)
    error = ValueError("x")

    assert await conversation.wanted() == ONE
    await conversation.release(error)
    await conversation.release(None)

    assert provider.told == [("resolve", "coder"), ("release", ONE, error), "released"]


async def test_a_binding_is_released_although_the_run_is_cancelled() -> None:
    """No cancel reaches the provider while it lets go."""
    provider = Connections()
    conversation = SessionConversation("coder", _ctx(), provider)
    await conversation.wanted()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await conversation.release(None)

    assert provider.told[-1] == "released"


async def test_a_provider_that_fails_to_let_go_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What it raises is logged, and one that never comes back is left after a while."""
    monkeypatch.setattr(conversation_module, "RELEASE_SECONDS", 0.05)
    for provider, event in (
        (Connections(failing=True), "the conversation could not be released"),
        (Connections(endless=True), "the conversation was not released in time"),
    ):
        ctx = FakeContext(FakeScope("s1", (SdkAgentRuns,)))
        conversation = SessionConversation("coder", ctx.as_context(), provider)
        await conversation.wanted()
        with anyio.fail_after(10):
            await conversation.release(None)

        assert [call.kwargs["event"] for call in ctx.logger.calls] == [event]


async def test_a_binding_s_id_is_checked_whoever_provides_it() -> None:
    """A provider's mistake doesn't reach Claude Code either, and its binding is released."""

    class Titles:
        def __init__(self) -> None:
            self.released = 0

        async def resolve(self, ctx: Context, *, agent: str) -> SessionBinding:
            run = SdkAgentRun(agent=agent, session_id="a title", request_id="r", path="p")
            return SessionBinding(agent, ctx, run)

        async def release(self, binding: SessionBinding, error: BaseException | None) -> None:
            self.released += 1

    provider = Titles()
    conversation = SessionConversation("coder", _ctx(), provider)
    with pytest.raises(UnknownConversationError):
        await conversation.wanted()
    await conversation.release(None)

    assert provider.released == 1
