"""``ctx.resources``: the collections that a block reaches, and what is told of their changes."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel

from flowstate import (
    Collection,
    Context,
    Entry,
    Identity,
    Runtime,
    action,
    build_plan,
    define_capability,
    define_flow,
    handler,
    resource,
    run_block,
    sequencer,
)
from flowstate.errors import PlanError, UndeclaredResource, VersionConflict
from flowstate.ids import SessionId
from flowstate.item.content import ResourceChange
from flowstate.testing import RecordingSink, simulate

pytestmark = pytest.mark.anyio


class Note(BaseModel):
    text: str = ""


class Other(BaseModel):
    text: str = ""


class FileId(NamedTuple):
    repo: str
    path: str


NOTES = resource("notes/{id}", Note)
FILES = resource("repos/{repo}/files/{path}", Note, ids=FileId)


@handler(uses=[NOTES])
async def write(text: str, ctx: Context) -> str:
    await ctx.resources[NOTES].create(text, Note(text=text))
    return text


@handler
async def read(text: str, ctx: Context) -> list[str]:
    return [entry.id async for entry in ctx.resources[NOTES].scan()]


async def test_a_collection_is_one_for_the_plan() -> None:
    """Whichever of its blocks declares it, every block of the plan reaches it."""
    assert await run_block(sequencer("turn", str).step(write).step(read), "a/b") == ["a/b"]


async def test_a_resource_that_nothing_declares_is_an_error_that_says_what_to_write() -> None:
    """Another resource by the same name isn't it."""
    with pytest.raises(
        UndeclaredResource,
        match=r"turn/read: no session resource 'notes/\{id\}' is declared.*uses=\[",
    ):
        await run_block(sequencer("turn", str).step(read), "a")

    @handler(uses=[resource("notes/{id}", Note, live=True)])
    async def other(text: str, ctx: Context) -> None:
        ctx.resources[NOTES]

    with pytest.raises(UndeclaredResource):
        await run_block(other, "a")


@pytest.mark.parametrize("scope", ["user", "org"])
async def test_a_resource_of_somebody_needs_somebody(scope: Any) -> None:
    """A run for nobody has no collection to write into."""
    mine = resource("notes/{id}", Note, scope=scope)

    @handler(uses=[mine])
    async def reads(text: str, ctx: Context) -> int:
        return len((await ctx.resources[mine].list()).entries)

    with pytest.raises(UndeclaredResource, match=f"reads .the request names no {scope}."):
        await run_block(reads, "a")
    who = Identity(session_id=SessionId("s"), user_id="u", org_id="o")
    assert await run_block(reads, "a", identity=who) == 0


async def test_a_capability_brings_its_resources() -> None:
    """A block that uses it needs to declare nothing, and reaches the collection itself too."""

    class Notebook:
        def __init__(self, ctx: Context) -> None:
            self.notes: Collection[Note] = ctx.resources[NOTES]

    notebook = define_capability("notebook", Notebook, uses=[NOTES])

    @handler(uses=[notebook, NOTES])
    async def notes(text: str, ctx: Context) -> Entry[Note] | None:
        assert ctx.cap.entries().tools == ()
        await ctx.cap[notebook].notes.upsert("n1", Note(text=text))
        return await ctx.resources[NOTES].get("n1")

    assert await run_block(notes, "a") == Entry("n1", Note(text="a"), 1)


async def test_a_block_that_declares_one_may_be_called() -> None:
    """A called block brings its resources with it; they are the run's own collections."""

    @handler
    async def calls(text: str, ctx: Context) -> int:
        await ctx.call(write, "a")
        await ctx.call(write, "b")
        return len(await ctx.call(read.configure(uses=[NOTES]), "x"))

    assert await run_block(calls, "x") == 2

    @handler(uses=[resource("notes/{id}", Other)])
    async def clashes(text: str, ctx: Context) -> None:
        await ctx.call(write, "a")

    with pytest.raises(PlanError, match="model=Note here and model=Other in the plan that calls"):
        await run_block(clashes, "x")


async def test_two_resources_under_one_name_are_a_fault_that_names_both() -> None:
    """Those that capabilities bring count too; a name of its own is the way out."""

    @handler
    async def step(text: str) -> str:
        return text

    other = resource("notes/{id}", Other, scope="user")
    one = step.configure(name="one", uses=[NOTES, resource("notes/{id}", Note)])
    book = define_capability("book", object, lambda ctx: 1, uses=[other])
    two = step.configure(name="two", uses=[book])
    with pytest.raises(
        PlanError,
        match=r"turn/two \(through 'book'\): resource 'notes' has model=Other, scope='user' here "
        r"and model=Note, scope='session' in turn/one\n.*name=",
    ):
        build_plan(sequencer("turn", str).step(one).step(two))
    named = step.configure(name="two", uses=[resource("notes/{id}", Other, name="others")])
    plan = build_plan(sequencer("turn", str).step(one).step(named))
    assert set(plan.declared.resources) == {"notes", "others"}


# --- live ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("client", "visibility", "seen"),
    [("none", None, "trace"), ("read", None, "client"), ("write", "trace", "trace")],
)
async def test_a_live_change_is_an_item_of_the_node_that_wrote(
    client: Any, visibility: Any, seen: str
) -> None:
    """Clients see it only if they may read the collection, and the block isn't hidden."""
    live = resource("notes/{id}", Note, live=True, client=client)
    sink = RecordingSink()

    @handler(uses=[live], visibility=visibility)
    async def writes(text: str, ctx: Context) -> str:
        notes = ctx.resources[live]
        await notes.create("a/b", Note())
        await notes.upsert("a/b", Note())
        await notes.delete("a/b")
        with pytest.raises(VersionConflict):
            await notes.upsert("a/b", Note(), expected=1)
        return text

    await run_block(sequencer("turn", str).step(writes), "x", emit=sink)
    items = [event.item for event in sink.events if event.item is not None]
    assert [item.content for item in items] == [
        ResourceChange(collection="notes", key="notes/a%2Fb", version=1),
        ResourceChange(collection="notes", key="notes/a%2Fb", version=2, deleted=True),
    ]
    assert {(item.provenance.path, item.visibility, item.status) for item in items} == {
        ("turn/writes", seen, "completed")
    }


async def test_a_collection_that_is_not_live_is_silent() -> None:
    """Writing makes no item."""
    sink = RecordingSink()
    await run_block(write, "a", emit=sink)
    assert sink.events == []


# --- under a Runtime -----------------------------------------------------------------------------


async def test_entries_outlive_the_request(tmp_path: Any) -> None:
    """The next request of the session, and the next process, find them; another tenant doesn't."""

    @handler(uses=[NOTES, FILES])
    async def visit(text: str, ctx: Context) -> list[str]:
        await ctx.resources[NOTES].upsert(text, Note(text=text))
        await ctx.resources[FILES].upsert(FileId("a/b", text), Note())
        page = await ctx.resources[FILES].list(within=("a/b",))
        return [
            *[entry.id async for entry in ctx.resources[NOTES].scan()],
            *[entry.id.path for entry in page.entries],
        ]

    flow = define_flow("notes", actions=[action("visit", visit, concurrency="queue")])
    store = f"sqlite:///{tmp_path / 'notes.db'}"

    async def ask(runtime: Runtime, text: str, tenant: str | None = None) -> list[str]:
        run = await runtime.dispatch(flow.action("visit"), text, session="s1", tenant=tenant)
        found: list[str] = await run.output()
        return found

    async with Runtime(flow, store=store) as runtime:
        assert await ask(runtime, "b") == ["b", "b"]
        assert await ask(runtime, "a") == ["a", "b", "a", "b"]
        assert await ask(runtime, "c", "") == ["c", "c"]
    async with Runtime(flow, store=store) as runtime:
        assert await ask(runtime, "b") == ["a", "b", "a", "b"]


def test_a_simulated_run_has_its_collections() -> None:
    """In memory, anew for every run."""
    chain = sequencer("turn", str).step(write).step(read)
    for seed in range(3):
        assert simulate(chain, "a", seed=seed).outcome == ("value", ["a"])
