"""Turn cache: the messages that an earlier request of the same turn has converted.

So each message is converted once per turn, however many requests the turn has.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

from everturn.core.requests import ModelRequest, RequestMessage

Shown = TypeVar("Shown")
Notes = TypeVar("Notes")


class TurnCache(NamedTuple, Generic[Shown, Notes]):
    """Messages, their converted form, and the state that the next conversion needs (the ids of calls)."""

    messages: list[RequestMessage]
    converted: list[Shown]
    state: Notes

    def remaining(self, request: ModelRequest) -> list[RequestMessage]:
        """Return the messages that are not converted yet."""
        return request.messages[len(self.messages) :]


def cached_messages(request: ModelRequest, key: str, notes: Notes) -> TurnCache[Any, Notes]:
    """Return the cache of this key; an empty one, with new notes, if it is no longer valid."""
    written: TurnCache[Any, Notes] | None = request.memo.get(key)
    if written is None or request.messages[: len(written.messages)] != written.messages:  # a plugin has changed it
        return TurnCache([], [], notes)
    remaining = written.remaining(request)
    if (
        remaining and remaining[0].role == "tool"
    ):  # a plugin had held these results back, and their calls were converted without
        return TurnCache([], [], notes)
    return written


def cache_messages(request: ModelRequest, key: str, shown: list[Any], notes: object) -> None:
    """Store the converted messages for the next request."""
    request.memo[key] = TurnCache(list(request.messages), shown, notes)
