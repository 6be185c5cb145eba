"""
The part of this package that needs pydantic-ai, imported when the first run needs it.

That takes a second, so it happens in a worker thread, and the event loop goes on.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio.to_thread

from flowstate.blocks.generator.errors import PydanticAiNotInstalledError
from flowstate.blocks.generator.options import GeneratorSettings
from flowstate.context import Context

if TYPE_CHECKING:
    from types import ModuleType

MODULE = "flowstate.blocks.generator.run"

Generate: TypeAlias = Callable[[GeneratorSettings, Any, Context], Awaitable[Any]]


async def load_generate() -> Generate:
    """
    What runs a generator.

    A cancelled caller doesn't wait for the import, which goes on for the next one.

    Raises:
        PydanticAiNotInstalledError: pydantic-ai can't be imported, or lacks what is used of it.
    """
    module = sys.modules.get(MODULE)
    # Present doesn't mean complete: another thread may be in the middle of importing it, and
    # importing it here would wait for that thread on the event loop.
    if module is None or getattr(module.__spec__, "_initializing", False):
        module = await anyio.to_thread.run_sync(_import, abandon_on_cancel=True)
    generate: Generate = module.generate
    return generate


def _import() -> ModuleType:
    try:
        return importlib.import_module(MODULE)
    except ImportError as error:
        raise PydanticAiNotInstalledError(
            f"pydantic-ai can't be imported ({type(error).__name__}: {error})"
        ) from error
