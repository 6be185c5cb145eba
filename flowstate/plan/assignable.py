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
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import InitVar, dataclass, field
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    LiteralString,
    Never,
    NewType,
    NoReturn,
    Protocol,
    TypeAlias,
    TypeGuard,
    TypeVar,
    TypeVarTuple,
    Union,
    Unpack,
    cast,
    final,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import BaseModel

from flowstate.define.union import union_type
from flowstate.define.unknown import UNKNOWN_TYPE, Unknown
from flowstate.plan.typename import constraints_of

__all__ = ["UNKNOWN_TYPE", "Unknown", "Verdict", "assignable", "union_of"]


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
    if source is target and _is_class(source):
        return _YES
    # Hashing, comparing and taking types apart runs foreign code (metaclasses, metadata, lazy
    # aliases). Whatever is wrong with it, the value can still be checked when it is there.
    try:
        return _remembered(source, target)
    except Exception:
        return _judged(source, target)


def union_of(*types: object) -> object:
    """
    One annotation for a value of any of these: flat, each once, without Never; of none, Never.

    ``bool`` and ``int`` stay apart, as do ``Literal[1]`` and ``Literal[True]``. With an unknown
    member the whole is unknown.

    >>> union_of(int, bool | Never, int)
    int | bool
    """
    return union_type(types)


# --- the question -------------------------------------------------------------------------------


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
    if _goes_anyway(source, target) or (source is target and _is_class(source)):
        return _YES
    source, target = _plain(source), _plain(target)
    if _goes_anyway(source, target):
        return _YES
    if _is_class(source) and _is_class(target):
        return _class_fits(source, target, walk)
    wanted = None if _is_class(target) else _members(target)
    if wanted is not None and any(_goes_anyway(source, member) for member in wanted):
        return _YES
    if _is_alias(source) or _is_alias(target):
        return _assuming(
            source, target, walk, lambda: _fits(_unfolded(source), _unfolded(target), walk)
        )
    members = _members(source)
    if members is not None:
        return _all(_fits(member, target, walk) for member in members)
    if wanted is not None:
        verdict = _any(_fits(source, member, walk) for member in wanted)
        wider = _wider(source)
        if verdict is _YES or wider is None:
            return verdict
        return _any((verdict, _fits(wider, target, walk)))
    if isinstance(target, NewType):
        if any(each is target for each in _layers(source)):
            return _YES
        return _at_most_unknown(_fits(source, target.__supertype__, walk))
    if get_origin(target) is Annotated:
        verdict = _fits(source, get_args(target)[0], walk)
        held = [mark for layer in _layers(source) for mark in constraints_of(layer)]
        met = all(any(_same(mark, each) for each in held) for mark in constraints_of(target))
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


# --- taking annotations apart -------------------------------------------------------------------

_QUALIFIERS = frozenset({"ClassVar", "Final", "NotRequired", "ReadOnly", "Required"})


def _is_class(annotation: object) -> TypeGuard[type]:
    # Not isinstance: that asks the object itself for its __class__, and proxies lie or raise.
    return issubclass(type(annotation), type)


def _plain(annotation: object) -> object:
    """The annotation without spellings that don't change which values fit."""
    while not _is_class(annotation):
        if annotation is None:
            return NoneType
        if annotation is LiteralString:
            return str
        origin = get_origin(annotation)
        if isinstance(annotation, TypeVar):
            annotation = _stand_in(annotation)
        elif isinstance(annotation, InitVar):
            annotation = cast("object", annotation.type)
        elif origin is not None and getattr(origin, "_name", None) in _QUALIFIERS:
            annotation = get_args(annotation)[0]
        else:
            return annotation
    return annotation


def _stand_in(variable: TypeVar) -> object:
    """The widest type that a type variable can be, as far as it says."""
    if variable.__constraints__:
        return union_of(*variable.__constraints__)
    return UNKNOWN_TYPE if variable.__bound__ is None else variable.__bound__


def _is_alias(annotation: object) -> bool:
    """``type X = ...``, parametrised or not; by its shape, since the class is new in 3.12."""
    origin = get_origin(annotation)
    declared = annotation if origin is None else origin
    return not _is_class(declared) and hasattr(declared, "__value__")


def _unfolded(annotation: object) -> object:
    if not _is_alias(annotation):
        return annotation
    alias = cast("Any", get_origin(annotation) or annotation)
    return _substituted(
        alias.__value__, _bound_to(tuple(alias.__type_params__), get_args(annotation) or None)
    )


def _members(annotation: object) -> list[object] | None:
    """What a union, or a literal of several values, is made of; None for anything else."""
    origin = get_origin(annotation)
    if origin is Union or origin is UnionType:
        return list(get_args(annotation))
    if origin is Literal and len(get_args(annotation)) > 1:
        return [_literal(value) for value in get_args(annotation)]
    if origin is type and get_args(annotation):
        classes = _members(_plain(get_args(annotation)[0]))
        return None if classes is None else [_of(type, each) for each in classes]
    return None


def _literal(*values: object) -> object:
    return cast("Any", Literal)[values]


def _of(cls: type, *args: object) -> object:
    """The class with these arguments, which no type checker can follow."""
    return cast("Any", cls)[args]


def _wider(annotation: object) -> object | None:
    """The same values as a type that can be taken apart further, if there is one."""
    if isinstance(annotation, NewType):
        return cast("object", annotation.__supertype__)
    if get_origin(annotation) is Annotated:
        return cast("object", get_args(annotation)[0])
    if annotation is bool:
        return _literal(True, False)
    if annotation is NoneType:
        return _literal(None)
    # The members of a flag can be combined into values that have no name.
    if (
        _is_class(annotation)
        and issubclass(annotation, enum.Enum)
        and not issubclass(annotation, enum.Flag)
        and len(annotation)
    ):
        return _literal(*annotation)
    return None


def _layers(annotation: object) -> Iterable[object]:
    """The annotation, and what it is wrapped around by ``Annotated``, ``NewType`` and aliases."""
    for _ in range(100):
        yield annotation
        annotation = _plain(annotation)
        if isinstance(annotation, NewType):
            annotation = annotation.__supertype__
        elif get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
        elif _is_alias(annotation):
            annotation = _unfolded(annotation)
        else:
            return


def _same(first: object, second: object) -> bool:
    """Equal, or of one class and with equal contents: some metadata of pydantic has no ``==``."""
    if first is second or first == second:
        return True
    contents = getattr(first, "__dict__", None)
    return bool(contents) and type(first) is type(second) and contents == vars(second)


_Arguments: TypeAlias = tuple[object, ...]
_Generic: TypeAlias = tuple[type, _Arguments | None]
"""A class and its arguments; None where they are withheld."""


def _generic(annotation: object) -> _Generic | None:
    """The class and the arguments behind an annotation, or None if it isn't understood."""
    if _is_class(annotation):
        model = _model_generic(annotation)
        if model is not None and model["origin"] is not None:
            return model["origin"], model["args"]
        return annotation, None
    origin = get_origin(annotation)
    if not _is_class(origin):
        return None
    args = get_args(annotation)
    if any(
        getattr(arg, "__unpacked__", False)
        or get_origin(arg) is Unpack
        or isinstance(arg, TypeVarTuple)
        for arg in args
    ):
        return None
    # typing.Tuple has no arguments at all, the empty tuple's type has an empty list of them.
    return origin, args if args or hasattr(annotation, "__args__") else None


def _model_generic(cls: type) -> dict[str, Any] | None:
    return cls.__dict__.get("__pydantic_generic_metadata__")


def _variables(cls: type) -> _Arguments:
    """The type variables that a user's generic class is declared over."""
    model = _model_generic(cls)
    if model is not None:
        return tuple(model["parameters"])
    declared = cls.__dict__.get("__parameters__")
    if declared is None:
        # A subclass of dict[str, T] is generic, though nothing but its bases says so.
        bases = cls.__dict__.get("__orig_bases__", ())
        declared = dict.fromkeys(each for base in bases for each in _open_in(base))
    return tuple(declared)


def _bound_to(variables: _Arguments, args: _Arguments | None) -> Mapping[object, object]:
    if args is None or len(args) != len(variables):
        return dict.fromkeys(variables, UNKNOWN_TYPE)
    return dict(zip(variables, args, strict=True))


def _open_in(annotation: object) -> _Arguments:
    """The type variables that an annotation leaves open."""
    if _is_class(annotation):
        return _variables(annotation) if _model_generic(annotation) else ()
    return tuple(getattr(annotation, "__parameters__", ()))


def _substituted(annotation: object, values: Mapping[object, object]) -> object:
    """The annotation with type variables replaced."""
    if isinstance(annotation, TypeVar):
        return values.get(annotation, annotation)
    variables = _open_in(annotation)
    if not any(variable in values for variable in variables):
        return annotation
    return cast("Any", annotation)[tuple(values.get(each, each) for each in variables)]


# --- classes ------------------------------------------------------------------------------------

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
    given, wanted = _generic(source), _generic(target)
    if given is None:
        return _UNKNOWN
    if target is Never or target is NoReturn:
        return _NO
    if get_origin(target) is Literal:
        wider = _wider(source)
        return _NO if wider is None else _fits(wider, target, walk)
    if wanted is None:
        return _UNKNOWN
    walk.depth += 1
    verdict = _generic_fits(source, given, target, wanted, walk)
    walk.depth -= 1
    return verdict


def _generic_fits(
    source: object, given: _Generic, target: object, wanted: _Generic, walk: _Walk
) -> Verdict:
    (cls, args), (target_cls, wants) = given, wanted
    if wants is None and target_cls in _bases(cls):
        return _YES
    if cls is _CALLABLE or target_cls is _CALLABLE:
        return _callable_fits(source, cls, target, target_cls, wants)
    if _is_typed_dict(target_cls):
        if _is_typed_dict(cls):
            return _assuming(source, target, walk, lambda: _keys_fit(given, wanted, walk))
        return _UNKNOWN if dict in _bases(cls) else _NO
    if _is_typed_dict(cls):
        return _typed_dict_fits(given, target, walk)
    if cls is type and target_cls is type and wants is not None:
        return _type_fits(args, wants, walk)
    if cls is type and args is not None:
        cls, args = (type(args[0]) if _is_class(args[0]) else type), None
    if cls is not target_cls and (_is_stand_in(cls) or _is_stand_in(target_cls)):
        return _UNKNOWN
    if _is_protocol(target_cls) and target_cls not in _bases(cls):
        return _assuming(source, target, walk, lambda: _members_fit(given, wanted, walk))
    if not _is_subclass(cls, target_cls):
        return _YES if _is_promoted(cls, target_cls) else _NO
    if target_cls is collections.abc.Hashable and _may_unhash(cls):
        return _UNKNOWN
    if wants is None:
        return _YES
    seen = _seen_as(cls, args, target_cls, len(wants))
    if target_cls is tuple:
        return _tuple_fits(seen, wants, walk)
    if seen is None or len(seen) != len(wants):
        return _YES if all(want is object or want is Any for want in wants) else _UNKNOWN
    return _all(
        _fits(want, has, walk) if reverse else _fits(has, want, walk)
        for has, want, reverse in zip(seen, wants, _reversed(target_cls, len(wants)), strict=True)
    )


def _bases(cls: type) -> tuple[type, ...]:
    return cast("tuple[type, ...]", cast("Any", cls).__mro__)


def _is_subclass(cls: type, target: type) -> bool:
    return target in _bases(cls) or (not _is_protocol(target) and issubclass(cls, target))


def _is_promoted(cls: type, target: type) -> bool:
    if target is float:
        return issubclass(cls, int)
    return target is complex and issubclass(cls, int | float)


def _may_unhash(cls: type) -> bool:
    # An abstract class inherits object's hash, though what stands behind it may be a list.
    return cls is object or cls.__module__ == "collections.abc" or _is_protocol(cls)


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


def _reversed(cls: type, count: int) -> list[bool]:
    """For each argument of a class, whether it is declared contravariant."""
    if cls in _SENT_INTO:
        return [position == 1 for position in range(count)]
    variables = _variables(cls)
    if len(variables) != count:
        return [False] * count
    return [bool(getattr(variable, "__contravariant__", False)) for variable in variables]


_SENT_INTO = frozenset(
    {collections.abc.Generator, collections.abc.AsyncGenerator, collections.abc.Coroutine}
)


def _type_fits(args: _Arguments | None, wants: _Arguments, walk: _Walk) -> Verdict:
    has, want = (UNKNOWN_TYPE if args is None else args[0]), wants[0]
    if _is_class(has) and _is_class(want) and _is_promoted(has, want):
        return _NO  # a float may be an int, but the class int isn't the class float
    return _fits(has, want, walk)


def _callable_fits(
    source: object, cls: type, target: object, target_cls: type, wants: _Arguments | None
) -> Verdict:
    """Signatures aren't compared: they are equal, withheld, or the source can't be called."""
    if source == target:
        return _YES
    if target_cls is _CALLABLE:
        if not _is_subclass(cls, target_cls):
            return _NO
        return _YES if wants is None else _UNKNOWN
    # The source is a Callable: all that is known of its class is that it has a __call__.
    related = _is_subclass(cls, target_cls) or issubclass(target_cls, _CALLABLE)
    return _UNKNOWN if related else _NO


def _tuple_fits(seen: _Arguments | None, wants: _Arguments, walk: _Walk) -> Verdict:
    open_ended = len(wants) == 2 and wants[1] is Ellipsis
    if seen is None:
        seen = (UNKNOWN_TYPE, Ellipsis)
    items = _without_dots(seen)
    if open_ended:
        return _all(_fits(item, wants[0], walk) for item in items)
    if len(items) < len(seen):
        return _UNKNOWN if isinstance(items[0], Unknown) else _NO
    if len(items) != len(wants):
        return _NO
    return _all(_fits(item, want, walk) for item, want in zip(items, wants, strict=True))


# --- a class seen as one of its bases -----------------------------------------------------------

_ENTRIES: Final[Mapping[type, type]] = {
    str: str,
    bytes: int,
    bytearray: int,
    memoryview: int,
    range: int,
}
"""What a sequence without arguments is a sequence of."""

_STATED_BASES: Final[Mapping[type, tuple[type, Callable[[_Arguments], _Arguments]]]] = {
    enumerate: (collections.abc.Iterator, lambda args: (_of(tuple, int, args[0]),)),
    collections.Counter: (dict, lambda args: (args[0], int)),
    collections.abc.ItemsView: (collections.abc.Set, lambda args: (_of(tuple, *args),)),
    collections.abc.Coroutine: (collections.abc.Awaitable, lambda args: (args[2],)),
}
"""Generic bases that the standard library means but doesn't declare, where the arguments differ."""

_LIKE_ARGUMENTS = frozenset({"builtins", "collections", "collections.abc"})
"""Where each base takes the first of its subclass's arguments: a Mapping[K, V] is Iterable[K]."""


def _seen_as(cls: type, args: _Arguments | None, target: type, count: int) -> _Arguments | None:
    """The arguments, ``count`` of them, that a class has as its base ``target``; None: unknown."""
    variables = _variables(cls)
    if args is None and variables:
        args = variables
    if cls is target:
        return args
    if cls in _ENTRIES:
        return (_ENTRIES[cls],)
    if cls is tuple:
        return None if args is None else (union_of(*_without_dots(args)),)
    values = _bound_to(variables, args)
    if hasattr(cls, "_fields") and tuple in _bases(cls)[1:2] and _is_subclass(tuple, target):
        fields = [_hints(cls).get(name, UNKNOWN_TYPE) for name in cast("Any", cls)._fields]
        items = tuple(_substituted(each, values) for each in fields)
        return _seen_as(tuple, items, target, count)
    if args is not None and cls in _STATED_BASES:
        base_cls, arguments = _STATED_BASES[cls]
        return _seen_as(base_cls, arguments(args), target, count)
    if args is not None and not variables and cls.__module__ in _LIKE_ARGUMENTS:
        return args[:count]
    for base in cls.__dict__.get("__orig_bases__", cls.__bases__):
        found = _generic(base)
        if found is None or not _is_subclass(found[0], target):
            continue
        base_cls, base_args = found
        if base_args is None:
            base_args = _variables(base_cls) or None
        if base_args is not None:
            base_args = tuple(_substituted(arg, values) for arg in base_args)
        seen = _seen_as(base_cls, base_args, target, count)
        if seen is not None:
            return seen
    return None


def _without_dots(items: _Arguments) -> list[object]:
    return [item for item in items if item is not Ellipsis]


@functools.lru_cache(maxsize=1024)
def _hints(cls: type) -> Mapping[str, object]:
    """The annotations of a class and its bases; what can't be resolved stays text: unknown."""
    try:
        return get_type_hints(cls, include_extras=True)
    except Exception:  # annotations are code, and may raise anything
        found: dict[str, object] = {}
        for base in reversed(_bases(cls)):
            found.update(inspect.get_annotations(base))
        return found


# --- structural types ---------------------------------------------------------------------------


def _is_typed_dict(cls: type) -> bool:
    # By its shape: typing_extensions has a class of its own, which pydantic asks for before 3.12.
    return dict in _bases(cls) and hasattr(cls, "__required_keys__")


def _keys(typed: _Generic) -> dict[str, tuple[object, bool]]:
    """Type and requiredness of every declared key."""
    cls, args = typed
    # A TypedDict forgets which base a key came from, and so what its variables stand for.
    bases = cls.__dict__.get("__orig_bases__", ())
    inherits = any(get_origin(base) not in {None, Generic} for base in bases)
    values = _bound_to(_variables(cls), None if inherits else args)
    keys: dict[str, tuple[object, bool]] = {}
    for name, hint in _hints(cls).items():
        required = name in cast("Any", cls).__required_keys__
        # Where annotations are text, the class itself doesn't see NotRequired in them.
        while (qualifier := getattr(get_origin(hint), "_name", None)) in _QUALIFIERS:
            if qualifier in {"Required", "NotRequired"}:
                required = qualifier == "Required"
            hint = get_args(hint)[0]
        keys[name] = _substituted(hint, values), required
    return keys


def _keys_fit(source: _Generic, target: _Generic, walk: _Walk) -> Verdict:
    given = _keys(source)

    def key_fits(name: str, wanted: object, required: bool) -> Verdict:
        if name not in given:
            return _NO if required else _UNKNOWN  # an undeclared key may stand there
        has, always = given[name]
        return _NO if required and not always else _fits(has, wanted, walk)

    return _all(key_fits(name, *wanted) for name, wanted in _keys(target).items())


def _typed_dict_fits(source: _Generic, target: object, walk: _Walk) -> Verdict:
    """As a dict of str whose undeclared keys may hold anything."""
    held = [UNKNOWN_TYPE, *(has for has, _ in _keys(source).values())]
    return _all(_fits(_of(dict, str, each), target, walk) for each in held)


def _is_protocol(cls: type) -> bool:
    return bool(getattr(cls, "_is_protocol", False)) and cls is not Protocol


_S = TypeVar("_S")


class _Sample(Protocol[_S]):
    """Shows which names the machinery itself puts on a protocol."""

    sample: _S


_MACHINERY = frozenset(vars(_Sample)) | {
    "__callable_proto_members_only__",
    "__class_getitem__",
    "__match_args__",
    "__new__",
    "__non_callable_proto_members__",
    "__slots__",
    "__type_params__",
    "_is_runtime_protocol",
}


def _protocol_members(cls: type) -> set[str]:
    """The names that a protocol asks for, those of its bases included."""
    names: set[str] = set()
    for base in _bases(cls):
        if _is_protocol(base):
            names |= {*vars(base), *inspect.get_annotations(base)} - _MACHINERY
    return names


def _members_fit(source: _Generic, target: _Generic, walk: _Walk) -> Verdict:
    """Whether a class that doesn't inherit a protocol has all it asks for."""
    cls, _ = source
    protocol, wants = target
    if wants is None:
        target = protocol, (Any,) * len(_variables(protocol))

    def member_fits(name: str) -> Verdict:
        asked, has = _declared(target, name), _declared(source, name)
        if asked is not None and has is not None:
            return _fits(has, asked, walk)
        if has is not None or hasattr(cls, name):
            # By its name alone. What a method of a generic protocol takes isn't looked into.
            return _YES if wants is None and asked is None else _UNKNOWN
        return _NO if _declares_all(cls, data=asked is not None) else _UNKNOWN

    return _all(member_fits(name) for name in _protocol_members(protocol))


def _declares_all(cls: type, *, data: bool) -> bool:
    """Whether an instance has no attribute (of this sort) but those that its class tells of."""
    if issubclass(cls, BaseModel):
        return cls.model_config.get("extra") != "allow"
    return not data and not hasattr(cast("object", cls), "__getattr__")


def _declared(owner: _Generic, name: str) -> object | None:
    """The type that a class or one of its bases declares for a data member, if any does."""
    cls, args = owner
    for base in _bases(cls):
        if name in inspect.get_annotations(base):
            seen = _seen_as(cls, args, base, len(_variables(base)))
            return _substituted(_hints(base).get(name), _bound_to(_variables(base), seen))
    return None
