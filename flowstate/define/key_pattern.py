"""
The pattern of a collection's keys: literal segments and parameters, ``repos/{repo}/files/{path*}``.

It makes a key of values and reads the values back from a key; both ways nothing is lost and no two
meet. A value is one segment, whatever it holds; that of a parameter with a star, the last one, is
as many segments as it has slashes, and one more. It knows nothing of entries or scopes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, final

from flowstate.errors import DefinitionError
from flowstate.ids import escaped, escaped_start, unescaped

LITERAL: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")
"""What a literal segment may be: what needs no escape in a URL, and no hidden name."""

_PARAMETER: Final = re.compile(r"\{([^\W\d]\w*)(\*?)\}", re.ASCII)


class Segment(NamedTuple):
    """One part of a pattern."""

    kind: Literal["literal", "one", "rest"]
    """A literal, a parameter of one segment, or the last one, of one segment or more."""
    name: str
    """The literal itself, or the parameter's name."""


@final
@dataclass(frozen=True, slots=True)
class KeyPattern:
    """A pattern, read by ``key_pattern``."""

    text: str
    segments: tuple[Segment, ...]

    def __str__(self) -> str:
        return self.text

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return tuple(one.name for one in self.segments if one.kind != "literal")

    @property
    def literals(self) -> tuple[str, ...]:
        """The literal segments."""
        return tuple(one.name for one in self.segments if one.kind == "literal")

    @property
    def own_prefix(self) -> str:
        """What every key begins with: the leading literals, with a slash at the end."""
        leading: list[str] = []
        for segment in self.segments:
            if segment.kind != "literal":
                break
            leading.append(segment.name + "/")
        return "".join(leading)

    def key(self, values: tuple[str, ...]) -> str:
        """
        The key of these values, as many as there are parameters: printable ASCII.

        >>> key_pattern("repos/{repo}/files/{path*}").key(("a/b", "src/c d.py"))
        'repos/a%2Fb/files/src/c%20d.py'
        """
        parts: list[str] = []
        left = iter(values)
        for segment in self.segments:
            match segment.kind:
                case "literal":
                    parts.append(segment.name)
                case "one":
                    parts.append(escaped(next(left)))
                case "rest":
                    parts += map(escaped, next(left).split("/"))
        return "/".join(parts)

    def values(self, key: str) -> tuple[str, ...]:
        """
        The values that make this key.

        >>> key_pattern("repos/{repo}/files/{path*}").values("repos/a%2Fb/files/src/c%20d.py")
        ('a/b', 'src/c d.py')

        Raises:
            ValueError: none do.
        """
        parts = key.split("/")
        more = len(parts) - len(self.segments)
        if more < 0 or (more and self.segments[-1].kind != "rest"):
            raise ValueError(f"{key!r} has another number of segments")
        values: list[str] = []
        for place, segment in enumerate(self.segments):
            match segment.kind:
                case "literal":
                    if parts[place] != segment.name:
                        raise ValueError(f"{key!r} has no {segment.name!r} in its place")
                case "one":
                    values.append(unescaped(parts[place]))
                case "rest":
                    values.append("/".join(map(unescaped, parts[place:])))
        return tuple(values)

    def start(self, whole: tuple[str, ...], beginning: str) -> str:
        """
        What exactly those keys begin with whose first values are ``whole``, fewer than all, and
        whose next one begins with ``beginning``.

        >>> key_pattern("repos/{repo}/files/{path*}").start(("a/b",), "src/c ")
        'repos/a%2Fb/files/src/c%20'
        """
        parts: list[str] = []
        left = iter(whole)
        for segment in self.segments:
            if segment.kind == "literal":
                parts.append(segment.name)
                continue
            value = next(left, None)
            if value is None:
                *before, last = beginning.split("/") if segment.kind == "rest" else [beginning]
                parts += [*map(escaped, before), escaped_start(last)]
                break
            parts.append(escaped(value))
        return "/".join(parts)


def key_pattern(text: str) -> KeyPattern:
    """
    Read a pattern.

    Raises:
        DefinitionError: it is none that can work.
    """
    where = f"resource {text!r}"
    if not isinstance(text, str):
        raise DefinitionError(where, "a pattern is a text", "Write it like 'notes/{id}'.")
    found: list[Segment] = []
    for part in text.split("/"):
        parameter = _PARAMETER.fullmatch(part)
        if parameter is not None:
            found.append(Segment("rest" if parameter[2] else "one", parameter[1]))
        elif LITERAL.fullmatch(part):
            found.append(Segment("literal", part))
        else:
            raise DefinitionError(
                where,
                f"the segment {part!r} is neither a literal nor a parameter",
                "Use letters, digits, '-', '_' and '.', or one {name}, between single slashes.",
            )
    pattern = KeyPattern(text, tuple(found))
    if found[0].kind != "literal":
        way_out = "Begin with a literal: 'notes/{id}'."
        raise DefinitionError(where, "it begins with a parameter", way_out)
    if not pattern.parameters:
        way_out = "Add one, 'notes/{id}', or use a state cell."
        raise DefinitionError(where, "it has no parameter, so it holds one thing", way_out)
    if len(set(pattern.parameters)) < len(pattern.parameters):
        raise DefinitionError(where, "two parameters have one name", "Name each differently.")
    if any(one.kind == "rest" for one in found[:-1]):
        way_out = "Make it the last segment."
        raise DefinitionError(where, "a parameter with '*' takes the rest of a key", way_out)
    return pattern
