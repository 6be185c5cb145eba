"""The command as a user types it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from flowstate.cli import main

FLOW = '''
from pydantic import BaseModel
from flowstate import Context, action, define_flow, handler, sequencer, session_state

print("printed by the flow")

class Seen(BaseModel):
    names: tuple[str, ...] = ()

class Ask(BaseModel):
    name: str

@handler(uses=[session_state(Seen)])
async def greet(ask: Ask, ctx: Context) -> str:
    """Knows whom it has met."""
    print("printed by a block")
    ctx.log.info("logged by a block")
    written = await ctx.session[Seen].append("names", ask.name)
    return f"Hello {' and '.join(written.value.names)} ({ctx.user.id})"

@handler
async def breaks(ask: Ask) -> str:
    raise LookupError(f"no {ask.name}")

turn = sequencer("turn", Ask).step(greet)
greeter = define_flow("greeter", actions=[action("greet", turn), action("fail", breaks)])
'''


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    (tmp_path / "greeter.py").write_text(FLOW)
    return tmp_path


@pytest.fixture(name="here")
def _here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder as the working directory of this process, and nothing left behind."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield folder
    sys.modules.pop("flowstate_target_greeter", None)
    structlog.reset_defaults()


def typed(*arguments: str) -> int:
    """The exit code of the command in this process."""
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert isinstance(left.value.code, int)
    return left.value.code


def flowstate(
    folder: Path, *arguments: str, stdin: str = "", **env: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "flowstate", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONUTF8": "1", **env},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def greet(folder: Path, name: str, *more: str, **env: str) -> subprocess.CompletedProcess[str]:
    return flowstate(
        folder, "run", "greeter.py:greeter", "greet", "--session", "s1", "--user", "u",
        "--input", json.dumps({"name": name}), *more, **env,
    )  # fmt: skip


def test_a_session_goes_on_in_the_next_process(folder: Path) -> None:
    """The store is a file, whatever it is called."""
    first = greet(folder, "Ada", "--store", "sessions.sqlite")
    assert first.returncode == 0, first.stderr
    assert "Hello Ada (u)" in first.stdout
    second = greet(folder, "Bob", "--store", "sessions.sqlite")
    assert "Hello Ada and Bob (u)" in second.stdout
    elsewhere = greet(folder, "Cyd", "--store", "other.db")
    assert "Hello Cyd (u)" in elsewhere.stdout


def test_tenants_do_not_share_a_session(folder: Path) -> None:
    """Though the session's id is the same."""
    greet(folder, "Ada", "--store", "s.db", "--tenant", "one")
    assert "Hello Bob (u)" in greet(folder, "Bob", "--store", "s.db", "--tenant", "two").stdout


def test_json_is_all_that_is_written(folder: Path) -> None:
    """What the flow prints and logs goes to the standard error."""
    done = greet(folder, "Ada", "--json")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[-1]["output"] == "Hello Ada (u)"
    assert {line["type"] for line in lines[:-1]} == {"event"}
    for words in ("printed by the flow", "printed by a block", "logged by a block"):
        assert words in done.stderr


def test_a_run_that_is_piped_is_plain_text(folder: Path) -> None:
    """No control code, whatever the environment asks for."""
    done = greet(folder, "Ada", FORCE_COLOR="1")
    assert "\x1b" not in done.stdout + done.stderr
    assert "✓ completed" in done.stdout


def test_a_failure_exits_with_1_and_tells_its_path(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The traceback is for the author: it goes to the standard error."""
    arguments = ("run", "greeter.py:greeter", "fail", "--session", "s", "--input", '{"name": "x"}')
    assert typed(*arguments) == 1
    told = capsys.readouterr()
    assert "✗ failed" in told.out
    assert 'raise LookupError(f"no {ask.name}")' in told.err
    assert "in step breaks" in told.err
    assert typed(*arguments, "--json") == 1
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["status"] == "failed"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("greeter.py:greeter", "greet", "--input", "Ada"), "--input is not JSON"),
        (("greeter.py:greeter", "greet", "--input", "{}"), "name: Field required"),
        (("greeter.py:greeter", "greet"), "--input is missing"),
        (("greeter.py:greeter", "wave", "--input", "{}"), "no action 'wave'"),
        (("greeter.py:turn", "greet", "--input", "{}"), "is a Sequencer, not a flow"),
        (("nowhere.py:greeter", "greet", "--input", "{}"), "no file 'nowhere.py'"),
    ],
)
def test_what_cannot_be_run_exits_with_2(
    here: Path, arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In words, on the standard error; with --json as a line of it."""
    assert typed("run", *arguments, "--session", "s") == 2
    told = capsys.readouterr()
    assert said in told.err
    assert "Traceback" not in told.err
    assert typed("run", *arguments, "--session", "s", "--json") == 2
    line = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert line["type"] == "error"
    assert said in line["message"]


def test_a_store_that_cannot_be_opened_exits_with_1(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error names the store's own reason."""
    code = typed(
        "run", "greeter.py:greeter", "greet", "--session", "s", "--input", '{"name": "x"}',
        "--store", "no/such/folder/s.db",
    )  # fmt: skip
    told = capsys.readouterr()
    assert code == 1
    assert "flowstate: " in told.err
    assert "Traceback" not in told.err


def test_input_can_come_from_stdin(folder: Path) -> None:
    """A long prompt needs no quoting."""
    done = flowstate(
        folder, "run", "greeter.py:greeter", "greet", "--session", "s", "--user", "u",
        "--input", "-", stdin='{"name": "Ada"}',
    )  # fmt: skip
    assert "Hello Ada (u)" in done.stdout


def test_a_reader_that_leaves_early_ends_the_command_quietly(folder: Path) -> None:
    """As with ``| head -1``."""
    process = subprocess.Popen(
        [sys.executable, "-m", "flowstate", "run", "greeter.py:greeter", "greet", "--session",
         "s", "--user", "u", "--input", '{"name": "x"}', "--json"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    assert process.wait(timeout=60) == 141
    assert "BrokenPipe" not in said
    process.stderr.close()


def test_graph_prints_the_plan_and_nothing_else(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All actions, each under its name, or the one that is named."""
    assert typed("graph", "greeter.py:greeter") == 0
    told = capsys.readouterr()
    assert told.out.startswith("%% greeter.greet\nflowchart TD\n")
    assert "\n%% greeter.fail\nflowchart TD\n" in told.out
    assert "printed by the flow" in told.err
    assert typed("graph", "greeter.py:greeter", "greet") == 0
    one = capsys.readouterr().out
    assert one.startswith("flowchart TD\n")
    assert one.endswith("\n")
    assert one.count("flowchart") == 1


def test_graph_draws_one_action(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As SVG it is one action, and the refusal of several names them."""
    assert typed("graph", "greeter.py:greeter", "greet", "--svg") == 0
    assert capsys.readouterr().out.startswith("<svg ")
    assert typed("graph", "greeter.py:greeter", "--svg") == 2
    refused = capsys.readouterr()
    assert "Name one of: greet, fail" in refused.out + refused.err


def test_graph_refuses_what_cannot_be_built(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All faults of the plan, as the author reads them."""
    text = FLOW.replace('sequencer("turn", Ask).step(greet)', 'sequencer("turn", int).step(greet)')
    (here / "greeter.py").write_text(text)
    assert typed("graph", "greeter.py:greeter") == 2
    assert "can't be built, 1 fault" in capsys.readouterr().err


def test_the_example_of_the_help_is_there() -> None:
    """The flow that errors point to can be drawn."""
    root = Path(__file__).resolve().parents[2]
    done = flowstate(root, "graph", "examples/coding_flow.py:coding", "implement")
    assert done.returncode == 0, done.stderr
    assert "recorder" in done.stdout
    assert "claude_code" in done.stdout


@pytest.mark.parametrize("arguments", [("--version",), ("--help",), ("run", "--help"), ("-h",)])
def test_help_and_version_are_told(
    here: Path, arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """And end well."""
    assert typed(*arguments) == 0
    assert "flowstate" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [("nonsense",), ("run",), ("demo", "--policy", "x")])
def test_wrong_usage_exits_with_2(
    here: Path, arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """With typer's own words."""
    assert typed(*arguments) == 2
    assert "Usage" in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_a_missing_extra_is_told_in_one_sentence(missing: str, tmp_path: Path) -> None:
    """With what to type, and no traceback."""
    block = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from flowstate.cli import main\n"
        "main(['--version'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", block], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f"needs {missing}" in done.stderr
    assert "pip install 'flowstate-engine[cli]'" in done.stderr
