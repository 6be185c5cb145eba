"""
Whether a value of one type may stand where another is wanted: yes, no, or only a run can tell.

Pure, and total: any two objects get an answer, also those that are no types, and nothing that
foreign code in them raises gets out. It refuses to know of steps, edges and plans, and how types
are printed (``flowstate.plan.typename``).

YES is a promise: no check is made at run time. NO is a build error, and is said where a type
checker would say it: the declared types show that some value doesn't fit. UNKNOWN means that the
declarations withhold what is needed, and that the value itself must be looked at.

The rules, where they are not plain nominal subtyping:

- Values are frozen by contract, so every container and every generic class is covariant in its
  arguments, except in type variables that are declared contravariant.
- ``int`` stands for ``float`` (and both for ``complex``), as in PEP 484; never inside ``type[]``.
- ``Any`` and ``object`` take everything. What comes out of ``Any`` or of nothing declared is
  UNKNOWN. ``Never`` goes everywhere: no value arrives.
- ``Literal`` takes only literals of it, or a bool or an enum whose values are all listed.
- ``Annotated``: a constraint that the source doesn't state in the same words is UNKNOWN.
- ``NewType``: goes to its supertype; the way back is UNKNOWN, not NO: at run time the two are the
  same object, and making one there is what an author would have to write by hand.
- A bare generic withholds its arguments: ``list`` to ``list[int]`` is UNKNOWN.
- A type variable counts as its bound or its constraints, an open one is UNKNOWN.
- A protocol is met by inheriting it, or by having its members, which is all that an ``isinstance``
  could ever see; declared data members must fit, too. A data member that the class doesn't declare
  may be set in its ``__init__``: UNKNOWN, but for a model, which declares all it has.
- A TypedDict is a dict of str; it may hold undeclared keys, so what these hold is UNKNOWN.
- Two callables that are not the same are UNKNOWN.

Answers are cached. A virtual subclass registered after the first question isn't seen.
"""

from __future__ import annotations

import collections
import collections.abc
import enum
import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import (
    Annotated,
    Any,
    Literal,
    Never,
    NewType,
    NoReturn,
    cast,
    final,
    get_args,
    get_origin,
)

from pydantic import BaseModel

from flowstate.define.unknown import UNKNOWN_TYPE, Unknown
from flowstate.plan.ancestry import (
    bases_of,
    contravariant_at,
    declared_type,
    is_protocol,
    is_subclass,
    is_typed_dict,
    items_of,
    keys_of,
    protocol_members,
    seen_as,
)
from flowstate.plan.annotation import (
    Applied,
    Arguments,
    applied,
    class_and_arguments,
    is_alias,
    is_class,
    layers_of,
    members_of,
    plain,
    same_mark,
    unfolded,
    variables_of,
    widened,
)
from flowstate.plan.typename import constraints_of

__all__ = ["UNKNOWN_TYPE", "Unknown", "Verdict", "assignable"]


@final
class Verdict(enum.Enum):
    """What ``assignable`` answers. It has no truth value: compare with ``is``."""

    YES = "yes"
    """Every value of the source fits: no check is needed."""
    NO = "no"
    """The declarations contradict each other."""
    UNKNOWN = "unknown"
    """The declarations don't tell: the value must be checked when it is there."""

    def __bool__(self) -> bool:
        # Of three answers none is false, and `if assignable(...)` would hold for all of them.
        raise TypeError("a Verdict is neither true nor false: compare it with `is Verdict.YES`")


_YES, _NO, _UNKNOWN = Verdict.YES, Verdict.NO, Verdict.UNKNOWN


_MOST_STEPS = 20_000
"""Comparisons for one question. Types that nest into ever new ones end here, as UNKNOWN."""


_CACHED = 4096
"""Questions remembered."""


def assignable(source: object, target: object) -> Verdict:
    """
    Whether a value declared as ``source`` may be handed to what declares ``target``.

    Both are annotations as ``typing.get_type_hints(..., include_extras=True)`` gives them, or
    classes, or ``UNKNOWN_TYPE``. Never raises.

    >>> assignable(list[bool], list[int])
    <Verdict.YES: 'yes'>
    >>> assignable(int | None, int)
    <Verdict.NO: 'no'>
    >>> assignable(list, list[int])
    <Verdict.UNKNOWN: 'unknown'>
    """
    if source is target and is_class(source):
        return _YES
    # Hashing, comparing and taking types apart runs foreign code (metaclasses, metadata, lazy
    # aliases). Whatever is wrong with it, the value can still be checked when it is there.
    try:
        return _remembered(source, target)
    except Exception:
        return _judged(source, target)


def _no_pairs() -> list[tuple[object, object, int]]:
    return []


@final
@dataclass(slots=True)
class _Walk:
    """What one question has used up, and which comparisons it stands in the middle of."""

    steps: int = 0
    depth: int = 0
    """How many classes it has gone into the arguments or members of."""
    open: list[tuple[object, object, int]] = field(default_factory=_no_pairs)
    """The recursive pairs it stands in, and the depth at which it met each."""


def _judged(source: object, target: object) -> Verdict:
    try:
        return _fits(source, target, _Walk())
    except Exception:
        return _UNKNOWN


_remembered = functools.lru_cache(maxsize=_CACHED)(_judged)


def _fits(source: object, target: object, walk: _Walk) -> Verdict:
    walk.steps += 1
    if walk.steps > _MOST_STEPS:
        return _UNKNOWN
    if _goes_anyway(source, target) or (source is target and is_class(source)):
        return _YES
    source, target = plain(source), plain(target)
    if _goes_anyway(source, target):
        return _YES
    if is_class(source) and is_class(target):
        return _class_fits(source, target, walk)
    wanted = None if is_class(target) else members_of(target)
    if wanted is not None and any(_goes_anyway(source, member) for member in wanted):
        return _YES
    if is_alias(source) or is_alias(target):
        return _assuming(
            source, target, walk, lambda: _fits(unfolded(source), unfolded(target), walk)
        )
    members = members_of(source)
    if members is not None:
        return _all(_fits(member, target, walk) for member in members)
    if wanted is not None:
        verdict = _any(_fits(source, member, walk) for member in wanted)
        wider = widened(source)
        if verdict is _YES or wider is None:
            return verdict
        return _any((verdict, _fits(wider, target, walk)))
    if isinstance(target, NewType):
        if any(each is target for each in layers_of(source)):
            return _YES
        return _at_most_unknown(_fits(source, target.__supertype__, walk))
    if get_origin(target) is Annotated:
        verdict = _fits(source, get_args(target)[0], walk)
        held = [mark for layer in layers_of(source) for mark in constraints_of(layer)]
        met = all(any(same_mark(mark, each) for each in held) for mark in constraints_of(target))
        return verdict if met else _at_most_unknown(verdict)
    if isinstance(source, NewType):
        return _fits(source.__supertype__, target, walk)
    if get_origin(source) is Annotated:
        return _fits(get_args(source)[0], target, walk)
    return _class_fits(source, target, walk)


def _goes_anyway(source: object, target: object) -> bool:
    return target is object or target is Any or source is Never or source is NoReturn


def _assuming(
    source: object, target: object, walk: _Walk, decide: Callable[[], Verdict]
) -> Verdict:
    """
    Decide, taking the pair itself for granted where it comes up again on the way.

    That is how recursive types are compared: they fit unless some finite part of them doesn't. An
    alias that comes to itself without going into anything has no values to speak of.
    """
    for first, second, depth in walk.open:
        if first == source and second == target:
            return _YES if walk.depth > depth else _UNKNOWN
    walk.open.append((source, target, walk.depth))
    verdict = decide()
    walk.open.pop()
    return verdict


def _all(verdicts: Iterable[Verdict]) -> Verdict:
    """NO if one is NO, else UNKNOWN if one is; of none, YES."""
    answer = _YES
    for verdict in verdicts:
        if verdict is _NO:
            return _NO
        if verdict is _UNKNOWN:
            answer = _UNKNOWN
    return answer


def _any(verdicts: Iterable[Verdict]) -> Verdict:
    """YES if one is YES, else UNKNOWN if one is; of none, NO."""
    answer = _NO
    for verdict in verdicts:
        if verdict is _YES:
            return _YES
        if verdict is _UNKNOWN:
            answer = _UNKNOWN
    return answer


def _at_most_unknown(verdict: Verdict) -> Verdict:
    return _UNKNOWN if verdict is _YES else verdict


_CALLABLE = cast("type", collections.abc.Callable)


def _class_fits(source: object, target: object, walk: _Walk) -> Verdict:
    """Neither side is a union, a wrapper or an alias any more."""
    if source is Any or isinstance(source, Unknown) or isinstance(target, Unknown):
        return _UNKNOWN
    if get_origin(source) is Literal:
        (value,) = get_args(source)
        if get_origin(target) is Literal:
            found = any(type(each) is type(value) and each == value for each in get_args(target))
            return _YES if found else _NO
        source = cast("object", type(value))
    given, wanted = class_and_arguments(source), class_and_arguments(target)
    if given is None:
        return _UNKNOWN
    if target is Never or target is NoReturn:
        return _NO
    if get_origin(target) is Literal:
        wider = widened(source)
        return _NO if wider is None else _fits(wider, target, walk)
    if wanted is None:
        return _UNKNOWN
    walk.depth += 1
    verdict = _generic_fits(source, given, target, wanted, walk)
    walk.depth -= 1
    return verdict


def _generic_fits(
    source: object, given: Applied, target: object, wanted: Applied, walk: _Walk
) -> Verdict:
    (cls, args), (target_cls, wants) = given, wanted
    if wants is None and target_cls in bases_of(cls):
        return _YES
    if cls is _CALLABLE or target_cls is _CALLABLE:
        return _callable_fits(source, cls, target, target_cls, wants)
    if is_typed_dict(target_cls):
        if is_typed_dict(cls):
            return _assuming(source, target, walk, lambda: _keys_fit(given, wanted, walk))
        return _UNKNOWN if dict in bases_of(cls) else _NO
    if is_typed_dict(cls):
        return _typed_dict_fits(given, target, walk)
    if cls is type and target_cls is type and wants is not None:
        return _type_fits(args, wants, walk)
    if cls is type and args is not None:
        cls, args = (type(args[0]) if is_class(args[0]) else type), None
    if cls is not target_cls and (_is_stand_in(cls) or _is_stand_in(target_cls)):
        return _UNKNOWN
    if is_protocol(target_cls) and target_cls not in bases_of(cls):
        return _assuming(source, target, walk, lambda: _members_fit(given, wanted, walk))
    if not is_subclass(cls, target_cls):
        return _YES if _is_promoted(cls, target_cls) else _NO
    if target_cls is collections.abc.Hashable and _may_unhash(cls):
        return _UNKNOWN
    if wants is None:
        return _YES
    seen = seen_as(cls, args, target_cls, len(wants))
    if target_cls is tuple:
        return _tuple_fits(seen, wants, walk)
    if seen is None or len(seen) != len(wants):
        return _YES if all(want is object or want is Any for want in wants) else _UNKNOWN
    upside_down = contravariant_at(target_cls, len(wants))
    return _all(
        _fits(want, has, walk) if reverse else _fits(has, want, walk)
        for has, want, reverse in zip(seen, wants, upside_down, strict=True)
    )


def _is_promoted(cls: type, target: type) -> bool:
    if target is float:
        return issubclass(cls, int)
    return target is complex and issubclass(cls, int | float)


def _may_unhash(cls: type) -> bool:
    # An abstract class inherits object's hash, though what stands behind it may be a list.
    return cls is object or cls.__module__ == "collections.abc" or is_protocol(cls)


def _is_stand_in(cls: type) -> bool:
    """
    Whether values declared as this class are of another one, as for pydantic's ``EmailStr``.

    Such a class only steers validation: it has the hook for that, and no instance could hold
    anything.
    """
    makers = cast("Any", cls)
    return (
        hasattr(cls, "__get_pydantic_core_schema__")
        and makers.__init__ is object.__init__
        and makers.__new__ is object.__new__
        and not issubclass(cls, BaseModel)
    )


def _type_fits(args: Arguments | None, wants: Arguments, walk: _Walk) -> Verdict:
    has, want = (UNKNOWN_TYPE if args is None else args[0]), wants[0]
    if is_class(has) and is_class(want) and _is_promoted(has, want):
        return _NO  # a float may be an int, but the class int isn't the class float
    return _fits(has, want, walk)


def _callable_fits(
    source: object, cls: type, target: object, target_cls: type, wants: Arguments | None
) -> Verdict:
    """Signatures aren't compared: they are equal, withheld, or the source can't be called."""
    if source == target:
        return _YES
    if target_cls is _CALLABLE:
        if not is_subclass(cls, target_cls):
            return _NO
        return _YES if wants is None else _UNKNOWN
    # The source is a Callable: all that is known of its class is that it has a __call__.
    related = is_subclass(cls, target_cls) or issubclass(target_cls, _CALLABLE)
    return _UNKNOWN if related else _NO


def _tuple_fits(seen: Arguments | None, wants: Arguments, walk: _Walk) -> Verdict:
    open_ended = len(wants) == 2 and wants[1] is Ellipsis
    if seen is None:
        seen = (UNKNOWN_TYPE, Ellipsis)
    items = items_of(seen)
    if open_ended:
        return _all(_fits(item, wants[0], walk) for item in items)
    if len(items) < len(seen):
        return _UNKNOWN if isinstance(items[0], Unknown) else _NO
    if len(items) != len(wants):
        return _NO
    return _all(_fits(item, want, walk) for item, want in zip(items, wants, strict=True))


def _keys_fit(source: Applied, target: Applied, walk: _Walk) -> Verdict:
    given = keys_of(source)

    def key_fits(name: str, wanted: object, required: bool) -> Verdict:
        if name not in given:
            return _NO if required else _UNKNOWN  # an undeclared key may stand there
        has, always = given[name]
        return _NO if required and not always else _fits(has, wanted, walk)

    return _all(key_fits(name, *wanted) for name, wanted in keys_of(target).items())


def _typed_dict_fits(source: Applied, target: object, walk: _Walk) -> Verdict:
    """As a dict of str whose undeclared keys may hold anything."""
    held = [UNKNOWN_TYPE, *(has for has, _ in keys_of(source).values())]
    return _all(_fits(applied(dict, str, each), target, walk) for each in held)


def _members_fit(source: Applied, target: Applied, walk: _Walk) -> Verdict:
    """Whether a class that doesn't inherit a protocol has all it asks for."""
    cls, _ = source
    protocol, wants = target
    if wants is None:
        target = protocol, (Any,) * len(variables_of(protocol))

    def member_fits(name: str) -> Verdict:
        asked, has = declared_type(target, name), declared_type(source, name)
        if asked is not None and has is not None:
            return _fits(has, asked, walk)
        if has is not None or hasattr(cls, name):
            # By its name alone. What a method of a generic protocol takes isn't looked into.
            return _YES if wants is None and asked is None else _UNKNOWN
        return _NO if _declares_all(cls, data=asked is not None) else _UNKNOWN

    return _all(member_fits(name) for name in protocol_members(protocol))


def _declares_all(cls: type, *, data: bool) -> bool:
    """Whether an instance has no attribute (of this sort) but those that its class tells of."""
    if issubclass(cls, BaseModel):
        return cls.model_config.get("extra") != "allow"
    return not data and not hasattr(cast("object", cls), "__getattr__")
