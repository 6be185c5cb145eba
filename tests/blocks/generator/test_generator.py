"""A generator from its input to its output, and the items on the way."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import BaseModel
from pydantic_ai.messages import ImageUrl, ModelResponse
from pydantic_ai.models.test import TestModel
from pydantic_ai.profiles import ModelProfile

from flowstate import (
    Context,
    Handler,
    build_plan,
    define_capability,
    handler,
    run_block,
    sequencer,
)
from flowstate.blocks.generator import (
    InvalidOutputError,
    ModelUsage,
    TurnsExhaustedError,
    generator,
)
from flowstate.errors import DefinitionError, InvalidValue
from flowstate.item.content import Message, Reasoning, Status, ToolOutput
from flowstate.item.selection import Called, Said, Utterance
from flowstate.testing import RecordingSink
from tests.blocks.generator.script import Script, Think, Use

pytestmark = pytest.mark.anyio


class Draft(BaseModel):
    """What is reviewed."""

    text: str
    pages: int = 1


class Review(BaseModel):
    """What is thought of a draft."""

    risk: int
    remarks: list[str] = []


@handler
async def lookup(term: str) -> str:
    """Looks a term
    up."""
    return f"{term} is known"


async def play(block: Handler[Any, Any], value: Any) -> tuple[Any, RecordingSink]:
    """The output of a run and its items."""
    sink = RecordingSink()
    output = await run_block(block, value, emit=sink)
    assert sink.open == []
    return output, sink


async def test_a_text_goes_in_and_a_text_comes_out() -> None:
    """Without types, the input is the prompt and the output what the model says."""
    script = Script(["Hel", "lo"])
    output, sink = await play(generator("greet", model=script.model), "Greet me")
    assert output == "Hello"
    assert script.prompts == ["Greet me"]
    (message,) = sink.items
    assert message.content == Message(text="Hello")
    assert (message.status, message.provenance.path) == ("completed", "greet")
    assert "".join(sink.streamed(message)) == "Hello"
    assert len(sink.streamed(message)) == 2


async def test_a_model_goes_in_as_json_and_a_typed_output_comes_out() -> None:
    """The output tool carries the type's schema and description; its call is no item."""
    script = Script([Use("final_result", {"risk": 3, "remarks": ["short"]})])
    review = generator("review", input=Draft, output=Review, model=script.model)
    output, sink = await play(review, Draft(text="Once"))
    assert output == Review(risk=3, remarks=["short"])
    assert sink.items == []
    assert Draft.model_validate_json(script.prompts[0]) == Draft(text="Once")
    (tool,) = script.asked[0].output_tools
    assert tool.description == "What is thought of a draft."
    assert tool.parameters_json_schema["required"] == ["risk"]
    assert script.asked[0].allow_text_output is False


async def test_the_prompt_is_a_function_of_the_input() -> None:
    """``prompt`` decides what the model reads; user content goes through as it is."""
    script = Script(["ok"], ["ok"])
    said = generator("a", input=Draft, model=script.model, prompt=lambda draft: draft.text)
    await play(said, Draft(text="Twice"))
    assert script.prompts == ["Twice"]
    picture = ImageUrl(url="http://127.0.0.1/a.png")
    seen = generator("b", input=Draft, model=script.model, prompt=lambda d: [d.text, picture])
    await play(seen, Draft(text="Look"))
    assert "a.png" in script.prompts[0]


@pytest.mark.parametrize("empty", ["", "  \n"])
async def test_an_empty_prompt_is_refused(empty: str) -> None:
    """Nothing is sent for it: every provider would refuse."""
    script = Script(["never"])
    with pytest.raises(InvalidValue, match="give the model something to do"):
        await play(generator("a", model=script.model), empty)
    assert script.messages == []


@pytest.mark.parametrize(
    ("annotation", "answer", "output"),
    [
        (list[int], [1, 2], [1, 2]),
        (int, 5, 5),
        (Literal["yes", "no"], "no", "no"),
        (Review | None, None, None),
        (list[Review], [{"risk": 1}], [Review(risk=1)]),
    ],
    ids=str,
)
async def test_a_type_that_is_no_object_is_asked_for_under_value(
    annotation: Any, answer: Any, output: Any
) -> None:
    """Providers take objects only; the block's output is the value itself."""
    script = Script([Use("final_result", {"value": answer})])
    block = generator("a", output=annotation, model=script.model)
    assert (await play(block, "go"))[0] == output


async def test_thinking_text_and_calls_are_items_in_their_order() -> None:
    """Each part is an item of its own: opened when it begins, settled with its result."""
    script = Script(
        [Think("Hm"), Think("m."), "I look", " it up.", Use("lookup", {"value": "tea"}, "c1")],
        [Think("Good."), "It is known."],
    )
    block = generator("ask", model=script.model, tools=[lookup])
    output, sink = await play(block, "What is tea?")
    assert output == "It is known."
    shown = [item.content for item in sink.items if not isinstance(item.content, Status)]
    assert shown == [
        Reasoning(text="Hmm."),
        Message(text="I look it up."),
        ToolOutput(call_id="c1", name="lookup", arguments={"value": "tea"}, output="tea is known"),
        Reasoning(text="Good."),
        Message(text="It is known."),
    ]
    assert {item.status for item in sink.items} == {"completed"}
    assert [item.content.text for item in sink.of_type(Status) if isinstance(item.content, Status)]
    assert script.results == [("lookup", "tea is known", False)]


async def test_what_was_said_before_goes_back_as_it_was() -> None:
    """The second request repeats the first answer, thinking included, before its results."""
    script = Script([Think("Hm"), "So.", Use("lookup", {"value": "a"}, "c1")], ["done"])
    await play(generator("ask", model=script.model, tools=[lookup]), "go")
    kinds = [[part.part_kind for part in message.parts] for message in script.messages[1]]
    assert kinds == [["user-prompt"], ["thinking", "text", "tool-call"], ["tool-return"]]


async def test_instructions_are_a_text_or_asked_of_a_function() -> None:
    """A function of the context, async or not, is asked once a run."""
    asked: list[str] = []

    async def who(ctx: Context) -> str:
        asked.append(ctx.path)
        return "You are asked."

    script = Script(["a"], ["b"], [Use("lookup", {"value": "x"})], ["c"])
    await play(generator("a", model=script.model, instructions="Be brief."), "go")
    assert script.asked[-1].instructions == "Be brief."
    await play(generator("b", model=script.model, instructions=lambda ctx: ctx.path), "go")
    assert script.asked[-1].instructions == "b"
    await play(generator("c", model=script.model, instructions=who, tools=[lookup]), "go")
    assert script.asked[-1].instructions == "You are asked."
    assert asked == ["c"]
    five: Any = 5
    with pytest.raises(DefinitionError, match="gave a int"):
        await play(generator("d", model=script.model, instructions=lambda ctx: five), "go")


async def test_capabilities_bring_context_and_tools() -> None:
    """Entries follow the instructions; tools and control tools can be called."""

    @handler
    async def stop(why: str) -> str:
        return f"stopped: {why}"

    memory = define_capability(
        "memory",
        str,
        lambda ctx: "memory",
        context=["Remember the tea.", lambda ctx: f"You are {ctx.path}."],
        tools=[lookup.as_tool("Looks up.")],
        control_tools=[stop.as_tool("Stops.")],
    )
    script = Script([Use("lookup", {"value": "a"}), Use("stop", {"value": "b"})], ["done"])
    block = generator("ask", model=script.model, instructions="Be brief.", uses=[memory])
    await play(block, "go")
    assert script.asked[0].instructions == "Be brief.\n\nRemember the tea.\n\nYou are ask."
    assert [tool.name for tool in script.asked[0].function_tools] == ["lookup", "stop"]
    assert [text for _, text, _ in script.results] == ["a is known", "stopped: b"]


async def test_capabilities_found_at_run_time_count_too() -> None:
    """A function in ``uses`` names what is there for this run."""
    extra = define_capability("extra", str, lambda ctx: "", tools=[lookup.as_tool("Looks up.")])
    script = Script(["ok"])
    await play(generator("ask", model=script.model, uses=[lambda ctx: [extra]]), "go")
    assert [tool.name for tool in script.asked[0].function_tools] == ["lookup"]


async def test_two_tools_of_one_name_are_refused_before_anything_is_asked() -> None:
    """A capability's tool that clashes with the author's is the author's mistake."""

    @handler(name="lookup")
    async def other(text: str) -> str:
        return text

    clash = define_capability("clash", str, lambda ctx: "", tools=[other.as_tool("Other.")])
    script = Script(["never"])
    with pytest.raises(DefinitionError, match="two tools are called 'lookup'"):
        await play(generator("a", model=script.model, tools=[lookup], uses=[clash]), "go")
    assert script.messages == []


async def test_the_model_may_be_chosen_by_the_run() -> None:
    """A function of the context, async or not, gives a model or a name."""
    script = Script(["one"])

    async def choose(ctx: Context) -> Any:
        return script.model

    assert (await play(generator("a", model=choose), "go"))[0] == "one"
    assert (await play(generator("b", model=lambda ctx: "test"), "go"))[0].startswith("success")
    assert (await play(generator("c", model=TestModel(custom_output_text="two")), "go"))[0] == "two"


async def test_settings_reach_the_model() -> None:
    """``settings`` are pydantic-ai's own."""
    script = Script(["ok"])
    settings = {"max_tokens": 77, "temperature": 0.5}
    await play(generator("a", model=script.model, settings=settings), "go")
    assert script.asked[0].model_settings == settings


async def test_earlier_turns_stand_before_the_prompt() -> None:
    """A history is told as messages: user's, assistant's, calls with their results."""
    before: list[Utterance] = [
        Said(role="user", text="What is tea?"),
        Called(call_id="x/1", name="lookup", arguments={"value": "tea"}, output="known"),
        Said(role="assistant", text="Known."),
    ]
    script = Script(["a"], ["b"])
    await play(generator("a", model=script.model, history=before), "And coffee?")
    kinds = [[part.part_kind for part in message.parts] for message in script.messages[0]]
    assert kinds == [
        ["user-prompt"],
        ["tool-call"],
        ["tool-return"],
        ["text"],
        ["user-prompt"],
    ]
    assert script.prompts == ["What is tea?", "And coffee?"]

    async def of_value(value: str, ctx: Context) -> list[Said]:
        return [Said(role="user", text=f"before {value} in {ctx.path}")]

    await play(generator("b", model=script.model, history=of_value), "now")
    assert script.prompts == ["before now in b", "now"]


async def test_an_output_that_does_not_fit_is_corrected() -> None:
    """The model is told what is wrong, without losing the calls it made beside it."""
    script = Script(
        [Use("final_result", {"risk": "high"}, "o1"), Use("lookup", {"value": "a"}, "c1")],
        [Use("final_result", {"risk": 2})],
    )
    block = generator("a", output=Review, model=script.model, tools=[lookup])
    output, _ = await play(block, "go")
    assert output == Review(risk=2)
    (bad, beside) = script.results
    assert bad[0] == "final_result"
    assert bad[2]
    assert "risk: Input should be a valid integer" in bad[1]
    assert beside == ("lookup", "a is known", False)


async def test_calls_beside_an_output_are_made() -> None:
    """What the model called is done, though the run ends with its output."""
    done: list[str] = []

    @handler
    async def save(text: str) -> None:
        done.append(text)

    script = Script([Use("save", {"value": "note"}), Use("final_result", {"risk": 1})])
    output, sink = await play(generator("a", output=Review, model=script.model, tools=[save]), "go")
    assert (output, done) == (Review(risk=1), ["note"])
    assert sink.contents(ToolOutput)[0].output is None


async def test_a_typed_answer_in_text_is_read() -> None:
    """A model that writes the JSON instead of calling is understood; prose is asked again."""
    script = Script(["I think so."], ['```json\n{"risk": 4}\n```'])
    output, _ = await play(generator("a", output=Review, model=script.model), "go")
    assert output == Review(risk=4)
    assert "doesn't fit" in script.prompts[-1]


async def test_native_output_is_no_message() -> None:
    """Where the provider itself holds the schema, the JSON it writes is not shown as speech."""
    script = Script(
        [Think("hm"), '{"risk":', " 9}"],
        profile=ModelProfile(
            supports_json_schema_output=True, default_structured_output_mode="native"
        ),
    )
    output, sink = await play(generator("a", output=Review, model=script.model), "go")
    assert output == Review(risk=9)
    assert [item.content.type for item in sink.items] == ["reasoning"]


@pytest.mark.parametrize("retries", [0, 2])
async def test_an_output_that_never_fits_is_an_error(retries: int) -> None:
    """After its corrections the run ends; the error tells the type, the count and the problem."""
    script = Script(*[[Use("final_result", {"risk": "high"})] for _ in range(5)])
    block = generator("a", output=Review, model=script.model, output_retries=retries)
    with pytest.raises(InvalidOutputError, match=r"Review.*risk: Input should be") as caught:
        await play(block, "go")
    assert len(script.messages) == retries + 1 == caught.value.attempts
    assert type(caught.value.__cause__).__name__ == "ValidationError"


async def test_an_empty_answer_is_asked_for_again() -> None:
    """A model that says nothing has not answered; no empty message goes back to it."""
    script = Script(["  "], [Think("hm")], ["here"])
    block = generator("a", model=script.model, output_retries=2)
    assert (await play(block, "go"))[0] == "here"
    assert not any(isinstance(message, ModelResponse) for message in script.messages[-1])
    assert len(script.prompts) == 3
    assert "the answer is empty" in script.prompts[-1]


async def test_a_run_ends_after_its_turns() -> None:
    """``max_turns`` bounds the calls of the model; the last turn's tools are still run."""
    script = Script(*[[Use("lookup", {"value": str(n)})] for n in range(9)])
    block = generator("loop", model=script.model, tools=[lookup], max_turns=3)
    sink = RecordingSink()
    with pytest.raises(TurnsExhaustedError, match=r"loop: not done after 3 turns") as caught:
        await run_block(block, "go", emit=sink)
    assert (len(script.messages), caught.value.max_turns) == (3, 3)
    assert [call.output for call in sink.contents(ToolOutput)] == [
        "0 is known",
        "1 is known",
        "2 is known",
    ]


async def test_usage_is_told_after_each_call() -> None:
    """The hook hears every turn, with the context; what it raises changes nothing."""
    heard: list[ModelUsage] = []

    async def hook(usage: ModelUsage, ctx: Context) -> None:
        heard.append(usage)
        assert ctx.path == "a"
        raise RuntimeError("full")

    script = Script([Use("lookup", {"value": "x"})], ["done"])
    block = generator("a", model=script.model, tools=[lookup], on_usage=hook)
    await play(block, "go")
    assert [usage.turn for usage in heard] == [1, 2]
    assert all(usage.complete and usage.output_tokens > 0 for usage in heard)


async def test_it_stands_in_a_chain_and_is_a_tool() -> None:
    """Its types meet those of its neighbours when the plan is built; a generator can call one."""
    inner = Script(["inner words"])
    outer = Script([Use("expert", {"value": "why?"})], [Use("final_result", {"risk": 7})])
    expert = generator("expert", model=inner.model)
    review = generator("review", input=Draft, output=Review, model=outer.model, tools=[expert])
    chain = sequencer("turn", Draft).step(review).map(lambda r: r.risk)
    assert build_plan(chain).input_type is Draft
    sink = RecordingSink()
    assert await run_block(chain, Draft(text="x"), emit=sink) == 7
    container = next(item for item in sink.items if item.content.type == "container")
    (message,) = sink.of_type(Message)
    assert message.provenance.path == "turn/review/expert/call[1]"
    assert message.provenance.parent == container.id
    assert outer.results == [("expert", "inner words", False)]
