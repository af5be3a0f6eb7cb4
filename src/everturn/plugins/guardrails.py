"""Guardrails: functions that check what a person says and what a model writes, as plugins.

@input_guardrail
async def no_secrets(ctx, message):
    if leaks(message.text):
        ctx.refuse("I cannot help with that.")

@output_guardrail(buffer="step")
async def no_ssn(ctx, text):
    return redact(text)

App(model, plugins=[no_secrets, no_ssn])
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import overload

from everturn.core.hooks import OUTPUT_BUFFERS, InputContext, OutputBuffer, OutputContext
from everturn.core.messages import Message
from everturn.errors import ConfigError

InputCheck = Callable[[InputContext, Message], Awaitable[None] | None]
OutputCheck = Callable[[OutputContext, str], Awaitable[str | None] | str | None]


class InputGuardrail:
    """A plugin that checks each message of a person before a model reads it."""

    is_guardrail = True  # no plugin of the same name takes its place

    def __init__(self, check: InputCheck, name: str = "") -> None:
        self.name, self.check = name or _name_of(check), check
        self.__doc__ = check.__doc__

    def on_input(self, ctx: InputContext, message: Message) -> Awaitable[None] | None:
        """Check a message; refuse it with `ctx.refuse`."""
        return self.check(ctx, message)


class OutputGuardrail:
    """A plugin that checks what a model writes before it is committed."""

    is_guardrail = True

    def __init__(self, check: OutputCheck, buffer: OutputBuffer = "step", name: str = "") -> None:
        if buffer not in OUTPUT_BUFFERS:
            raise ConfigError(f"there is no buffer {buffer!r}; there are: {', '.join(OUTPUT_BUFFERS)}")
        self.name, self.check, self.output_buffer = name or _name_of(check), check, buffer
        self.__doc__ = check.__doc__

    def on_output(self, ctx: OutputContext, text: str) -> Awaitable[str | None] | str | None:
        """Check a piece of output; return what takes its place, or None."""
        return self.check(ctx, text)


@overload
def input_guardrail(check: InputCheck) -> InputGuardrail: ...
@overload
def input_guardrail(*, name: str = "") -> Callable[[InputCheck], InputGuardrail]: ...
def input_guardrail(
    check: InputCheck | None = None, *, name: str = ""
) -> InputGuardrail | Callable[[InputCheck], InputGuardrail]:
    """Make a guardrail from a function `(ctx, message)`, plain or async, that checks each message of a user before a model reads it.

    `ctx.refuse("text")` refuses the message: no model reads it, and the turn completes with that text.
    """
    if check is not None:
        return InputGuardrail(check, name)
    return lambda check: InputGuardrail(check, name)


@overload
def output_guardrail(check: OutputCheck) -> OutputGuardrail: ...
@overload
def output_guardrail(*, buffer: OutputBuffer = "step", name: str = "") -> Callable[[OutputCheck], OutputGuardrail]: ...
def output_guardrail(
    check: OutputCheck | None = None, *, buffer: OutputBuffer = "step", name: str = ""
) -> OutputGuardrail | Callable[[OutputCheck], OutputGuardrail]:
    """Make a guardrail from a function `(ctx, text)`, plain or async, that checks what a model writes before it is stored or shown.

    It returns the text that takes its place, or None to pass it; `ctx.refuse("text")` refuses the step. `buffer` says
    how much is held back until it has passed: the whole step, a sentence, or nothing.
    """
    if check is not None:
        return OutputGuardrail(check, buffer, name)
    return lambda check: OutputGuardrail(check, buffer, name)


def _name_of(check: Callable[..., object]) -> str:
    return getattr(check, "__name__", "") or type(check).__name__
