"""What ``import flowstate`` loads, seen from outside: the core alone."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

OURS_AND_THE_CORES = {"flowstate", "pydantic"}
"""anyio comes with the Runtime, structlog with the first log line (it looks for rich)."""

NEVER = {
    "a vendor": {"claude_agent_sdk", "mcp", "openai", "anthropic", "cursor_sdk", "acp"},
    "a web framework": {"fastapi", "starlette", "uvicorn", "httpx", "sse_starlette"},
    "SQL": {"sqlalchemy", "sqlite3", "alembic", "psycopg"},
    "what is imported when asked for": {"networkx", "typer", "rich", "redis", "pydantic_ai"},
    "what only tests need": {"hypothesis", "pytest", "trio", "blockbuster"},
}


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    """The top-level modules that ``import flowstate`` adds to a fresh interpreter's own."""
    code = (
        "import json, sys; before = set(sys.modules); import flowstate; "
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    # -I: neither the environment nor the working directory adds anything.
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in json.loads(done.stdout)}


@pytest.mark.parametrize("kind", NEVER)
def test_import_flowstate_loads_nothing_of(kind: str, loaded: set[str]) -> None:
    """The core stands alone: a block's vendor or a store's driver comes in when it is used."""
    assert loaded & NEVER[kind] == set()


def test_import_flowstate_loads_what_it_says(loaded: set[str]) -> None:
    """The list above is read from a process that really imported the library."""
    assert loaded >= OURS_AND_THE_CORES


def test_every_third_party_module_is_a_declared_dependency(loaded: set[str]) -> None:
    """
    What a plain install brings is enough: anything that is neither of the standard library nor of
    a core dependency or its own dependencies would fail on a user's machine.
    """
    brought = {"annotated_types", "pydantic_core", "typing_extensions", "typing_inspection"}
    optional = {"sniffio"}  # anyio tells it which library runs, where it is installed
    built = {name for name in loaded if name.startswith(("__editable__", "_sysconfigdata"))}
    known = OURS_AND_THE_CORES | brought | optional | built | sys.stdlib_module_names
    assert loaded - known == set()


def test_what_runs_flows_is_loaded_when_it_is_asked_for() -> None:
    """Defining flows loads no scheduler and no items; Runtime does, and only the core's own."""
    code = (
        "import flowstate, sys; early = bool({'flowstate.run.scheduler', 'flowstate.item.content'}"
        " & set(sys.modules)); "
        "flowstate.Runtime; print(early, 'flowstate.run.scheduler' in sys.modules, "
        "sorted({'structlog', 'networkx', 'sqlalchemy', 'trio', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False True []"


def test_a_name_that_does_not_exist_is_no_attribute() -> None:
    """A typo is told as of any module, also for what is loaded late."""
    import flowstate

    assert set(flowstate.__all__) <= set(dir(flowstate))
    with pytest.raises(AttributeError, match="no attribute 'Runtme'"):
        _ = flowstate.Runtme  # type: ignore[attr-defined]
