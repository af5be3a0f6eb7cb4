"""The store on PostgreSQL: the contract, and what only happens where a database is somewhere else."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from typing import Any, Literal

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import pytest
from tests.helpers.schema_pool import borrowed_schema

from everturn import failpoints
from everturn.core.events import LeafSelected, TitleSet
from everturn.core.store_ports import Store
from everturn.errors import ConfigError, KeyConflict, Stale, StoreBusy, StoreUnavailable
from everturn.stores.sql import postgres_pool
from everturn.stores.sql.database import Operation, Query, Statement
from everturn.stores.sql.errors import is_connection_closed
from everturn.stores.sql.postgres import TRIES, Postgres
from everturn.stores.sql.store import SqlStore
from everturn.testing.contracts import StoreContract
from everturn.testing.contracts.samples import (
    NOON,
    answer_gate,
    gate_opened_events,
    send_message,
    turn_ended_events,
    turn_started_events,
)
from tools.servers import Proxy, cutting_proxy, private_postgres
from tools.servers.process import free_port

pytestmark = pytest.mark.live

URL = os.environ.get("EVERTURN_POSTGRES", "postgresql://postgres@127.0.0.1:5432/test")
names = count()


class Place:
    """A schema of a test's own, and what was opened in it."""

    def __init__(self, url: str = URL) -> None:
        self.url, self.schema = url, f"everturn_{os.getpid()}_{next(names)}"
        self.opened: list[Postgres] = []

    def postgres(self, url: str = "", writers: int = 2, timeout: float = 30.0) -> Postgres:
        self.opened.append(Postgres(url or self.url, self.schema, writers, timeout))
        return self.opened[-1]

    def store(self, url: str = "", writers: int = 2, timeout: float = 30.0) -> SqlStore:
        return SqlStore(self.postgres(url, writers, timeout))

    async def sql(self, text: str) -> list[Any]:
        connection = await asyncpg.connect(self.url, server_settings={"search_path": self.schema})
        try:
            return await connection.fetch(text)
        finally:
            await connection.close()

    async def run(self, script: str) -> None:
        connection = await asyncpg.connect(self.url, server_settings={"search_path": self.schema})
        try:
            await connection.execute(script)
        finally:
            await connection.close()

    async def aclose(self) -> None:
        for postgres in self.opened:
            await postgres.aclose()
        await self.sql(f"DROP SCHEMA IF EXISTS {self.schema} CASCADE")


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    place = Place()
    yield place
    await place.aclose()


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    async with cutting_proxy(URL) as proxy:
        yield proxy


@pytest.fixture
def commits() -> Iterator[list[str]]:
    hits = list[str]()
    failpoints.install_plan(lambda point: hits.append(point) if point == "store.commit.after" else None)
    yield hits
    failpoints.install_plan(None)


async def borrowed_store(stack: AsyncExitStack) -> SqlStore:
    """An empty store in a schema that other tests have used, or will."""
    postgres = Postgres(URL, await stack.enter_async_context(borrowed_schema()), writers=2, timeout=30.0)
    stack.push_async_callback(postgres.aclose)
    return SqlStore(postgres)


class TestPostgresStore(StoreContract):
    stack: AsyncExitStack

    @pytest.fixture(autouse=True)
    async def in_schemas_of_their_own(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as self.stack:
            yield

    async def make(self) -> Store:
        return await borrowed_store(self.stack)


# Two processes, seen from here: two stores that share nothing but the database -------------------------------------------


async def test_a_claim_by_one_process_ends_the_appends_of_the_other(place: Place):
    local, other = place.store(), place.store()
    await local.admit(send_message())
    first = await local.claim("s", NOON)
    assert first is not None
    await local.append("s", 0, turn_started_events(), first.epoch)

    second = await other.claim("s", NOON)

    assert second is not None
    assert (second.epoch, second.head) == (first.epoch + 1, 2)
    with pytest.raises(Stale):
        await local.append("s", 2, gate_opened_events(), first.epoch)
    assert await other.append("s", 2, gate_opened_events(), second.epoch) == 6
    with pytest.raises(Stale):
        await local.append("s", 6, turn_ended_events(), first.epoch)


async def test_of_processes_that_are_given_the_same_command_one_is_the_first(place: Place):
    stores = [place.store() for _ in range(3)]
    commands = [send_message(f"k{n}", session=f"s{n % 4}", turn=f"t{n}") for n in range(24)]

    receipts = await asyncio.gather(*(store.admit(command) for command in commands for store in stores))

    for at, command in enumerate(commands):
        mine = receipts[3 * at : 3 * at + 3]
        assert sorted(receipt.is_new for receipt in mine) == [False, False, True]
        assert {receipt.command for receipt in mine} == {command}
    for n in range(4):
        assert {command.key for command in await stores[0].inbox(f"s{n}")} == {c.key for c in commands[n::4]}


async def test_an_overdue_session_is_told_to_one_of_many(place: Place):
    stores = [place.store() for _ in range(3)]
    sessions = {f"s{n}" for n in range(40)}
    await asyncio.gather(*(stores[0].admit(send_message(session=session)) for session in sessions))

    overdue = await asyncio.gather(*(store.overdue(NOON + 60, NOON + 120) for store in stores for _ in range(2)))

    everything = [session for some in overdue for session in some]
    assert len(everything) == len(set(everything))
    rest = await stores[0].overdue(NOON + 60, NOON + 120)  # whoever was busy with a row has been passed over
    assert {*everything, *rest} == sessions


async def test_one_process_holds_the_store_and_keeps_it_when_its_connection_is_lost(place: Place):
    holder, other = place.store(), place.store()
    await holder.lock_for_process()
    await holder.lock_for_process()
    with pytest.raises(StoreBusy, match="another process"):
        await other.lock_for_process()

    link = place.opened[0]._links._holding
    assert link is not None
    await place.sql(f"SELECT pg_terminate_backend({link.connection.get_server_pid()})")
    while place.opened[0]._links._holding is link:  # noqa: ASYNC110 - nobody is told
        await asyncio.sleep(0.01)
    with pytest.raises(StoreBusy):
        await other.lock_for_process()

    await place.opened[0].aclose()
    await other.lock_for_process()


def terminate(url: str, pids: list[int]) -> None:
    """End connections while the event loop of this thread stands still, as it does in a process that is stopped."""

    async def end() -> None:
        connection = await asyncpg.connect(url)
        await connection.fetch("SELECT pg_terminate_backend(pid, 5000) FROM unnest($1::int[]) AS pid", pids)
        await connection.close()

    thread = threading.Thread(target=asyncio.run, args=(end(),))
    thread.start()
    thread.join()


async def test_a_connection_that_was_ended_costs_nobody_anything_whenever_that_is_found(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    met = list[BaseException]()
    monkeypatch.setattr(
        "everturn.stores.sql.postgres.is_connection_closed",
        lambda error: met.append(error) or is_connection_closed(error),
    )
    postgres = place.postgres(writers=1, timeout=-1.0)
    for rounds in range(8):
        await postgres.write(lambda _, n=rounds: grant(f"before {n}"), "s")
        link = postgres._writers[0]._link
        assert link is not None
        terminate(place.url, [link.connection.get_server_pid()])
        for _ in range(rounds):  # first it is told of the end, and then it is closed
            await asyncio.sleep(0)
        assert await postgres.write(lambda _, n=rounds: grant(f"after {n}"), "s") == f"after {rounds}"
    assert any("is in progress" in str(error) for error in met)
    assert len(await place.sql("SELECT FROM grants")) == 16


# Groups ---------------------------------------------------------------------------------------------------------------


async def test_five_hundred_sessions_at_once_are_a_few_transactions(place: Place, commits: list[str]):
    store = place.store()
    sessions = [f"s{n}" for n in range(500)]

    await asyncio.gather(*(store.admit(send_message(session=session)) for session in sessions))
    await asyncio.gather(*(store.append(session, 0, turn_started_events(text=session)) for session in sessions))

    assert len(commits) < 30
    for session in sessions[::50]:
        assert [entry.event for entry in await store.events(session)] == turn_started_events(text=session)
        assert [message.text for message in await store.path(session, "t.in")] == [session]
    assert len(await store.sessions(awake=True)) == 500


async def test_operations_of_one_session_are_written_in_the_order_in_which_they_came(place: Place):
    store = place.store()
    await store.admit(send_message())

    keys = [f"k{n}" for n in range(40)]
    await asyncio.gather(*(store.admit(send_message(key, turn=key)) for key in keys))

    assert [command.key for command in await store.inbox("s")] == ["k", *keys]


async def test_who_is_refused_leaves_its_group_alone(place: Place):
    store = place.store(writers=1)
    sessions = [f"s{n}" for n in range(20)]
    await asyncio.gather(*(store.admit(send_message(session=session)) for session in sessions))
    await store.append("s7", 0, turn_started_events())

    results = await asyncio.gather(
        *(store.append(s, 0, turn_started_events()) for s in sessions), return_exceptions=True
    )

    assert [at for at, result in enumerate(results) if isinstance(result, Stale)] == [7]
    assert [await store.head(session) for session in sessions] == [2] * 20


GRANT = Statement(
    "grant",
    "",
    """INSERT INTO grants (id, origin, session, tenant, body, created)
    SELECT p.id, '', '', 't', '', 0 FROM unnest($1::text[]) WITH ORDINALITY AS p(id, n)""",
)
FAIL = Statement(
    "fail",
    "",
    "SELECT p.n, fail(p.state) FROM unnest($1::text[]) WITH ORDINALITY AS p(state, n)",
    returns=True,
)
_FAILING = """CREATE FUNCTION fail(state text) RETURNS int LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'on purpose' USING ERRCODE = state; END $$"""


def grant(name: str, error: Exception | None = None) -> Operation[str]:
    yield Query(GRANT, (name,))
    if error is not None:
        raise error
    return name


async def test_a_unique_violation_is_the_trouble_of_who_made_it(place: Place):
    postgres = place.postgres(writers=1)
    await postgres.write(lambda _: grant("3"), "")

    names = [str(n) for n in range(6)]
    results = await asyncio.gather(*(postgres.write(lambda _, n=n: grant(n), n) for n in names), return_exceptions=True)

    assert [result for result in results if isinstance(result, str)] == ["0", "1", "2", "4", "5"]
    assert isinstance(results[3], StoreUnavailable)
    assert "23505" in str(results[3])
    assert len(await place.sql("SELECT FROM grants")) == 6


async def test_who_fails_after_it_has_written_has_written_nothing_and_the_others_have(place: Place):
    postgres = place.postgres(writers=1)
    errors = {"2": KeyConflict("no"), "4": ValueError("a bug")}

    results = await asyncio.gather(
        *(postgres.write(lambda _, n=n: grant(n, errors.get(n)), n) for n in "012345"), return_exceptions=True
    )

    assert results == ["0", "1", errors["2"], "3", errors["4"], "5"]
    assert sorted(row[0] for row in await place.sql("SELECT id FROM grants")) == ["0", "1", "3", "5"]


@pytest.mark.parametrize(("state", "tries"), [("40001", TRIES), ("40P01", TRIES), ("53100", 1), ("42501", 1)])
async def test_what_may_pass_is_tried_again_and_what_will_not_is_reported_at_once(place: Place, state: str, tries: int):
    postgres = place.postgres()
    await postgres.write(lambda _: grant("1"), "")
    await place.sql(_FAILING)
    runs = list[bool]()

    def failing(is_again: bool) -> Operation[None]:
        runs.append(is_again)
        yield from grant("2")
        yield Query(FAIL, (state,))

    with pytest.raises(StoreUnavailable, match=state):
        await postgres.write(failing, "")

    assert runs == [False] * tries
    assert len(await place.sql("SELECT FROM grants")) == 1


async def test_what_postgres_cannot_write_down_is_said_to_the_caller(place: Place):
    store = place.store()

    good, bad = await asyncio.gather(
        store.admit(send_message()), store.admit(send_message("a\0b", "s2")), return_exceptions=True
    )

    assert not isinstance(good, BaseException)
    assert isinstance(bad, ConfigError)


async def test_who_waits_for_a_row_that_somebody_holds_keeps_nobody_else_waiting(place: Place):
    store = place.store(writers=1)
    await asyncio.gather(*(store.admit(send_message(session=session)) for session in "abc"))
    holder = await asyncpg.connect(URL, server_settings={"search_path": place.schema})
    async with holder.transaction():
        await holder.fetch("SELECT FROM sessions WHERE id = 'b' FOR UPDATE")
        waiting = asyncio.ensure_future(store.append("b", 0, turn_started_events()))
        behind = asyncio.ensure_future(store.append("b", 2, gate_opened_events()))

        assert await asyncio.gather(*(store.append(session, 0, turn_started_events()) for session in "ac")) == [2, 2]
        assert not waiting.done()
    await holder.close()

    assert (await waiting, await behind) == (2, 6)


async def test_closing_waits_for_what_is_queued_and_takes_nothing_more(place: Place):
    store = place.store()
    await store.admit(send_message())
    queued = asyncio.ensure_future(store.append("s", 0, turn_started_events()))
    await asyncio.sleep(0)

    await place.opened[0].aclose()

    assert queued.done()
    assert await place.store().head("s") == await queued == 2
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.append("s", 2, gate_opened_events())


# Lost connections ----------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("when", ["before_commit", "after_commit"])
async def test_wherever_the_connection_is_cut_everything_is_written_exactly_once(
    place: Place, proxy: Proxy, when: Literal["before_commit", "after_commit"]
):
    await place.store().admit(send_message(session="first"))  # the schema is made, and no statement of that is counted
    nth, is_cut = 0, True
    while is_cut:
        nth += 1
        session = f"s{nth}"
        store = place.store(proxy.url, writers=1)
        proxy.clear_cuts()
        cut = proxy.cut(when, nth, matching=".")

        receipt = await store.admit(send_message(session=session))
        assert receipt.is_new
        assert not (await store.admit(send_message(session=session))).is_new
        claim = await store.claim(session, NOON)
        assert claim is not None
        assert await store.append(session, 0, turn_started_events(), claim.epoch) == 2
        assert await store.append(session, 2, gate_opened_events(), claim.epoch) == 6

        assert [entry.event for entry in await store.events(session)] == [*turn_started_events(), *gate_opened_events()]
        assert len(await store.gates(session)) == 1
        assert [message.id for message in await store.path(session, "t.out")] == ["t.in", "t.out"]
        await place.opened[-1].aclose()
        is_cut = cut.is_made
    assert nth > 20  # every statement of it was cut once


async def test_connections_may_be_cut_again_and_again_under_load(place: Place, proxy: Proxy):
    store = place.store(proxy.url)
    sessions = [f"s{n}" for n in range(20)]
    await asyncio.gather(*(store.admit(send_message(session=session)) for session in sessions))

    async def drive(session: str) -> None:
        for at in range(25):
            assert await store.append(session, at, [TitleSet(turn="t", title=str(at))]) == at + 1
            receipt = await store.admit(send_message(f"k{at}", session, f"t{at}"))
            assert receipt.is_new

    driving = asyncio.gather(*(drive(session) for session in sessions))
    cuts = 0
    while not driving.done() and cuts < 12:
        cuts += proxy.cut_now() > 0
        await asyncio.sleep(0.05)
    await driving

    assert cuts > 3
    for session in sessions:
        titles = [TitleSet(turn="t", title=str(at)) for at in range(25)]
        assert [entry.event for entry in await store.events(session)] == titles
        assert len(await store.inbox(session)) == 26


@pytest.mark.parametrize("how", ["fast", "immediate", "kill"])
async def test_a_database_that_is_restarted_is_waited_for(tmp_path: Path, how: Literal["fast", "immediate", "kill"]):
    async with private_postgres(tmp_path) as server:
        postgres = Postgres(server.url)
        store = SqlStore(postgres)
        await asyncio.gather(*(store.admit(send_message(session=session)) for session in "abcd"))
        acknowledged = dict.fromkeys("abcd", 0)

        async def drive(session: str) -> None:
            while acknowledged[session] < 40:
                at = acknowledged[session]
                acknowledged[session] = await store.append(session, at, [LeafSelected(message=None)])
                assert await store.head(session) == at + 1

        driving = asyncio.gather(*(drive(session) for session in "abcd"))
        while min(acknowledged.values()) < 5:  # noqa: ASYNC110 - until it is well under way
            await asyncio.sleep(0)
        if how == "kill":
            server.kill9()
            await server.start()
        else:
            await server.restart(how)
        await driving

        assert acknowledged == dict.fromkeys("abcd", 40)
        assert [len(await store.events(session)) for session in "abcd"] == [40] * 4
        await postgres.aclose()


async def test_a_database_that_may_only_be_read_for_a_while_is_waited_for(tmp_path: Path):
    async with private_postgres(tmp_path) as server:
        postgres = Postgres(server.url)
        store = SqlStore(postgres)
        await store.admit(send_message())
        await server.sql("ALTER DATABASE postgres SET default_transaction_read_only = on")
        await server.drop_connections()

        writing = asyncio.ensure_future(store.append("s", 0, turn_started_events()))
        assert await store.head("s") == 0
        assert not writing.done()
        await server.sql("SET transaction_read_only = off; ALTER DATABASE postgres RESET default_transaction_read_only")

        assert await writing == 2
        await postgres.aclose()


async def test_a_network_that_swallows_everything_is_given_up_and_tried_anew(
    place: Place, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(postgres_pool, "COMMAND_TIMEOUT", 0.3)
    monkeypatch.setattr(postgres_pool, "CONNECT_TIMEOUT", 0.3)
    store = place.store(proxy.url, timeout=20.0)
    await store.admit(send_message())
    assert await store.head("s") == 0

    proxy.stall()
    both = asyncio.gather(store.append("s", 0, turn_started_events()), store.head("s"))
    await asyncio.sleep(1.0)
    assert not both.done()
    proxy.resume()

    assert (await both)[0] == 2
    assert await store.head("s") == 2
    proxy.cut_now()


_ZOMBIE = """
import asyncio, os, signal, sys
from everturn import failpoints
from everturn.core.events import TitleSet
from everturn.errors import Stale
from everturn.stores.sql.postgres import Postgres
from everturn.stores.sql.store import SqlStore

def stop(point):
    if point == "store.commit.before":
        failpoints.install_plan(None)
        print("before COMMIT", flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)

async def main(url, schema):
    postgres = Postgres(url, schema)
    store = SqlStore(postgres)
    claim = await store.claim("s", 1_700_000_000.0)
    failpoints.install_plan(stop)
    try:
        await store.append("s", 0, [TitleSet(turn="t", title="mine")], claim.epoch)
    except Stale:
        print("refused", flush=True)
    await postgres.aclose()

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.long
async def test_a_process_that_is_stopped_before_its_commit_is_overtaken_and_commits_nothing(place: Place):
    store = place.store()
    await store.admit(send_message())
    zombie = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _ZOMBIE, URL, place.schema, stdout=asyncio.subprocess.PIPE
    )
    assert zombie.stdout is not None
    try:
        assert await zombie.stdout.readline() == b"before COMMIT\n"  # it holds the session's row

        claim = await store.claim("s", NOON)  # which comes free when the database has had enough
        assert claim is not None
        assert await store.append("s", 0, turn_started_events(), claim.epoch) == 2

        zombie.send_signal(signal.SIGCONT)
        assert await zombie.stdout.readline() == b"refused\n"
        assert await zombie.wait() == 0
    finally:
        if zombie.returncode is None:
            zombie.kill()
            await zombie.wait()
    assert [entry.event for entry in await store.events("s")] == turn_started_events()


async def test_an_acknowledgement_that_is_lost_is_found_again_by_an_append_and_an_admission(place: Place):
    store = place.store()
    await store.admit(send_message())
    lost = count()

    def lose(point: str) -> None:
        if point == "store.commit.after" and next(lost) % 2 == 0:
            raise ConnectionResetError("on purpose")

    failpoints.install_plan(lose)
    try:
        assert (await store.admit(send_message("k2", turn="t2"))).is_new
        assert await store.append("s", 0, turn_started_events()) == 2
        assert (await store.admit(send_message("k3", turn="t3"))).is_new
        assert await store.append("s", 2, gate_opened_events()) == 6
        assert (await store.admit(answer_gate())).is_new
    finally:
        failpoints.install_plan(None)

    assert next(lost) >= 10
    assert [command.key for command in await store.inbox("s")] == ["k2", "k3", "a"]
    assert await store.head("s") == 6


async def test_a_database_that_stays_away_is_said_to_be_unavailable_when_patience_ends():
    postgres = Postgres(f"postgresql://postgres@127.0.0.1:{free_port()}/test", timeout=0.2)
    store = SqlStore(postgres)

    for verb in (store.head("s"), store.admit(send_message()), store.lock_for_process()):
        with pytest.raises(StoreUnavailable):
            await verb

    await postgres.aclose()


async def test_a_database_that_is_not_there_is_not_waited_for():
    postgres = Postgres(URL.rpartition("/")[0] + "/nobody_made_this")
    store = SqlStore(postgres)

    for verb in (store.head("s"), store.admit(send_message()), store.lock_for_process()):
        with pytest.raises(StoreUnavailable, match="nobody_made_this"):
            await verb

    await postgres.aclose()


def test_an_address_that_makes_no_sense_is_refused():
    for url in ("sqlite:///x", f"{URL}?schema=Not%20a%20name"):
        with pytest.raises(ConfigError):
            Postgres(url)


async def test_the_address_may_carry_the_schema(place: Place):
    await place.store(f"{URL}?schema={place.schema}").admit(send_message())

    assert [row[0] for row in await place.sql("SELECT id FROM sessions")] == ["s"]


async def test_a_database_that_is_not_there_says_how_it_is_made() -> None:
    store = SqlStore.postgres("postgresql://127.0.0.1:5432/there_is_no_such_database")
    with pytest.raises(StoreUnavailable, match="createdb"):
        await store.sessions()
    await store.aclose()
