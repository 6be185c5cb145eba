"""From what pydantic-ai or a vendor's client raises to the errors of this package. Pure."""

from __future__ import annotations

from collections.abc import Callable

import httpx2
from pydantic_ai import exceptions as vendor

from flowstate.blocks.generator.errors import (
    ModelAnswerError,
    ModelError,
    ModelLoopError,
    ModelRequestError,
    ModelUnusableError,
    TransientModelError,
)
from flowstate.blocks.generator.wording import cut
from flowstate.harness.clean_text import clean_text

_PASSING = frozenset({408, 409, 425, 429})
"""HTTP statuses below 500 that another try may not meet again."""


def model_error(
    error: Exception, model: str, redact: Callable[[str], str], loop: str
) -> ModelError:
    """
    What a failed request is raised as; raise it from the error.

    Args:
        error: what came out of the model, any exception.
        model: the model's name.
        redact: takes secrets out of a text.
        loop: the event loop that runs, ``asyncio`` or ``trio``.
    """
    reason = cut(redact(clean_text(str(error) or type(error).__name__)))
    match error:
        case vendor.ModelHTTPError(status_code=status):
            if status in _PASSING or status >= 500:
                return TransientModelError(
                    model, reason, status=status, retry_after=error.retry_after
                )
            return ModelRequestError(model, reason, status=status)
        case (
            vendor.ModelConnectionError()
            | vendor.ModelRequestTimeout()
            | vendor.ModelUnavailableError()
            | vendor.ModelServerError()
            | vendor.ModelRateLimitError()
            | httpx2.TransportError()
            | httpx2.StreamError()
        ):
            return TransientModelError(model, reason)
        case vendor.UserError() | ImportError():
            return ModelUnusableError(model, reason)
        case vendor.UnexpectedModelBehavior():
            return ModelAnswerError(
                model, f"can't be used: {reason}", "Try again, or use another model."
            )
        case RuntimeError() if loop != "asyncio" and "no running event loop" in str(error):
            return ModelLoopError(model, loop)
        case _:
            return ModelRequestError(model, f"{type(error).__name__}: {reason}")
