"""
The command ``flowstate``: a demo, a runner for any flow in a file, and its plan as a drawing.

Nothing here is needed to embed flowstate in a program. This file imports neither typer nor rich,
so that a missing one is told in one sentence.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

_INSTALL = "pip install 'flowstate-engine[cli]'"
_NEEDED = frozenset({"typer", "rich"})


def main(arguments: Sequence[str] | None = None) -> None:
    """
    Run the command line and leave the process by SystemExit.

    Args:
        arguments: without the program's name; None takes those of the process.

    Raises:
        SystemExit: always; 0 done, 1 failed, 2 a request that can't be run, 128 and the signal's
            number when a signal stopped it (130 for Ctrl-C).
    """
    try:
        from flowstate.cli.commands import run_command_line
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _NEEDED:
            raise
        sys.stderr.write(f"The command needs {missing}, which isn't installed. Run: {_INSTALL}\n")
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    raise SystemExit(run_command_line(arguments))
