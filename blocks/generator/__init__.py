"""A model call with a tool loop, on pydantic-ai, as a block of a flow."""

from flowstate.blocks.generator.block import generator as generator
from flowstate.blocks.generator.errors import InvalidOutputError as InvalidOutputError
from flowstate.blocks.generator.errors import ModelAnswerError as ModelAnswerError
from flowstate.blocks.generator.errors import ModelError as ModelError
from flowstate.blocks.generator.errors import ModelLoopError as ModelLoopError
from flowstate.blocks.generator.errors import ModelRequestError as ModelRequestError
from flowstate.blocks.generator.errors import ModelUnusableError as ModelUnusableError
from flowstate.blocks.generator.errors import (
    PydanticAiNotInstalledError as PydanticAiNotInstalledError,
)
from flowstate.blocks.generator.errors import TransientModelError as TransientModelError
from flowstate.blocks.generator.errors import TurnsExhaustedError as TurnsExhaustedError
from flowstate.blocks.generator.options import GeneratorOptions as GeneratorOptions
from flowstate.blocks.generator.usage import ModelUsage as ModelUsage

__all__ = [
    "GeneratorOptions",
    "InvalidOutputError",
    "ModelAnswerError",
    "ModelError",
    "ModelLoopError",
    "ModelRequestError",
    "ModelUnusableError",
    "ModelUsage",
    "PydanticAiNotInstalledError",
    "TransientModelError",
    "TurnsExhaustedError",
    "generator",
]
