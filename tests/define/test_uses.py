"""Declarations: state cells and capabilities as data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from flowstate import (
    block_state,
    define_capability,
    org_state,
    request_state,
    session_state,
    user_state,
)
from flowstate.errors import DefinitionError


class OpenFiles(BaseModel):
    names: list[str] = []


class HTTPLog2(BaseModel):
    lines: int = 0


DECLARE: list[tuple[str, Callable[..., Any]]] = [
    ("request", request_state),
    ("session", session_state),
    ("user", user_state),
    ("org", org_state),
    ("block", block_state),
]


@pytest.mark.parametrize(("scope", "declare"), DECLARE)
def test_a_cell_is_named_after_its_model(scope: str, declare: Callable[..., Any]) -> None:
    """The name a store keeps it under is the model's in snake case, unless one is given."""
    assert declare(OpenFiles).name == "open_files"
    assert declare(HTTPLog2).name == "httplog2"
    assert declare(OpenFiles, name="kept").name == "kept"
    assert declare(OpenFiles).scope == scope
    assert declare(OpenFiles) == declare(OpenFiles)


@pytest.mark.parametrize("wrong", [int, dict, OpenFiles(), "OpenFiles"])
@pytest.mark.parametrize(("scope", "declare"), DECLARE)
def test_state_is_a_model(scope: str, declare: Callable[..., Any], wrong: Any) -> None:
    """Only what can be validated when it is read back can be state."""
    with pytest.raises(DefinitionError, match="is no pydantic model"):
        declare(wrong)


class Memory:
    def __init__(self, ctx: object) -> None:
        self.ctx = ctx


def test_a_capability_is_itself() -> None:
    """Two of one name are two; the reference counts."""
    one, other = define_capability("memory", Memory), define_capability("memory", Memory)
    assert one != other
    assert repr(one) == "<capability 'memory'>"


@pytest.mark.parametrize("name", ["", None])
def test_a_capability_has_a_name(name: Any) -> None:
    """It is named in errors and in drawings."""
    with pytest.raises(DefinitionError, match="name="):
        define_capability(name, Memory)


def test_a_factory_is_called() -> None:
    """What makes the handle must be callable."""
    factory: Any = 5
    with pytest.raises(DefinitionError, match="is no factory"):
        define_capability("memory", Memory, factory)
