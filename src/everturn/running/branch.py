"""Branch: reads the messages before a turn from the newest on, and no further than they are needed."""

from __future__ import annotations

from collections.abc import Callable, Collection

from everturn.core.messages import Message
from everturn.core.store_ports import EventLog

FIRST_PAGE = 64  # messages of the first page; each further page is twice as long

FindNeeded = Callable[[Message], Collection[str] | None]
"""From a message of a branch to the messages that are still needed, if it says so; everything after them is, too."""


async def read_branch(
    store: EventLog, session: str, leaf: str | None, find_needed: FindNeeded | None = None
) -> list[Message]:
    """Read a branch that ends at `leaf`, oldest first.

    With `find_needed` it is asked about each message, newest first, until it names the messages that are needed; nothing
    before the first of them is returned, and little of it read.

    Raises:
        UnknownMessage: the leaf does not exist, or was deleted.
    """
    if find_needed is None:
        return await store.path(session, leaf)
    messages: list[Message] = []  # newest first
    needed: set[str] | None = None
    size, end = FIRST_PAGE, leaf
    while end is not None:
        page = await store.path(session, end, size)
        for message in reversed(page):
            messages.append(message)
            if needed is None and (found := find_needed(message)) is not None:
                needed = set(found)
            if needed is not None:
                needed.discard(message.id)
                if not needed:
                    return messages[::-1]
        size, end = 2 * size, page[0].parent if page else None
    return messages[::-1]
