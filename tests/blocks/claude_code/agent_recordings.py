"""
What the real Claude Code binary said of its sub-agents, recorded message by message.

See ``recordings``, which lists them all.
"""

from __future__ import annotations

from tests.blocks.claude_code.wire import (
    answer,
    argument,
    block,
    closed,
    counted,
    done,
    init,
    launched,
    message,
    note,
    opened,
    requesting,
    result,
    said,
    start,
    state,
    synthetic,
    task_notification,
    task_progress,
    task_started,
    task_updated,
    tasks,
    text,
    thinking,
    tool,
    turn_begins,
)

LAUNCHED = (
    "Async agent launched successfully. (This tool result is internal metadata — never quote or "
    "paste any part of it […]"
)
HANDED_BACK = (
    "  <tools-used-before-summary>Bash</tools-used-before-summary>\n  \n[Subagent hand-back] The "
    "text below is the final report of a subagent this session delegated to. […]"
)
REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it "
    "was a file edit, the new_string was NOT written to the file). STOP what you are doing and "
    "wait for the user to tell you how to proceed."
)


BACKGROUND = [
    *turn_begins(),
    start("msg_1"),
    *block("msg_1", 0, text("Starting a helper.")),
    *block(
        "msg_1",
        1,
        tool(
            "call_1",
            "Agent",
            description="Refactor imports",
            prompt="SUB-A go",
            subagent_type="general-purpose",
        ),
    ),
    tasks("task_1"),
    task_started("task_1", "call_1", "Refactor imports"),
    counted(5, "tool_use"),
    answer("call_1", [text(LAUNCHED)], detail=launched("task_1")),
    done(),
    requesting(),
    *message("msg_2", text("main continues")),
    said("msg_3", thinking("sub thinks"), parent="call_1"),
    said("msg_3", text("sub says"), parent="call_1"),
    said(
        "msg_3",
        tool("call_2", "Bash", command="sleep 1; echo sub", description="Sub echo"),
        parent="call_1",
    ),
    task_progress("task_1", "call_1", "Running Sub echo", "Bash"),
    result("main continues", 20, 10, 0.000315, num_turns=2),
    answer("call_2", "sub", is_error=False, parent="call_1"),
    said("msg_4", text("sub final answer"), parent="call_1"),
    task_updated("task_1", "completed"),
    task_notification("task_1", "call_1", "completed", "sub final answer"),
    tasks(),
    init(),
    requesting(),
    *message("msg_5", text("main after notification")),
    result(
        "main after notification",
        10,
        5,
        0.0005250000000000001,
        origin={"kind": "task-notification"},
    ),
    state("idle"),
]
"""A sub-agent in the background; the first result comes while it works."""

FOREGROUND = [
    *turn_begins(),
    *message(
        "msg_1",
        text("Asking a helper."),
        tool(
            "call_1",
            "Agent",
            description="Count lines",
            prompt="SUB-A go",
            subagent_type="general-purpose",
        ),
    ),
    task_started("task_1", "call_1", "Count lines", is_backgrounded=False),
    note([text("SUB-A go")], parent="call_1"),
    said("msg_2", thinking("sub thinks"), parent="call_1"),
    said("msg_2", text("sub says"), parent="call_1"),
    task_progress("task_1", "call_1", "Running Sub echo", "Bash"),
    said(
        "msg_2", tool("call_2", "Bash", command="echo sub", description="Sub echo"), parent="call_1"
    ),
    answer("call_2", "sub", is_error=False, parent="call_1"),
    said("msg_3", text("sub final answer"), parent="call_1"),
    task_updated("task_1", "completed"),
    task_notification("task_1", "call_1", "completed", "sub final answer"),
    answer("call_1", [text(HANDED_BACK)], detail={"status": "completed"}),
    requesting(),
    *message("msg_4", text("The helper counted.")),
    result("The helper counted.", 20, 10, 0.00042, num_turns=2),
    state("idle"),
]
"""A sub-agent in the foreground, its texts forwarded."""

TWO_AGENTS = [
    *turn_begins(),
    start("msg_1"),
    *block(
        "msg_1",
        0,
        tool(
            "call_1",
            "Agent",
            description="Left half",
            prompt="SUB-A go",
            subagent_type="general-purpose",
        ),
    ),
    tasks("task_1"),
    task_started("task_1", "call_1", "Left half"),
    opened(1, tool("call_2", "Agent")),
    answer("call_1", [text(LAUNCHED)], detail=launched("task_1")),
    argument(1, '{"description": "Right half", "prompt": "SUB-B go", "subagent_ty'),
    argument(1, 'pe": "general-purpose"}'),
    said(
        "msg_1",
        tool(
            "call_2",
            "Agent",
            description="Right half",
            prompt="SUB-B go",
            subagent_type="general-purpose",
        ),
    ),
    closed(1),
    tasks("task_1", "task_2"),
    task_started("task_2", "call_2", "Right half"),
    counted(5, "tool_use"),
    answer("call_2", [text(LAUNCHED)], detail=launched("task_2")),
    done(),
    requesting(),
    *message("msg_2", text("both launched")),
    said(
        "msg_3",
        tool("call_3", "Bash", command="sleep 1; echo a", description="Echo a"),
        parent="call_1",
    ),
    task_progress("task_1", "call_1", "Running Echo a", "Bash"),
    said("msg_4", tool("call_4", "Read", file_path="/etc/hostname"), parent="call_2"),
    task_progress("task_2", "call_2", "Reading /etc/hostname", "Read"),
    result("both launched", 20, 10, 0.00042, num_turns=3),
    answer("call_4", "1\tvm\n2\t", parent="call_2"),
    said(
        "msg_5",
        tool("call_5", "Bash", command="sleep 2; echo b", description="Echo b"),
        parent="call_2",
    ),
    task_progress("task_2", "call_2", "Running Echo b", "Bash"),
    answer("call_3", "a", is_error=False, parent="call_1"),
    said("msg_6", text("a final"), parent="call_1"),
    task_updated("task_1", "completed"),
    task_notification("task_1", "call_1", "completed", "a final"),
    tasks("task_2"),
    init(),
    requesting(),
    *message("msg_7", text("one is back")),
    result("one is back", 10, 5, 0.0007350000000000002, origin={"kind": "task-notification"}),
    answer("call_5", "b", is_error=False, parent="call_2"),
    said("msg_8", text("b final"), parent="call_2"),
    task_updated("task_2", "completed"),
    task_notification("task_2", "call_2", "completed", "b final"),
    tasks(),
    init(),
    requesting(),
    *message("msg_9", text("both are back")),
    result("both are back", 10, 5, 0.0009450000000000003, origin={"kind": "task-notification"}),
    state("idle"),
]
"""Two sub-agents side by side; the first answers while the second is launched."""

NESTED = [
    *turn_begins(),
    start("msg_1"),
    *block(
        "msg_1",
        0,
        tool(
            "call_1",
            "Agent",
            description="Outer",
            prompt="SUB-A go",
            subagent_type="general-purpose",
        ),
    ),
    tasks("task_1"),
    task_started("task_1", "call_1", "Outer"),
    counted(5, "tool_use"),
    answer("call_1", [text(LAUNCHED)], detail=launched("task_1")),
    done(),
    requesting(),
    *message("msg_2", text("launched")),
    said(
        "msg_3",
        tool(
            "call_2",
            "Agent",
            description="Inner",
            prompt="SUB-B go",
            subagent_type="general-purpose",
        ),
        parent="call_1",
    ),
    task_progress("task_1", "call_1", "Inner", "Agent"),
    task_started("task_2", "call_2", "Inner", is_backgrounded=False),
    result("launched", 20, 10, 0.000315, num_turns=2),
    task_progress("task_2", "call_2", "Running Echo b", "Bash"),
    task_updated("task_2", "completed"),
    task_notification("task_2", "call_2", "completed", "b final"),
    answer("call_2", [text(HANDED_BACK)], parent="call_1"),
    said("msg_4", text("outer final"), parent="call_1"),
    task_updated("task_1", "completed"),
    task_notification("task_1", "call_1", "completed", "outer final"),
    tasks(),
    init(),
    requesting(),
    *message("msg_5", text("done all")),
    result("done all", 10, 5, 0.0007350000000000002, origin={"kind": "task-notification"}),
    state("idle"),
]
"""A sub-agent of a sub-agent."""

AGENT_REFUSED = [
    *turn_begins(),
    start("msg_1"),
    *block(
        "msg_1",
        0,
        tool(
            "call_1", "Agent", description="Nobody", prompt="SUB-A go", subagent_type="no-such-type"
        ),
    ),
    counted(5, "tool_use"),
    answer(
        "call_1",
        "Agent type 'no-such-type' not found. Available agents: claude, Explore […]",
        is_error=True,
        detail="Error: Agent type 'no-such-type' not found. Available agents […]",
    ),
    done(),
    requesting(),
    *message("msg_2", text("could not")),
    result("could not", 20, 10, 0.00021, num_turns=2),
    state("idle"),
]
"""A sub-agent of a type that doesn't exist."""

AGENT_FAILS = [
    *turn_begins(),
    start("msg_1"),
    *block(
        "msg_1",
        0,
        tool(
            "call_1",
            "Agent",
            description="Doomed",
            prompt="SUB-A go",
            subagent_type="general-purpose",
        ),
    ),
    tasks("task_1"),
    task_started("task_1", "call_1", "Doomed"),
    counted(5, "tool_use"),
    answer("call_1", [text(LAUNCHED)], detail=launched("task_1")),
    done(),
    requesting(),
    *message("msg_2", text("launched")),
    result("launched", 20, 10, 0.00021, num_turns=2),
    synthetic(
        "synthetic_1", "API Error: 400 fake invalid_request_error", "unknown", parent="call_1"
    ),
    task_updated(
        "task_1", "failed", error="Agent terminated early due to an API error: API Error: 400 f […]"
    ),
    task_notification(
        "task_1",
        "call_1",
        "failed",
        "Agent terminated early due to an API error: API Error: 400 f […]",
    ),
    tasks(),
    init(),
    requesting(),
    *message("msg_3", text("it failed")),
    result("it failed", 10, 5, 0.000315, origin={"kind": "task-notification"}),
    state("idle"),
]
"""A sub-agent whose API call fails."""

AGENT_KILLED = [
    *turn_begins(),
    start("msg_1"),
    *block(
        "msg_1",
        0,
        tool(
            "call_1",
            "Agent",
            description="Endless",
            prompt="SUB-A go",
            subagent_type="general-purpose",
        ),
    ),
    tasks("task_1"),
    task_started("task_1", "call_1", "Endless"),
    counted(5, "tool_use"),
    answer("call_1", [text(LAUNCHED)], detail=launched("task_1")),
    done(),
    requesting(),
    *message(
        "msg_2", tool("call_2", "Bash", command="sleep 1.5; echo", description="Let it start")
    ),
    said(
        "msg_3",
        tool("call_3", "Bash", command="echo x; sleep 30", description="Sleep long"),
        parent="call_1",
    ),
    task_progress("task_1", "call_1", "Running Sleep long", "Bash"),
    answer("call_2", "(Bash completed with no output)", is_error=False, detail={"stdout": ""}),
    requesting(),
    start("msg_4"),
    *block("msg_4", 0, text("Stopping it.")),
    *block("msg_4", 1, tool("call_4", "TaskStop", task_id="task_1")),
    task_updated("task_1", "killed"),
    task_notification("task_1", "call_1", "stopped", "Endless"),
    tasks(),
    counted(5, "tool_use"),
    answer(
        "call_4",
        '{"message":"Successfully stopped task: task_1 (Endless)","task_id":"ta […]',
        detail={"message": "Successfully stopped task: task_1 (Endless)"},
    ),
    done(),
    requesting(),
    answer("call_3", REFUSED, is_error=True, parent="call_1", detail="User rejected tool use"),
    note([text("[Request interrupted by user for tool use]")], parent="call_1"),
    *message("msg_5", text("stopped")),
    result("stopped", 40, 20, 0.0005250000000000001, num_turns=4),
    init(),
    requesting(),
    *message("msg_6", text("surplus")),
    result("surplus", 10, 5, 0.0006300000000000001, origin={"kind": "task-notification"}),
    state("idle"),
]
"""A sub-agent that is stopped; its tool's result comes late."""
