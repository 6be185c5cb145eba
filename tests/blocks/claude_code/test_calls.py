"""Tool calls and sub-agents as items: on streams of the real binary, and on bent ones."""

from __future__ import annotations

from typing import Any

import pytest

from flowstate.harness.handle import HarnessUsage
from flowstate.item.content import Container, ErrorReport, Message, ToolOutput
from tests.blocks.claude_code import agent_recordings as agents
from tests.blocks.claude_code import recordings, wire
from tests.blocks.claude_code.stage import after, heard_of, play
from tests.blocks.claude_code.wire import Wire

COMPLETED = "Claude Code agent run completed in 5 seconds."


def test_tools_have_their_arguments_and_results() -> None:
    """One item a call, with its id, name, arguments and result; a failed one is failed."""
    translator, stage = play(recordings.TOOLS)
    read, failed, echo, write = stage.tools
    assert read == ToolOutput(
        call_id="call_1",
        name="Read",
        arguments={"file_path": "/repo/a.txt"},
        output="1\thello\n2\t",
    )
    assert (failed.output, failed.is_error) == ("Exit code 3\nhello", True)
    assert (echo.output, echo.is_error) == ("two", False)
    assert write.arguments == {"file_path": "/repo/b.txt", "content": "b\n"}
    statuses = [stage.items[f"call_{n}"].status for n in (1, 2, 3, 4)]
    assert statuses == ["completed", "failed", "completed", "completed"]
    assert translator.tools_observed == ("Read", "Bash", "Write")
    assert stage.used[0] == ("Read", '{"file_path": "/repo/a.txt"}')
    assert [name for name, _ in stage.used] == ["Read", "Bash", "Bash", "Write"]


def test_a_tool_in_progress_shows_its_arguments() -> None:
    """Before there is a result, its item is open and has no output."""
    _, stage = after(wire.message("m", wire.tool("call", "Read", file_path="a")))
    (call,) = stage.tools
    assert (call.arguments, call.output) == ({"file_path": "a"}, None)
    assert stage.open == ["call"]


def test_a_list_of_blocks_is_a_result_too() -> None:
    """As an MCP tool gives."""
    _, stage = play(recordings.MCP)
    (call,) = stage.tools
    assert call.output == [{"type": "text", "text": "row 1"}, {"type": "text", "text": "row 2"}]


def test_a_tool_still_open_at_the_end_is_incomplete() -> None:
    """Killed between its call and its result, it is not shown as done."""
    translator, stage = after(wire.message("m", wire.tool("call", "TaskUpdate", taskId="4")))
    stage.perform(translator.end("the process died"))
    assert stage.items["call"].status == "incomplete"
    assert stage.open == []


def test_a_failed_update_of_a_to_do_is_failed() -> None:
    """The confirmed result decides, not what the call asked for."""
    answer = wire.answer("call", "Error: locked", is_error=True)
    _, stage = after(
        wire.message("m", wire.tool("call", "TaskUpdate", taskId="4", status="completed")), answer
    )
    assert stage.items["call"].status == "failed"
    assert stage.tools[0].output == "Error: locked"


def test_a_result_without_its_call_is_an_item_of_its_own() -> None:
    """As of a call that an earlier run made; the call, if it comes, is reported all the same."""
    translator, stage = after(wire.answer("call", "x"))
    assert stage.tools == [ToolOutput(call_id="call", name="unknown", output="x")]
    assert stage.items["call"].status == "completed"
    for heard in heard_of(wire.message("m", wire.tool("call", "Read"))):
        stage.perform(translator.feed(heard))
    assert len(stage.tools) == 1
    assert stage.used == [("Read", "{}")]
    assert stage.line is None


def test_a_call_without_an_id_ends_incomplete() -> None:
    """No result can find it, and nothing is left open."""
    calls = [wire.message("m", wire.tool("", "Read")), wire.message("n", wire.tool("", "Read"))]
    translator, stage = after(*calls, wire.answer("", "x"))
    stage.perform(translator.end())
    assert sorted(i.status for i in stage.items.values() if isinstance(i.content, ToolOutput)) == [
        "completed",
        "incomplete",
        "incomplete",
    ]


def test_a_tool_that_the_api_ran_is_completed_with_its_message() -> None:
    """The SDK drops the result of such a tool; it has run all the same."""
    _, stage = play(recordings.SERVER_TOOL)
    assert stage.items["srvtoolu_1"].status == "completed"
    assert stage.lines == ["Starting Claude Code…", None, "Using web_search…", None]


def test_a_tool_that_the_api_ran_is_over_when_the_next_message_begins() -> None:
    """Not only at the end of the turn."""
    tool = {"type": "server_tool_use", "id": "call", "name": "web_search", "input": {}}
    call = wire.said("m", tool)
    _, stage = after(wire.start("m"), call)
    assert stage.open == ["call"]
    _, stage = after(wire.start("m"), call, wire.start("n"))
    assert stage.items["call"].status == "completed"
    assert stage.line is None


def test_a_result_of_three_million_characters_is_one_item() -> None:
    """To the last character, and the run completes."""
    long = "→ line\n" * 428_572
    call = wire.message("m", wire.tool("call", "Bash", command="yes"))
    recording = [*wire.turn_begins(), *call, wire.answer("call", long), *recordings.PLAIN[-2:]]
    _, stage = play(recording)
    assert stage.tools[0].output == long
    assert stage.items["call"].status == "completed"
    assert stage.kept == [COMPLETED]


def test_a_sub_agent_in_the_background_groups_its_items() -> None:
    """It ends with its task, not with the first result; the run's tokens are the results' sum."""
    translator, stage = play(agents.BACKGROUND)
    container = stage.items["call_1"]
    assert container.content == Container(label="Refactor imports", kind="sub_agent")
    assert container.status == "completed"
    inside = [stage.items[key].content for key in stage.inside("call_1")]
    assert [type(content).__name__ for content in inside] == [
        "Reasoning",
        "Message",
        "ToolOutput",
        "Message",
    ]
    assert isinstance(inside[3], Message)
    assert inside[3].text == "sub final answer"
    assert translator.final_message == "main after notification"
    assert translator.usage == HarnessUsage(input_tokens=30, output_tokens=15)
    assert len(translator.results) == 2
    assert stage.kept == [COMPLETED]


def test_the_container_stays_open_while_the_sub_agent_works() -> None:
    """Its call's result only says that it was launched."""
    first = next(i for i, w in enumerate(agents.BACKGROUND) if w["type"] == "result")
    _, stage = play(agents.BACKGROUND[: first + 1], end=False)
    assert stage.items["call_1"].status == "in_progress"
    _, stage = play(agents.BACKGROUND[: first + 1])
    assert stage.items["call_1"].status == "incomplete"


def test_a_sub_agent_in_the_foreground_ends_with_its_result() -> None:
    """What it says and does lies in its container; its prompt is not a message."""
    translator, stage = play(agents.FOREGROUND)
    assert stage.items["call_1"].status == "completed"
    assert len(stage.inside("call_1")) == 4
    assert stage.texts[0] == ("Asking a helper.", "completed")
    assert translator.final_message == "The helper counted."
    assert translator.tools_observed == ("Agent", "Bash")
    without_task = [w for w in agents.FOREGROUND if not str(w.get("subtype")).startswith("task_")]
    _, stage = play(without_task)
    assert stage.items["call_1"].status == "completed"


def test_two_sub_agents_have_a_container_each() -> None:
    """Though their items come mixed."""
    _, stage = play(agents.TWO_AGENTS)
    for container, command in (("call_1", "echo a"), ("call_2", "echo b")):
        tools = [
            i.content.arguments
            for key in stage.inside(container)
            if isinstance((i := stage.items[key]).content, ToolOutput)
        ]
        assert command in str(tools)
        assert stage.items[container].status == "completed"


def test_a_sub_agent_of_a_sub_agent_lies_in_its_container() -> None:
    """And both end."""
    _, stage = play(agents.NESTED)
    assert stage.items["call_2"].parent == "call_1"
    assert [stage.items[key].status for key in ("call_1", "call_2")] == ["completed"] * 2


@pytest.mark.parametrize(
    ("recording", "status", "words"),
    [
        (agents.AGENT_REFUSED, "failed", "Agent type 'no-such-type' not found."),
        (agents.AGENT_FAILS, "failed", "Agent terminated early due to an API error"),
        (agents.AGENT_KILLED, "incomplete", None),
    ],
)
def test_a_sub_agent_that_fails_says_why_in_its_container(
    recording: list[Wire], status: str, words: str | None
) -> None:
    """The run goes on, and completes."""
    _, stage = play(recording)
    assert stage.items["call_1"].status == status
    inside = [stage.items[key].content for key in stage.inside("call_1")]
    errors = [content for content in inside if isinstance(content, ErrorReport)]
    assert [error.code for error in errors] == (["sub_agent_failed"] if words else [])
    assert all(error.message.startswith(words or "-") for error in errors)
    assert stage.errors == errors
    assert stage.kept == [COMPLETED]


def test_the_late_result_of_a_stopped_sub_agent_still_settles_its_item() -> None:
    """It comes after the task has ended."""
    _, stage = play(agents.AGENT_KILLED)
    assert stage.items["call_3"].parent == "call_1"
    assert stage.items["call_3"].status == "failed"


def test_a_long_command_is_no_sub_agent() -> None:
    """It is a task as well, of another kind."""
    _, stage = play(recordings.LONG_COMMAND)
    assert not any(isinstance(i.content, Container) for i in stage.items.values())
    assert stage.items["call_1"].status == "completed"


def test_an_unheard_sub_agent_gets_its_container_all_the_same() -> None:
    """From the first thing that belongs to it; its call gives it its name later."""
    said = wire.said("m", wire.text("inside"), parent="call")
    call = wire.message("n", wire.tool("call", "Agent", description="Count", prompt="go"))
    translator, stage = after(said, call)
    assert stage.items["call"].content == Container(label="Count", kind="sub_agent")
    assert stage.inside("call") == ["text/1"]
    assert stage.used[0][0] == "Agent"
    stage.perform(translator.end())
    assert stage.items["call"].status == "incomplete"
    _, stage = after(wire.task_started("t", "call", "Count"), said)
    assert stage.items["call"].content == Container(label="Count", kind="sub_agent")


def test_a_sub_agent_without_a_description_is_named_by_its_type() -> None:
    """Or by its tool; and it shows no status."""
    _, stage = after(wire.message("m", wire.tool("call", "Task", subagent_type="Explore")))
    assert stage.items["call"].content == Container(label="Explore", kind="sub_agent")
    _, stage = after(wire.message("m", wire.tool("call", "Task")))
    assert stage.items["call"].content == Container(label="Task", kind="sub_agent")
    assert stage.line is None


def test_a_thread_in_an_ordinary_tool_is_grouped_too() -> None:
    """A skill can run as one: its tool stays an item, beside a container for what it says."""
    call = wire.message("m", wire.tool("call", "Skill", skill="tidy"))
    said = wire.said("n", wire.text("inside"), parent="call")
    _, stage = after(call, said, wire.answer("call", "done"))
    assert stage.items["call"].status == "completed"
    assert stage.items["call/inside"].content == Container(label="Skill", kind="sub_agent")
    assert stage.items["call/inside"].status == "completed"
    assert stage.inside("call/inside") == ["text/1"]


@pytest.mark.parametrize(
    ("arguments", "detail", "task"),
    [
        ({"run_in_background": True}, None, None),
        ({}, {"isAsync": True}, None),
        ({}, {"status": "async_launched"}, None),
        ({}, None, wire.task_started("t", "call", "Review")),
    ],
    ids=["asked", "async", "launched", "task"],
)
def test_each_sign_of_the_background_is_enough(
    arguments: dict[str, Any], detail: Any, task: Wire | None
) -> None:
    """What the call asked for, what its result records, or what its task says."""
    call = wire.said("m", wire.tool("call", "Agent", description="Review", **arguments))
    said = [call, *([task] if task else []), wire.answer("call", "launched", detail=detail)]
    _, stage = after(*said)
    assert stage.open == ["call"]
    _, stage = after(*said, wire.task_notification("t", "call", "completed", "done"))
    assert stage.items["call"].status == "completed"


def test_a_failed_launch_ends_the_sub_agent() -> None:
    """Though it was asked to run in the background, no task will tell of its end."""
    call = wire.said("m", wire.tool("call", "Agent", run_in_background=True))
    _, stage = after(call, wire.answer("call", "no such type", is_error=True))
    assert stage.items["call"].status == "failed"


def test_a_task_of_another_kind_is_never_the_sub_agents() -> None:
    """Even if it names the sub-agent's call."""
    call = wire.said("m", wire.tool("call", "Agent", description="Review"))
    other = wire.task_started("t", "call", "A command", task_type="local_bash")
    _, stage = after(call, other, wire.task_updated("t", "completed"))
    assert stage.open == ["call"]


def test_a_result_inside_a_thread_that_was_never_heard_of_is_grouped() -> None:
    """Also where both have the same id, which no agent would send."""
    _, stage = after(wire.answer("call", "x", parent="agent"))
    assert stage.items["call"].parent == "agent"
    _, stage = after(wire.answer("call", "x", parent="call"))
    assert stage.items["call"].status == "completed"
