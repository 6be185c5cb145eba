"""
What the real Claude Code binary said, recorded message by message.

Each recording is a stream as it came over the wire (Claude Code 2.1.332, against a scripted
endpoint), in order. Ids are shortened, paths made neutral, and fields that nobody here reads left
out; the texts are the binary's own, cut where they are long (``[…]``).
"""

from __future__ import annotations

from tests.blocks.claude_code import agent_recordings as agents
from tests.blocks.claude_code import failure_recordings as failures
from tests.blocks.claude_code.wire import (
    Wire,
    answer,
    block,
    closed,
    counted,
    done,
    init,
    message,
    note,
    opened,
    piece,
    requesting,
    result,
    retry,
    start,
    state,
    system,
    task_notification,
    task_started,
    text,
    thinking,
    tool,
    turn_begins,
)

CONTINUED = (
    "This session is being continued from a previous conversation that ran out of context. The "
    "summary below covers the earlier portion of the conversation. […]"
)


PLAIN = [
    *turn_begins(),
    *message("msg_1", text("Hello there, this is a fairly plain answer in several pieces.")),
    result("Hello there, this is a fairly plain answer in several pieces.", 10, 5, 0.000105),
    state("idle"),
]
"""A turn that says one thing."""

TOOLS = [
    *turn_begins(),
    *message(
        "msg_1",
        thinking("Let me look at the file first."),
        text("Reading the file now."),
        tool("call_1", "Read", file_path="/repo/a.txt"),
    ),
    answer("call_1", "1\thello\n2\t", detail={"type": "text"}),
    requesting(),
    *message(
        "msg_2",
        tool("call_2", "Bash", command="cat a.txt; exit 3", description="Show a"),
        tool("call_3", "Bash", command="echo two"),
    ),
    answer("call_2", "Exit code 3\nhello", is_error=True, detail="Error: Exit code 3\nhello"),
    answer("call_3", "two", is_error=False, detail={"stdout": "two"}),
    requesting(),
    *message("msg_3", tool("call_4", "Write", file_path="/repo/b.txt", content="b\n")),
    answer(
        "call_4",
        "File created successfully at: /repo/b.txt (file state is current in yo […]",
        detail={"type": "create", "filePath": "/repo/b.txt", "structuredPatch": []},
    ),
    requesting(),
    *message("msg_4", text("All done.")),
    result("All done.", 40, 20, 0.00042, num_turns=5),
    state("idle"),
]
"""Thinking, a text and four tool calls: one fails, two are in one message."""

WITHHELD = [
    *turn_begins(),
    *message(
        "msg_1",
        thinking(),
        {"type": "redacted_thinking", "data": "cmVkYWN0ZWQ="},
        text("Answer."),
        text("Second block."),
    ),
    result("Second block.", 10, 5, 0.000105),
    state("idle"),
]
"""Thinking without its text, redacted thinking, and two texts in one message."""

EMPTY_BLOCK = [
    *turn_begins(),
    start("msg_1"),
    opened(0, text()),
    closed(0),
    *block("msg_1", 1, text("Real.")),
    counted(5, "end_turn"),
    done(),
    result("Real.", 10, 5, 0.000105),
    state("idle"),
]
"""A text block that stays empty is never said."""

RETRY = [
    *turn_begins(),
    retry(1, 10, 561, 529, "overloaded"),
    retry(2, 10, 1062, 529, "overloaded"),
    *message("msg_1", text("After the retries.")),
    result("After the retries.", 10, 5, 0.000105),
    state("idle"),
]
"""Two overloaded answers before the real one."""

DROPPED = [
    *turn_begins(),
    start("msg_1"),
    opened(0, text()),
    piece(0, "This answer is cut befor"),
    piece(0, "e it ends and must be sa"),
    closed(0),
    done(),
    retry(1, 10, 586, None, "unknown"),
    *message("msg_2", text("This answer is cut before it ends and must be said again.")),
    result("This answer is cut before it ends and must be said again.", 20, 6, 0.000315),
    state("idle"),
]
"""The connection breaks in the first text: it streams again as a new message."""

CUT_OFF = [
    *turn_begins(),
    start("msg_1"),
    *block("msg_1", 0, text("First block done.")),
    opened(1, text()),
    piece(1, "Second block is cut off "),
    closed(1),
    done(),
    note([text("Your response above was cut off mid-stream. Resume directly from where […]")]),
    requesting(),
    *message("msg_2", text("Said again.")),
    result("Said again.", 20, 6, 0.000285, num_turns=2),
    state("idle"),
]
"""The connection breaks in the second text: the model is asked to go on."""

COMPACTION = [
    *turn_begins(),
    *message("msg_1", text("First.")),
    result("First.", 10, 5, 0.000105),
    state("idle"),
    state("running"),
    system("status", status="compacting"),
    system("status", status=None, compact_result="success"),
    init(),
    system(
        "compact_boundary",
        compact_metadata={"trigger": "manual", "pre_tokens": 15, "post_tokens": 2601},
    ),
    note(CONTINUED),
    note("<local-command-stdout>Compacted </local-command-stdout>"),
    result("", 0, 0, 0.00021, terminal_reason=None, num_turns=0),
    state("idle"),
    *turn_begins(),
    *message("msg_2", text("Third.")),
    result("Third.", 10, 5, 0.000315),
    state("idle"),
]
"""A conversation of three turns, compacted in the second."""

LONG_COMMAND = [
    *turn_begins(),
    *message(
        "msg_1",
        text("Waiting."),
        tool("call_1", "Bash", command="sleep 5; echo done", description="Wait a bit"),
    ),
    task_started("task_1", "call_1", "Wait a bit", task_type="local_bash", is_backgrounded=False),
    task_notification("task_1", "call_1", "completed", "Wait a bit"),
    answer("call_1", "done", is_error=False, detail={"stdout": "done"}),
    requesting(),
    *message("msg_2", text("waited")),
    result("waited", 20, 10, 0.00021, num_turns=2),
    state("idle"),
]
"""A command long enough to be a task, which is no sub-agent."""

FALLBACK = [
    *turn_begins(),
    retry(1, 3, 500, 529, "overloaded"),
    retry(2, 3, 1185, 529, "overloaded"),
    system(
        "model_fallback",
        trigger="overloaded",
        original_model="claude-sonnet-4-5",
        fallback_model="claude-haiku-4-5",
        content="Switched to Haiku 4.5 due to high demand for Sonnet 4.5",
    ),
    retry(1, 3, 503, 529, "overloaded"),
    *message("msg_1", text("from the fallback"), model="claude-haiku-4-5"),
    result("from the fallback", 10, 5, 3.5000000000000004e-05),
    state("idle"),
]
"""The model is overloaded; another one answers."""

MCP = [
    *turn_begins(),
    *message("msg_1", text("Looking."), tool("call_1", "mcp__tracker__look", q="x")),
    answer(
        "call_1",
        [text("row 1"), text("row 2")],
        detail=[{"type": "text", "text": "row 1"}, {"type": "text", "text": "row 2"}],
    ),
    requesting(),
    *message("msg_2", text("looked")),
    result("looked", 20, 10, 0.00021, num_turns=2),
    state("idle"),
]
"""A tool whose result is a list of blocks."""

SERVER_TOOL = [
    *turn_begins(),
    *message(
        "msg_1",
        text("Searching."),
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": [
                {
                    "type": "web_search_result",
                    "title": "t",
                    "url": "http://x",
                    "encrypted_content": "e",
                }
            ],
        },
        text("found"),
    ),
    result("found", 10, 5, 0.000105),
    state("idle"),
]
"""A tool that the API runs itself, whose result the SDK drops."""

RECORDINGS: dict[str, list[Wire]] = {
    "PLAIN": PLAIN,
    "TOOLS": TOOLS,
    "WITHHELD": WITHHELD,
    "EMPTY_BLOCK": EMPTY_BLOCK,
    "RETRY": RETRY,
    "DROPPED": DROPPED,
    "CUT_OFF": CUT_OFF,
    "WRONG_KEY": failures.WRONG_KEY,
    "OUTPUT_LIMIT": failures.OUTPUT_LIMIT,
    "COMPACTION": COMPACTION,
    "BACKGROUND": agents.BACKGROUND,
    "FOREGROUND": agents.FOREGROUND,
    "TWO_AGENTS": agents.TWO_AGENTS,
    "NESTED": agents.NESTED,
    "AGENT_REFUSED": agents.AGENT_REFUSED,
    "AGENT_FAILS": agents.AGENT_FAILS,
    "AGENT_KILLED": agents.AGENT_KILLED,
    "MAX_TURNS": failures.MAX_TURNS,
    "INTERRUPTED": failures.INTERRUPTED,
    "INTERRUPTED_TOOL": failures.INTERRUPTED_TOOL,
    "DENIED": failures.DENIED,
    "HELD": failures.HELD,
    "LIMITS": failures.LIMITS,
    "LIMIT_REACHED": failures.LIMIT_REACHED,
    "LONG_COMMAND": LONG_COMMAND,
    "FALLBACK": FALLBACK,
    "MCP": MCP,
    "SERVER_TOOL": SERVER_TOOL,
}
"""All of them, by name."""
