"""Choosing among items: types, roles, and windows of a conversation for a model."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowstate.blocks.claude_code.calls import SUB_AGENT
from flowstate.errors import InvalidValue
from flowstate.item.content import (
    BlockTrace,
    Container,
    Content,
    ErrorReport,
    Message,
    Reasoning,
    Source,
    Status,
    ToolOutput,
)
from flowstate.item.item import Item, ItemStatus, Provenance
from flowstate.item.selection import (
    UNFINISHED,
    Called,
    Role,
    Said,
    Utterance,
    contents,
    history,
    messages,
    of_type,
)
from flowstate.item.visibility import visibility_of

NUMBERS = itertools.count(1)


def item(
    content: Content,
    status: ItemStatus = "completed",
    *,
    parent: str | None = None,
    hidden: bool = False,
    transient: bool = False,
) -> Item:
    """An item of a step."""
    return Item(
        id=f"item_{next(NUMBERS)}",
        request_id="req",
        status=status,
        content=content,
        provenance=Provenance(path="turn/step", block="step", parent=parent),
        visibility=visibility_of(content.type, "trace" if hidden else None),
        transient=transient,
        created_at=0,
        updated_at=0,
    )


def user(text: str) -> Item:
    """Something the user said."""
    return item(Message(role="user", text=text))


def says(text: str, status: ItemStatus = "completed") -> Item:
    """Something the assistant said."""
    return item(Message(text=text), status)


def call(call_id: str, output: Any = None, status: ItemStatus = "completed") -> Item:
    """A tool call."""
    return item(ToolOutput(call_id=call_id, name="read", arguments={"n": 1}, output=output), status)


CONVERSATION = [
    user("one"),
    says("I look"),
    item(Reasoning(text="hm")),
    call("c1", "found"),
    says("done"),
    item(Status(text="took 1 s", kept=True)),
    user("two"),
    item(BlockTrace(block="b", kind="handler")),
    says("yes"),
    user("three"),
]


def test_items_of_a_type_keep_their_order() -> None:
    """Of one type or of several; nothing else, and nothing is lost."""
    assert of_type(CONVERSATION, ToolOutput) == [CONVERSATION[3]]
    assert of_type(CONVERSATION, Status, Reasoning) == [CONVERSATION[2], CONVERSATION[5]]
    assert of_type(CONVERSATION, Container) == []
    assert [each.call_id for each in contents(CONVERSATION, ToolOutput)] == ["c1"]


def test_messages_of_a_role() -> None:
    """All of them, or one role's."""
    assert contents(messages(CONVERSATION, role="user"), Message) == [
        Message(role="user", text=text) for text in ("one", "two", "three")
    ]
    assert len(messages(CONVERSATION)) == 6
    assert messages(CONVERSATION, role="system") == []


def test_a_history_is_what_a_model_is_told() -> None:
    """Messages and calls in order; statuses, traces and thoughts are no part of it."""
    assert history(CONVERSATION) == [
        Said(role="user", text="one"),
        Said(role="assistant", text="I look"),
        Called(call_id="c1", name="read", arguments={"n": 1}, output="found"),
        Said(role="assistant", text="done"),
        Said(role="user", text="two"),
        Said(role="assistant", text="yes"),
        Said(role="user", text="three"),
    ]


@pytest.mark.parametrize(("turns", "first"), [(1, "three"), (2, "two"), (3, "one"), (9, "one")])
def test_a_window_begins_with_a_users_message(turns: int, first: str) -> None:
    """The last turns, whole; as many as there are, if there are fewer."""
    told = history(CONVERSATION, turns=turns)
    assert told[0] == Said(role="user", text=first)
    assert told == history(CONVERSATION)[-len(told) :]


def test_what_stands_before_the_first_user_is_of_the_first_turn() -> None:
    """A greeting or a system message is told with the first turn, and gone with it."""
    greeted = [item(Message(role="system", text="be kind")), says("hello"), user("a"), user("b")]
    assert [each.text for each in history(greeted, turns=2)] == ["be kind", "hello", "a", "b"]
    assert [each.text for each in history(greeted, turns=1)] == ["b"]
    assert [each.text for each in history(greeted[:2], turns=1)] == ["be kind", "hello"]


@pytest.mark.parametrize("turns", [0, -1])
def test_a_window_of_no_turns_is_refused(turns: int) -> None:
    """It would be everything, to Python's slices."""
    with pytest.raises(InvalidValue, match="1 or more"):
        history(CONVERSATION, turns=turns)


@pytest.mark.parametrize("status", ["in_progress", "incomplete", "failed"])
def test_what_was_cut_off_is_told_as_far_as_it_went(status: ItemStatus) -> None:
    """A part of a message is told and marked; one that says nothing yet is left out."""
    assert history([says("half", status), says("", status)]) == [
        Said(role="assistant", text="half", complete=False)
    ]


def test_a_call_without_a_result_has_one_in_a_history() -> None:
    """A model refuses a call that was never answered, so it is answered by an error."""
    unfinished = [call("a", status="in_progress"), call("b", status="incomplete")]
    assert [
        (told.output, told.is_error, told.complete)
        for told in history(unfinished)
        if isinstance(told, Called)
    ] == [(UNFINISHED, True, False)] * 2


def test_a_calls_result_is_told_as_it_is() -> None:
    """None is a result, too; an error stays one, and so does what came before a cut."""
    failed = item(
        ToolOutput(call_id="b", name="read", output="no such file", is_error=True), "failed"
    )
    told = history([call("a"), failed, call("c", {"rows": [1]}, "incomplete"), call("d", "text")])
    calls = [each for each in told if isinstance(each, Called)]
    assert [(each.output, each.is_error, each.complete) for each in calls] == [
        (None, False, True),
        ("no such file", True, True),
        ({"rows": [1]}, False, False),
        ("text", False, True),
    ]
    assert [each.text for each in calls] == ["null", "no such file", '{"rows": [1]}', "text"]


def test_a_failed_call_without_a_result_is_an_error() -> None:
    """Whoever settled it as failed need not have said so twice."""
    (told,) = history([call("a", status="failed")])
    assert told == Called(call_id="a", name="read", arguments={"n": 1}, is_error=True)


def test_hidden_and_passing_items_are_left_out() -> None:
    """What clients don't see is told when asked for; what is kept nowhere never is."""
    items = [
        user("ask"),
        item(Message(text="internal"), hidden=True),
        item(Message(text="passing"), transient=True),
        says("answer"),
    ]
    assert [each.text for each in history(items)] == ["ask", "answer"]
    assert [each.text for each in history(items, visibility="trace")] == [
        "ask",
        "internal",
        "answer",
    ]


def test_a_sub_agents_conversation_is_its_own() -> None:
    """What lies in its container, at any depth, is left out; other groups hide nothing."""
    agent = item(Container(label="Searching", kind=SUB_AGENT))
    inner = item(Container(label="Files"), parent=agent.id)
    group = item(Container(label="Step", kind="block"))
    items = [
        user("ask"),
        agent,
        item(Message(role="user", text="search for it"), parent=agent.id),
        inner,
        item(Message(text="deep"), parent=inner.id),
        group,
        item(Message(text="answer"), parent=group.id),
    ]
    assert [each.text for each in history(items)] == ["ask", "answer"]


# --- laws ----------------------------------------------------------------------------------------

TEXT = st.text("ab ", max_size=3)
STATUS: st.SearchStrategy[ItemStatus] = st.sampled_from(
    ["completed", "completed", "in_progress", "incomplete", "failed"]
)
ROLE: st.SearchStrategy[Role] = st.sampled_from(["user", "user", "assistant", "system"])

any_content: st.SearchStrategy[Content] = st.one_of(
    st.builds(lambda role, text: Message(role=role, text=text), ROLE, TEXT),
    st.builds(lambda role, text: Message(role=role, text=text), ROLE, TEXT),
    st.builds(
        lambda number, output: ToolOutput(call_id=f"c{number}", name="t", output=output),
        st.integers(0, 9),
        st.none() | TEXT,
    ),
    st.sampled_from(
        [
            Reasoning(text="r"),
            Status(text="s", kept=True),
            BlockTrace(block="b", kind="handler"),
            ErrorReport(code="E", message="m"),
            Source(title="s"),
            Container(label="c"),
            Container(label="a", kind=SUB_AGENT),
        ]
    ),
)


@st.composite
def conversations(draw: st.DrawFn) -> list[Item]:
    """Items in any order, under one another, hidden, passing and in any state."""
    made: list[Item] = []
    for content in draw(st.lists(any_content, max_size=25)):
        groups = [each.id for each in made if isinstance(each.content, Container)]
        made.append(
            item(
                content,
                draw(STATUS),
                parent=draw(st.sampled_from([None, None, *groups])),
                hidden=draw(st.sampled_from([False, False, True])),
                transient=draw(st.sampled_from([False, False, False, True])),
            )
        )
    return made


def begins(told: list[Utterance]) -> list[int]:
    """Where the turns of a history begin."""
    return [at for at, each in enumerate(told) if isinstance(each, Said) and each.role == "user"]


@given(conversations(), st.integers(1, 4))
def test_a_window_is_the_end_of_the_whole(items: list[Item], turns: int) -> None:
    """At most so many turns, none of them cut, and exactly so many where there are as many."""
    whole, window = history(items), history(items, turns=turns)
    assert window == whole[len(whole) - len(window) :]
    assert len(begins(window)) == min(turns, len(begins(whole)))
    if len(begins(whole)) > turns:
        assert begins(window)[0] == 0
    else:
        assert window == whole


@given(conversations(), st.integers(1, 4))
def test_a_call_is_never_without_its_result(items: list[Item], turns: int) -> None:
    """Whatever was cut off: every call that is told has ended, or says that it hasn't."""
    over = [each for each in items if each.status in ("completed", "failed")]
    ended = {call.call_id for call in contents(over, ToolOutput)}
    for told in history(items, turns=turns, visibility="trace"):
        match told:
            case Called(complete=True):
                assert told.call_id in ended
            case Called():
                assert told.output is not None
            case Said():
                assert told.text


@given(conversations())
def test_a_history_keeps_order_and_makes_nothing_up(items: list[Item]) -> None:
    """What is told is what the items say, in their order: a subsequence of them."""
    saying = iter(items)
    for told in history(items, visibility="trace"):
        assert any(_says(each, told) for each in saying)


def _says(each: Item, told: Utterance) -> bool:
    """Whether the item is what is told here."""
    match each.content, told:
        case Message() as message, Said():
            return (message.role, message.text) == (told.role, told.text)
        case ToolOutput() as output, Called():
            return output.call_id == told.call_id and told.output in (output.output, UNFINISHED)
        case _:
            return False


@given(conversations(), conversations())
def test_a_conversation_may_be_cut_at_a_user(first: list[Item], second: list[Item]) -> None:
    """A window that lies in the later part doesn't depend on the turns before it."""
    later = [user("go on"), *second]
    turns = len(begins(history(later)))
    assert history([user("begin"), *first, *later], turns=turns) == history(later)


def _kinds() -> Iterator[str]:
    yield from (each.content.type for each in CONVERSATION)


def test_the_conversation_above_has_what_is_left_out() -> None:
    """The examples would show little if they held only what is told."""
    assert {"status", "block_trace", "reasoning"} <= set(_kinds())
