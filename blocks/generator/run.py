"""
One run of a generator: the model is asked, its tools are called, until it gives the output.

The loop is flowstate's own, over pydantic-ai's model layer (``pydantic_ai.direct``): every wait of
a run is in anyio's hands, so a cancel reaches it, closes the stream and goes on as it is, under
asyncio and trio alike.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, cast, final

import anyio
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    InstructionPart,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from flowstate.blocks.generator.calls import ToolCalls
from flowstate.blocks.generator.conversation import messages_of, sent_back
from flowstate.blocks.generator.errors import (
    InvalidOutputError,
    ModelAnswerError,
    TransientModelError,
    TurnsExhaustedError,
)
from flowstate.blocks.generator.failure import model_error
from flowstate.blocks.generator.opening import opened, redactor_for, running_loop
from flowstate.blocks.generator.options import (
    OUTPUT_TOOL,
    GeneratorSettings,
    checked_history,
    checked_tools,
)
from flowstate.blocks.generator.output import UnfitOutput
from flowstate.blocks.generator.speech import Speech
from flowstate.blocks.generator.usage import ModelUsage
from flowstate.blocks.generator.wording import bad_output, no_output
from flowstate.context import Context
from flowstate.errors import DefinitionError, InvalidValue
from flowstate.harness.clean_text import clean_text

HOOK_SECONDS = 5.0
"""How long ``on_usage`` may take once the run is being cancelled."""


async def generate(settings: GeneratorSettings, value: Any, ctx: Context) -> Any:
    """
    Run a generator on a value and give its output.

    Raises:
        ModelError: see ``flowstate.blocks.generator.errors``.
        InvalidValue: the prompt is empty.
        DefinitionError: what a resolver returned can't be used.
        Exception: whatever an author's function raised, bare.
    """
    entries = ctx.cap.entries()
    tools = checked_tools(settings.name, [*settings.tools, *entries.tools, *entries.control_tools])
    instructions = await _instructions(settings, ctx, entries.context)
    messages = messages_of(await _history(settings, value, ctx))
    messages.append(ModelRequest(parts=[_prompt(settings, value, ctx)]))
    async with opened(settings.model, ctx) as model:
        run = GeneratorRun(
            settings, ctx, model, ToolCalls(ctx, tools, redactor_for(model)), instructions
        )
        return await run.run(messages)


@final
class GeneratorRun:
    """The turns of one run; ``run`` is called once."""

    def __init__(
        self,
        settings: GeneratorSettings,
        ctx: Context,
        model: Model,
        calls: ToolCalls,
        instructions: list[InstructionPart],
    ) -> None:
        self._settings = settings
        self._ctx = ctx
        self._model = model
        self._name = model.model_name
        self._redact: Callable[[str], str] = redactor_for(model)
        self._calls = calls
        self._shape = settings.output
        self._parameters = self._request_parameters(calls.definitions(), instructions)
        self._misfits = 0

    async def run(self, messages: list[ModelMessage]) -> Any:
        """Ask until there is an output."""
        for turn in range(1, self._settings.max_turns + 1):
            response = await self._ask(turn, messages)
            calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
            output = [call for call in calls if call.tool_name == OUTPUT_TOOL and self._typed]
            called = [call for call in calls if call not in output]
            # Also beside an output: what the model called has to be done, and not by halves.
            results = await self._calls.run(called) if called else []
            if called and not output:
                _go_on(messages, response, self._in_order(calls, results))
                continue
            try:
                return self._read(response, output)
            except UnfitOutput as misfit:
                self._count(misfit)
                self._correct(messages, response, calls, output, results, str(misfit))
        raise TurnsExhaustedError(self._ctx.path, self._settings.max_turns)

    # --- one turn -------------------------------------------------------------------------------

    async def _ask(self, turn: int, messages: Sequence[ModelMessage]) -> ModelResponse:
        """One call of the model; what it says becomes items while it says it."""
        stream: StreamedResponse | None = None
        complete = False
        try:
            async with model_request_stream(
                self._model,
                messages,
                model_settings=cast("ModelSettings", dict(self._settings.settings)) or None,
                model_request_parameters=self._parameters,
            ) as stream:
                speech = Speech(self._ctx, shows_text=self._shows_text(stream))
                try:
                    async for event in stream:
                        speech.hear(event)
                    response = stream.get()
                    complete = response.state == "complete"
                finally:
                    speech.close(complete=complete)
        except Exception as error:
            raise model_error(error, self._name, self._redact, running_loop()) from error
        finally:
            if stream is not None:
                await self._tell_usage(turn, stream, complete)
        self._check(response)
        return response

    def _shows_text(self, stream: StreamedResponse) -> bool:
        mode = stream.model_request_parameters.output_mode
        return not self._typed or mode not in ("native", "prompted")

    def _check(self, response: ModelResponse) -> None:
        """
        Raises:
            TransientModelError: the answer broke off.
            ModelAnswerError: it is cut off at the limit of its length, or withheld.
        """
        if response.state != "complete":
            raise TransientModelError(self._name, f"the answer broke off ({response.state})")
        if response.finish_reason == "length":
            raise ModelAnswerError(
                self._name,
                "was cut off, since it is too long",
                "Allow more in settings={'max_tokens': ...}, or ask for less.",
            )
        if response.finish_reason == "content_filter":
            raise ModelAnswerError(
                self._name,
                "was withheld by its provider's filter",
                "Change the prompt, or use another model.",
            )

    async def _tell_usage(self, turn: int, stream: StreamedResponse, complete: bool) -> None:
        hook = self._settings.on_usage
        if hook is None:
            return
        used = stream.usage
        usage = ModelUsage(
            model=stream.model_name or self._name,
            turn=turn,
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            cache_read_tokens=used.cache_read_tokens,
            cache_write_tokens=used.cache_write_tokens,
            complete=complete,
        )
        try:
            # What a cancelled call used is spent, too.
            with anyio.move_on_after(None if complete else HOOK_SECONDS, shield=not complete):
                answer = hook(usage, self._ctx)
                if inspect.isawaitable(answer):
                    await answer
        except Exception as error:
            self._ctx.log.warning("on_usage failed", error=self._redact(repr(error)))

    # --- the output -----------------------------------------------------------------------------

    @property
    def _typed(self) -> bool:
        return not self._shape.is_text

    def _read(self, response: ModelResponse, output: Sequence[ToolCallPart]) -> Any:
        """
        Raises:
            UnfitOutput: the answer holds no output, or one that doesn't fit.
        """
        text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
        if not self._typed:
            if not text.strip():
                raise UnfitOutput("the answer is empty")
            return text
        if output:
            return self._shape.read(output[0].args_as_json_str())
        if not text.strip():
            raise UnfitOutput(no_output(OUTPUT_TOOL))
        return self._shape.read(text)

    def _count(self, misfit: UnfitOutput) -> None:
        self._misfits += 1
        if self._misfits > self._settings.output_retries:
            problem = self._redact(str(misfit))
            raise InvalidOutputError(
                self._name, self._shape.name, self._misfits, problem
            ) from misfit.__cause__

    def _correct(
        self,
        messages: list[ModelMessage],
        response: ModelResponse,
        calls: Sequence[ToolCallPart],
        output: Sequence[ToolCallPart],
        results: Sequence[ToolReturnPart],
        problem: str,
    ) -> None:
        """Tell the model what is wrong with its output."""
        if output:
            told = [
                ToolReturnPart(
                    tool_name=OUTPUT_TOOL,
                    content=clean_text(bad_output(problem)),
                    tool_call_id=call.tool_call_id,
                    outcome="failed",
                )
                for call in output
            ]
            _go_on(messages, response, self._in_order(calls, [*results, *told]))
            return
        request = UserPromptPart(content=clean_text(bad_output(problem)))
        if any(isinstance(part, TextPart) and part.content.strip() for part in response.parts):
            _go_on(messages, response, [request])
        else:
            # Providers refuse an answer without a text or a call when it is sent back to them.
            messages.append(ModelRequest(parts=[request]))

    def _in_order(
        self, calls: Sequence[ToolCallPart], results: Sequence[ToolReturnPart]
    ) -> list[ModelRequestPart]:
        by_id = {result.tool_call_id: result for result in results}
        return [by_id[call.tool_call_id] for call in calls if call.tool_call_id in by_id]

    def _request_parameters(
        self, tools: list[ToolDefinition], instructions: list[InstructionPart]
    ) -> ModelRequestParameters:
        shape = self._shape
        if shape.is_text:
            return ModelRequestParameters(function_tools=tools, instruction_parts=instructions)
        description = shape.description or "Give the output by calling this, and end with it."
        return ModelRequestParameters(
            function_tools=tools,
            instruction_parts=instructions,
            output_mode="auto",  # the model's profile knows what it is best at
            allow_text_output=False,
            output_object=OutputObjectDefinition(
                json_schema=shape.schema, name=OUTPUT_TOOL, description=shape.description
            ),
            output_tools=[
                ToolDefinition(
                    name=OUTPUT_TOOL,
                    description=clean_text(description),
                    parameters_json_schema=shape.schema,
                    kind="output",
                )
            ],
        )


def _go_on(
    messages: list[ModelMessage], response: ModelResponse, parts: Sequence[ModelRequestPart]
) -> None:
    messages.append(sent_back(response))
    messages.append(ModelRequest(parts=list(parts)))


# --- what the author's functions say, asked once a run --------------------------------------------


async def _instructions(
    settings: GeneratorSettings, ctx: Context, entries: Sequence[str]
) -> list[InstructionPart]:
    given: object = settings.instructions
    dynamic = callable(given)
    if callable(given):
        given = given(ctx)
        if inspect.isawaitable(given):
            given = await given
    if given is not None and not isinstance(given, str):
        raise DefinitionError(
            settings.name,
            f"instructions gave a {type(given).__name__}",
            "Let the function return a text.",
        )
    texts = [(given or "", dynamic), *((entry, True) for entry in entries)]
    return [
        InstructionPart(content=clean_text(text), dynamic=changes)
        for text, changes in texts
        if text.strip()
    ]


async def _history(settings: GeneratorSettings, value: Any, ctx: Context) -> Any:
    given: object = settings.history
    if callable(given):
        given = given(value, ctx)
        if inspect.isawaitable(given):
            given = await given
    return checked_history(settings.name, given)


def _prompt(settings: GeneratorSettings, value: Any, ctx: Context) -> UserPromptPart:
    prompt: str | Sequence[UserContent] = settings.prompt(value)
    if isinstance(prompt, str):
        if not prompt.strip():
            raise InvalidValue(
                ctx.path,
                "a prompt",
                "a text with nothing in it",
                "give the model something to do",
            )
        return UserPromptPart(content=clean_text(prompt))
    if isinstance(prompt, Sequence) and prompt:
        return UserPromptPart(content=[*prompt])
    raise InvalidValue(
        ctx.path,
        "a text or a sequence of user content",
        type(prompt).__name__,
        "see the prompt function",
    )
