"""Progress of a turn: how many steps it has taken, and the ids of all calls, read from a request.

It uses the request alone, so that a repeated request gets the same answer. A lax provider has not validated the request
before this runs, so it assumes nothing about its form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from everturn.testing.provider.faults import Format, is_list, is_object

_CAPITAL = re.compile(r"[A-Z]")


def steps_taken(format: Format, body: dict[str, Any]) -> int:
    """How often the model has called tools since the last message of a user."""
    if format in ("chat", "ollama"):
        return _chat(_objects(body.get("messages")))
    if format == "gemini":
        return _gemini(_objects(body.get("contents")))
    if format in ("messages", "converse"):
        return _messages(_objects(body.get("messages")))
    return _responses(_objects(body.get("input")))


def call_ids(format: Format, body: dict[str, Any]) -> set[str]:
    """The ids of the calls in the conversation so far."""
    if format == "responses":
        items = _objects(body.get("input"))
        return {str(item.get("call_id")) for item in items if item.get("type") == "function_call"}
    if format == "gemini":
        calls = [call for content in _objects(body.get("contents")) for call in calls_of(content)]
        return _numbered(calls)
    messages = _objects(body.get("messages"))
    if format == "ollama":
        return _numbered([call for message in messages for call in _objects(message.get("tool_calls"))])
    if format == "chat":
        return {str(call.get("id")) for message in messages for call in _objects(message.get("tool_calls"))}
    blocks = (block for message in messages for block in _objects(message.get("content")))
    return {str(block.get("id")) for block in blocks if block.get("type") == "tool_use"}


def _numbered(calls: list[dict[str, Any]]) -> set[str]:
    """The ids of calls, where not every call has one: those without are numbered by position."""
    return {str(call.get("id") or f"#{at}") for at, call in enumerate(calls)}


def _objects(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if is_object(item)] if is_list(value) else []


def _until_input(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The messages after the last one of a user, newest first."""
    for message in reversed(messages):
        if message.get("role") == "user" and not is_all_results(message):
            return
        yield message


def is_all_results(message: dict[str, Any]) -> bool:
    """Whether a user message of the messages format contains only results of calls."""
    content = message.get("content")
    return is_list(content) and all(is_object(block) and block.get("type") == "tool_result" for block in content)


def _chat(messages: list[dict[str, Any]]) -> int:
    return sum(bool(m.get("tool_calls")) for m in _until_input(messages) if m.get("role") == "assistant")


def calls_of(content: dict[str, Any]) -> list[dict[str, Any]]:
    """The calls in a content of Gemini."""
    calls = (either(part, "functionCall") for part in _objects(content.get("parts")))
    return [call for call in calls if is_object(call)]


def is_results(content: dict[str, Any]) -> bool:
    """Whether a content of Gemini contains results of calls, and no text of a user beside them."""
    parts = _objects(content.get("parts"))
    return any(either(part, "functionResponse") for part in parts) and not any(part.get("text") for part in parts)


def either(holder: dict[str, Any], name: str) -> Any:
    """A field of Google's, which has two names: `functionCall` and `function_call`."""
    found = holder.get(name)
    return holder.get(_CAPITAL.sub(r"_\g<0>", name).lower()) if found is None else found


def _gemini(contents: list[dict[str, Any]]) -> int:
    steps = 0
    for content in reversed(contents):
        if content.get("role") != "model" and not is_results(content):
            break
        steps += bool(calls_of(content))
    return steps


def _messages(messages: list[dict[str, Any]]) -> int:
    return sum(
        any(block.get("type") == "tool_use" for block in _objects(message.get("content")))
        for message in _until_input(messages)
        if message.get("role") == "assistant"
    )


def _responses(items: list[dict[str, Any]]) -> int:
    """Calls form a step until an output comes between them."""
    steps, is_inside = 0, False
    for item in _until_input(items):
        kind = item.get("type")
        if kind == "function_call" and not is_inside:
            steps, is_inside = steps + 1, True
        elif kind == "function_call_output":
            is_inside = False
    return steps
