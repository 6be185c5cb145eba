"""
The texts a generator writes: its status, and what a model is told of its calls.

Pure, and the only place where these texts are written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from pydantic_core import to_jsonable_python

from flowstate.harness.clean_text import clean_text

LONGEST_ERROR: Final = 2_000
"""How many characters of a tool's failure a model is told, and an error's reason holds."""


def using(name: str) -> str:
    """
    A tool call runs.

    >>> using("lookup")
    'Using lookup…'
    """
    return f"Using {name}…"


def unknown_tool(name: str, offered: Sequence[str]) -> str:
    """What a model is told that called a tool that isn't there."""
    return f"There is no tool {name!r}. The tools are: {', '.join(offered) or 'none'}."


def bad_json(problem: str) -> str:
    """What a model is told whose arguments aren't JSON, or no object."""
    return f"The arguments are no JSON object ({problem}). Call the tool again."


def bad_output(problem: str) -> str:
    """What a model is told whose output doesn't fit."""
    return f"That doesn't fit: {problem}. Give the whole output again, corrected."


def no_output(tool: str) -> str:
    """What a model is told that ended without giving its typed output."""
    return f"Give the output by calling {tool}."


def failure(error: BaseException, redact: Callable[[str], str]) -> str:
    """
    A tool's failure as a model is told it: its class and text, without secrets, not too long.

    >>> failure(ValueError("no such city"), str)
    'ValueError: no such city'
    """
    text = str(error)
    name = type(error).__name__
    return cut(redact(clean_text(f"{name}: {text}" if text else name)))


def cut(text: str, longest: int = LONGEST_ERROR) -> str:
    """
    The text, with an ellipsis for what is too long of it.

    >>> cut("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= longest else text[: longest - 1] + "…"


def told(value: object) -> tuple[Any, str]:
    """
    A tool's output as JSON, for its item, and as the text that a model is told.

    What can't be written as JSON is told by its repr.
    """
    if isinstance(value, str):
        return value, clean_text(value)
    plain = to_jsonable_python(value, fallback=repr, inf_nan_mode="strings", by_alias=True)
    return plain, clean_text(json.dumps(plain, ensure_ascii=False))


def clean_json(value: Any) -> Any:
    r"""
    JSON with lone surrogates replaced in every text and key of it.

    >>> clean_json({"a\ud800": ["\udc00", 1]})
    {'a�': ['�', 1]}
    """
    match value:
        case str():
            return clean_text(value)
        case dict():
            pairs = cast("dict[str, object]", value).items()
            return {clean_text(key): clean_json(held) for key, held in pairs}
        case list():
            return [clean_json(held) for held in cast("list[object]", value)]
        case _:
            return value
