"""The objects of OpenAI Responses, as plain data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from everturn.core.asking import Gate
from everturn.core.parts import Usage
from everturn.protocols.openai import told_of


class About(Struct, frozen=True):
    """What a response says of itself that is not in the turn."""

    id: str
    session: str
    turn: str
    model: str
    created: float
    segment: int = 0
    previous: str = ""
    metadata: dict[str, str] = {}
    is_background: bool = False


def response(
    about: About,
    status: str,
    why: str,
    output: list[dict[str, Any]],
    used: Usage | None,
    error: dict[str, Any] | None,
    gates: Iterable[Gate],
) -> dict[str, Any]:
    """The object that a response is."""
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
        "store": True,  # whatever was asked: a turn that is not kept could not be gone on with
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "truncation": "disabled",
        "usage": None if used is None else usage(used),
        "metadata": about.metadata,
        "everturn": told_of(about.session, about.turn, gates),
    }


def part(is_text: bool, text: str) -> dict[str, Any]:
    """A part of an item: text, or reasoning."""
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text} if is_text else reasoning(text)


def reasoning(text: str) -> dict[str, Any]:
    """A part that is reasoning."""
    return {"type": "reasoning_text", "text": text}


def message(name: str, text: str, is_done: bool) -> dict[str, Any]:
    """An item that is text."""
    content = [part(True, text)] if is_done else []
    head = {"id": name, "type": "message", "role": "assistant"}
    return {**head, "status": "completed" if is_done else "in_progress", "content": content}


def thought(name: str, text: str, is_done: bool) -> dict[str, Any]:
    """An item that is reasoning."""
    head: dict[str, Any] = {"id": name, "type": "reasoning", "summary": []}
    return {
        **head,
        "status": "completed" if is_done else "in_progress",
        "content": [reasoning(text)] if is_done else [],
    }


def usage(used: Usage) -> dict[str, Any]:
    """What was used."""
    return {
        "input_tokens": used.input,
        "input_tokens_details": {"cached_tokens": used.cached},
        "output_tokens": used.output,
        "output_tokens_details": {"reasoning_tokens": used.reasoning},
        "total_tokens": used.input + used.output,
    }
