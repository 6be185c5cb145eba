"""
What goes wrong between a generator and its model.

Each is raised once, with the vendor's own exception as its cause. Texts of the vendor's are
redacted before they get here, so no message holds a key.
"""

from __future__ import annotations

from typing import final

from flowstate.errors import FlowError

INSTALL = "pip install 'flowstate-engine[models]'"
"""What to type to get pydantic-ai and the clients of Anthropic and OpenAI."""


class ModelError(FlowError):
    """The root of what a generator raises for its model. Don't raise it yourself."""


@final
class PydanticAiNotInstalledError(ModelError):
    """``pydantic-ai`` could not be loaded, or is too old; the failed import is the cause."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"no model can be called: {reason}. Install what it needs with: {INSTALL}")


@final
class ModelUnusableError(ModelError):
    """
    The model can't be called as it is set up: unknown, without a key, without its client's package.

    Attributes:
        model: the model, as the author named it.
    """

    def __init__(self, model: str, reason: str) -> None:
        super().__init__(
            f"model {model!r} can't be used: {reason.rstrip('. ')}. Check its name "
            "('provider:model'), its key in the environment, and that its provider's package is "
            "installed."
        )
        self.model = model


@final
class ModelLoopError(ModelError):
    """
    The model's client needs another event loop than the one that runs.

    Attributes:
        model: the model's name.
        loop: the event loop that runs, ``trio`` for example.
    """

    def __init__(self, model: str, loop: str) -> None:
        super().__init__(
            f"model {model!r} runs on asyncio only, and this event loop is {loop}. Run the flow "
            "under asyncio, or use a model whose client runs on both."
        )
        self.model = model
        self.loop = loop


class ModelRequestError(ModelError):
    """
    A request to the model failed, and would fail again: refused, not understood, not allowed.

    Failures that may pass are a ``TransientModelError``.

    Attributes:
        model: the model's name.
        status: the HTTP status; None where there was none.
    """

    def __init__(self, model: str, reason: str, *, status: int | None = None) -> None:
        answer = "failed" if status is None else f"was answered with HTTP status {status}"
        super().__init__(f"a request to model {model!r} {answer}: {reason}")
        self.model = model
        self.status = status


@final
class TransientModelError(ModelRequestError):
    """
    A request failed in a way that may pass: rate limit, overload, lost connection, time-out.

    The vendor's client had tried again by itself; to try once more later, give the generator
    ``retry=Retry(attempts=3, retry_on=(TransientModelError,), delay=5)``.

    Attributes:
        retry_after: seconds after which the provider asks to come back, if it said.
    """

    def __init__(
        self,
        model: str,
        reason: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(model, reason, status=status)
        self.retry_after = retry_after


@final
class ModelAnswerError(ModelError):
    """
    The model answered, and what it said is no answer: cut off, or withheld.

    Attributes:
        model: the model's name.
    """

    def __init__(self, model: str, problem: str, way_out: str) -> None:
        super().__init__(f"the answer of model {model!r} {problem}. {way_out}")
        self.model = model


@final
class InvalidOutputError(ModelError):
    """
    What the model gave for the output never fitted the type; pydantic's error is the cause.

    Attributes:
        model: the model's name.
        attempts: how often it tried.
    """

    def __init__(self, model: str, expected: str, attempts: int, problem: str) -> None:
        times = "once" if attempts == 1 else f"{attempts} times"
        super().__init__(
            f"model {model!r} was asked {times} for {expected} and never gave one: {problem}. "
            "Say in the instructions what is wanted, make the type simpler, or raise "
            "output_retries."
        )
        self.model = model
        self.attempts = attempts


@final
class TurnsExhaustedError(ModelError):
    """
    The model still wanted to go on after ``max_turns`` calls of it.

    Attributes:
        max_turns: how many it had.
    """

    def __init__(self, where: str, max_turns: int) -> None:
        turns = "1 turn" if max_turns == 1 else f"{max_turns} turns"
        super().__init__(
            f"{where}: not done after {turns}, tool calls in the last one included. "
            "Raise max_turns, or give the model less to do."
        )
        self.max_turns = max_turns
