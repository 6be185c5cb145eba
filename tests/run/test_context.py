"""What a block sees of its run: path, request, scopes, capabilities, items, status, log."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import structlog
from pydantic import BaseModel

from flowstate import (
    Context,
    Identity,
    Written,
    block_state,
    define_capability,
    handler,
    request_state,
    run_block,
    sequencer,
    session_state,
    user_state,
)
from flowstate.errors import UndeclaredCapability, UndeclaredState
from flowstate.ids import SessionId
from flowstate.item.content import Container, Message
from tests.run.journal import Journal

pytestmark = pytest.mark.anyio


class Notes(BaseModel):
    count: int = 0


async def test_a_block_knows_where_it_is_and_for_whom() -> None:
    """Path, attempt, request, action, flow and identity."""
    seen: dict[str, object] = {}

    @handler
    async def look(value: int, ctx: Context) -> int:
        seen.update(
            path=ctx.path,
            attempt=ctx.attempt,
            session=ctx.session.id,
            action=ctx.request.action,
            flow=ctx.request.flow,
            identity=ctx.user.identity,
            user=ctx.user.id,
            cancelled=ctx.cancelled,
        )
        return value

    who = Identity(session_id=SessionId("s1"), user_id="u1", tenant_id="t1")
    await run_block(sequencer("turn", int).step(look), 1, identity=who)
    assert seen == {
        "path": "turn/look",
        "attempt": 1,
        "session": "s1",
        "action": "turn",
        "flow": "once",
        "identity": who,
        "user": "u1",
        "cancelled": None,
    }


async def test_two_resolvers_of_one_run_can_share_by_weak_reference() -> None:
    """A context is one object a node and run, weakly referenced, and let go with it."""
    shared: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()

    @handler
    async def look(value: int, ctx: Context) -> int:
        shared[ctx] = "once"
        assert shared[ctx] == "once"
        return value

    await run_block(sequencer("turn", int).step(look).step(look), 1)
    gc.collect()
    assert len(shared) == 0


async def test_state_is_read_and_written_where_it_is_declared() -> None:
    """One cell for the plan, whichever of its blocks declares it."""

    @handler(uses=[session_state(Notes)])
    async def writes(value: int, ctx: Context) -> int:
        written = await ctx.session[Notes].increment("count", value)
        assert isinstance(written, Written)
        return value

    @handler
    async def reads(value: int, ctx: Context) -> int:
        return (await ctx.session[Notes].get()).count

    built = sequencer("turn", int).step(writes).step(writes).step(reads)
    assert await run_block(built, 4) == 8


async def test_state_that_nothing_declares_is_an_error_that_says_what_to_write() -> None:
    """Another scope is another cell."""

    @handler(uses=[session_state(Notes)])
    async def reads(value: int, ctx: Context) -> int:
        return (await ctx.request[Notes].get()).count

    with pytest.raises(UndeclaredState, match=r"turn/reads: no request state Notes is declared"):
        await run_block(sequencer("turn", int).step(reads), 4)

    with pytest.raises(UndeclaredState, match=r"uses=\[request_state\(Notes\)\]"):
        await run_block(reads, 4)


async def test_state_of_a_user_needs_a_user() -> None:
    """A run for nobody has no user's state to write into."""

    @handler(uses=[user_state(Notes)])
    async def reads(value: int, ctx: Context) -> int:
        return (await ctx.user[Notes].get()).count

    with pytest.raises(UndeclaredState, match="the request names no user"):
        await run_block(reads, 4)
    who = Identity(session_id=SessionId("s"), user_id="u")
    assert await run_block(reads, 4, identity=who) == 0


async def test_state_of_a_block_belongs_to_one_execution_of_it() -> None:
    """The blocks inside share it; the next turn of the loop begins anew."""
    seen: list[int] = []

    @handler
    async def counts(value: int, ctx: Context) -> int:
        await ctx.block[Notes].increment("count")
        seen.append((await ctx.block[Notes].get()).count)
        return value + 1

    body = sequencer("body", int, uses=[block_state(Notes)]).step(counts).step(counts)
    built = sequencer("turn", int).do_until(lambda v: v >= 4, body, max_iterations=5)
    await run_block(built, 0)
    assert seen == [1, 2, 1, 2]

    with pytest.raises(UndeclaredState, match="no block state Notes"):
        await run_block(sequencer("turn", int).step(body).step(counts), 0)


class Memory:
    """A capability's handle."""

    def __init__(self, ctx: Context) -> None:
        self.path = ctx.path


async def test_a_capability_is_made_once_a_node() -> None:
    """By its factory, when it is first asked for."""
    memory = define_capability("memory", Memory)
    seen: list[Memory] = []

    @handler(uses=[memory])
    async def asks(value: int, ctx: Context) -> int:
        seen.extend([ctx.cap[memory], ctx.cap[memory]])
        return value

    await run_block(sequencer("turn", int).step(asks).step(asks), 1)
    assert seen[0] is seen[1]
    assert seen[2] is seen[3]
    assert [handle.path for handle in seen[::2]] == ["turn/asks", "turn/asks#2"]


async def test_a_capability_that_nothing_uses_is_an_error() -> None:
    """Another capability of the same name isn't it."""
    memory, other = define_capability("memory", Memory), define_capability("memory", Memory)

    @handler(uses=[memory])
    async def asks(value: int, ctx: Context) -> int:
        ctx.cap[other]
        return value

    with pytest.raises(UndeclaredCapability, match="'memory'"):
        await run_block(sequencer("turn", int).step(asks), 1)


async def test_a_capability_declares_the_state_it_uses() -> None:
    """A block that uses it can reach that state through it."""

    class Counter:
        def __init__(self, ctx: Context) -> None:
            self.cell = ctx.request[Notes]

    counter = define_capability("counter", Counter, uses=[request_state(Notes)])

    @handler(uses=[counter])
    async def counts(value: int, ctx: Context) -> int:
        await ctx.cap[counter].cell.increment("count")
        return (await ctx.cap[counter].cell.get()).count

    assert await run_block(sequencer("turn", int).step(counts).step(counts), 1) == 2


async def test_items_left_open_are_settled_as_incomplete_at_the_end_of_their_step() -> None:
    """However the step ends, and before the next one starts."""
    ended: list[Any] = []

    def opening(name: str, error: Exception | None = None) -> Any:
        async def opens(value: int, ctx: Context) -> int:
            group = ctx.items.open(Container(label=name))
            ctx.items.open(Message(text=name), parent=group.id)
            done = ctx.items.open(Message(text="done"))
            done.settle()
            if error is not None:
                raise error
            return value

        return handler(name=name)(opens)

    built = sequencer("turn", int).step(opening("a")).step(opening("b", ValueError("x")))
    with pytest.raises(ValueError, match="x"):
        await run_block(
            built, 1, emit=lambda event: ended.append(event) if event.kind == "settled" else None
        )
    told = [(e.item.provenance.block, e.item.content.type, e.item.status) for e in ended]
    assert told == [
        (name, kind, status)
        for name in "ab"
        for kind, status in (
            ("message", "completed"),
            ("message", "incomplete"),
            ("container", "incomplete"),
        )
    ]
    assert ended[0].item.provenance.path == "turn/a"


async def test_a_step_clears_its_own_status_only() -> None:
    """A late end never wipes out somebody else's news."""
    journal = Journal()
    shown: list[tuple[str, str]] = []

    def tell(event: Any) -> None:
        shown.append((event.kind, event.item.content.text))

    @handler
    async def says(value: int, ctx: Context) -> int:
        ctx.status.show("mine")
        return value

    @handler
    async def keeps(value: int, ctx: Context) -> int:
        ctx.status.show("passing")
        ctx.status.keep("kept")
        return value

    await run_block(
        sequencer("turn", int).step(says).step(keeps).step(journal.block("next")),
        1,
        emit=tell,
    )
    assert shown == [
        ("added", "mine"),
        ("settled", "mine"),
        ("added", "passing"),
        ("settled", "passing"),
        ("settled", "kept"),
    ]


async def test_a_blocks_items_are_as_it_declares() -> None:
    """Visibility and transience of a block hold for the items it makes."""
    items: list[Any] = []

    @handler(visibility="trace", transient=True)
    async def hidden(value: int, ctx: Context) -> int:
        ctx.items.add(Message(text="x"))
        return value

    await run_block(hidden, 1, emit=lambda event: items.append(event.item))
    assert [(item.visibility, item.transient) for item in items] == [("trace", True)]


async def test_the_log_names_the_request_and_the_step() -> None:
    """Every line says where it came from; nothing is configured by us."""

    @handler
    async def logs(value: int, ctx: Context) -> int:
        ctx.log.info("hello", number=value)
        return value

    with structlog.testing.capture_logs() as lines:
        await run_block(sequencer("turn", int).step(logs), 5)
    (line,) = lines
    assert line["event"] == "hello"
    assert line["number"] == 5
    assert line["path"] == "turn/logs"
    assert line["session"] == "session"
    assert line["action"] == "turn"


async def test_what_capabilities_bring_is_collected_for_the_block_that_uses_them() -> None:
    """Each once, dependencies first; a function names more of them when the node runs."""

    @handler
    async def looks_up(value: int) -> int:
        return value

    tool, control = looks_up.as_tool("Looks up."), looks_up.as_tool("Stops.", name="stop")
    base = define_capability("base", object, lambda ctx: 1, context=["base"], tools=[tool])
    one = define_capability("one", object, lambda ctx: 2, uses=[base], context=["one"])
    two = define_capability(
        "two", object, lambda ctx: 3, uses=[base], context=[lambda ctx: f"two at {ctx.path}"]
    )
    extra = define_capability("extra", object, lambda ctx: 4, control_tools=[control])
    seen: list[Any] = []

    @handler(uses=[one, two, lambda ctx: [extra] if ctx.request.action == "turn" else []])
    async def asks(value: int, ctx: Context) -> int:
        seen.append(ctx.cap.entries())
        return value

    await run_block(sequencer("turn", int).step(asks), 1)
    (entries,) = seen
    assert entries.context == ("base", "one", "two at turn/asks")
    assert entries.tools == (tool,)
    assert entries.control_tools == (control,)
    await run_block(asks, 1)
    assert seen[1].control_tools == ()
