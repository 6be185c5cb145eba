"""Tool calls: validated, run beneath the generator, all at once; failures told, cancels not."""

from __future__ import annotations

import asyncio
from datetime import date
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from pydantic import BaseModel
from pydantic_ai import ModelRetry
from pydantic_ai.exceptions import ToolFailed

from flowstate import Context, Retry, handler, run_block, sequencer, session_state
from flowstate.blocks.generator import TransientModelError, generator
from flowstate.errors import DefinitionError, PlanError, TimedOut, UndeclaredState
from flowstate.item.content import Container, Message, Status, ToolOutput
from flowstate.testing import RecordingSink
from tests.blocks.generator.script import Script, Use

pytestmark = pytest.mark.anyio


class Trip(BaseModel):
    """Where to go and when."""

    city: str
    day: date
    tags: set[str] = set()


class Notes(BaseModel):
    """What was noted."""

    lines: tuple[str, ...] = ()


async def play(script: Script, *tools: Any, **options: Any) -> tuple[Any, RecordingSink]:
    """The output of a run and its items."""
    sink = RecordingSink()
    block = generator("ask", model=script.model, tools=list(tools), **options)
    try:
        output = await run_block(block, "go", emit=sink)
    finally:
        assert sink.open == []
    return output, sink


async def test_arguments_are_read_as_json_is() -> None:
    """A date may be a text and a set a list; the block gets values of its types."""
    seen: list[Trip] = []

    @handler
    async def book(trip: Trip) -> Trip:
        """Books a trip."""
        seen.append(trip)
        return trip

    given = {"city": "Bern", "day": "2027-01-02", "tags": ["a", "a"]}
    script = Script([Use("book", given, "c1")], ["done"])
    _, sink = await play(script, book)
    assert seen == [Trip(city="Bern", day=date(2027, 1, 2), tags={"a"})]
    (call,) = sink.contents(ToolOutput)
    assert call.arguments == given
    assert call.output == {"city": "Bern", "day": "2027-01-02", "tags": ["a"]}
    (tool,) = script.asked[0].function_tools
    assert (tool.name, tool.description) == ("book", "Books a trip.")
    assert tool.parameters_json_schema["required"] == ["city", "day"]


@pytest.mark.parametrize(
    ("use", "told"),
    [
        (Use("book", {"city": "Bern"}), "day: Field required"),
        (Use("book", "{no json"), "no JSON object"),
        (Use("book", "[1]"), "they are a list"),
        (Use("look", {}), "There is no tool 'look'. The tools are: book."),
    ],
    ids=["missing", "no JSON", "no object", "unknown"],
)
async def test_a_call_that_cannot_be_made_is_told_to_the_model(use: Use, told: str) -> None:
    """The block never runs, the item is a failed one, and the model may correct itself."""

    @handler
    async def book(trip: Trip) -> str:
        return "booked"

    good = Use("book", {"city": "Bern", "day": "2027-01-02"})
    script = Script([use], [good], ["done"])
    output, sink = await play(script, book)
    assert output == "done"
    first, second = sink.of_type(ToolOutput)
    assert (first.status, second.status) == ("failed", "completed")
    assert isinstance(first.content, ToolOutput)
    assert first.content.is_error
    assert told in first.content.output


async def test_what_a_tool_raises_is_told_cut_and_without_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its class and its text, at most 2,000 characters, no value of this process's secrets."""
    monkeypatch.setenv("SHOP_TOKEN", "tok-12345")

    @handler
    async def pay(text: str) -> str:
        raise PermissionError(f"tok-12345 refused {'x' * 5_000}")

    script = Script([Use("pay", {"value": "now"})], ["sorry"])
    output, sink = await play(script, pay)
    ((_, text, is_error),) = script.results
    assert (output, is_error) == ("sorry", True)
    assert text.startswith("PermissionError: [redacted] refused x")
    assert len(text) == 2_000
    assert sink.contents(ToolOutput)[0].output == text


@pytest.mark.parametrize("kind", [ModelRetry, ToolFailed])
async def test_a_retry_that_a_tool_asks_for_is_told_in_its_own_words(kind: Any) -> None:
    """pydantic-ai's own exceptions for tools mean what they mean there."""

    @handler
    async def find(text: str) -> str:
        raise kind("Ask for a city instead.")

    script = Script([Use("find", {"value": "x"})], ["ok"])
    await play(script, find)
    assert script.results == [("find", "Ask for a city instead.", True)]


async def test_calls_of_one_answer_run_at_once_and_are_told_in_order() -> None:
    """Each waits for the other to have begun; results keep the order of the calls."""
    begun = {"a": anyio.Event(), "b": anyio.Event()}

    @handler
    async def meet(name: str) -> str:
        begun[name].set()
        await begun["b" if name == "a" else "a"].wait()
        if name == "a":
            await anyio.sleep(0.01)
        return name

    script = Script([Use("meet", {"value": "a"}), Use("meet", {"value": "b"})], ["done"])
    with anyio.fail_after(10):
        await play(script, meet)
    assert [text for _, text, _ in script.results] == ["a", "b"]


async def test_a_failing_call_leaves_the_others_alone() -> None:
    """One error is one result; the other calls end as they do."""

    @handler
    async def one(text: str) -> str:
        raise OSError("down")

    @handler
    async def two(text: str) -> str:
        await anyio.sleep(0.01)
        return "up"

    script = Script([Use("one", {"value": ""}), Use("two", {"value": ""})], ["done"])
    await play(script, one, two)
    assert [(text, error) for _, text, error in script.results] == [
        ("OSError: down", True),
        ("up", False),
    ]


async def test_what_no_model_can_mend_ends_the_run() -> None:
    """An undeclared state, or a tool that can't be planned, is the author's to see, bare."""
    cancelled: list[str] = []

    @handler
    async def broken(text: str, ctx: Context) -> str:
        await ctx.session[Notes].get()
        return text

    @handler
    async def slow(text: str) -> str:
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.append(text)
        return text

    script = Script([Use("slow", {"value": "s"}), Use("broken", {"value": "b"})], ["never"])
    with pytest.raises(UndeclaredState):
        await play(script, broken, slow)
    assert (cancelled, len(script.messages)) == (["s"], 1)

    @handler
    async def number(text: str) -> int:
        return 1

    unfit = sequencer("unfit", str).step(number).step(broken)  # type: ignore[arg-type]
    script = Script([Use("unfit", {"value": "s"})], ["never"])
    with pytest.raises(PlanError):
        await play(script, unfit)


async def test_a_tool_keeps_its_state_settings_and_paths() -> None:
    """A block as a tool is the block: declared state, retries, items beneath the generator."""
    tries: list[int] = []

    @handler(uses=[session_state(Notes)], retry=Retry(attempts=2, retry_on=(OSError,), delay=0.0))
    async def note(text: str, ctx: Context) -> int:
        tries.append(ctx.attempt)
        if ctx.attempt == 1:
            raise OSError("busy")
        ctx.items.add(Message(text=ctx.path))
        await ctx.session[Notes].append("lines", text)
        return len((await ctx.session[Notes].get()).lines)

    twice = [Use("note", {"value": "a"}), Use("note", {"value": "b"})]
    script = Script(twice, ["done"])
    _, sink = await play(script, sequencer("note", str).step(note))
    assert sorted(text for _, text, _ in script.results) == ["1", "2"]
    assert sorted(tries) == [1, 1, 2, 2]
    said = sorted(message.text for message in sink.contents(Message) if message.text != "done")
    assert said == [f"ask/note/call[{n}]/note/attempt[2]" for n in (1, 2)]


async def test_what_a_tool_says_lies_in_a_container_of_its_own() -> None:
    """So that a history doesn't tell it as the model's own words; a silent tool makes none."""

    @handler
    async def chatty(text: str, ctx: Context) -> str:
        ctx.items.add(Message(text="working"))
        return text

    @handler
    async def silent(text: str) -> str:
        return text

    script = Script([Use("chatty", {"value": "a"}), Use("silent", {"value": "b"})], ["done"])
    _, sink = await play(script, chatty, silent)
    (group,) = sink.of_type(Container)
    assert group.content == Container(label="chatty", kind="sub_agent")
    (working,) = [item for item in sink.of_type(Message) if item.provenance.parent]
    assert (working.provenance.parent, group.status) == (group.id, "completed")


async def test_the_status_shows_the_latest_call_that_runs() -> None:
    """``Using <tool>…`` while it runs; the one before it again when it ends; then nothing."""
    sink = RecordingSink()

    @handler
    async def slow(text: str) -> str:
        while not any(call.name == "quick" and call.output for call in sink.contents(ToolOutput)):
            await anyio.lowlevel.checkpoint()
        return text

    @handler
    async def quick(text: str) -> str:
        await anyio.lowlevel.checkpoint()
        return "quick"

    script = Script([Use("slow", {"value": ""}), Use("quick", {"value": ""})], ["done"])
    block = generator("ask", model=script.model, tools=[slow, quick])
    with anyio.fail_after(10):
        await run_block(block, "go", emit=sink)
    texts = [status.text for status in sink.contents(Status)]
    assert texts == ["Using slow…", "Using quick…", "Using slow…"]
    assert all(item.transient and item.status == "completed" for item in sink.of_type(Status))


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_native_cancel_of_a_call_is_no_result_either() -> None:
    """A tool that cancels its own task, as only asyncio lets it, ends the run as a cancel does."""

    @handler
    async def rash(text: str) -> str:
        raise asyncio.CancelledError

    script = Script([Use("rash", {"value": ""})], ["never"])
    with pytest.raises(asyncio.CancelledError):
        await play(script, rash)
    assert len(script.messages) == 1


async def test_a_cancel_reaches_the_tools_and_is_no_result() -> None:
    """The tools are cancelled and waited for, their items left incomplete, the cancel goes on."""
    ended: list[str] = []
    begun = anyio.Event()

    @handler
    async def wait(text: str) -> str:
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.01)
            ended.append(text)
        return text

    script = Script([Use("wait", {"value": "a"}), Use("wait", {"value": "b"})], ["never"])
    sink = RecordingSink()
    block = generator("ask", model=script.model, tools=[wait])
    async with anyio.create_task_group() as tasks:

        async def run() -> None:
            await run_block(block, "go", emit=sink)
            raise AssertionError("it went on")

        tasks.start_soon(run)
        await begun.wait()
        tasks.cancel_scope.cancel()
    assert sorted(ended) == ["a", "b"]
    assert [item.status for item in sink.of_type(ToolOutput)] == ["incomplete", "incomplete"]
    assert len(script.messages) == 1
    assert sink.open == []


async def test_a_tool_that_swallows_its_cancel_gives_no_result() -> None:
    """A timeout of the generator's ends the run whatever a tool makes of it."""

    @handler
    async def stubborn(text: str) -> str:
        try:
            await anyio.sleep_forever()
        except BaseException:
            return "swallowed"
        return text

    script = Script([Use("stubborn", {"value": "a"})], ["never"])
    with pytest.raises(TimedOut):
        await play(script, stubborn, timeout=0.02)
    assert len(script.messages) == 1


async def test_a_tool_s_own_timeout_is_told() -> None:
    """A limit of the tool's block is its failure like any other."""

    @handler(timeout=0.01)
    async def slow(text: str) -> str:
        await anyio.sleep_forever()
        return text

    script = Script([Use("slow", {"value": "a"})], ["done"])
    await play(script, slow)
    ((_, text, is_error),) = script.results
    assert is_error
    assert "timeout of 0.01 s passed" in text


async def test_what_a_tool_gives_is_told_as_text_or_json() -> None:
    """A text as it is, anything else as JSON; what has none by its repr; surrogates replaced."""

    @handler
    async def give(what: str) -> Any:
        return {
            "text": "plain",
            "none": None,
            "model": Notes(lines=("a",)),
            "odd": object,
            "half": "a\ud800b",
        }[what]

    names = ["text", "none", "model", "odd", "half"]
    script = Script([Use("give", {"value": name}) for name in names], ["done"])
    _, sink = await play(script, give)
    texts = [text for _, text, _ in script.results]
    assert texts == ["plain", "null", '{"lines": ["a"]}', "\"<class 'object'>\"", "a�b"]
    assert [call.output for call in sink.contents(ToolOutput)] == [
        "plain",
        None,
        {"lines": ["a"]},
        "<class 'object'>",
        "a\ud800b",
    ]


async def test_the_generator_is_tried_again_as_a_whole() -> None:
    """``retry`` runs it anew: what the failed attempt said stays as an incomplete item."""
    script = Script(["Half a ", OSError("lost")], ["All."])
    sink = RecordingSink()
    block = generator(
        "ask",
        model=script.model,
        retry=Retry(attempts=2, retry_on=(Exception,), delay=0.0),
    )
    assert await run_block(block, "go", emit=sink) == "All."
    assert [(m.status, m.content) for m in sink.of_type(Message)] == [
        ("incomplete", Message(text="Half a ")),
        ("completed", Message(text="All.")),
    ]
    assert sink.open == []
    assert issubclass(TransientModelError, Exception)


def test_a_tool_that_cannot_be_offered_is_refused() -> None:
    """A name that providers don't take, one that is ours, and an input without a schema."""

    @handler(name="look up")
    async def spaced(text: str) -> str:
        return text

    @handler(name="final_result")
    async def ours(text: str) -> str:
        return text

    for tool, problem in ((spaced, "'look up'"), (ours, "'final_result'")):
        with pytest.raises(DefinitionError, match=problem):
            generator("ask", model="test", tools=[tool])
    renamed = spaced.as_tool("Looks up.", name="look_up")
    generator("ask", model="test", tools=[renamed, renamed, spaced.as_tool("x", name="y")])
    bare = handler(lambda value: value)
    with pytest.raises(DefinitionError, match="JSON Schema"):
        generator("ask", model="test", tools=[bare])
