"""Which of our errors a vendor's becomes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import anyio
import httpx2
import pytest
from pydantic_ai import exceptions as vendor
from pydantic_ai.models.function import FunctionModel

from flowstate import run_block
from flowstate.blocks.generator import (
    ModelAnswerError,
    ModelError,
    ModelLoopError,
    ModelRequestError,
    ModelUnusableError,
    TransientModelError,
    generator,
)
from flowstate.blocks.generator.failure import model_error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (vendor.ModelHTTPError(400, "m"), ModelRequestError),
        (vendor.ModelHTTPError(401, "m"), ModelRequestError),
        (vendor.ModelHTTPError(408, "m"), TransientModelError),
        (vendor.ModelHTTPError(429, "m"), TransientModelError),
        (vendor.ModelHTTPError(503, "m"), TransientModelError),
        (vendor.ModelConnectionError("m", "lost"), TransientModelError),
        (httpx2.ReadTimeout("slow"), TransientModelError),
        (httpx2.RemoteProtocolError("cut"), TransientModelError),
        (vendor.UserError("no key"), ModelUnusableError),
        (ImportError("no module"), ModelUnusableError),
        (vendor.UnexpectedModelBehavior("nonsense"), ModelAnswerError),
        (RuntimeError("no running event loop"), ModelLoopError),
        (KeyError("what"), ModelRequestError),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_each_failure_has_its_class(error: Exception, kind: type[ModelError]) -> None:
    """By what a caller can do about it: come back later, set it up, ask otherwise."""
    made = model_error(error, "m", str, "trio")
    assert type(made) is kind
    assert "'m'" in str(made)


def test_texts_are_redacted_and_cut() -> None:
    """A vendor's text goes in without secrets, and not at any length."""
    error = vendor.ModelHTTPError(400, "m", body="key " + "x" * 9_000)
    made = model_error(error, "m", lambda text: text.replace("key", "[redacted]"), "asyncio")
    assert "key" not in str(made)
    assert len(str(made)) < 2_200


async def _asks_asyncio(messages: object, info: object) -> AsyncIterator[str]:
    asyncio.get_running_loop()
    yield "hello"


def test_a_model_that_needs_asyncio_says_so_under_trio() -> None:
    """The error names the model and the loop; under asyncio it answers."""
    block = generator("ask", model=FunctionModel(stream_function=_asks_asyncio))
    assert anyio.run(run_block, block, "go") == "hello"
    with pytest.raises(ModelLoopError, match="this event loop is trio") as caught:
        anyio.run(run_block, block, "go", backend="trio")
    assert caught.value.loop == "trio"
    assert isinstance(caught.value.__cause__, RuntimeError)
