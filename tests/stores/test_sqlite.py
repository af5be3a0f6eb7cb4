"""The SQL store on SQLite keeps its contract, and what it acknowledged is there whatever happens to its process."""

from __future__ import annotations

import asyncio
import importlib
import os
import pkgutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, cast

import pytest
from tests.helpers.crash_harness import Process, Story, World, check, entries_in, plain, unknown_calls, without_results
from tests.helpers.crash_scenarios import STORIES
from tests.helpers.sqlite_files import empty_database

from everturn import failpoints
from everturn.core.commands import Send
from everturn.core.events import TitleSet
from everturn.core.parts import Usage
from everturn.core.store_ports import Store, TurnSnapshot
from everturn.errors import KeyConflict, Stale, StoreBusy, StoreUnavailable, UnknownSession
from everturn.stores.sql import append, statements
from everturn.stores.sql.admission import admit
from everturn.stores.sql.database import Operation, Query, Statement
from everturn.stores.sql.row_security import restrict_to_tenant
from everturn.stores.sql.sqlite import _switch_to_wal
from everturn.stores.sql.statements.admission import ADD_COMMAND
from everturn.stores.sql.statements.sessions import SESSIONS
from everturn.stores.sql.store import SqlStore
from everturn.testing import MemoryStore
from everturn.testing.contracts import StoreContract
from everturn.testing.contracts.samples import (
    NOON,
    answer_gate,
    call_requested_events,
    gate_opened_events,
    send_message,
    turn_ended_events,
    turn_started_events,
)


class TestSqlite(StoreContract):
    @pytest.fixture(autouse=True)
    async def _files(self, tmp_path: Path) -> AsyncIterator[None]:
        self.folder, self.made = tmp_path, list[SqlStore]()
        yield
        for store in self.made:
            await store.aclose()

    async def make(self) -> Store:
        self.made.append(SqlStore.sqlite(empty_database(self.folder / f"{len(self.made)}.db")))
        return self.made[-1]


class Reopened:
    """A store whose file is opened anew for every verb: nothing is known but what the file says."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._snapshots: list[tuple[str, TurnSnapshot]] = []

    def keep_snapshot(self, session: str, snapshot: TurnSnapshot) -> None:
        self._snapshots.append((session, snapshot))

    def restrict_to_tenant(self, tenant: str) -> AbstractContextManager[None]:
        return restrict_to_tenant(tenant)

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            store = SqlStore.sqlite(self._path)
            while verb == "append" and self._snapshots:
                store.keep_snapshot(*self._snapshots.pop(0))
            try:
                return await getattr(store, verb)(*args, **kwargs)
            finally:
                await store.aclose()

        return call


class TestReopened(StoreContract):
    @pytest.fixture(autouse=True)
    def _files(self, tmp_path: Path) -> None:
        self.folder, self.count = tmp_path, 0

    async def make(self) -> Store:
        self.count += 1
        return cast("Store", Reopened(empty_database(self.folder / f"{self.count}.db")))


class TestInMemory(StoreContract):
    @pytest.fixture(autouse=True)
    async def _closed(self) -> AsyncIterator[None]:
        self.made = list[SqlStore]()
        yield
        for store in self.made:
            await store.aclose()

    async def make(self) -> Store:
        self.made.append(SqlStore.sqlite(":memory:"))
        return self.made[-1]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqlStore]:
    store = SqlStore.sqlite(tmp_path / "s.db")
    yield store
    failpoints.install_plan(None)
    await store.aclose()


# Runs of which nobody knows the end ----------------------------------------------------------------------------------------


async def test_an_append_that_is_run_again_has_one_effect(store: SqlStore) -> None:
    await store.admit(send_message())

    def again(after: int, token: str) -> Any:
        events = turn_started_events() if after == 0 else turn_ended_events()
        return store._database.write(lambda _: append.append(None, "s", after, events, None, token), "s")

    assert (await again(0, "first"))[0] == (await again(0, "first"))[0] == 2
    assert [entry.event for entry in await store.events("s")] == turn_started_events()

    await again(2, "second")
    with pytest.raises(Stale):  # its trace is gone with the next append, and so is whoever waited for it
        await again(0, "first")
    assert await store.head("s") == 4


async def test_an_admission_that_is_run_again_has_one_effect_and_is_still_news(store: SqlStore) -> None:
    def run(command: Send, again: bool) -> Any:
        return store._database.write(lambda _: admit(command, again), "s")

    assert (await run(send_message(), False)).is_new
    assert (await run(send_message(), True)).is_new
    assert not (await run(send_message(), False)).is_new  # somebody sent it a second time
    assert not (await run(send_message(turn="t2"), True)).is_new  # somebody else was quicker
    assert await store.inbox("s") == [send_message()]


async def test_a_restore_that_is_run_again_has_one_effect(store: SqlStore) -> None:
    def run(token: str) -> Any:
        return store._database.write(lambda _: append.restore("s", "local", turn_started_events(), token), "s")

    await run("ours")
    await run("ours")
    with pytest.raises(KeyConflict):
        await run("theirs")
    assert await store.head("s") == 2


def dying_at(place: str) -> Callable[[str], None]:
    def plan(point: str) -> None:
        if point == place:
            raise sqlite3.OperationalError("the disk is gone")

    return plan


@pytest.mark.parametrize("place", ["store.group.before", "store.commit.before"])
async def test_what_was_not_made_safe_is_not_acknowledged_and_not_there(store: SqlStore, place: str) -> None:
    await store.admit(send_message())
    await store.append("s", 0, turn_started_events())
    failpoints.install_plan(dying_at(place))

    with pytest.raises(StoreUnavailable):
        await store.append("s", 2, gate_opened_events())
    with pytest.raises(StoreUnavailable):
        await store.admit(send_message("k2", turn="t2"))
    failpoints.install_plan(None)

    assert await store.inbox("s") == []
    assert await store.append("s", 2, gate_opened_events()) == 6


async def test_what_was_made_safe_and_not_acknowledged_is_found_by_whoever_tries_again(store: SqlStore) -> None:
    failpoints.install_plan(dying_at("store.commit.after"))
    with pytest.raises(StoreUnavailable):
        await store.admit(send_message())
    failpoints.install_plan(None)

    receipt = await store.admit(send_message())

    assert (receipt.is_new, receipt.command) == (False, send_message())
    assert await store.inbox("s") == [send_message()]


# Groups -------------------------------------------------------------------------------------------------------------------


def half(session: str) -> Operation[None]:
    """An operation that fails when it has written something."""
    yield Query(ADD_COMMAND, (session, "half", "", "Send", b"{}"))
    raise ValueError("in the middle")


async def test_one_that_is_refused_does_not_disturb_the_others_of_its_group(store: SqlStore) -> None:
    names = [f"s{at}" for at in range(40)]
    await asyncio.gather(*(store.admit(send_message(session=name)) for name in names))

    done = await asyncio.gather(
        *(store.append(name, at % 2, turn_started_events()) for at, name in enumerate(names)),
        store.admit(send_message("k", "s0", text="something else")),
        store._database.write(lambda _: half("s1"), "s1"),
        return_exceptions=True,
    )

    assert [type(outcome) for outcome in done[-2:]] == [KeyConflict, ValueError]
    assert [2 if isinstance(outcome, int) else type(outcome) for outcome in done[:-2]] == [2, Stale] * 20
    assert [await store.head(name) for name in names] == [2, 0] * 20
    assert [len(await store.inbox(name)) for name in names] == [0, 1] * 20


async def test_two_stores_on_one_file_see_each_other_and_are_fenced(store: SqlStore, tmp_path: Path) -> None:
    other = SqlStore.sqlite(tmp_path / "s.db")
    await store.admit(send_message())
    first = await store.claim("s", NOON)
    second = await other.claim("s", NOON)
    assert first is not None
    assert second is not None

    with pytest.raises(Stale):
        await store.append("s", 0, turn_started_events(), first.epoch)
    await other.append("s", 0, turn_started_events(), second.epoch)
    assert await store.events("s") == await other.events("s")
    third = await store.claim("s", NOON)
    assert third is not None
    assert third.head == 2
    await store.append("s", 2, [*gate_opened_events(), *turn_ended_events()], third.epoch)

    assert await other.tree("s") == await store.tree("s")
    assert await other.path("s", "t.out") == (await store.tree("s")).path("t.out")
    await other.aclose()


async def test_while_another_process_writes_the_loop_is_free_and_the_write_waits(
    store: SqlStore, tmp_path: Path
) -> None:
    await store.admit(send_message())
    other = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    waiting = asyncio.ensure_future(store.admit(send_message("k2", turn="t2")))
    for _ in range(20):
        await asyncio.sleep(0.001)
    assert not waiting.done()
    assert len(await store.inbox("s")) == 1
    other.execute("COMMIT")
    other.close()

    assert (await waiting).is_new


async def test_closing_waits_for_what_is_under_way(tmp_path: Path) -> None:
    store = SqlStore.sqlite(tmp_path / "s.db")
    await store.admit(send_message())
    writing = [asyncio.ensure_future(store.admit(send_message(f"k{at}", turn=f"t{at}"))) for at in range(300)]
    await asyncio.sleep(0)
    await store.aclose()

    assert all(receipt.is_new for receipt in await asyncio.gather(*writing))
    with pytest.raises(StoreUnavailable):
        await store.admit(send_message("late", turn="late"))
    with pytest.raises(StoreUnavailable):
        await store.head("s")


def test_opening_a_new_file_waits_for_another_connection_that_opens_it(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "a.db", isolation_level=None, check_same_thread=False)
    # Without a busy timeout: SQLite does not use it either when two connections switch to WAL at once.
    ours = sqlite3.connect(tmp_path / "a.db", isolation_level=None, timeout=0)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        _switch_to_wal(ours, 0.05)
    release = threading.Timer(0.2, other.execute, ("COMMIT",))
    release.start()

    _switch_to_wal(ours, 60)

    assert ours.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    release.join()
    other.close()
    ours.close()


async def test_a_write_that_waited_for_the_file_while_the_store_was_closed_says_so(tmp_path: Path) -> None:
    store = SqlStore.sqlite(tmp_path / "a.db")
    writing, reading = asyncio.ensure_future(store.admit(send_message())), asyncio.ensure_future(store.head("s"))
    await asyncio.sleep(0)  # both wait for the file to be opened
    await store.aclose()

    for waiting in (writing, reading):
        with pytest.raises(StoreUnavailable, match="is closed"):
            await waiting


async def test_a_file_that_is_no_database_is_said_to_be_unavailable(tmp_path: Path) -> None:
    (tmp_path / "s.db").write_bytes(b"this is a letter, not a database " * 100)
    store = SqlStore.sqlite(tmp_path / "s.db")

    with pytest.raises(StoreUnavailable):
        await store.admit(send_message())
    with pytest.raises(StoreUnavailable):
        await SqlStore.sqlite(tmp_path / "no" / "such" / "folder.db").sessions()
    await store.aclose()


def test_a_store_outlives_its_event_loop(tmp_path: Path) -> None:
    store = SqlStore.sqlite(tmp_path / "s.db")

    assert asyncio.run(store.admit(send_message())).is_new
    assert not asyncio.run(store.admit(send_message())).is_new
    asyncio.run(store.aclose())


async def test_usage_is_summed_over_a_session_and_over_a_tenant(store: SqlStore) -> None:
    for session, minute in (("s", 1), ("s2", 2)):
        await store.admit(send_message(session=session))
        used, at = Usage(10 * minute, minute, cost=0.5), NOON + 60 * minute
        await store.append(session, 0, [*turn_started_events(), *call_requested_events(usage=used, at=at)])

    assert await store.usage("s") == Usage(10, 1, cost=0.5)
    assert await store.usage(tenant="local") == Usage(30, 3, cost=1.0)
    assert await store.usage(tenant="local", since=NOON + 120) == Usage(20, 2, cost=0.5)
    assert await store.usage(tenant="nobody") == Usage()


POINTS = [
    statement
    for module in pkgutil.iter_modules(statements.__path__, f"{statements.__name__}.")
    for statement in vars(importlib.import_module(module.name)).values()
    if isinstance(statement, Statement) and statement is not SESSIONS
]


@pytest.mark.parametrize("statement", POINTS, ids=lambda statement: statement.name)
async def test_no_statement_reads_a_table_from_end_to_end(
    store: SqlStore, tmp_path: Path, statement: Statement
) -> None:
    await store.sessions()
    connection = sqlite3.connect(tmp_path / "s.db")
    nothing = [None] * _wanted(statement.sqlite)
    # By name where they are numbered: 3.12.0 to 3.12.3 warn of a sequence.
    parameters = {str(at): None for at, _ in enumerate(nothing, 1)} if "?1" in statement.sqlite else nothing
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement.sqlite}", parameters)]
    connection.close()

    scanned = [step for step in plan if step.startswith("SCAN") and "INDEX" not in step]
    assert not [step for step in scanned if step.split()[1] not in ("up", "b", "subtree", "CONSTANT")], plan


def _wanted(text: str) -> int:
    """How many parameters a statement takes: numbered ones, or one for every mark."""
    return max(number for number in range(20) if not number or f"?{number}" in text) or text.count("?")


# Processes that die -----------------------------------------------------------------------------------------------------------

ADMITS = """
import asyncio, sys
from everturn.core.commands import Send
from everturn.core.events import TitleSet
from everturn.stores.sql.sqlite import _switch_to_wal
from everturn.stores.sql.statements.admission import ADD_COMMAND
from everturn.stores.sql.statements.sessions import SESSIONS
from everturn.stores.sql.store import SqlStore

async def admit(store, lane):
    for at in range(100_000):
        command = Send(key=f"{lane}.{at}", session=f"s{at % 7}", turn=f"{lane}.{at}", at_leaf=True)
        await store.admit(command)
        print(command.session, command.key, flush=True)

async def main():
    store = SqlStore.sqlite(sys.argv[1])
    await asyncio.gather(*(admit(store, lane) for lane in range(8)))

asyncio.run(main())
"""

HOLDS = """
import asyncio, os, sys, time
from everturn.stores.sql.sqlite import _switch_to_wal
from everturn.stores.sql.statements.admission import ADD_COMMAND
from everturn.stores.sql.statements.sessions import SESSIONS
from everturn.stores.sql.store import SqlStore
asyncio.run(SqlStore.sqlite(sys.argv[1]).lock_for_process())
print(os.getpid(), flush=True)
time.sleep(60)
"""

FILLS = """
import asyncio, os, resource, sys
from everturn.core.commands import Send
from everturn.core.events import TitleSet
from everturn.core.parts import TextPart
from everturn.errors import StoreUnavailable
from everturn.stores.sql.sqlite import _switch_to_wal
from everturn.stores.sql.statements.admission import ADD_COMMAND
from everturn.stores.sql.statements.sessions import SESSIONS
from everturn.stores.sql.store import SqlStore

async def main():
    store, path = SqlStore.sqlite(sys.argv[1]), sys.argv[1]
    refused = at = 0
    await store.sessions()
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (700_000, hard))
    while refused < 3:
        at += 1
        command = Send(key=str(at), session="s", turn=str(at), parts=(TextPart("x" * 5000),), at_leaf=True)
        try:
            await store.admit(command)
            print("s", command.key, flush=True)
        except StoreUnavailable:
            refused += 1
            if refused == 2:
                resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
                await store.admit(Send(key="after", session="s", turn="after", at_leaf=True))
                print("s after", flush=True)
                refused = 3
    await store.aclose()

asyncio.run(main())
"""


def run(script: str, path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True)


def lines(process: subprocess.Popen[str], most: int = 1_000_000) -> list[str]:
    assert process.stdout is not None
    output: list[str] = []
    for line in process.stdout:
        output.append(line)
        if len(output) == most:
            break
    return output


async def test_what_a_process_acknowledged_before_it_was_killed_is_there_once(tmp_path: Path) -> None:
    acknowledged: set[tuple[str, ...]] = set()
    for round in range(3):
        process = run(ADMITS.replace("{lane}.", f"{round}.{{lane}}."), tmp_path / "s.db")
        output = lines(process, most=150)
        process.send_signal(signal.SIGKILL)
        output += lines(process)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
        acknowledged |= {tuple(line.split()) for line in output if line.endswith("\n")}
    store = SqlStore.sqlite(tmp_path / "s.db")
    found = [(info.id, command.key) for info in await store.sessions() for command in await store.inbox(info.id)]
    await store.aclose()

    assert len(acknowledged) >= 450
    assert acknowledged <= set(found)
    assert len(found) == len(set(found))


async def test_one_process_drives_a_file_until_it_ends_however_that_is(tmp_path: Path) -> None:
    process = run(HOLDS, tmp_path / "s.db")
    [pid] = lines(process, most=1)
    store = SqlStore.sqlite(tmp_path / "s.db")

    with pytest.raises(StoreBusy, match=f"process {pid.strip()} "):
        await store.lock_for_process()
    assert (await store.admit(send_message())).is_new  # who drives is one thing, who writes to it another
    process.send_signal(signal.SIGKILL)
    process.wait()
    await store.lock_for_process()
    await store.lock_for_process()

    other = SqlStore.sqlite(tmp_path / "s.db")
    with pytest.raises(StoreBusy):
        await other.lock_for_process()
    await store.aclose()
    await other.lock_for_process()
    await other.aclose()
    assert process.stdout is not None
    process.stdout.close()


async def test_on_a_full_disk_nothing_is_acknowledged_that_is_not_there_and_it_goes_on_when_there_is_space(
    tmp_path: Path,
) -> None:
    process = run(FILLS, tmp_path / "s.db")
    acknowledged = [line.split()[1] for line in lines(process)]
    assert process.wait() == 0
    assert process.stdout is not None
    process.stdout.close()
    store = SqlStore.sqlite(tmp_path / "s.db")
    found = [command.key for command in await store.inbox("s")]
    await store.aclose()

    assert len(acknowledged) > 5
    assert acknowledged[-1] == "after"
    assert found == acknowledged


# Stories ------------------------------------------------------------------------------------------------------------------------


async def tell(path: Path, story: Story, lives: int | None = None) -> World:
    """Tell a story on a file; when its process dies, another opens the file anew."""
    store = SqlStore.sqlite(empty_database(path))
    world = World(store=cast("MemoryStore", store))
    if not await Process(story, world, lives).tell():
        await store.aclose()
        world.store = cast("MemoryStore", SqlStore.sqlite(path))
        assert await Process(story, world).tell()
    return world


TOLD = ("parallel calls", "two gates", "cancel while a tool runs", "plugins append", "a tree", "a late result")


@pytest.mark.parametrize("story", [story for story in STORIES if story.name in TOLD], ids=lambda story: story.name)
async def test_a_story_stopped_after_any_event_ends_as_if_it_had_not_been(story: Story, tmp_path: Path) -> None:
    whole = await tell(tmp_path / "whole.db", story)
    await check(whole)
    expected, length = plain(await entries_in(whole)), len(await entries_in(whole))
    await cast("SqlStore", whole.store).aclose()
    for stop in range(0, length, 3):
        world = await tell(tmp_path / f"{stop}.db", story, lives=stop)
        await check(world)
        log = plain(await entries_in(world))
        unknown = unknown_calls(log)
        await cast("SqlStore", world.store).aclose()
        if story.name != "a late result":  # what comes late depends on who lives to hand it in
            assert without_results(log, unknown) == without_results(expected, unknown), f"stopped after {stop}"


async def test_a_session_that_is_not_there_is_unknown_to_every_verb(store: SqlStore) -> None:
    for verb in (
        store.claim("s", NOON),
        store.append("s", 0, turn_started_events()),
        store.admit(answer_gate()),
        store.path("s", None),
    ):
        with pytest.raises(UnknownSession):
            await verb


async def test_who_has_seen_how_long_the_log_is_finds_all_of_it(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.lock_for_process()  # only who is alone reads the end of a log from what it has written itself
    await store.admit(send_message("t"))
    claim = await store.claim("s", NOON)
    assert claim is not None
    head = await store.append("s", 0, turn_started_events("t"), claim.epoch)
    write, is_committed, may_go_on = store._database.write, asyncio.Event(), asyncio.Event()

    async def slowly(*arguments: Any) -> Any:
        done = await write(*arguments)
        is_committed.set()  # and its writer has not heard of that yet
        await may_go_on.wait()
        return done

    monkeypatch.setattr(store._database, "write", slowly)
    appending = asyncio.create_task(store.append("s", head, [TitleSet(turn="t", title="new")], claim.epoch))
    await is_committed.wait()
    assert [entry.seq for entry in await store.events("s", head)] == [await store.head("s")] == [head + 1]
    may_go_on.set()
    await appending
    assert [entry.seq for entry in await store.events("s", head)] == [head + 1]


async def test_nobody_else_reads_the_file(tmp_path: Path) -> None:
    store = SqlStore.sqlite(tmp_path / "talks.db")
    await store.admit(send_message("t"))
    await store.put_blob(b"x" * 2_000_000)
    files = [path for path in os.scandir(tmp_path) if not path.name.endswith(".lock")]
    modes = {path.name: path.stat().st_mode & 0o077 for path in files}
    assert len(modes) >= 3
    assert set(modes.values()) == {0}
    await store.aclose()
