"""Titles of sessions that are admitted and have not started: derived from the command that waits in the inbox."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from everturn.core.commands import Send
from everturn.core.store_ports import SessionInfo, Store
from everturn.core.titles import derive_title
from everturn.errors import UnknownSession


async def with_title(store: Store, info: SessionInfo) -> SessionInfo:
    """The session with the title that its first turn will give it, where no turn has given it one yet.

    A session that is not awake has nothing in its inbox; one that has started has its title in the log. So this reads
    an inbox only for a session that no worker has picked up yet.
    """
    if info.title or not info.is_awake:
        return info
    try:
        waiting = await store.inbox(info.id)
    except UnknownSession:  # erased meanwhile
        return info
    titles = (derive_title(command.parts) for command in waiting if isinstance(command, Send))
    return replace(info, title=next(filter(None, titles), ""))


async def with_titles(store: Store, infos: Iterable[SessionInfo]) -> list[SessionInfo]:
    """The same for a page of sessions."""
    return [await with_title(store, info) for info in infos]
