"""
``FILE:FLOW``: the flow of this name in this Python file.

The file is run by its path, as ``python FILE`` would run it: what stands beside it can be
imported, and its own name can't be confused with an installed module's. Whatever is wrong with a
target is a ``BadTarget`` that says so in the user's words.
"""

from __future__ import annotations

import re
import sys
import traceback
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any, final

from flowstate.define.flow import Action, Flow
from flowstate.errors import DefinitionError, PlanError

EXAMPLE = "examples/coding_flow.py:coding"


@final
class BadTarget(Exception):
    """
    What was named can't be run or drawn.

    Attributes:
        details: more for people, for example the traceback of the user's file; may be empty.
    """

    def __init__(self, problem: str, way_out: str, details: str = "") -> None:
        super().__init__(f"{problem}. {way_out}")
        self.details = details


def load_flow(target: str) -> Flow:
    """
    The flow that ``FILE:FLOW`` names; runs the file.

    Raises:
        BadTarget: there is no such file, it fails, or it has no flow of that name.
    """
    file, colon, name = target.rpartition(":")
    if not colon or not file or not name or not name.isidentifier():
        raise BadTarget(
            f"{target!r} is not FILE:FLOW",
            "Name a Python file and a variable in it that holds a flow, for example " + EXAMPLE,
        )
    path = Path(file)
    if not path.exists():
        raise BadTarget(
            f"there is no file {file!r} (looked in {Path.cwd()})", "Check the path before the ':'"
        )
    if not path.is_file():
        raise BadTarget(f"{file!r} is not a file", "Name the Python file that defines the flow")
    module = _run_file(path.resolve(), file)
    missing = object()
    value = getattr(module, name, missing)
    if isinstance(value, Flow):
        return value
    if value is missing:
        raise BadTarget(f"{file} has no {name!r}", _flows_in(module))
    raise BadTarget(
        f"{name!r} in {file} is a {type(value).__name__}, not a flow", _flows_in(module)
    )


def find_action(flow: Flow, name: str) -> Action[Any, Any]:
    """
    The flow's action of this name.

    Raises:
        BadTarget: there is none; tells those there are.
    """
    try:
        return flow.action(name)
    except DefinitionError as error:
        raise BadTarget(*_split(error)) from None


def _split(error: DefinitionError) -> tuple[str, str]:
    problem, _, way_out = str(error).partition(". ")
    return problem, way_out


def _run_file(path: Path, shown: str) -> ModuleType:
    # Never the bare stem: a file named json.py must not become the module `json`.
    name = "flowstate_target_" + re.sub(r"\W", "_", path.stem)
    spec = spec_from_loader(name, SourceFileLoader(name, str(path)), origin=str(path))
    assert spec is not None
    spec.has_location = True
    module = module_from_spec(spec)
    beside = str(path.parent)
    if beside not in sys.path:
        sys.path.insert(0, beside)
    # Registered before it runs: annotations and dataclasses look their module up by its name.
    sys.modules[name] = module
    try:
        assert spec.loader is not None
        spec.loader.exec_module(module)
    except PlanError as error:
        del sys.modules[name]
        raise BadTarget(f"{shown} defines something that can't be built", str(error)) from error
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise BadTarget(
            f"{shown} could not be loaded: {_said(error)}",
            _help_with(error),
            _trace_below(error, path),
        ) from error
    return module


def _said(error: BaseException) -> str:
    text = str(error)
    name = type(error).__name__
    return f"{name}: {text}".rstrip(".") if text else name


def _help_with(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError):
        return "Install what it imports, or run it with the Python that has it"
    if isinstance(error, ImportError) and "relative import" in str(error):
        return "A file that is run by its path has no package: use absolute imports in it"
    if isinstance(error, SystemExit):
        return "Put what only a script should do under: if __name__ == '__main__'"
    return "Python's own report is above" if not isinstance(error, SyntaxError) else "Correct it"


def _trace_below(error: BaseException, path: Path) -> str:
    """The traceback from the user's file on, without what led there."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != str(path):
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace)).rstrip("\n")


def _flows_in(module: ModuleType) -> str:
    """The flows that the file does have, as the way out."""
    flows = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, Flow) and name.isidentifier()
    }
    if not flows:
        return "There is no flow in it: make one with define_flow(...) and give it a name"
    listed = ", ".join(
        f"{name} (actions: {', '.join(action.name for action in flow.actions)})"
        for name, flow in flows.items()
    )
    return f"It has: {listed}"
