"""Our words → those of OpenTelemetry's conventions for generative AI (in development there; as of 2026, version 1.42)."""

from __future__ import annotations

from typing import Final

import msgspec

from everturn.core.messages import Message
from everturn.core.parts import Output, ReasoningPart, StreamedPart, TextPart, ToolPart, Usage, text_of
from everturn.telemetry.redacting import redact

Value = str | int | float | bool | tuple[str, ...]
Attributes = dict[str, Value]

MOST_CONTENT: Final = 8_000  # characters of an attribute that holds what somebody said
PRIVATE: Final = "[private]"

_PROVIDERS: Final = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "google": "gcp.gemini",
    "mistral": "mistral_ai",
    "moonshot": "moonshot_ai",
    "vertex": "gcp.vertex_ai",
    "xai": "x_ai",
}
"""Vendors that have another name there; all others go by their own."""


def provider_and_model(name: str) -> tuple[str, str]:
    """`vendor:model` → who serves it, and as what."""
    vendor, colon, model = name.partition(":")
    if not colon:
        return ("everturn", vendor or "unknown")  # one that was given as an object has a name, and no vendor
    return _PROVIDERS.get(vendor, vendor or "unknown"), model.partition("@")[0] or "unknown"


def usage_attributes(usage: Usage) -> Attributes:
    """Tokens, and what they cost where that is known."""
    named: Attributes = {
        "gen_ai.usage.input_tokens": usage.input,
        "gen_ai.usage.output_tokens": usage.output,
        "gen_ai.usage.cache_read.input_tokens": usage.cached,
        "gen_ai.usage.cache_creation.input_tokens": usage.written,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
    }
    always = ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens")
    made = {name: value for name, value in named.items() if value or name in always}
    if usage.cost is not None:
        made["everturn.usage.cost"] = usage.cost
    if usage.estimated:
        made["everturn.usage.estimated"] = True
    return made


def shown(text: str) -> str:
    """What somebody said, for who asked to see it: without secrets, and not endless."""
    text = redact(text[: 4 * MOST_CONTENT])
    return text if len(text) <= MOST_CONTENT else text[:MOST_CONTENT] + "…"


def shown_output(output: Output) -> str:
    """A result. The values of private fields are not in its text; where it was made of such, nothing is shown."""
    return PRIVATE if output.sensitive else shown(output.text)


def shown_input(message: Message) -> str:
    """What a person sent, in the form of the conventions."""
    return _json([{"role": message.role, "parts": [{"type": "text", "content": shown(text_of(message.parts))}]}])


def shown_parts(parts: tuple[StreamedPart, ...], finish: str) -> str:
    """What a model said, in the form of the conventions. Seals are not in it."""
    said: list[dict[str, str]] = []
    for part in parts:
        if isinstance(part, TextPart):
            said.append({"type": "text", "content": shown(part.text)})
        elif isinstance(part, ReasoningPart):
            said.append({"type": "reasoning", "content": shown(part.text)})
        elif isinstance(part, ToolPart):
            said.append({"type": "tool_call", "id": part.call, "name": part.name, "arguments": shown(part.arguments)})
    return _json([{"role": "assistant", "parts": said, "finish_reason": finish}])


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
