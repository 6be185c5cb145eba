"""Text that any wire can carry: what agents and models say may hold halves of characters."""

from __future__ import annotations


def clean_text(text: str) -> str:
    r"""
    The text with lone surrogates replaced, which no UTF-8 can carry; two halves are joined.

    >>> clean_text("a\ud800b"), clean_text("\ud83d\ude00")
    ('a�b', '😀')
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
