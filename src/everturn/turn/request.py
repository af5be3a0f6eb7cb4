"""The log → the next request, as a pure function of it: built twice, it is byte-equal.

Plugins may change the system prompt, the parameters and the assembled body, in this order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from typing import Any, cast
from zoneinfo import ZoneInfo

from everturn.core.canonical import clean
from everturn.core.events import LimitReached
from everturn.core.history import render, render_own
from everturn.core.messages import Message
from everturn.core.modality import Modality, files_for, modality_of
from everturn.core.parts import FilePart, NoticePart, TextPart
from everturn.core.requests import ModelRequest, RequestMessage, RequestResult
from everturn.errors import UnknownMessage
from everturn.turn.contexts import OneRequest
from everturn.turn.run import Prompt, Run

SAY = "Answer now with what is known: say what was done, what was not, and what the person could do next."
CLOSING = f"The limit of steps for this turn has been reached and no more tools can be called. {SAY}"


async def build(run: Run, history: Sequence[Message], said: Message | None, step: int, closing: bool) -> ModelRequest:
    """Assemble the request of a step, and let the plugins at it. `said` is what the person said and it answers."""
    state, settings = run.state, run.setup.settings
    if (modality := modality_of(run.model)) != "chat":
        return await _work(run, modality, history, said, step)
    if not run.rendered:
        run.rendered = render(history, state.options.history)
    if run.system is None:
        run.system = system_prompt(settings.prompt, state.options.system, state.started)
    params = merge((*settings.layers, state.options.params or {}))
    messages = [*run.rendered, *_own(run)]
    if closing:
        messages.append(RequestMessage("user", (_closing(state.limit),)))
    hooks = run.setup.hooks
    ctx = OneRequest(run, step, closing, list(run.system), params)
    if hooks["on_system_prompt"]:
        await run.call_hooks("on_system_prompt", ctx)
    if hooks["on_params"]:
        await run.call_hooks("on_params", ctx)
    body = ModelRequest(
        model=run.model.name,
        system=clean("\n\n".join(part for part in ctx.system if part)),
        messages=messages,
        tools=[],
        params=without_nulls(ctx.params),
        memo=run.memo,
    )
    ctx.body = body
    await run.call_hooks("on_before_request", ctx)
    ctx.body.files = await _files(run, ctx.body.messages)
    return ctx.body


def _closing(limit: LimitReached | None) -> NoticePart:
    if limit is None:
        return NoticePart("max_steps", CLOSING)
    return NoticePart("limit", f"Stop here: {limit.text}, and no more tools can be called. {SAY} Name the limit.")


async def _work(
    run: Run, modality: Modality, history: Sequence[Message], said: Message | None, step: int
) -> ModelRequest:
    """The request of a model that is not for chat: one message, with the words and the files it works on.

    No tools, no system prompt, and of the parameters only those of the turn: the others were meant for talk.
    """
    parts = said.parts if said is not None else ()
    words = tuple(part for part in parts if isinstance(part, TextPart))
    message = RequestMessage("user", (*words, *files_for(modality, history, parts)))
    ctx = OneRequest(run, step, False, [], dict(run.state.options.params or {}))
    await run.call_hooks("on_params", ctx)
    ctx.body = ModelRequest(run.model.name, "", [message], [], without_nulls(ctx.params))
    await run.call_hooks("on_before_request", ctx)
    ctx.body.tools = []  # whoever offers them means a chat
    ctx.body.files = await _files(run, ctx.body.messages)
    return ctx.body


async def _files(run: Run, messages: Iterable[RequestMessage]) -> dict[str, bytes]:
    """The bytes of the files the messages mention; one that is gone is left out, and the model told so."""
    for message in messages:
        for part in message.parts:
            kind = type(part)
            if kind is FilePart:
                await _load(run, (cast("FilePart", part),))
            elif kind is RequestResult:
                await _load(run, cast("RequestResult", part).files)
    return run.files


async def _load(run: Run, files: Iterable[FilePart]) -> None:
    for file in files:
        if file.blob not in run.files:
            with suppress(UnknownMessage):
                run.files[file.blob] = await run.setup.store.blob(file.blob)


def _own(run: Run) -> Iterator[RequestMessage]:
    """The turn's own messages. A settled step never changes, so each is rendered once and kept."""
    for message in run.state.messages.values():
        shown, parts = run.shown.get(message.id, ([], 0))
        if len(message.parts) > parts:
            shown += render_own(message, parts)
            run.shown[message.id] = (shown, len(message.parts))
        yield from shown


def system_prompt(prompt: Prompt, user: str, started: float) -> list[str]:
    """Header first and unchanging, then the body. The date has no time of day: a changing second would break caches."""
    zone: tzinfo = UTC if prompt.timezone == "UTC" else ZoneInfo(prompt.timezone)
    today = datetime.fromtimestamp(started, zone).date().isoformat()
    return [
        prompt.header,
        prompt.agent,
        prompt.workspace,
        prompt.custom,
        user,
        f"Today is {today} ({prompt.timezone}).",
        prompt.privacy,
    ]


def merge(layers: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge options, later layers over earlier ones, objects key by key."""
    merged: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            old = merged.get(key)
            if isinstance(old, Mapping) and isinstance(value, Mapping):
                merged[key] = merge((cast("Mapping[str, Any]", old), cast("Mapping[str, Any]", value)))
            else:
                merged[key] = value
    return merged


def without_nulls(params: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what is null: that is how a later layer takes an option of an earlier one back."""
    return {
        key: without_nulls(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else value
        for key, value in params.items()
        if value is not None
    }
