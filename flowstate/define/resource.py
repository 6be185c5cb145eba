"""
The resource collection as a declaration: a pattern of keys, a model of entries, and a scope.

An entry's id is data: it goes into a key through the encoding in ``flowstate.ids`` and is read back
from there, so that no id reaches another entry, another collection or a path, whatever characters
it holds.

The words: the *key* of an entry is the filled-in pattern, ``notes/n1``; its *topic* is what comes
after the pattern's leading literals, ``n1``. Nothing here knows where entries are kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import (
    Any,
    Generic,
    Literal,
    TypeAlias,
    TypeGuard,
    TypeVar,
    cast,
    final,
    get_args,
    overload,
)

from pydantic import BaseModel

from flowstate.collection import K_co
from flowstate.context import M, M_co
from flowstate.define.key_pattern import LITERAL, KeyPattern, key_pattern
from flowstate.errors import DefinitionError, InvalidValue

ResourceScope: TypeAlias = Literal["request", "session", "user", "org"]

ClientAccess: TypeAlias = Literal["none", "read", "write"]

N = TypeVar("N", bound="tuple[str, ...]")


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Resource(Generic[M_co, K_co]):
    """
    A collection of entries, each a model under an id of its own. Made by ``resource``; two that
    are equal are the same collection.
    """

    pattern: str
    name: str
    """Its name in every store, and for clients."""
    model: type[M_co]
    scope: ResourceScope
    ids: type[K_co] | None
    """The NamedTuple that an id is; None: it is a text."""
    client: ClientAccess
    live: bool
    keys: KeyPattern = field(compare=False)
    """The pattern, read."""

    def __repr__(self) -> str:
        return f"<{self.scope} resource {self.pattern!r} of {self.model.__name__}>"

    def key(self, id: object) -> str:
        """
        The key of the entry with this id, printable ASCII.

        >>> resource("notes/{id}", BaseModel).key("a/b")
        'notes/a%2Fb'

        Raises:
            InvalidValue: it is not an id of this collection: texts, as many as parameters.
        """
        if self.ids is None:
            if not isinstance(id, str):
                raise self._invalid("a text as the id", id, "ids are texts, never numbers or None")
            return self.keys.key((id,))
        if _are_texts(id) and len(id) == len(self.keys.parameters):
            return self.keys.key(id)
        call = f"{self.ids.__name__}({', '.join(self.keys.parameters)})"
        raise self._invalid("an id of texts", id, f"write {call}")

    def id(self, key: str) -> K_co:
        """
        The id of the entry with this key.

        >>> resource("notes/{id}", BaseModel).id("notes/a%2Fb")
        'a/b'

        Raises:
            InvalidValue: no entry of this collection has such a key.
        """
        try:
            values = self.keys.values(key)
        except ValueError as error:
            raise self._invalid("one of its keys", key, str(error)) from error
        ids = cast("Any", self.ids)
        return cast("K_co", values[0] if ids is None else ids._make(values))

    def topic(self, key: str) -> str:
        """The part of a key that comes after the collection's own prefix."""
        return key.removeprefix(self.keys.own_prefix)

    def key_prefix(self, within: tuple[str, ...] = (), prefix: str = "") -> str:
        """
        What exactly the keys of some entries begin with.

        >>> notes = resource("notes/{id}", BaseModel)
        >>> notes.key_prefix(), notes.key_prefix(prefix="a/")
        ('notes/', 'notes/a%2F')

        Args:
            within: whole values of the first parameters, fewer than all: of these entries only.
            prefix: what the value of the next parameter begins with.

        Raises:
            InvalidValue: they are no texts, or too many.
        """
        if not _are_texts(within):
            raise self._invalid("texts", within, "write within=(value,)")
        if not isinstance(prefix, str):
            raise self._invalid("a text", prefix, "a prefix is the beginning of a value")
        most = len(self.keys.parameters) - 1
        if len(within) > most:
            details = "so many make an id: use get" if most else "it has one parameter: use prefix"
            raise self._invalid(f"up to {most} whole values", within, details)
        return self.keys.start(within, prefix)

    def wire_prefix(self, topic_prefix: str) -> str:
        """
        A client's ``topicPrefix``, which is the beginning of a key, as what to list by. Ids in it
        are escaped; it may end within one. An empty one is the whole collection.

        Raises:
            InvalidValue: it doesn't begin with the collection's own prefix.
        """
        own = self.keys.own_prefix
        if not topic_prefix:
            return own
        if topic_prefix.startswith(own) and topic_prefix.isascii() and topic_prefix.isprintable():
            return topic_prefix
        expected = f"a topicPrefix that begins with {own!r}"
        raise self._invalid(expected, topic_prefix, f"no key begins with {topic_prefix!r}")

    def _invalid(self, expected: str, got: object, details: str) -> InvalidValue:
        return InvalidValue(f"resource {self.pattern!r}", expected, type(got).__name__, details)


@overload
def resource(
    pattern: str,
    model: type[M],
    *,
    scope: ResourceScope = ...,
    client: ClientAccess = ...,
    live: bool = ...,
    name: str | None = ...,
) -> Resource[M]: ...
@overload
def resource(
    pattern: str,
    model: type[M],
    *,
    ids: type[N],
    scope: ResourceScope = ...,
    client: ClientAccess = ...,
    live: bool = ...,
    name: str | None = ...,
) -> Resource[M, N]: ...
def resource(
    pattern: str,
    model: type[M],
    *,
    ids: type[Any] | None = None,
    scope: ResourceScope = "session",
    client: ClientAccess = "none",
    live: bool = False,
    name: str | None = None,
) -> Resource[M, Any]:
    """
    A collection of entries, for ``uses=[...]`` of a block or a capability.

    >>> resource("notes/{id}", BaseModel)
    <session resource 'notes/{id}' of BaseModel>

    Args:
        pattern: how an entry's key is made of its id: literal segments and ``{parameters}``,
            ``notes/{id}``. It begins with a literal. ``{path*}``, as the last segment, is a
            value whose slashes stay slashes; any other is escaped to one segment.
        model: what every entry holds.
        ids: for a pattern of several parameters: a NamedTuple with a text for each of them, in
            their order. An id is then one of these; else it is a text. Nothing else would let
            type checkers see how many parts an id has, and which is which.
        scope: whose collection it is: request, session, user or org.
        client: what clients may do with it: nothing, unless it is said. It is a declaration, which
            whatever serves clients has to enforce; blocks read and write in any case.
        live: every change makes a ``resource_change`` item of the node that wrote. Clients see it
            only if ``client`` lets them read.
        name: its name in every store, which must stay the same for stored entries to be found;
            by default the pattern's literals, joined by ``-``.

    Raises:
        DefinitionError: an argument can't work.
    """
    keys = key_pattern(pattern)
    where = f"resource {pattern!r}"
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise DefinitionError(
            where, f"{model!r} is no pydantic model", "Hand it a BaseModel subclass."
        )
    _check_ids(where, ids, list(keys.parameters))
    for label, given, allowed in (
        ("scope", scope, get_args(ResourceScope)),
        ("client", client, get_args(ClientAccess)),
        ("live", live, (True, False)),
    ):
        if given not in allowed:
            choices = ", ".join(map(repr, allowed))
            raise DefinitionError(where, f"{label}={given!r}", f"Use one of {choices}.")
    if name is None:
        name = "-".join(keys.literals)
    elif not isinstance(name, str) or not LITERAL.fullmatch(name):
        way_out = "Use letters, digits, '-', '_' and '.'."
        raise DefinitionError(where, f"name={name!r} can't stand in a URL", way_out)
    return Resource(
        pattern=pattern,
        name=name,
        model=model,
        scope=scope,
        ids=ids,
        client=client,
        live=live,
        keys=keys,
    )


def _check_ids(where: str, ids: object, parameters: list[str]) -> None:
    if ids is None and len(parameters) == 1:
        return
    fields = "; ".join(f"{name}: str" for name in parameters)
    way_out = f"Write class Id(NamedTuple): {fields}, and give ids=Id."
    if ids is None:
        raise DefinitionError(where, f"an id has {len(parameters)} parts", way_out)
    named = cast("Any", ids)
    if not (isinstance(ids, type) and issubclass(ids, tuple) and hasattr(named, "_fields")):
        raise DefinitionError(where, f"ids={ids!r} is no NamedTuple", way_out)
    has = list(named._fields)
    if has != parameters:
        problem = f"{named.__name__} has the fields {', '.join(has) or 'nothing'}"
        raise DefinitionError(where, problem, way_out)


def _are_texts(values: object) -> TypeGuard[tuple[str, ...]]:
    if not isinstance(values, tuple):
        return False
    return all(isinstance(value, str) for value in cast("tuple[object, ...]", values))
