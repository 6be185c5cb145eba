"""
What is logged when an author's hook fails and the run goes on.

One line that says what and where. No formatted traceback: making one reads source files, which
would hold up the event loop, and some formatters print local variables, secrets among them.
"""

from __future__ import annotations

from pathlib import PurePath

from flowstate.context import Context


def log_hook_failure(ctx: Context, event: str, error: BaseException) -> None:
    """Log a warning with the error's type, text and place."""
    ctx.log.warning(event, error=f"{type(error).__name__}: {error}", at=_place(error))


def _place(error: BaseException) -> str | None:
    """Where it was raised, as ``file.py:12 in function``."""
    trace = error.__traceback__
    if trace is None:
        return None
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    return f"{PurePath(code.co_filename).name}:{trace.tb_lineno} in {code.co_name}"
