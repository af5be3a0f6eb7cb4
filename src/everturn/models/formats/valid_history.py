"""Valid history: a history that no vendor refuses. Every call is there once, with its result right after it.

`core.history` builds such a history by itself. But a plugin may replace it, so it is checked again here; a valid one is
returned unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence

from everturn.core.history import NO_RESULT
from everturn.core.parts import ReasoningPart
from everturn.core.requests import RequestCall, RequestMessage, RequestPart, RequestResult

EMPTY_TEXT = "(nothing)"  # for an empty result, which some vendors refuse


def repair_history(messages: Sequence[RequestMessage]) -> Sequence[RequestMessage]:
    """Return a valid history, repaired by the ids of its calls and not by their positions."""
    return messages if _is_valid(messages) else _repair(messages)


def _is_valid(messages: Sequence[RequestMessage]) -> bool:
    open_calls: list[str] = []  # of the previous message
    seen: set[str] = set()
    for message in messages:
        role = message.role
        if role == "tool":
            if [part.call for part in message.parts if type(part) is RequestResult] != open_calls:
                return False
            if not open_calls or len(message.parts) != len(open_calls):
                return False
            open_calls = []
            continue
        if open_calls or not message.parts:
            return False
        if role == "assistant" and (len(message.parts) != 1 or type(message.parts[0]) is RequestCall):
            open_calls = [part.call for part in message.parts if type(part) is RequestCall]
            if open_calls:
                if not seen.isdisjoint(open_calls) or len(set(open_calls)) < len(open_calls):
                    return False
                seen.update(open_calls)
    return not open_calls


def _repair(messages: Sequence[RequestMessage]) -> list[RequestMessage]:
    results: dict[str, RequestResult] = {}
    for message in messages:
        for part in message.parts:
            if isinstance(part, RequestResult):
                results.setdefault(part.call, part)
    repaired: list[RequestMessage] = []
    seen: set[str] = set()
    for message in messages:
        if message.role == "tool":
            continue  # its results are moved behind their calls; others are dropped
        parts: list[RequestPart] = []
        calls: list[RequestCall] = []
        for part in message.parts:
            if isinstance(part, RequestCall):
                if message.role == "user" or part.call in seen:
                    continue
                seen.add(part.call)
                calls.append(part)
            if not isinstance(part, RequestResult) and (message.role == "assistant" or not _is_thought(part)):
                parts.append(part)
        if parts:
            repaired.append(RequestMessage(message.role, tuple(parts), message.name, message.hint_size))
        if calls:
            repaired.append(RequestMessage("tool", tuple(results.get(call.call) or _missing(call) for call in calls)))
    return repaired


def _is_thought(part: RequestPart) -> bool:
    return isinstance(part, ReasoningPart)


def _missing(call: RequestCall) -> RequestResult:
    return RequestResult(call.call, call.name, NO_RESULT, is_error=True)


def result_text(result: RequestResult) -> str:
    """Return the text of a result; never empty."""
    return result.text if result.text.strip() else EMPTY_TEXT
