"""
The contents whose text grows while they are in progress: what is said, and what is thought.
"""

from __future__ import annotations

from typing import Final

from flowstate.item.content import Content, Message, Reasoning, unchecked

GROWING: Final = frozenset({"message", "reasoning"})
"""Their types. Asking for a content's class costs more: it goes through the models' metaclass."""


def grown(content: Content, text: str) -> Content:
    """
    The content with this appended to its text; unchanged if it is none that grows.

    >>> grown(Message(text="a", role="user"), "b").text
    'ab'
    """
    if content.type == "message":
        return unchecked(Message, text=content.text + text, role=content.role)
    if content.type == "reasoning":
        return unchecked(Reasoning, text=content.text + text)
    return content
