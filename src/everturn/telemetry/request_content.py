"""Request content: the request of a step as it is sent, as attributes of its span. Used only if content is asked for.

The request is not in the log, which has what it is made of: so a plugin that runs after all others records it. Another
process that takes over the step builds the request again, and records it then.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from everturn.core.hooks import RequestContext
from everturn.core.messages import Message
from everturn.core.parts import (
    LATE_NOTICE_PREFIX,
    FilePart,
    NoticePart,
    ProviderToolPart,
    ReasoningPart,
    TextPart,
    ToolPart,
    provider_tool_note,
)
from everturn.core.requests import ModelRequest, RequestCall, RequestMessage, RequestPart, RequestResult, ToolSpec
from everturn.running.hook_contexts import HookContext
from everturn.telemetry.otel_names import PRIVATE, Attributes, content_text

log = logging.getLogger(__name__)

MOST_REQUESTS: Final = 1024  # requests under way in this process; of further ones the spans have no request
MOST_CHARACTERS: Final = (
    64_000  # of the messages of one request: redaction takes time, and collectors refuse long values
)

_MODALITIES: Final = ("image", "video", "audio")


class RequestRecorder:
    """A plugin that keeps the request of each step until its span is created."""

    name = "everturn.telemetry.requests"

    def __init__(self) -> None:
        self._requests: OrderedDict[tuple[str, str, int], Attributes] = OrderedDict()

    async def on_before_request(self, ctx: RequestContext) -> None:
        """Hook: record the body. It is the last of its kind, so what it sees is what is sent."""
        try:
            messages = [*await ctx.run.read_history(), *ctx.messages] if isinstance(ctx, HookContext) else ctx.messages
            self._requests[ctx.session, ctx.turn, ctx.step] = request_attributes(ctx.body, sensitive_calls(messages))
            if len(self._requests) > MOST_REQUESTS:
                self._requests.popitem(last=False)
        except Exception:  # a turn matters more than its trace
            log.exception("the request of turn %s could not be recorded for its span", ctx.turn)

    def take(self, session: str, turn: str, step: int) -> Attributes:
        """The attributes of a recorded request; empty if another process made it."""
        return self._requests.pop((session, turn, step), {})


def sensitive_calls(messages: Iterable[Message]) -> frozenset[str]:
    """The calls whose results were computed from private values."""
    return frozenset(
        part.call
        for message in messages
        for part in message.parts
        if type(part) is ToolPart and any(output.sensitive for output in (part.output, part.late) if output is not None)
    )


def request_attributes(body: ModelRequest, sensitive: frozenset[str] = frozenset()) -> Attributes:
    """A request in the format of the conventions: redacted, truncated, and without results of these calls."""
    rendered, left_out = _render_messages(body.messages, sensitive)
    attributes: Attributes = {"gen_ai.input.messages": _json(rendered)}
    if left_out:
        attributes["everturn.request.messages_left_out"] = left_out
    if body.system:
        attributes["gen_ai.system_instructions"] = _json([{"type": "text", "content": content_text(body.system)}])
    if body.tools:
        attributes["gen_ai.tool.definitions"] = content_of_tools(body.tools)
    return attributes


def content_of_tools(tools: Sequence[ToolSpec]) -> str:
    """The offered tools: what the model reads of each."""
    definitions: list[dict[str, Any]] = []
    size = 0
    for tool in tools:
        definition: dict[str, Any] = {"type": "function", "name": tool.name}
        if size < MOST_CHARACTERS:  # of further tools only the names
            definition |= {"description": content_text(tool.description), "parameters": tool.schema}
            size += len(_json(definition))
        definitions.append(definition)
    return _json(definitions)


def _render_messages(messages: Sequence[RequestMessage], sensitive: frozenset[str]) -> tuple[list[dict[str, Any]], int]:
    """The newest messages that fit, oldest first, and the number of earlier ones that do not."""
    rendered: list[dict[str, Any]] = []
    size = 0
    for message in reversed(messages):
        if size >= MOST_CHARACTERS:
            break
        parts = [shown for part in message.parts for shown in _render_part(part, message, sensitive)]
        entry: dict[str, Any] = {"role": message.role, "parts": parts}
        if message.name:
            entry["name"] = content_text(message.name)
        size += len(_json(entry))
        rendered.append(entry)
    return rendered[::-1], len(messages) - len(rendered)


def _render_part(part: RequestPart, message: RequestMessage, sensitive: frozenset[str]) -> list[dict[str, Any]]:
    match part:
        case TextPart():
            text = part.text
            if message.hint_size and sensitive:  # its digest of results may quote one that is not shown
                text = PRIVATE + text[message.hint_size :]
            return [{"type": "text", "content": content_text(text)}]
        case NoticePart():
            is_private = part.kind.removeprefix(LATE_NOTICE_PREFIX) in sensitive
            return [{"type": "text", "content": PRIVATE if is_private else content_text(part.text)}]
        case ReasoningPart():
            return [{"type": "reasoning", "content": content_text(part.text)}]
        case RequestCall():
            arguments = content_text(part.arguments)
            return [{"type": "tool_call", "id": part.call, "name": part.name, "arguments": arguments}]
        case RequestResult():
            response = PRIVATE if part.call in sensitive else content_text(part.text)
            shown = {"type": "tool_call_response", "id": part.call, "response": response}
            return [shown, *(_render_file(file) for file in part.files)]
        case ProviderToolPart():
            return [{"type": "text", "content": content_text(provider_tool_note(part))}]
        case FilePart():
            return [_render_file(part)]


def _render_file(file: FilePart) -> dict[str, str]:
    """A file by its reference: bytes are not for spans."""
    kind = file.media_type.partition("/")[0]
    modality = kind if kind in _MODALITIES else "document"
    return {"type": "file", "modality": modality, "mime_type": file.media_type, "file_id": file.blob}


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
