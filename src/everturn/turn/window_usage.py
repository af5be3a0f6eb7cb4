"""Window usage: what fills the context window of a model, for errors and for people."""

from __future__ import annotations

from typing import Final

import msgspec

from everturn.core.context.compaction import SUMMARY_NOTICE
from everturn.core.context.context_report import ContextKind
from everturn.core.context.token_estimate import FILE_TOKENS, MESSAGE_TOKENS, estimate_tokens
from everturn.core.parts import FilePart, NoticePart, ProviderToolPart, ReasoningPart, TextPart
from everturn.core.requests import ModelRequest, RequestCall, RequestMessage, RequestPart, RequestResult

LARGEST: Final = 3  # parts that an error names
LOAD_SKILL: Final = "load_skill"  # its results are instructions that the model loads when it needs them


def window_usage(body: ModelRequest) -> dict[ContextKind, int]:
    """The estimated tokens of a request by what they are for, the largest first."""
    usage: dict[ContextKind, int] = {"instructions": estimate_tokens(body.system), "tools": 0}
    for spec in body.tools:
        usage["tools"] += estimate_tokens(spec.name + spec.description + msgspec.json.encode(spec.schema).decode())
    for message in body.messages:
        for part in message.parts:
            kind = _kind(message, part)
            usage[kind] = usage.get(kind, 0) + _tokens(part)
    return dict(sorted(((kind, size) for kind, size in usage.items() if size), key=lambda item: -item[1]))


def estimate_request(body: ModelRequest) -> int:
    """The estimated tokens of a whole request."""
    return sum(window_usage(body).values())


def _kind(message: RequestMessage, part: RequestPart) -> ContextKind:
    match part:
        case NoticePart(kind=kind):
            return "summary" if kind == SUMMARY_NOTICE else "notices"
        case FilePart():
            return "files"
        case ProviderToolPart():
            return "results"
        case RequestResult(name=name):
            return "skills" if name == LOAD_SKILL else "results"
        case _:
            return "person" if message.role == "user" else "answers"


def _tokens(part: RequestPart) -> int:
    match part:
        case TextPart() | ReasoningPart() | NoticePart():
            return estimate_tokens(part.text) + MESSAGE_TOKENS
        case FilePart():
            return FILE_TOKENS
        case ProviderToolPart():
            return estimate_tokens(part.opaque.data if part.opaque is not None else part.text) + MESSAGE_TOKENS
        case RequestCall():
            return estimate_tokens(part.name + part.arguments) + MESSAGE_TOKENS
        case RequestResult():
            return estimate_tokens(part.text) + MESSAGE_TOKENS + FILE_TOKENS * len(part.files)


_LABELS: Final[dict[ContextKind, str]] = {"person": "messages of the person", "results": "tool results"}
_ADVICE: Final[dict[ContextKind, str]] = {
    "instructions": "shorten the instructions",
    "tools": "offer fewer tools (tools=[…])",
    "person": "send less text, or a file that a tool reads",
    "files": "leave files out",
    "results": "lower the limit of results (OutputLimits)",
}
_NEW_CONVERSATION: Final = "start a new conversation"


def describe_window(body: ModelRequest, window: int) -> str:
    """What fills the window of a request that is too long, and what can be done about it."""
    usage = window_usage(body)
    largest = list(usage)[:LARGEST]
    parts = ", ".join(f"{_LABELS.get(kind, kind)} {usage[kind]:,}" for kind in largest)
    advice = dict.fromkeys(_ADVICE.get(kind, _NEW_CONVERSATION) for kind in largest)
    known = f" of {window:,} tokens" if window else ""
    return (
        f"The request of about {sum(usage.values()):,} tokens does not fit into the context window{known}, and nothing more "
        f"can be compacted. The largest parts in tokens: {parts}. You can: {'; '.join(advice)}; or take a model with a "
        "larger context window."
    )
