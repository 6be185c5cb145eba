"""
What an agent's stream means for the run: effects, as values.

A translator is pure: it turns what an agent says into these. ``flowstate.harness.joiner`` carries
them out on a context. Items are named by keys of the translator's own choosing, since an item's
real id is made when it is opened.
"""

from __future__ import annotations

from typing import TypeAlias, final

from flowstate.item.content import Content
from flowstate.item.item import SettledStatus
from flowstate.value import value


@final
@value
class OpenItem:
    """Show a new item in progress under this key; ``parent`` is the key of a container."""

    key: str
    content: Content
    parent: str | None = None


@final
@value
class AppendText:
    """Append streamed text to the open message or reasoning of this key."""

    key: str
    text: str


@final
@value
class ChangeItem:
    """Replace the content of the open item of this key."""

    key: str
    content: Content


@final
@value
class SettleItem:
    """Settle the open item of this key, with its last content if given."""

    key: str
    content: Content | None = None
    status: SettledStatus = "completed"


@final
@value
class ShowStatus:
    """Show a transient status line."""

    text: str


@final
@value
class KeepStatus:
    """Put a status into the session's history."""

    text: str


@final
@value
class ClearStatus:
    """Empty the status line, if it still shows one of this run's."""


@final
@value
class MessageActivity:
    """The agent completed a message."""

    text: str


@final
@value
class ToolActivity:
    """The agent started a tool call; ``arguments`` is JSON text."""

    name: str
    arguments: str


@final
@value
class SessionNamed:
    """The agent confirmed which conversation the run is in."""

    session_id: str


Effect: TypeAlias = (
    OpenItem
    | AppendText
    | ChangeItem
    | SettleItem
    | ShowStatus
    | KeepStatus
    | ClearStatus
    | MessageActivity
    | ToolActivity
    | SessionNamed
)
