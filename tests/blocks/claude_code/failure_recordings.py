"""
What the real Claude Code binary said of what went wrong, recorded message by message.

Failures, limits, interrupts and refused calls. See ``recordings``, which lists them all.
"""

from __future__ import annotations

from tests.blocks.claude_code.wire import (
    answer,
    block,
    closed,
    counted,
    done,
    init,
    limit,
    message,
    note,
    opened,
    piece,
    requesting,
    result,
    retry,
    said,
    start,
    state,
    synthetic,
    text,
    tool,
    turn_begins,
)

REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it "
    "was a file edit, the new_string was NOT written to the file). STOP what you are doing and "
    "wait for the user to tell you how to proceed."
)


WRONG_KEY = [
    *turn_begins(),
    retry(1, 1, 584, 401, "authentication_failed"),
    synthetic(
        "synthetic_1",
        "Failed to authenticate. API Error: 401 fake authentication_error",
        "authentication_failed",
    ),
    result(
        "Failed to authenticate. API Error: 401 fake authentication_error",
        0,
        0,
        0,
        is_error=True,
        terminal_reason="api_error",
        api_error_status=401,
    ),
    state("idle"),
]
"""The API refuses the key."""

OUTPUT_LIMIT = [
    *turn_begins(),
    start("msg_1"),
    *block("msg_1", 0, text("Cut off at the output limit")),
    counted(5, "max_tokens"),
    done(),
    note([text("Output token limit hit. Resume directly — no apology, no recap of what […]")]),
    requesting(),
    start("msg_2"),
    *block("msg_2", 0, text("Cut off at the output limit")),
    counted(5, "max_tokens"),
    done(),
    note([text("Output token limit hit. Resume directly — no apology, no recap of what […]")]),
    requesting(),
    start("msg_3"),
    *block("msg_3", 0, text("Cut off at the output limit")),
    counted(5, "max_tokens"),
    done(),
    note([text("Output token limit hit. Resume directly — no apology, no recap of what […]")]),
    requesting(),
    start("msg_4"),
    *block("msg_4", 0, text("Cut off at the output limit")),
    counted(5, "max_tokens"),
    done(),
    synthetic(
        "synthetic_1",
        "API Error: Claude's response exceeded the 32000 output token maximum.  […]",
        "max_output_tokens",
    ),
    result(
        "API Error: Claude's response exceeded the 32000 output token maximum.  […]",
        40,
        20,
        0.00042,
        is_error=True,
        terminal_reason="api_error",
        num_turns=4,
    ),
    state("idle"),
]
"""Every answer hits the output limit."""

MAX_TURNS = [
    *turn_begins(),
    *message("msg_1", text("one"), tool("call_1", "Bash", command="echo 1", description="One")),
    answer("call_1", "1", is_error=False, detail={"stdout": "1"}),
    requesting(),
    *message("msg_2", text("two"), tool("call_2", "Bash", command="echo 2", description="Two")),
    answer("call_2", "2", is_error=False, detail={"stdout": "2"}),
    result(
        None,
        20,
        10,
        0.00021,
        subtype="error_max_turns",
        is_error=True,
        terminal_reason="max_turns",
        num_turns=3,
        errors=["Reached maximum number of turns (2)"],
    ),
    state("idle"),
]
"""The run reaches its limit of turns."""

INTERRUPTED = [
    *turn_begins(),
    start("msg_1"),
    opened(0, text()),
    piece(0, "A long answer that gets "),
    piece(0, "stopped in the middle of"),
    piece(0, " all of its many words, "),
    said(
        "msg_1",
        text("A long answer that gets stopped in the middle of all of its many words, "),
        aborted=True,
    ),
    note([text("[Request interrupted by user]")]),
    closed(0),
    counted(1, None, input_tokens=10),
    done(),
    result(
        None,
        0,
        0,
        0.00030000000000000003,
        subtype="error_during_execution",
        is_error=True,
        terminal_reason="aborted_streaming",
        num_turns=2,
        errors=["[ede_diagnostic] result_type=user last_content_type=n/a stop_reason=null"],
    ),
    state("idle"),
]
"""An interrupt in the middle of a text."""

INTERRUPTED_TOOL = [
    *turn_begins(),
    *message(
        "msg_1",
        text("Sleeping."),
        tool("call_1", "Bash", command="echo x; sleep 30", description="Sleep"),
    ),
    answer(
        "call_1",
        REFUSED + " Correction to the text above: […]",
        is_error=True,
        detail="User rejected tool use",
    ),
    note([text("[Request interrupted by user for tool use]")]),
    result(
        None,
        10,
        5,
        0.000105,
        subtype="error_during_execution",
        is_error=True,
        terminal_reason="aborted_tools",
        num_turns=3,
        errors=["[ede_diagnostic] result_type=user last_content_type=n/a stop_reason=tool_use"],
    ),
    state("idle"),
]
"""An interrupt while a command runs."""

DENIED = [
    *turn_begins(),
    *message("msg_1", text("Trying."), tool("call_1", "Write", file_path="/repo/x", content="x")),
    state("requires_action"),
    state("running"),
    answer("call_1", "no shell", is_error=True, detail="Error: no shell"),
    requesting(),
    *message("msg_2", text("not allowed")),
    result(
        "not allowed",
        20,
        10,
        0.00021,
        num_turns=2,
        permission_denials=[
            {
                "tool_name": "Write",
                "tool_use_id": "call_1",
                "tool_input": {"file_path": "/repo/x", "content": "x"},
            }
        ],
    ),
    state("idle"),
]
"""A call that is denied; the turn goes on."""

HELD = [
    *turn_begins(),
    *message(
        "msg_1",
        text("Trying."),
        tool("call_1", "Write", file_path="/repo/x", content="x"),
        tool("call_2", "Write", file_path="/repo/y", content="y"),
    ),
    state("requires_action"),
    state("running"),
    answer("call_1", REFUSED, is_error=True, detail="User rejected tool use"),
    answer("call_2", REFUSED, is_error=True, detail="User rejected tool use"),
    note([text("[Request interrupted by user for tool use]")]),
    result(
        None,
        10,
        5,
        0.000105,
        subtype="error_during_execution",
        is_error=True,
        terminal_reason="aborted_tools",
        num_turns=4,
        errors=["[ede_diagnostic] result_type=user last_content_type=n/a stop_reason=tool_use"],
        permission_denials=[
            {
                "tool_name": "Write",
                "tool_use_id": "call_1",
                "tool_input": {"file_path": "/repo/x", "content": "x"},
            }
        ],
    ),
    state("idle"),
]
"""A call that is denied and stops the turn, with another in the same message."""

LIMITS = [
    state("running"),
    init(apiKeySource="none"),
    requesting(),
    *message(
        "msg_1", text("Reading."), tool("call_1", "Bash", command="echo 1", description="One")
    ),
    limit(
        status="allowed",
        resetsAt=1796054494,
        rateLimitType="five_hour",
        isUsingOverage=False,
        unifiedWindows={
            "five_hour": {"utilization": 0.2, "resetsAt": 1796054494, "status": "allowed"}
        },
    ),
    answer("call_1", "1", is_error=False, detail={"stdout": "1"}),
    requesting(),
    *message("msg_2", text("Near the limit.")),
    limit(
        status="allowed_warning",
        resetsAt=1796054494,
        rateLimitType="five_hour",
        utilization=0.91,
        isUsingOverage=False,
        surpassedThreshold=0.9,
        unifiedWindows={
            "five_hour": {
                "utilization": 0.91,
                "resetsAt": 1796054494,
                "status": "allowed_warning",
                "surpassedThreshold": 0.9,
            }
        },
    ),
    result("Near the limit.", 20, 10, 0.00021, num_turns=2),
    state("idle"),
]
"""On a subscription: one update of its limits, and one near a limit."""

LIMIT_REACHED = [
    state("running"),
    init(apiKeySource="none"),
    requesting(),
    limit(
        status="rejected",
        resetsAt=1796054494,
        rateLimitType="five_hour",
        isUsingOverage=False,
        unifiedWindows={
            "five_hour": {"utilization": 1, "resetsAt": 1796054494, "status": "rejected"}
        },
    ),
    synthetic("synthetic_1", "You've hit your 5-hour limit · resets 4:01pm (UTC)", "rate_limit"),
    result(
        "You've hit your 5-hour limit · resets 4:01pm (UTC)",
        0,
        0,
        0,
        is_error=True,
        terminal_reason="api_error",
        api_error_status=429,
    ),
    state("idle"),
]
"""On a subscription whose limit is reached."""
