"""
The judge of edges: whether what one step gives fits what the next takes, fault by fault.

A misfit is a fault that names both sides and the way out. What can't be proven is an edge that is
checked when it runs; under ``strict`` it is a fault too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final, final, get_type_hints

from pydantic import BaseModel

from flowstate.define.annotations import annotations_of
from flowstate.define.block import Block
from flowstate.define.step import ParallelStep
from flowstate.define.union import union_type
from flowstate.define.unknown import UNKNOWN_TYPE
from flowstate.errors import Fault
from flowstate.plan.assignable import Verdict, assignable
from flowstate.plan.element import element_type
from flowstate.plan.site import Edge, Site
from flowstate.plan.typename import type_name, type_names

RESHAPE: Final = (
    "Put .map(...) before it, or a connector in the step: .step(lambda value: ..., block)."
)
"""The way out where one step simply gives something else than the next takes."""


@final
class Judge:
    """Judges the edges of one plan, and keeps the faults in the order of the steps."""

    def __init__(self, *, strict: bool) -> None:
        self.strict = strict
        self.faults: list[Fault] = []

    def entry(self, entries: object, path: str, source: str) -> object:
        """The type of one entry of what is gone through."""
        entry = element_type(entries)
        if entry is not None:
            return entry
        self.faults.append(
            Fault(
                where=path,
                problem=f"{source} gives {type_name(entries)}, which can't be gone through",
                way_out="Give it a list, or a connector: .for_each(lambda value: value.entries, "
                "block).",
            )
        )
        return UNKNOWN_TYPE

    def connected(
        self,
        connector: Callable[[Any], Any] | None,
        running: object,
        block: Block[Any, Any],
        path: str,
        source: str,
    ) -> Edge | None:
        if connector is None:
            return None
        takes, gives = annotations_of(connector)
        before = self.edge(running, takes, path, source, "the connector")
        after = self.edge(gives, block.input_type, path, "the connector", f"{block.name!r}")
        return Edge(connector=connector, enters=before.check, check=after.check)

    def condition(
        self, condition: Callable[[Any], bool] | None, running: object, path: str, source: str
    ) -> None:
        """Judge whether a condition takes the running value."""
        self.function(condition, running, path, source, "the condition")

    def function(
        self,
        fn: Callable[[Any], Any] | None,
        running: object,
        path: str,
        source: str,
        label: str,
    ) -> None:
        """Judge whether a function beside the chain takes the running value."""
        if fn is not None:
            takes, _ = annotations_of(fn)
            if takes is not UNKNOWN_TYPE:
                self.edge(
                    running,
                    takes,
                    path,
                    source,
                    label,
                    way_out=f"Let {label} take what is there, or put .map(...) before it.",
                )

    def edge(
        self,
        given: object,
        wanted: object,
        path: str,
        source: str,
        target: str,
        *,
        way_out: str = RESHAPE,
    ) -> Edge:
        """Judge one edge; a misfit becomes a fault, an unknown one is checked when it runs."""
        if wanted is UNKNOWN_TYPE:
            # The function takes whatever comes; there is nothing to check it against.
            if self.strict:
                self._unproven(given, wanted, path, source, target)
            return Edge()
        match assignable(given, wanted):
            case Verdict.YES:
                return Edge()
            case Verdict.UNKNOWN:
                if self.strict:
                    self._unproven(given, wanted, path, source, target)
                return Edge(check=wanted)
            case Verdict.NO:
                gives, takes = type_names(given, wanted)
                self.faults.append(
                    Fault(
                        where=path,
                        problem=f"{source} gives {gives}, but {target} takes {takes}",
                        way_out=way_out,
                    )
                )
                return Edge()

    def _unproven(self, given: object, wanted: object, path: str, source: str, target: str) -> None:
        gives, takes = type_names(given, wanted)
        self.faults.append(
            Fault(
                where=path,
                problem=f"strict: {source} gives {gives}, {target} takes {takes}; it can't be "
                "proven to fit",
                way_out="Annotate the function, or build without strict=True to have the edge "
                "checked when it runs.",
            )
        )

    def joined(self, step: ParallelStep, branches: tuple[Site, ...], path: str) -> object:
        """The type that the results of a parallel step are put together to."""
        outputs = [branch.output_type for branch in branches]
        if step.into is None:
            if any(output is UNKNOWN_TYPE for output in outputs):
                return UNKNOWN_TYPE
            if step.as_tuple:
                return tuple[tuple(outputs)]  # type: ignore[misc]
            return dict[str, union_type(outputs)]  # type: ignore[misc]
        into = step.into
        label = getattr(into, "__name__", repr(into))
        wanted = _parameters(into)
        if wanted is not None:
            types, required, open_ended = wanted
            for branch in branches:
                if branch.name in types:
                    self.edge(
                        branch.output_type,
                        types[branch.name],
                        branch.path,
                        repr(branch.name),
                        f"{label}({branch.name}=...)",
                        way_out="Let the branch give that, or put .map(...) at its end: "
                        f"{branch.name}=sequencer(...).step(block).map(...).",
                    )
                elif not open_ended:
                    self.faults.append(
                        Fault(
                            where=branch.path,
                            problem=f"{label} takes no {branch.name!r}",
                            way_out=f"Name the branch as one of: {', '.join(types) or 'nothing'}.",
                        )
                    )
            missing = [name for name in required if name not in {b.name for b in branches}]
            for name in missing:
                self.faults.append(
                    Fault(
                        where=path,
                        problem=f"{label} needs {name!r}, and no branch gives it",
                        way_out=f"Add a branch: .parallel({label}, {name}=block, ...).",
                    )
                )
        return into if inspect.isclass(into) else annotations_of(into)[1]


def _parameters(
    into: Callable[..., Any],
) -> tuple[dict[str, object], list[str], bool] | None:
    """A constructor's keyword types, the required ones, and whether it takes others too."""
    if inspect.isclass(into) and issubclass(into, BaseModel):
        fields = into.model_fields
        types: dict[str, object] = {name: field.annotation for name, field in fields.items()}
        required = [name for name, field in fields.items() if field.is_required()]
        return types, required, into.model_config.get("extra") == "allow"
    try:
        parameters = inspect.signature(into).parameters
        target = into.__init__ if inspect.isclass(into) else into
        hints = get_type_hints(target, include_extras=True)
    except (NameError, TypeError, ValueError):
        return None
    open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    by_name = {
        name: hints.get(name, UNKNOWN_TYPE)
        for name, p in parameters.items()
        if p.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    }
    needed = [name for name in by_name if parameters[name].default is inspect.Parameter.empty]
    return by_name, needed, open_ended
