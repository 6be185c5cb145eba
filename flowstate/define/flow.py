"""
Flows and their actions: what a server exposes. Frozen values; nothing is registered anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, final

from flowstate.define.block import Block, I_contra, O_co, check_name
from flowstate.define.policy import Policy, PolicyName, as_policy
from flowstate.errors import DefinitionError

A = TypeVar("A")
B = TypeVar("B")


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Action(Generic[I_contra, O_co]):
    """One thing a flow can be asked to do. Made by ``action``."""

    name: str
    block: Block[I_contra, O_co]
    concurrency: Policy | None
    """None: the flow's."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Flow:
    """A kind of work and the actions it offers. Made by ``define_flow``."""

    kind: str
    actions: tuple[Action[Any, Any], ...]
    concurrency: Policy

    def action(self, name: str) -> Action[Any, Any]:
        """
        The action of this name.

        Raises:
            DefinitionError: there is none; the message lists those there are.
        """
        for candidate in self.actions:
            if candidate.name == name:
                return candidate
        known = ", ".join(repr(a.name) for a in self.actions)
        raise DefinitionError(f"flow {self.kind!r}", f"no action {name!r}", f"It has: {known}.")

    def policy_of(self, name: str) -> Policy:
        """The policy that holds for the action of this name."""
        return self.action(name).concurrency or self.concurrency


def action(
    name: str, block: Block[A, B], *, concurrency: Policy | PolicyName | None = None
) -> Action[A, B]:
    """
    An action that runs ``block``.

    Args:
        name: unique within its flow.
        block: what it runs; its input type is the action's.
        concurrency: ``"allow"``, ``"queue"``, ``"reject"`` or a value such as ``queue(wait=5)``;
            None takes the flow's.
    """
    check_name(name, "action")
    policy = None if concurrency is None else as_policy(concurrency, f"action {name!r}")
    return Action(name=name, block=block, concurrency=policy)


def define_flow(
    kind: str,
    *,
    actions: Sequence[Action[Any, Any]],
    concurrency: Policy | PolicyName = "allow",
) -> Flow:
    """
    A flow with these actions; ``concurrency`` holds for those that name none.

    Raises:
        DefinitionError: no actions, or two of one name.
    """
    check_name(kind, "flow")
    names = [a.name for a in actions]
    if not actions:
        raise DefinitionError(f"flow {kind!r}", "no actions", "Give actions=[action(...), ...].")
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise DefinitionError(
            f"flow {kind!r}", f"two actions are called {twice[0]!r}", "Rename one of them."
        )
    return Flow(
        kind=kind, actions=tuple(actions), concurrency=as_policy(concurrency, f"flow {kind!r}")
    )
