"""
Opening a model: from what the author named to a client that is ready, and closed again.

A name is looked up and its client made in a worker thread: the first time that imports the
vendor's package, and each time it reads certificates.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeGuard

import anyio
import anyio.to_thread
from pydantic_ai.models import Model, infer_model

from flowstate.blocks.generator.errors import ModelUnusableError
from flowstate.blocks.generator.failure import model_error
from flowstate.blocks.generator.options import ModelChoice
from flowstate.context import Context
from flowstate.harness.environment import Redactor

CLOSE_SECONDS = 5.0
"""How long a model's client may take to close."""


@asynccontextmanager
async def opened(choice: ModelChoice, ctx: Context) -> AsyncGenerator[Model, None]:
    """
    The model, with its client open.

    A client that pydantic-ai made is closed when the last run that uses it ends, so that no
    connection stays behind; an author who wants to keep connections from run to run enters the
    model object for as long (``async with model: ...``).

    Raises:
        ModelUnusableError: the name is unknown, or its key or its provider's package is missing.
        Exception: whatever the author's function raised, bare.
    """
    chosen: Any = choice
    if callable(chosen) and not _is_model(chosen):
        chosen = chosen(ctx)
        if inspect.isawaitable(chosen):
            chosen = await chosen
    if isinstance(chosen, str):
        chosen = await _inferred(chosen)
    model: object = chosen
    if not _is_model(model):
        raise ModelUnusableError(
            type(model).__name__, "it is neither a name nor a model of pydantic-ai's"
        )
    await model.__aenter__()
    try:
        yield model
    finally:
        # A cancel must not leave connections behind, nor the count of a model that others use.
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            await model.__aexit__(None, None, None)


def redactor_for(model: Model) -> Callable[[str], str]:
    """Takes this process's secrets, and the key the model's client was made with, out of texts."""
    secrets = dict(os.environ)
    client: object = getattr(model, "client", None)
    key: object = getattr(client, "api_key", None)
    if isinstance(key, str):
        secrets["MODEL_API_KEY"] = key
    return Redactor(secrets)


def running_loop() -> str:
    """The event loop that runs: ``asyncio`` or ``trio``."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return "trio"
    return "asyncio"


def _is_model(value: object) -> TypeGuard[Model[Any]]:
    return isinstance(value, Model)


async def _inferred(name: str) -> Model:
    try:
        return await anyio.to_thread.run_sync(infer_model, name, abandon_on_cancel=True)
    except Exception as error:
        failure = model_error(error, name, Redactor(os.environ), running_loop())
        if not isinstance(failure, ModelUnusableError):
            failure = ModelUnusableError(name, f"{type(error).__name__}: {error}")
        raise failure from error
