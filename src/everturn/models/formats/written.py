"""What an earlier request of the same turn has written of a conversation → where to go on, so that each message is
written once in a turn, however many requests that has.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

from everturn.core.requests import ModelRequest, RequestMessage

Shown = TypeVar("Shown")
Notes = TypeVar("Notes")


class Written(NamedTuple, Generic[Shown, Notes]):
    """Messages, what they look like, and what has to be known to write the next (the ids of calls)."""

    messages: list[RequestMessage]
    shown: list[Shown]
    notes: Notes

    def left(self, request: ModelRequest) -> list[RequestMessage]:
        """The messages that are still to be written."""
        return request.messages[len(self.messages) :]


def so_far(request: ModelRequest, key: str, notes: Notes) -> Written[Any, Notes]:
    """What was written under this key; nothing, with fresh notes, if it does not hold any more."""
    written: Written[Any, Notes] | None = request.memo.get(key)
    if written is None or request.messages[: len(written.messages)] != written.messages:  # a plugin has changed it
        return Written([], [], notes)
    left = written.left(request)
    if left and left[0].role == "tool":  # a plugin had kept these results back, and their calls were told without
        return Written([], [], notes)
    return written


def remember(request: ModelRequest, key: str, shown: list[Any], notes: object) -> None:
    """Keep what was written for the next request."""
    request.memo[key] = Written(list(request.messages), shown, notes)
