"""`everturn ps` page by page: every session that is not at rest and every question, once."""

import pytest

from everturn.cluster.ps import list_open_store
from everturn.errors import ConfigError
from everturn.stores.memory import MemoryStore
from everturn.testing.contracts.directory import send_to_agent
from everturn.testing.contracts.pagination import add_waiting_session
from everturn.testing.contracts.samples import NOON


async def test_pages_have_every_line_once_and_each_says_how_many_there_are() -> None:
    store = MemoryStore()
    for n in range(3):
        await store.admit(send_to_agent(f"runs{n}", f"r{n}", at=NOON + n // 2))
    for n in range(4):
        await add_waiting_session(store, f"asks~{n}", f"a{n}", NOON + n // 3)

    (*whole, count), more = await list_open_store(store)
    assert (len(whole), count, more) == (7, "3 active sessions, 4 open questions", "")
    for size in (1, 2, 3, 4, 7, 8):
        found, after = list[str](), ""
        while True:
            (*lines, summary), after = await list_open_store(store, size, after)
            assert (summary, len(lines) <= size) == (count, True)
            found += lines
            if not after:
                break
        assert found == whole, size


@pytest.mark.parametrize("after", ["nothing", "gates~x~g~s", "~1~~"])
async def test_a_cursor_that_is_none_is_refused(after: str) -> None:
    with pytest.raises(ConfigError, match="--after"):
        await list_open_store(MemoryStore(), 1, after)


async def test_one_is_not_told_as_many() -> None:
    store = MemoryStore()
    assert (await list_open_store(store))[0] == ["0 active sessions, 0 open questions"]
    await store.admit(send_to_agent("runs", "r"))
    await add_waiting_session(store, "asks", "a", NOON)
    assert (await list_open_store(store))[0][-1] == "1 active session, 1 open question"
