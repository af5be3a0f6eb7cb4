"""The second lock between tenants: PostgreSQL itself keeps their rows apart, also where a query forgot to."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from itertools import count
from urllib.parse import urlsplit

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import pytest
from msgspec.structs import replace
from tests.stores.test_postgres import URL, Place

from everturn.core.events import FilesChanged
from everturn.core.memory.user_memory import MemoryCreate, MemoryOrigin
from everturn.core.options import TurnOptions
from everturn.core.parts import FilePart, Usage
from everturn.core.schedules import Schedule
from everturn.core.store_ports import TurnSnapshot
from everturn.core.tenants.accounts import AuditRecord, ConversationFingerprint, Credential, Tenant, User
from everturn.core.tenants.settings import Setting
from everturn.core.tenants.sharing import Share
from everturn.core.tenants.user_records import Invitation
from everturn.core.webhooks import Webhook
from everturn.errors import UnknownSession
from everturn.stores.memory import MemoryStore
from everturn.stores.sql import queries
from everturn.stores.sql.database import Operation, Query, Row, Statement
from everturn.stores.sql.postgres import Postgres
from everturn.stores.sql.row_security import TABLES, current_tenant, restrict_to_tenant, tenant_role
from everturn.stores.sql.statements.sessions import LIST_SESSIONS
from everturn.stores.sql.store import SqlStore
from everturn.testing.contracts.directory import send_to_agent
from everturn.testing.contracts.samples import (
    NOON,
    call_requested_events,
    gate_opened_events,
    gate_resolved_with_grant,
    turn_started_events,
)

live = pytest.mark.live
OPEN = {"blobs", "chunks", "everturn_schema"}  # what is no tenant's
names = count()

ENGINE_TABLES = {"wakes", "engine_workers", "rate_limits"}  # of the runtime, which no tenant may read at all


class Login:
    """Somebody who may log in and owns what they make, and is no superuser."""

    def __init__(self, may: str) -> None:
        self.name, self.may = f"everturn_login_{os.getpid()}_{next(names)}", may
        self.place = Place(urlsplit(URL)._replace(netloc=f"{self.name}@{urlsplit(URL).netloc.split('@')[-1]}").geturl())

    async def __aenter__(self) -> Place:
        await _say(f"CREATE ROLE {self.name} LOGIN NOSUPERUSER {self.may}", f"CREATE SCHEMA {self.place.schema}")
        await _say(f"ALTER SCHEMA {self.place.schema} OWNER TO {self.name}")
        return self.place

    async def __aexit__(self, *_: object) -> None:
        for postgres in self.place.opened:
            await postgres.aclose()
        await _say(f"DROP SCHEMA {self.place.schema} CASCADE", f"DROP ROLE IF EXISTS {tenant_role(self.name)}")
        await _say(f"DROP ROLE {self.name}")


async def _say(*texts: str) -> None:
    connection = await asyncpg.connect(URL)
    try:
        for text in texts:
            await connection.execute(text)
    finally:
        await connection.close()


@pytest.fixture(params=["superuser", "login"])
async def place(request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    """Where a superuser has made everything, and where a login that may make roles has."""
    if request.param == "superuser":
        place = Place()
        yield place
        await place.aclose()
    else:
        async with Login("CREATEROLE") as place:
            yield place


async def fill(store: SqlStore) -> None:
    """Rows in every table, for each of two tenants."""
    for tenant in ("a", "b"):
        blob = await store.put_blob(tenant.encode())
        first = replace(send_to_agent(f"s{tenant}", f"t{tenant}", tenant), parts=(FilePart(blob, "text/plain", 1),))
        await store.admit(first)
        await store.webhooks.put(Webhook(id="w", tenant=tenant, url="https://example.com", events=("gate.opened",)))
        await store.settings.add(Setting(scope=tenant, kind="agent", name="a", version=1))
        await store.schedules.add(Schedule(id="d", tenant=tenant, text="apple", cron="0 9 * * *"))
        events = [
            *turn_started_events(f"t{tenant}", text="apple", command=f"t{tenant}.k"),
            *call_requested_events(f"t{tenant}", Usage(1)),
        ]
        asks = [*gate_opened_events(f"t{tenant}")[2:], gate_resolved_with_grant("", f"t{tenant}", command="")]
        events += [*asks, FilesChanged(turn=f"t{tenant}", at=NOON, step=1, root="/r", before="", after="x")]
        store.keep_snapshot(f"s{tenant}", TurnSnapshot(f"t{tenant}", len(events), "some code", b"a fold"))
        await store.append(f"s{tenant}", 0, events)
        accounts = store.accounts
        await accounts.put_tenant(Tenant(tenant))
        await accounts.put_user(User(tenant, "u"))
        await accounts.put_credential(Credential(f"k{tenant}", tenant, "u", "key", f"h{tenant}"))
        await accounts.secret("s")
        await accounts.append_audit(AuditRecord(tenant, NOON, "u", "", "x"))
        await accounts.put_fingerprint(tenant, "h", ConversationFingerprint(f"s{tenant}", "m"), NOON)
        await store.sharing.add(Share(id="h", tenant=tenant, session=f"s{tenant}", kind="link", hash=tenant))
        await store.sharing.set_temporary(tenant, f"s{tenant}", NOON)
        await accounts.records.set_password(tenant, "u", f"hash of {tenant}", NOON)
        await accounts.records.add_invitation(Invitation(f"i{tenant}", tenant, "invitation", "v", f"i{tenant}"))
        origin = MemoryOrigin(f"s{tenant}", "c")
        await store.user_memory.change(tenant, "u", MemoryCreate("a", tenant), at=NOON, origin=origin)


def everything(table: str) -> Operation[list[Row]]:
    """A query that has forgotten whose rows it wants."""
    return (yield Query(Statement(f"all of {table}", "", f"SELECT 1, to_jsonb(x)::text FROM {table} x", returns=True)))


@live
async def test_without_a_word_about_tenants_a_query_sees_one_tenants_rows_in_every_table(place: Place):
    postgres = place.postgres()
    store = SqlStore(postgres)
    await fill(store)
    tables = await place.sql(
        "SELECT relname, relrowsecurity, relispartition FROM pg_class "
        "WHERE relkind IN ('r', 'p') AND relnamespace = current_schema()::regnamespace"
    )
    assert {row["relname"] for row in tables if not row["relrowsecurity"]} == OPEN
    whole_tables = {row["relname"] for row in tables if not row["relispartition"]}
    assert set(TABLES) == whole_tables - {"everturn_schema", "secrets"} - ENGINE_TABLES

    for table in set(TABLES) - OPEN:
        whole = await postgres.read(lambda table=table: everything(table))
        seen = dict[str, list[Row]]()
        for tenant in ("a", "b", "nobody", "", "' OR true --", "a\\' OR 1=1 --"):
            with store.restrict_to_tenant(tenant):
                seen[tenant] = await postgres.read(lambda table=table: everything(table))
        assert all(seen[tenant] for tenant in ("a", "b")), f"{table} has no rows to hide"
        assert sorted(map(str, seen["a"] + seen["b"])) == sorted(map(str, whole)), table
        assert not [row for name in seen.keys() - {"a", "b"} for row in seen[name]], table
    assert postgres.tenant_role.startswith("everturn_tenant_")


# A word as the index has it: behind a hash of its tenant.
FOUND = "SELECT * FROM everturn_found(left(md5('a'), 8) || 'apple', 10)"


@live
async def test_whoever_reads_for_a_tenant_can_neither_write_nor_see_secrets_nor_anything_when_none_is_set(place: Place):
    postgres = place.postgres()
    await fill(SqlStore(postgres))
    connection = await asyncpg.connect(place.url, server_settings={"search_path": place.schema})
    await connection.execute(f'SET ROLE "{postgres.tenant_role}"')
    try:
        for table in set(TABLES) - OPEN:
            assert await connection.fetchval(f"SELECT count(*) FROM {table}") == 0
        assert await connection.fetch(FOUND) == []
        await connection.execute("SET everturn.tenant = 'a'")
        assert [row["session"] for row in await connection.fetch(FOUND)] == ["sa"]
        for text in (
            "SELECT * FROM secrets",
            "UPDATE sessions SET tenant = 'b'",
            "DELETE FROM events",
            "INSERT INTO tenants VALUES ('c', '', true, 0)",
            "INSERT INTO audit VALUES ('a', 9, 0, '', '', '', '', '', '')",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(text)
        # Nor can it put tables in the way of what searches with the rights of the owner.
        await connection.execute(
            "CREATE TEMP TABLE sessions AS SELECT 'sb'::text AS id, 'a'::text AS tenant, false AS erased"
        )
        assert [row["session"] for row in await connection.fetch(FOUND)] == ["sa"]
    finally:
        await connection.close()


@live
async def test_a_foreign_session_is_not_there_and_looks_exactly_so(place: Place):
    store = place.store()
    await fill(store)

    async def asks(session: str) -> list[str]:
        verbs = [store.info(session), store.events(session), store.events(session, turn="tb"), store.head(session)]
        verbs += [store.open_turns(session), store.path(session, "tb.out"), store.tree(session), store.gates(session)]
        verbs += [
            store.inbox(session),
            store.grants(session, NOON),
            store.recorded_trees(session),
            store.refers_to_blob(session, "x"),
        ]
        came = await asyncio.gather(*verbs, return_exceptions=True)
        assert {type(each) for each in came} == {UnknownSession}
        return [str(each).replace(session, "…") for each in came]

    with store.restrict_to_tenant("a"):
        assert await asks("sb") == await asks("xx")
        assert (await store.spent(session="sb")).steps == (await store.spent(tenant="b")).steps == 0
        assert await store.search("apple", "b") == await store.usage_by_day("b") == await store.session_page("b") == []
        assert [name for name, _ in await store.search("apple")] == ["sa"]
        assert await store.accounts.users("b") == await store.accounts.audit("b") == []
        assert await store.accounts.find_credential("hb") is await store.accounts.fingerprint("b", "h") is None
        assert [info.id for info in await store.sessions()] == ["sa"]


@live
async def test_a_query_of_our_own_that_forgot_its_tenant_leaks_nothing(place: Place, monkeypatch: pytest.MonkeyPatch):
    store = place.store()
    await fill(store)
    forgot = replace(
        LIST_SESSIONS,
        name="listed, forgetting",
        postgres=LIST_SESSIONS.postgres.replace("l.tenant = p.tenant AND", ""),
    )
    assert forgot.postgres != LIST_SESSIONS.postgres
    monkeypatch.setattr(queries, "LIST_SESSIONS", forgot)

    assert [info.id for info in await store.session_page("a")] == ["sb", "sa"]  # without walls it does
    with store.restrict_to_tenant("a"):
        assert [info.id for info in await store.session_page("a")] == ["sa"]


@live
async def test_connections_that_many_tenants_share_are_never_inside_the_wrong_walls(place: Place):
    store = place.store()
    for n in range(12):
        await store.admit(send_to_agent(f"s{n}", tenant=f"tenant {n} '\"\\"))

    async def look(n: int) -> None:
        if n % 13 == 12:
            assert len(await store.sessions()) == 12
            return
        with store.restrict_to_tenant(f"tenant {n % 13} '\"\\"):
            assert [info.id for info in await store.sessions()] == [f"s{n % 13}"]

    await asyncio.gather(*(look(n) for n in range(300)))


@live
async def test_where_no_role_can_be_made_it_works_without_and_says_so(caplog: pytest.LogCaptureFixture):
    async with Login("NOCREATEROLE") as place:
        postgres = place.postgres()
        store = SqlStore(postgres)
        with caplog.at_level(logging.WARNING):
            await fill(store)

        assert postgres.tenant_role == ""
        assert "only queries separate tenants" in caplog.text
        with store.restrict_to_tenant("a"):
            assert [info.id for info in await store.session_page("a")] == ["sa"]
            assert [name for name, _ in await store.search("apple", "a")] == ["sa"]
            assert len(await store.events("sa")) > 0


@live
async def test_an_operator_can_make_the_role_beforehand():
    login = Login("NOCREATEROLE")
    async with login as place:
        await _say(f"CREATE ROLE {tenant_role(login.name)} NOLOGIN", f"GRANT {tenant_role(login.name)} TO {login.name}")
        postgres = place.postgres()
        await fill(SqlStore(postgres))

        assert postgres.tenant_role == tenant_role(login.name)


@live
async def test_a_role_that_walls_do_not_stop_is_not_used(caplog: pytest.LogCaptureFixture):
    login = Login("CREATEROLE")
    async with login as place:
        await _say(
            f"CREATE ROLE {tenant_role(login.name)} NOLOGIN BYPASSRLS",
            f"GRANT {tenant_role(login.name)} TO {login.name}",
        )
        postgres = place.postgres()
        await SqlStore(postgres).sessions()

        assert postgres.tenant_role == ""
        assert "does not apply to the role" in caplog.text


@live
async def test_what_one_login_owns_another_cannot_read():
    async with Login("CREATEROLE") as mine, Login("CREATEROLE") as theirs:
        await fill(mine.store())
        stranger = theirs.postgres()
        await fill(SqlStore(stranger))
        connection = await asyncpg.connect(theirs.url)
        try:
            for text in ("RESET ROLE", f'SET ROLE "{stranger.tenant_role}"'):
                await connection.execute(text)
                await connection.execute("SET everturn.tenant = 'a'")
                with pytest.raises(asyncpg.InsufficientPrivilegeError):
                    await connection.fetch(f"SELECT * FROM {mine.schema}.sessions")
        finally:
            await connection.close()


# Everywhere -----------------------------------------------------------------------------------------------------------


async def test_walls_are_entered_by_a_task_and_those_it_starts_and_left_again():
    store = MemoryStore()
    assert current_tenant() is None
    with restrict_to_tenant("a"), restrict_to_tenant("a"), store.restrict_to_tenant("b"):
        assert current_tenant() == "a"
        assert await asyncio.create_task(_look()) == "a"
        with pytest.raises(ValueError, match="another tenant"), restrict_to_tenant("b"):
            pass
    assert current_tenant() is None


async def _look() -> str | None:
    return current_tenant()


@live
async def test_sub_turns_and_options_are_read_inside_walls_as_outside(place: Place):
    store = place.store()
    await store.admit(send_to_agent("s", tenant="a", options=TurnOptions(agent="w", by="ada")))
    outside = await store.info("s")
    with store.restrict_to_tenant("a"):
        assert await store.info("s") == outside


def test_postgres_says_which_role_reads_before_it_is_connected():
    assert Postgres(URL).tenant_role == ""
