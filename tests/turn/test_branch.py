"""The messages before a turn: read from the newest on, as far as they are needed."""

from __future__ import annotations

import pytest
from benchmarks.long_logs import session_events

from everturn.core.messages import Message
from everturn.errors import UnknownMessage
from everturn.running.branch import FIRST_PAGE, read_branch
from everturn.stores.memory import MemoryStore


class CountsMessages(MemoryStore):
    """A store that counts the messages that it returns."""

    read = 0

    async def path(self, session: str, leaf: str | None, limit: int | None = None) -> list[Message]:
        messages = await super().path(session, leaf, limit)
        self.read += len(messages)
        return messages


async def session_of(turns: int) -> CountsMessages:
    store = CountsMessages()
    await store.restore("s", "local", session_events(turns))
    return store


async def test_a_branch_is_read_as_far_as_the_start_that_a_message_names() -> None:
    store = await session_of(200)
    whole = await store.path("s", "t199.out")
    ids = [message.id for message in whole]
    for at in (399, 398, 360, 337, 336, 335, 100, 1, 0):
        for start in {at, max(0, at - 3), max(0, at - FIRST_PAGE)}:

            def find(message: Message, at: int = at, start: int = start) -> set[str] | None:
                return {ids[start], ids[(start + at) // 2]} if message.id == ids[at] else None

            assert await read_branch(store, "s", ids[-1], find) == whole[start:]
    assert await read_branch(store, "s", ids[-1]) == whole
    assert await read_branch(store, "s", ids[-1], lambda message: None) == whole
    assert await read_branch(store, "s", None, lambda message: None) == []
    with pytest.raises(UnknownMessage):
        await read_branch(store, "s", "nobody", lambda message: None)


async def test_what_is_read_of_a_branch_does_not_grow_with_it() -> None:
    counts: list[int] = []
    for turns in (100, 1000):
        store = await session_of(turns)
        start = f"t{turns - 5}.in"
        await read_branch(store, "s", f"t{turns - 1}.out", lambda message, start=start: {start})
        counts.append(store.read)
    assert counts[0] == counts[1] == FIRST_PAGE
