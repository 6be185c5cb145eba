"""Flows, actions and policies as values."""

from __future__ import annotations

from typing import Any

import pytest

from flowstate import Policy, action, allow, define_flow, handler, queue, reject
from flowstate.define.policy import as_policy
from flowstate.errors import DefinitionError


@handler
async def work(value: int) -> int:
    return value


def test_an_actions_policy_wins_over_the_flows() -> None:
    """The flow's policy holds where the action names none."""
    flow = define_flow(
        "coding",
        actions=[action("ask", work), action("steer", work, concurrency="allow")],
        concurrency="queue",
    )
    assert flow.policy_of("ask") == queue()
    assert flow.policy_of("steer") == allow()
    assert define_flow("f", actions=[action("a", work)]).policy_of("a") == allow()


def test_an_unknown_action_is_named_with_those_there_are() -> None:
    """A wrong name is answered with the right ones."""
    flow = define_flow("coding", actions=[action("ask", work), action("steer", work)])
    assert flow.action("ask").block is work
    with pytest.raises(DefinitionError, match=r"no action 'aks'.*'ask', 'steer'"):
        flow.action("aks")


def test_a_flow_needs_actions_with_names_of_their_own() -> None:
    """Nothing to ask for, or two things under one name, is an error."""
    with pytest.raises(DefinitionError, match="no actions"):
        define_flow("coding", actions=[])
    with pytest.raises(DefinitionError, match="two actions are called 'ask'"):
        define_flow("coding", actions=[action("ask", work), action("ask", work)])


@pytest.mark.parametrize("name", ["", "a/b"])
def test_names_are_checked(name: str) -> None:
    """Kinds and action names stand in paths too."""
    with pytest.raises(DefinitionError, match="not a usable name"):
        action(name, work)
    with pytest.raises(DefinitionError, match="not a usable name"):
        define_flow(name, actions=[action("a", work)])


def test_a_policy_is_a_name_or_a_value() -> None:
    """Each name stands for the policy with its defaults."""
    assert as_policy("allow", "x") == Policy(name="allow", key=None)
    assert as_policy("queue", "x") == Policy(name="queue", key="session", wait=30.0)
    assert as_policy("reject", "x") == Policy(name="reject", key="session")
    assert as_policy(queue(wait=5, key="user"), "x") == Policy(name="queue", key="user", wait=5)
    assert reject(key=None).key is None


@pytest.mark.parametrize("wrong", ["quue", "", None, 5])
def test_another_policy_is_refused_with_those_there_are(wrong: Any) -> None:
    """The error lists the names."""
    with pytest.raises(DefinitionError, match="'allow', 'queue', 'reject'"):
        as_policy(wrong, "action 'ask'")


@pytest.mark.parametrize("wait", [0, -1, float("nan")])
def test_a_queue_waits_for_some_time(wait: float) -> None:
    """A wait that is over before it began is a mistake."""
    with pytest.raises(DefinitionError, match="wait="):
        queue(wait=wait)
