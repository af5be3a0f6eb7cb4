"""Objects of OpenAI Responses, as plain data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from everturn.core.gates import Gate
from everturn.core.parts import Usage
from everturn.protocols.openai_common import everturn_object


class ResponseHeader(Struct, frozen=True):
    """The fields of a response that do not come from the turn."""

    id: str
    session: str
    turn: str
    model: str
    created: float
    segment: int = 0
    previous: str = ""
    metadata: dict[str, str] = {}
    is_background: bool = False


def response_object(
    about: ResponseHeader,
    status: str,
    why: str,
    output: list[dict[str, Any]],
    used: Usage | None,
    error: dict[str, Any] | None,
    gates: Iterable[Gate],
) -> dict[str, Any]:
    """The response object."""
    return {
        "id": about.id,
        "object": "response",
        "created_at": int(about.created),
        "status": status,
        "background": about.is_background,
        "error": error,
        "incomplete_details": {"reason": why} if why else None,
        "instructions": None,
        "max_output_tokens": None,
        "model": about.model,
        "output": output,
        "parallel_tool_calls": True,
        "previous_response_id": about.previous or None,
        "store": True,  # whatever was requested: a turn that is not stored could not be continued
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "truncation": "disabled",
        "usage": None if used is None else usage_object(used),
        "metadata": about.metadata,
        "everturn": everturn_object(about.session, about.turn, gates),
    }


def content_part(is_text: bool, text: str) -> dict[str, Any]:
    """A content part: text, or reasoning."""
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text} if is_text else reasoning_part(text)


def reasoning_part(text: str) -> dict[str, Any]:
    """A reasoning part."""
    return {"type": "reasoning_text", "text": text}


def message_item(name: str, text: str, is_done: bool) -> dict[str, Any]:
    """A message item."""
    content = [content_part(True, text)] if is_done else []
    head = {"id": name, "type": "message", "role": "assistant"}
    return {**head, "status": "completed" if is_done else "in_progress", "content": content}


def reasoning_item(name: str, text: str, is_done: bool) -> dict[str, Any]:
    """A reasoning item."""
    head: dict[str, Any] = {"id": name, "type": "reasoning", "summary": []}
    return {
        **head,
        "status": "completed" if is_done else "in_progress",
        "content": [reasoning_part(text)] if is_done else [],
    }


def usage_object(used: Usage) -> dict[str, Any]:
    """The usage object."""
    return {
        "input_tokens": used.input,
        "input_tokens_details": {"cached_tokens": used.cached},
        "output_tokens": used.output,
        "output_tokens_details": {"reasoning_tokens": used.reasoning},
        "total_tokens": used.input + used.output,
    }
