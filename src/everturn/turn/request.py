"""Model request of a step: built from the log alone, so that a request built twice is byte-equal.

Plugins may change the system prompt, the parameters and the assembled body, in this order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from typing import Any, cast
from zoneinfo import ZoneInfo

from everturn.core.canonical_json import hash_values, replace_surrogates
from everturn.core.context.compaction import compact_path, count_last_turns, select_turns
from everturn.core.continuation import CONTINUE_REQUEST, is_continued
from everturn.core.events import LimitReached
from everturn.core.history import render_compacted, render_history, render_own_message
from everturn.core.messages import Message
from everturn.core.modality import Modality, input_files, modality_of
from everturn.core.options import NO_PROMPT, TurnOptions
from everturn.core.parts import FilePart, NoticePart, TextPart
from everturn.core.requests import ModelRequest, RequestMessage, RequestResult
from everturn.errors import UnknownMessage
from everturn.running.active_turn import ActiveTurn
from everturn.running.hook_contexts import RequestHookContext

CLOSING_INSTRUCTION = (
    "Answer now with what is known: say what was done, what was not, and what the person could do next."
)
MAX_STEPS_NOTICE = (
    f"The limit of steps for this turn has been reached and no more tools can be called. {CLOSING_INSTRUCTION}"
)


async def build_request(
    run: ActiveTurn, history: Sequence[Message], user_message: Message | None, step: int, closing: bool
) -> ModelRequest:
    """Assemble the request of a step, with its files. `user_message` is the one that the turn answers."""
    if (modality := modality_of(run.model)) != "chat":
        return await _build_conversion(run, modality, await run.read_whole_history(), user_message, step)
    body = await assemble_request(run, history, step, closing)
    body.files = await _files(run, body.messages)
    return body


async def assemble_request(run: ActiveTurn, history: Sequence[Message], step: int, closing: bool) -> ModelRequest:
    """Assemble the request of a step without its files, and let plugins change it."""
    state, settings = run.state, run.setup.settings
    if run.system is None:
        run.system = system_prompt(state.options, state.started)
    params = merge_params((*settings.layers, state.options.params or {}))
    messages = _messages(run, history)
    if closing:
        params.pop("output_schema", None)  # the last words of a turn that reached a limit are free
        messages.append(RequestMessage("user", (_closing_notice(state.limit),)))
    elif state.step is not None and state.step.is_continuation:
        messages.append(CONTINUE_REQUEST)
    hooks = run.setup.hooks
    extra = state.step.instructions if state.step is not None else ""
    ctx = RequestHookContext(run, step, closing, [*run.system, extra] if extra else list(run.system), params)
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
        cache_key=cache_key(run.ledger.tenant, run.session, state.options.agent),
    )
    ctx.body = body
    await run.call_hooks("on_before_request", ctx)
    return ctx.body


def cache_key(tenant: str, session: str, agent: str) -> str:
    """The key of a conversation in a provider's prompt cache: it has nothing of what anybody wrote, and no id."""
    return hash_values("prompt cache", tenant, session, agent)[:32]


def _messages(run: ActiveTurn, history: Sequence[Message]) -> list[RequestMessage]:
    """The branch as the model reads it: with its compactions, or the last turns of it."""
    options, continues = run.state.options, run.state.input is None
    count = count_last_turns(options.context)
    if run.state.compactions and not count:
        own = list(run.state.messages.values())
        return render_compacted(history, own, options.tool_history, run.state.rejected, continues=continues)
    if not run.rendered:
        history = compact_path(history) if run.has_compaction else history
        run.rendered = render_history(
            select_turns(history, count, run.turn, continues=continues) if count else history,
            options.tool_history,
            continues=continues,
        )
    return [*run.rendered, *_own_messages(run)]


def _closing_notice(limit: LimitReached | None) -> NoticePart:
    if limit is None:
        return NoticePart("max_steps", MAX_STEPS_NOTICE)
    return NoticePart(
        "limit", f"Stop here: {limit.text}, and no more tools can be called. {CLOSING_INSTRUCTION} Name the limit."
    )


async def _build_conversion(
    run: ActiveTurn, modality: Modality, history: Sequence[Message], user_message: Message | None, step: int
) -> ModelRequest:
    """The request of a model that is not for chat: one message, with its text and files.

    It has no tools, no system prompt, and only the turn's own parameters: the others are meant for chat models.
    """
    parts = user_message.parts if user_message is not None else ()
    texts = tuple(part for part in parts if isinstance(part, TextPart))
    message = RequestMessage("user", (*texts, *input_files(modality, history, parts)))
    ctx = RequestHookContext(run, step, False, [], dict(run.state.options.params or {}))
    await run.call_hooks("on_params", ctx)
    ctx.body = ModelRequest(run.model.name, "", [message], [], drop_nulls(ctx.params))
    await run.call_hooks("on_before_request", ctx)
    ctx.body.tools = []  # plugins offer them for chats
    ctx.body.files = await _files(run, ctx.body.messages)
    return ctx.body


async def _files(run: ActiveTurn, messages: Sequence[RequestMessage]) -> dict[str, bytes]:
    """The bytes of the files that the messages refer to.

    A missing file is left out, and the adapter tells the model.
    """
    loaded = run.with_loaded_files  # it holds the messages, so no other object has their ids
    if len(loaded) > 2 * len(messages):  # a plugin makes others for each request
        loaded.clear()
    for message in messages:
        if id(message) in loaded:
            continue
        for part in message.parts:
            kind = type(part)
            if kind is FilePart:
                await _load(run, (cast("FilePart", part),))
            elif kind is RequestResult and (files := cast("RequestResult", part).files):
                await _load(run, files)
        loaded[id(message)] = message
    return run.files


async def _load(run: ActiveTurn, files: Iterable[FilePart]) -> None:
    for file in files:
        for blob in filter(None, (file.blob, file.text)):
            if blob not in run.files:
                with suppress(UnknownMessage):
                    run.files[blob] = await run.setup.store.blob(blob)


def _own_messages(run: ActiveTurn) -> Iterator[RequestMessage]:
    """The turn's own messages. A finished step never changes, so each is rendered once and cached."""
    for message in run.state.messages.values():
        if message.refused:
            continue
        rendered, parts = run.rendered_own.get(message.id, ([], 0))
        if parts and is_continued(message.parts[parts - 1]):  # then it is one message with what follows
            rendered, parts = [], 0
        if len(message.parts) > parts:
            rendered += render_own_message(message, parts, run.state.rejected)
            run.rendered_own[message.id] = (rendered, len(message.parts))
        yield from rendered


def system_prompt(options: TurnOptions, started: float) -> list[str]:
    """Header first and unchanging, then the body. The date has no time of day: a changing second would break caches."""
    prompt = options.prompt or NO_PROMPT
    timezone = options.timezone or prompt.timezone
    body = [text for _, text in instruction_layers(options)]
    return [*body, today(timezone, started), prompt.privacy] if timezone else [*body, prompt.privacy]


def instruction_layers(options: TurnOptions) -> list[tuple[str, str]]:
    """The texts of the system prompt with their names, in the order in which they are sent; the privacy rule is last."""
    if (prompt := options.prompt) is None:
        return [("agent", options.system)]
    return [
        ("header", prompt.header),
        ("model", "" if options.system else prompt.model),
        ("app", prompt.agent),
        ("workspace", prompt.workspace),
        ("shared", prompt.shared),
        ("custom", prompt.custom),
        ("user", prompt.user),
        ("agent", options.system),
        ("session", prompt.session),
    ]


def today(timezone: str, started: float) -> str:
    """The day on which a turn started, as a line of the system prompt."""
    zone: tzinfo = UTC if timezone == "UTC" else ZoneInfo(timezone)
    return f"Today is {datetime.fromtimestamp(started, zone).date().isoformat()} ({timezone})."


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
