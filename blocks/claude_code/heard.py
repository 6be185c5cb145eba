"""
What we hear of Claude Code: frozen values of our own, one for each thing that it says.

They know neither the SDK that they came from (``flowstate.blocks.claude_code.hearing``) nor the
items that they become (``flowstate.blocks.claude_code.translator``). All texts in them are valid
Unicode and all values are plain JSON, save where a field says otherwise.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, final

from flowstate.blocks.claude_code.json_value import JsonValue
from flowstate.harness.usage import HarnessUsageWindow
from flowstate.value import named_value, value

StreamedKind: TypeAlias = Literal["text", "thinking", "arguments"]
SpokenKind: TypeAlias = Literal["text", "thinking"]
TaskEndStatus: TypeAlias = Literal["completed", "failed", "stopped"]


@final
@named_value
class SessionHeard:
    """A turn begins (``init``). It comes again with every turn of a run."""

    session_id: str
    """The conversation that the run is in, as Claude Code confirms it."""
    model: str | None = None
    sandboxed: bool | None = None
    """Whether commands run in a sandbox; None when it doesn't say."""
    api_key_source: str | None = None


@final
@named_value
class StateHeard:
    """The session is ``running``, ``idle`` or ``requires_action``."""

    state: str


@final
@named_value
class RetryHeard:
    """A failed API call is tried again."""

    attempt: int | None = None
    attempts: int | None = None
    delay_ms: float | None = None


@final
@named_value
class CompactionHeard:
    """The conversation was summarized to free up space."""


@final
@named_value
class StreamStarted:
    """A message of the model begins to stream."""

    message_id: str | None
    parent: str | None = None
    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None


@final
@value
class Streamed:
    """A piece of the message that streams: of its text, its thinking, or a call's arguments."""

    index: int
    """The place of the piece's block in the message."""
    kind: StreamedKind
    text: str
    parent: str | None = None


@final
@named_value
class StreamCounted:
    """The tokens of the message that streams, so far."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    parent: str | None = None


@final
@named_value
class Spoken:
    """A finished text or thinking of the model; thinking whose text is withheld is empty."""

    kind: SpokenKind
    text: str


@final
@named_value
class Called:
    """The model calls a tool."""

    call_id: str
    name: str
    arguments: JsonValue
    on_server: bool = False
    """The API runs the tool itself, within the message; its result may never be told."""


@final
@named_value
class Answered:
    """A tool's result."""

    call_id: str
    output: JsonValue
    """What the model was told: text, or a list of content blocks."""
    is_error: bool = False
    parent: str | None = None
    detail: object = None
    """The tool's own record of what it did, as the SDK gave it: dict, list, str or None."""


Block: TypeAlias = Spoken | Called | Answered


@final
@named_value
class AssistantHeard:
    """
    The model said something. A message comes in pieces, one a block, all with one message id.

    ``blocks`` is empty for what is never shown, such as redacted thinking.
    """

    message_id: str | None
    blocks: tuple[Block, ...]
    parent: str | None = None
    """The tool call of the sub-agent that spoke; None for the main thread."""
    uuid: str | None = None
    """This piece's own id."""
    model: str | None = None
    input_tokens: int | None = None


@final
@named_value
class ApiFailureHeard:
    """An API call failed for good: Claude Code's own words, not the model's."""

    code: str
    text: str
    parent: str | None = None


@final
@named_value
class TaskStarted:
    """A task began; it is a sub-agent when its kind is ``local_agent``."""

    task_id: str
    call_id: str | None = None
    description: str | None = None
    kind: str | None = None
    in_background: bool = False


@final
@named_value
class TaskProgressed:
    """A task goes on. (Its description is of the step it is at, and is left out.)"""

    task_id: str
    call_id: str | None = None
    summary: str | None = None
    last_tool: str | None = None


@final
@named_value
class TaskEnded:
    """A task is over. It may be said twice, in different words."""

    task_id: str
    status: TaskEndStatus
    call_id: str | None = None
    reason: str | None = None
    """Why it failed."""


@final
@named_value
class ResultHeard:
    """A turn of the main thread is over. A run may have several."""

    subtype: str
    is_error: bool = False
    text: str | None = None
    errors: tuple[str, ...] = ()
    terminal_reason: str | None = None
    input_tokens: int | None = None
    """Of this turn's main thread, as reported; cached ones not included."""
    output_tokens: int | None = None
    total_cost_usd: float | None = None
    """Of the whole conversation so far, its earlier runs and sub-agents included."""
    model_usage: object = None
    """By model, of the whole conversation so far, as the SDK gave it."""
    session_id: str | None = None
    uuid: str | None = None


@final
@named_value
class UsageHeard:
    """Where one limit of the subscription stands."""

    window: HarnessUsageWindow


@final
@named_value
class Took:
    """The turn has taken in the user messages sent with these ids."""

    uuids: tuple[str, ...]


Heard: TypeAlias = (
    SessionHeard
    | StateHeard
    | RetryHeard
    | CompactionHeard
    | StreamStarted
    | Streamed
    | StreamCounted
    | AssistantHeard
    | Answered
    | ApiFailureHeard
    | TaskStarted
    | TaskProgressed
    | TaskEnded
    | ResultHeard
    | UsageHeard
    | Took
)
