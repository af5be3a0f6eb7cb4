"""Long logs: what is done again and again reads as many rows in a session of 300 turns as in one of three."""

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from benchmarks.long_logs import session_events, turn_events
from tests.helpers.sqlite_files import empty_database

from everturn import Chat
from everturn.chat.admission import was_admitted
from everturn.core.events import CommandDropped, Event, FilesChanged, GateOpened, MessageAdded, SubagentStarted
from everturn.core.gates import Gate
from everturn.core.messages import Message
from everturn.core.parts import TextPart
from everturn.core.state import fold
from everturn.models.scripted import ScriptedModel
from everturn.running.subagent_index import detached_subagent_sessions
from everturn.stores.sql.append import RESTORE_BATCH
from everturn.stores.sql.database import Operation, Query
from everturn.stores.sql.sqlite import Sqlite
from everturn.stores.sql.store import SqlStore
from everturn.testing.contracts.samples import send_message

SHORT, LONG = 3, 300


class CountingSqlite(Sqlite):
    """A database that counts the rows it returns, by statement."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.rows: Counter[str] = Counter()

    async def read(self, operation: Callable[[], Operation[Any]], is_long: bool = False) -> Any:
        return await super().read(lambda: self._counted(operation()), is_long)

    async def write(self, operation: Callable[[bool], Operation[Any]], session: str, is_long: bool = False) -> Any:
        return await super().write(lambda again: self._counted(operation(again)), session, is_long)

    def _counted(self, operation: Operation[Any]) -> Operation[Any]:
        try:
            query: Query = next(operation)
            while True:
                rows = yield query
                self.rows[query.statement.name] += len(rows)
                query = operation.send(rows)
        except StopIteration as end:
            return end.value


def keyed_events(turn: str) -> list[Event]:
    """Events of the first turn that are looked for by their keys, however long the log has become."""
    gate = Gate("g", turn, f"{turn}.c1.0", "look", "{}", "hash")
    steered = Message("steered", f"{turn}.in", "user", (TextPart("and?"),), turn=turn)
    return [
        GateOpened(turn=turn, at=1.0, gate=gate),
        SubagentStarted(turn=turn, at=1.0, call=f"{turn}.c1.0", session="s-child", child="c", number=1),
        MessageAdded(turn=turn, at=1.0, message=steered, command="joined"),
        FilesChanged(turn=turn, at=1.0, step=1, root="/home", before="a" * 40, after="b" * 40),
        CommandDropped(at=1.0, command="dropped", reason="too late"),
    ]


@asynccontextmanager
async def session_of(folder: Path, turns: int) -> AsyncGenerator[tuple[CountingSqlite, Chat]]:
    """A session of so many turns, and a chat in it."""
    database = CountingSqlite(empty_database(folder / f"{turns}.db"))
    store = SqlStore(database)
    first = turn_events(0)
    await store.restore(
        "s", "local", [*first[:-2], *keyed_events("t0"), *first[-2:], *session_events(turns)[len(first) :]]
    )
    async with Chat(ScriptedModel(*["fine"] * (2 * turns + 9)), store=store, session="s") as chat:
        database.rows.clear()
        yield database, chat
    await store.aclose()


async def _joined(chat: Chat) -> None:
    turn = chat.turn("never began")
    turn._key = "joined"
    assert await turn._joined() == "t0"


async def _drop_reason(chat: Chat) -> None:
    assert await chat.app.find_drop_reason("s", "dropped") == "too late"


async def _was_taken(chat: Chat) -> None:
    assert not await was_admitted(chat.app.store, chat.session, "nobody")


async def _detached(chat: Chat) -> None:
    assert await detached_subagent_sessions(chat.app.store, "s") == []


async def _delete(chat: Chat) -> None:
    await chat.delete((await chat.app.store.path("s", (await chat.app.store.info("s")).leaf, 1))[0])


async def _select(chat: Chat) -> None:
    await chat.fork("t0.out")


async def _gate(chat: Chat) -> None:
    (entry,) = await chat.app.store.indexed_events("s", "gate", "g")
    assert isinstance(entry.event, GateOpened)


async def _last_page(chat: Chat) -> None:
    assert len(await chat.app.store.path("s", (await chat.app.store.info("s")).leaf, 5)) == 5


@pytest.mark.parametrize(
    "operation", [_joined, _drop_reason, _was_taken, _detached, _delete, _select, _gate, _last_page]
)
async def test_an_operation_reads_as_many_rows_of_a_long_log_as_of_a_short_one(
    tmp_path: Path, operation: Callable[[Chat], Awaitable[None]]
):
    rows: list[int] = []
    for turns in (SHORT, LONG):
        async with session_of(tmp_path, turns) as (database, chat):
            await operation(chat)
            rows.append(database.rows.total())
    assert rows[1] <= rows[0] + 2


async def test_a_long_log_is_restored_in_batches_and_is_what_it_was(tmp_path: Path):
    events = session_events(RESTORE_BATCH // 6)  # more than two batches, which begin in the middle of turns
    database = CountingSqlite(tmp_path / "a.db")
    store = SqlStore(database)
    await store.restore("s", "local", events)

    assert len(events) > 2 * RESTORE_BATCH
    assert [entry.event for entry in await store.events("s")] == events
    tree = await store.tree("s")
    last = tree.messages[f"t{RESTORE_BATCH // 6 - 1}.out"]
    assert tree.leaf == last.id
    assert len(tree.messages) == 2 * (RESTORE_BATCH // 6)
    state = fold(event for event in events if getattr(event, "turn", "") == last.turn)
    assert last == state.messages[last.id]
    assert await store.open_turns("s") == []
    assert (await store.claim("s", 1.0)) is None
    await store.admit(send_message())
    claim = await store.claim("s", 1.0)
    assert claim is not None
    assert claim.head == len(events)
    await store.aclose()
