"""OpenTelemetry attribute names: maps our data to the conventions for generative AI (in development; as of 2026, 1.42)."""

from __future__ import annotations

from typing import Final

import msgspec

from everturn.core.messages import Message
from everturn.core.parts import Output, ReasoningPart, StreamedPart, TextPart, ToolPart, Usage, join_text
from everturn.telemetry.redact import redact

Value = str | int | float | bool | tuple[str, ...]
Attributes = dict[str, Value]

MOST_CONTENT: Final = 8_000  # characters of an attribute with message content
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
"""Vendors with another name in the conventions; all others keep their own."""


def provider_and_model(name: str) -> tuple[str, str]:
    """Split `vendor:model` into the provider and the model name of the conventions."""
    vendor, colon, model = name.partition(":")
    if not colon:
        return ("everturn", vendor or "unknown")  # a model that was passed as an object has a name, and no vendor
    return _PROVIDERS.get(vendor, vendor or "unknown"), model.partition("@")[0] or "unknown"


def usage_attributes(usage: Usage) -> Attributes:
    """Token usage, and the cost if it is known."""
    counts: Attributes = {
        "gen_ai.usage.input_tokens": usage.input,
        "gen_ai.usage.output_tokens": usage.output,
        "gen_ai.usage.cache_read.input_tokens": usage.cached,
        "gen_ai.usage.cache_creation.input_tokens": usage.written,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
    }
    always = ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens")
    attributes = {name: value for name, value in counts.items() if value or name in always}
    if usage.cost is not None:
        attributes["everturn.usage.cost"] = usage.cost
    if usage.estimated:
        attributes["everturn.usage.estimated"] = True
    return attributes


def content_text(text: str) -> str:
    """Message content for a span: redacted and truncated."""
    text = redact(text[: 4 * MOST_CONTENT])
    return text if len(text) <= MOST_CONTENT else text[:MOST_CONTENT] + "…"


def content_of_output(output: Output) -> str:
    """The text of a result. It never has values of private fields; a result derived from such values is not shown."""
    return PRIVATE if output.sensitive else content_text(output.text)


def content_of_message(message: Message) -> str:
    """A person's message, in the format of the conventions."""
    return _json(
        [{"role": message.role, "parts": [{"type": "text", "content": content_text(join_text(message.parts))}]}]
    )


def content_of_parts(parts: tuple[StreamedPart, ...], finish: str) -> str:
    """A model's answer, in the format of the conventions, without signatures of reasoning."""
    content: list[dict[str, str]] = []
    for part in parts:
        if isinstance(part, TextPart):
            content.append({"type": "text", "content": content_text(part.text)})
        elif isinstance(part, ReasoningPart):
            content.append({"type": "reasoning", "content": content_text(part.text)})
        elif isinstance(part, ToolPart):
            content.append(
                {"type": "tool_call", "id": part.call, "name": part.name, "arguments": content_text(part.arguments)}
            )
    return _json([{"role": "assistant", "parts": content, "finish_reason": finish}])


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
