"""Messages of a request to a model, in short."""

from __future__ import annotations

from everturn.core.parts import TextPart
from everturn.core.requests import RequestMessage, RequestPart, RequestResult


def assistant_message(*parts: RequestPart | str) -> RequestMessage:
    """What the model said; a string is a text part."""
    return RequestMessage("assistant", tuple(TextPart(part) if isinstance(part, str) else part for part in parts))


def tool_message(*parts: RequestResult) -> RequestMessage:
    """The results of calls."""
    return RequestMessage("tool", parts)
