"""
What an item holds: one frozen model a type, and their union.

An item is an envelope (``flowstate.item.item``) around one of these. Nothing here knows who made
an item, when, or who may see it. Names on the wire are camelCase, by aliases, in this one place.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

WIRE = ConfigDict(
    frozen=True,
    extra="forbid",
    alias_generator=to_camel,
    validate_by_name=True,
    validate_by_alias=True,
    defer_build=True,  # a model's schema is built when one is first made, not on import
)
"""The wire form that every model of this package shares."""


class Message(BaseModel):
    """Something said in the conversation; streamed by appending to ``text``."""

    model_config = WIRE
    type: Literal["message"] = "message"
    text: str = ""
    role: Literal["assistant", "user", "system"] = "assistant"


class Reasoning(BaseModel):
    """An agent's thinking, where it shows it; streamed by appending to ``text``."""

    model_config = WIRE
    type: Literal["reasoning"] = "reasoning"
    text: str = ""


class ToolOutput(BaseModel):
    """A tool call and, once it has one, its result."""

    model_config = WIRE
    type: Literal["tool_output"] = "tool_output"
    call_id: str
    """The id the agent gave the call."""
    name: str
    arguments: Any = None
    """The call's arguments, as the agent sent them: JSON."""
    output: Any = None
    """The call's result, JSON; None until it has one."""
    is_error: bool = False


class Status(BaseModel):
    """A line on what is going on; one is shown at a time (``flowstate.item.status``)."""

    model_config = WIRE
    type: Literal["status"] = "status"
    text: str
    kept: bool = False
    """True when the line stays in the session's history."""


class Container(BaseModel):
    """Groups the items of a part of the run, for example a sub-agent's."""

    model_config = WIRE
    type: Literal["container"] = "container"
    label: str
    kind: str = "group"


class Component(BaseModel):
    """A piece of a host's own user interface: its name and its properties (JSON)."""

    model_config = WIRE
    type: Literal["component"] = "component"
    name: str
    properties: dict[str, Any] = Field(default_factory=dict)


class Source(BaseModel):
    """Something the answer rests on."""

    model_config = WIRE
    type: Literal["source"] = "source"
    title: str
    url: str | None = None


class ErrorReport(BaseModel):
    """Something went wrong; ``code`` is for programs, ``message`` for people."""

    model_config = WIRE
    type: Literal["error"] = "error"
    code: str
    message: str

    @classmethod
    def of(cls, error: BaseException) -> ErrorReport:
        """What an exception says of itself: its class, and its words or else its repr."""
        return cls(code=type(error).__name__, message=str(error) or repr(error))


class StateChange(BaseModel):
    """A state cell has a new version. Made, like a block trace, only when somebody listens."""

    model_config = WIRE
    type: Literal["state_change"] = "state_change"
    scope: str
    cell: str
    version: int


class ResourceChange(BaseModel):
    """An entry of a live resource collection was written or deleted."""

    model_config = WIRE
    type: Literal["resource_change"] = "resource_change"
    collection: str
    key: str
    version: int
    deleted: bool = False


class Suspension(BaseModel):
    """
    A question to a person. In progress until it is answered; incomplete if nobody waits for the
    answer any more.
    """

    model_config = WIRE
    type: Literal["suspension"] = "suspension"
    name: str
    question_id: str
    """What an answer is given to: the execution path of the step that asks."""
    question: Any = None
    """What the person is shown: JSON."""
    answer_schema: Any = None
    """The JSON Schema of the answer; None where its type has none."""
    answer: Any = None
    """JSON; None until there is one."""


class BlockTrace(BaseModel):
    """
    One execution of a block; made only when somebody listens for it.

    In the process that runs it the values are there too, by reference: nothing is copied. On the
    wire and in stores only the names of their types are.
    """

    model_config = WIRE
    type: Literal["block_trace"] = "block_trace"
    block: str
    kind: str
    attempt: int = 1
    duration: float | None = None
    """Seconds from start to end; None while it runs."""
    input_type: str | None = None
    """The class of what came in."""
    output_type: str | None = None
    """The class of what went out; None unless it has ended well."""
    input: Any = Field(default=None, exclude=True, repr=False)
    """What came in, itself. Not to be changed."""
    output: Any = Field(default=None, exclude=True, repr=False)
    """What went out, itself. Not to be changed."""
    error: str | None = None


class RetryNote(BaseModel):
    """A block failed and will be tried again."""

    model_config = WIRE
    type: Literal["retry"] = "retry"
    attempt: int
    """The attempt that comes, from 2."""
    of: int
    """How many there may be."""
    delay: float
    """Seconds until then."""
    error: str
    """The class of the error."""
    text: str


class RouterDecision(BaseModel):
    """Which of its routes a router took."""

    model_config = WIRE
    type: Literal["router_decision"] = "router_decision"
    router: str
    route: str


Content: TypeAlias = Annotated[
    Union[  # noqa: UP007  (a runtime value that pydantic reads)
        Message,
        Reasoning,
        ToolOutput,
        Status,
        Container,
        Component,
        Source,
        ErrorReport,
        StateChange,
        ResourceChange,
        Suspension,
        BlockTrace,
        RouterDecision,
        RetryNote,
    ],
    Field(discriminator="type"),
]
"""Any item's content, told apart by ``type``."""

C = TypeVar("C", bound=BaseModel)

_new, _set = object.__new__, object.__setattr__


def unchecked(model: type[C], **values: object) -> C:
    """
    A content of values that are known to fit, by the names of its fields. All that have no default,
    or one that is made anew each time, must be given.

    For what an agent says: between two pieces of its text a model's own constructor takes 25 µs,
    most of it in fetching what it needs from memory, and this takes a half of that.

    >>> unchecked(Message, text="hi") == Message(text="hi")
    True
    """
    made = _new(model)
    _set(made, "__dict__", {**_defaults(model), **values})
    _set(made, "__pydantic_fields_set__", set(values))
    _set(made, "__pydantic_extra__", None)
    _set(made, "__pydantic_private__", None)
    return made


@cache
def _defaults(model: type[BaseModel]) -> dict[str, object]:
    # All fields, so that they stay in their order; where there is no default, a value replaces it.
    return {name: field.default for name, field in model.model_fields.items()}
