"""Model request of a step: built from the log alone, so that a request built twice is byte-equal.

Plugins may change the system prompt, the parameters and the assembled body, in this order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from typing import Any, cast
from zoneinfo import ZoneInfo

from everturn.core.canonical_json import replace_surrogates
from everturn.core.events import LimitReached
from everturn.core.history import render_history, render_own_message
from everturn.core.messages import Message
from everturn.core.modality import Modality, input_files, modality_of
from everturn.core.parts import FilePart, NoticePart, TextPart
from everturn.core.requests import ModelRequest, RequestMessage, RequestResult
from everturn.errors import UnknownMessage
from everturn.running.active_turn import ActiveTurn, Prompt
from everturn.running.hook_contexts import RequestHookContext

CLOSING_INSTRUCTION = (
    "Answer now with what is known: say what was done, what was not, and what the person could do next."
)
MAX_STEPS_NOTICE = (
    f"The limit of steps for this turn has been reached and no more tools can be called. {CLOSING_INSTRUCTION}"
)


async def build_request(
    run: ActiveTurn, history: Sequence[Message], said: Message | None, step: int, closing: bool
) -> ModelRequest:
    """Assemble the request of a step, and let plugins change it. `said` is the user message that the turn answers."""
    state, settings = run.state, run.setup.settings
    if (modality := modality_of(run.model)) != "chat":
        return await _build_conversion(run, modality, history, said, step)
    if not run.rendered:
        run.rendered = render_history(history, state.options.tool_history)
    if run.system is None:
        run.system = system_prompt(settings.prompt, state.options.system, state.started)
    params = merge_params((*settings.layers, state.options.params or {}))
    messages = [*run.rendered, *_own_messages(run)]
    if closing:
        messages.append(RequestMessage("user", (_closing_notice(state.limit),)))
    hooks = run.setup.hooks
    ctx = RequestHookContext(run, step, closing, list(run.system), params)
    if hooks["on_system_prompt"]:
        await run.call_hooks("on_system_prompt", ctx)
    if hooks["on_params"]:
        await run.call_hooks("on_params", ctx)
    body = ModelRequest(
        model=run.model.name,
        system=replace_surrogates("\n\n".join(part for part in ctx.system if part)),
        messages=messages,
        tools=[],
        params=drop_nulls(ctx.params),
        memo=run.memo,
    )
    ctx.body = body
    await run.call_hooks("on_before_request", ctx)
    ctx.body.files = await _files(run, ctx.body.messages)
    return ctx.body


def _closing_notice(limit: LimitReached | None) -> NoticePart:
    if limit is None:
        return NoticePart("max_steps", MAX_STEPS_NOTICE)
    return NoticePart(
        "limit", f"Stop here: {limit.text}, and no more tools can be called. {CLOSING_INSTRUCTION} Name the limit."
    )


async def _build_conversion(
    run: ActiveTurn, modality: Modality, history: Sequence[Message], said: Message | None, step: int
) -> ModelRequest:
    """The request of a model that is not for chat: one message, with its text and files.

    It has no tools, no system prompt, and only the turn's own parameters: the others are meant for chat models.
    """
    parts = said.parts if said is not None else ()
    texts = tuple(part for part in parts if isinstance(part, TextPart))
    message = RequestMessage("user", (*texts, *input_files(modality, history, parts)))
    ctx = RequestHookContext(run, step, False, [], dict(run.state.options.params or {}))
    await run.call_hooks("on_params", ctx)
    ctx.body = ModelRequest(run.model.name, "", [message], [], drop_nulls(ctx.params))
    await run.call_hooks("on_before_request", ctx)
    ctx.body.tools = []  # plugins offer them for chats
    ctx.body.files = await _files(run, ctx.body.messages)
    return ctx.body


async def _files(run: ActiveTurn, messages: Iterable[RequestMessage]) -> dict[str, bytes]:
    """The bytes of the files that the messages refer to.

    A missing file is left out, and the adapter tells the model.
    """
    for message in messages:
        for part in message.parts:
            kind = type(part)
            if kind is FilePart:
                await _load(run, (cast("FilePart", part),))
            elif kind is RequestResult:
                await _load(run, cast("RequestResult", part).files)
    return run.files


async def _load(run: ActiveTurn, files: Iterable[FilePart]) -> None:
    for file in files:
        if file.blob not in run.files:
            with suppress(UnknownMessage):
                run.files[file.blob] = await run.setup.store.blob(file.blob)


def _own_messages(run: ActiveTurn) -> Iterator[RequestMessage]:
    """The turn's own messages. A finished step never changes, so each is rendered once and cached."""
    for message in run.state.messages.values():
        rendered, parts = run.rendered_own.get(message.id, ([], 0))
        if len(message.parts) > parts:
            rendered += render_own_message(message, parts)
            run.rendered_own[message.id] = (rendered, len(message.parts))
        yield from rendered


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


def merge_params(layers: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge options, later layers over earlier ones, objects key by key."""
    merged: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            old = merged.get(key)
            if isinstance(old, Mapping) and isinstance(value, Mapping):
                merged[key] = merge_params((cast("Mapping[str, Any]", old), cast("Mapping[str, Any]", value)))
            else:
                merged[key] = value
    return merged


def drop_nulls(params: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out null values: with null a later layer removes an option of an earlier one."""
    return {
        key: drop_nulls(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else value
        for key, value in params.items()
        if value is not None
    }
