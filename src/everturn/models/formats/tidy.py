"""A history → one that no vendor refuses: every call once, with its one result right behind it, and nothing empty.

`core.history` makes such a history by itself. But a plugin may put in its place what it likes, so it is looked at once
more here; one that is in order is handed on untouched.
"""

from __future__ import annotations

from collections.abc import Sequence

from everturn.core.history import NO_RESULT
from everturn.core.parts import ReasoningPart
from everturn.core.requests import RequestCall, RequestMessage, RequestPart, RequestResult

NOTHING = "(nothing)"  # for a result without a word: some vendors refuse an empty one


def tidy(messages: Sequence[RequestMessage]) -> Sequence[RequestMessage]:
    """Put a history in order, by the ids of its calls and not by where things stand."""
    return messages if _is_tidy(messages) else _repair(messages)


def _is_tidy(messages: Sequence[RequestMessage]) -> bool:
    open_calls: list[str] = []  # of the message before
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
    tidied: list[RequestMessage] = []
    made: set[str] = set()
    for message in messages:
        if message.role == "tool":
            continue  # its results stand behind their calls, or have none
        parts: list[RequestPart] = []
        calls: list[RequestCall] = []
        for part in message.parts:
            if isinstance(part, RequestCall):
                if message.role == "user" or part.call in made:
                    continue
                made.add(part.call)
                calls.append(part)
            if not isinstance(part, RequestResult) and (message.role == "assistant" or not _is_thought(part)):
                parts.append(part)
        if parts:
            tidied.append(RequestMessage(message.role, tuple(parts), message.name, message.hint_size))
        if calls:
            tidied.append(RequestMessage("tool", tuple(results.get(call.call) or _missing(call) for call in calls)))
    return tidied


def _is_thought(part: RequestPart) -> bool:
    return isinstance(part, ReasoningPart)


def _missing(call: RequestCall) -> RequestResult:
    return RequestResult(call.call, call.name, NO_RESULT, is_error=True)


def result_text(result: RequestResult) -> str:
    """What a result says; never nothing."""
    return result.text if result.text.strip() else NOTHING
