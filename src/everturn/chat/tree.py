"""Message tree of a session: all of it, a branch, or one message; a session that has no message yet has none to read."""

from __future__ import annotations

from everturn.core.messages import Message
from everturn.core.store_ports import Store
from everturn.core.tree import MessageTree
from everturn.errors import UnknownMessage, UnknownSession


async def read_tree(store: Store, session: str) -> MessageTree:
    """All messages of a session."""
    try:
        return await store.tree(session)
    except UnknownSession:  # the session is created by its first message
        return MessageTree()


async def read_branch(store: Store, session: str, leaf: str | None = None) -> list[Message]:
    """The selected branch, or the one that ends at `leaf`, oldest first; without hidden messages."""
    try:
        path = await store.path(session, leaf or (await store.info(session)).leaf)
    except UnknownSession:  # the session is created by its first message
        return []
    return [message for message in path if not message.hidden]


async def read_message(store: Store, session: str, message: str) -> Message:
    """One message as the store has it.

    Raises:
        UnknownMessage: it does not exist, or was deleted.
    """
    try:
        (found,) = await store.path(session, message, 1)
    except UnknownSession:  # the session is created by its first message
        raise UnknownMessage(f"there is no message {message!r} in this session") from None
    return found
