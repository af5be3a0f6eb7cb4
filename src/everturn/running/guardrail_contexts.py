"""Contexts of the hooks that may refuse or repeat: `on_input`, `on_output`, `on_overflow`, and of `on_turn_start`.

Each context belongs to one call of one hook. Once the hook has returned, what it could decide is decided, and the
context raises `HookMisused`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from everturn.core.canonical_json import replace_surrogates, replace_surrogates_in
from everturn.core.events import DeferredMessage
from everturn.core.hooks import OutputKind
from everturn.core.messages import Message, Role
from everturn.core.parts import Part, TextPart
from everturn.core.requests import ModelRequest, RequestMessage
from everturn.errors import HookMisused, ModelError
from everturn.running.active_turn import ActiveTurn
from everturn.running.hook_contexts import HookContext, RequestHookContext, run_append_hooks


class OneCallContext(HookContext):
    """A context that can be used until its hook returns."""

    hook = ""

    def __init__(self, run: ActiveTurn, plugin: str) -> None:
        super().__init__(run)
        self.plugin = plugin
        self._has_returned = False

    def close(self) -> None:
        """Record that the hook has returned."""
        self._has_returned = True

    def _check_open(self, method: str) -> None:
        if self._has_returned:
            raise HookMisused(
                f"{self.plugin}.{self.hook} has returned, so ctx.{method} is too late: call it before the hook returns, "
                "and await what it needs there"
            )


class RefusableContext(OneCallContext):
    """A context whose hook may refuse."""

    refusal: str | None = None

    def refuse(self, text: str) -> None:
        """Refuse it; the person reads this text instead.

        Raises:
            HookMisused: the hook has returned, or the text is empty.
        """
        self._check_open("refuse")
        if not isinstance(text, str) or not text.strip():  # pyright: ignore[reportUnnecessaryIsInstance] - by plugins
            raise HookMisused('ctx.refuse needs the text that the person reads: ctx.refuse("I cannot help with that.")')
        self.refusal = replace_surrogates(text)


class InputHookContext(RefusableContext):
    """A message of a person that no model has read yet."""

    hook = "on_input"


class OutputHookContext(RefusableContext):
    """A piece of what the model wrote, before it is committed."""

    hook = "on_output"

    def __init__(self, run: ActiveTurn, plugin: str, step: int, kind: OutputKind, tool: str) -> None:
        super().__init__(run, plugin)
        self.step, self.kind, self.tool = step, kind, tool


class StartHookContext(OneCallContext):
    """The start of a turn, or of this process's part in it, as one plugin sees it."""

    hook = "on_turn_start"
    _appended = 0

    async def append(self, message: str | Iterable[Part], *, role: Role = "user") -> None:
        """Append a message before the first request; a repeat in another process adds nothing."""
        self._check_open("append")
        name = f"{self.turn}.{self.plugin}.start.{self._appended}"
        self._appended += 1
        if self.run.state.answer is not None:  # the first request was made with what was appended then
            return
        append = DeferredMessage(Message(name, None, role, as_parts(message), by=self.plugin, turn=self.turn))
        await self.run.add_message(append, lambda message: run_append_hooks(self.run, message))


class OverflowHookContext(RequestHookContext):
    """A request that was too long for its model."""

    def __init__(
        self, run: ActiveTurn, plugin: str, step: int, closing: bool, body: ModelRequest, attempt: int
    ) -> None:
        super().__init__(run, step, closing, [body.system], body.params)
        self.plugin, self.body, self.attempt = plugin, body, attempt
        self.wants_retry = self._has_returned = False

    def retry(self, messages: Iterable[RequestMessage | Mapping[str, Any]] | None = None) -> None:
        """Send the request again, as `body` is now, or with these messages."""
        if self._has_returned:
            raise HookMisused(f"{self.plugin}.on_overflow has returned: call ctx.retry before it does")
        if messages is not None:
            self.set_request_messages(messages)
        self.wants_retry = True

    def close(self) -> None:
        """Record that the hook has returned."""
        self._has_returned = True


def as_parts(message: str | Iterable[Part]) -> tuple[Part, ...]:
    """The parts of a message that a plugin appends."""
    parts = (TextPart(message),) if isinstance(message, str) else tuple(message)
    return msgspec.convert(replace_surrogates_in(msgspec.to_builtins(parts)), tuple[Part, ...])


async def refuse_message(run: ActiveTurn, message: Message) -> tuple[str, str] | None:
    """Show a message to the `on_input` of every plugin; the first refusal, and whose it is."""
    for plugin, method in run.setup.hooks["on_input"]:
        ctx = InputHookContext(run, plugin)
        try:
            await run.call_hook(plugin, "on_input", method, ctx, message)
        finally:
            ctx.close()
        if ctx.refusal is not None:
            return ctx.refusal, plugin
    return None


async def check_output(
    run: ActiveTurn, plugins: Iterable[str], step: int, kind: OutputKind, tool: str, text: str
) -> tuple[str, tuple[str, str] | None]:
    """Show a piece of output to the `on_output` of these plugins; what becomes of it, or a refusal and whose it is."""
    for plugin, method in run.setup.hooks["on_output"]:
        if plugin not in plugins:
            continue
        ctx = OutputHookContext(run, plugin, step, kind, tool)
        try:
            changed = await run.call_hook(plugin, "on_output", method, ctx, text)
        finally:
            ctx.close()
        if ctx.refusal is not None:
            return text, (ctx.refusal, plugin)
        if changed is not None:
            if not isinstance(changed, str):
                kind_of = type(changed).__name__
                raise run.hook_error(plugin, "on_output", TypeError(f"it must return a string or None, not {kind_of}"))
            text = replace_surrogates(changed)
    return text, None


async def resolve_overflow(
    run: ActiveTurn, body: ModelRequest, step: int, closing: bool, error: ModelError, attempt: int
) -> ModelRequest | None:
    """Ask the `on_overflow` of each plugin for a shorter request; None if none of them wants to try again."""
    for plugin, method in run.setup.hooks["on_overflow"]:
        ctx = OverflowHookContext(run, plugin, step, closing, body, attempt)
        try:
            await run.call_hook(plugin, "on_overflow", method, ctx, error)
        finally:
            ctx.close()
        if ctx.wants_retry:
            return ctx.body
    return None
