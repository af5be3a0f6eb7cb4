"""Who may come in: the contract on every store, and what is particular to a database."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.helpers.sqlite_files import empty_database
from tests.helpers.stores import SQL, opened_sql
from tests.stores.test_postgres import Place

from everturn.core.tenants.accounts import Accounts, ConversationFingerprint, check_chain
from everturn.errors import StoreUnavailable
from everturn.stores.accounts import MemoryAccounts
from everturn.stores.memory import MemoryStore
from everturn.stores.sql import retention
from everturn.stores.sql.store import SqlStore
from everturn.testing.contracts import AccountsContract
from everturn.testing.contracts.accounts import ACME, ADA, KEY, LINK, audit_record
from everturn.testing.contracts.samples import NOON, send_message, turn_ended_events, turn_started_events


class TestMemoryAccounts(AccountsContract):
    async def make(self) -> Accounts:
        return MemoryAccounts()


class TestSqliteAccounts(AccountsContract):
    """Two nodes are two connections to one file."""

    @pytest.fixture(autouse=True)
    async def _place(self, tmp_path: Path) -> AsyncIterator[None]:
        self.path, self.opened = tmp_path / "a.db", list[SqlStore]()
        yield
        for store in self.opened:
            await store.aclose()

    async def make(self) -> Accounts:
        self.opened.append(SqlStore.sqlite(empty_database(self.path)))
        return self.opened[-1].accounts

    async def make_two(self) -> tuple[Accounts, Accounts]:
        return await self.make(), await self.make()


@pytest.mark.live
class TestPostgresAccounts(AccountsContract):
    """Two nodes are two stores on one schema."""

    @pytest.fixture(autouse=True)
    async def _place(self) -> AsyncIterator[None]:
        self.place = Place()
        yield
        await self.place.aclose()

    async def make(self) -> Accounts:
        return self.place.store().accounts

    async def make_two(self) -> tuple[Accounts, Accounts]:
        return await self.make(), await self.make()


def test_a_store_has_its_accounts():
    store = MemoryStore()
    assert store.accounts is store.accounts


@pytest.mark.live
async def test_the_audit_log_of_postgres_is_only_ever_added_to():
    place = Place()
    try:
        accounts = place.store().accounts
        await accounts.append_audit(audit_record())
        for text in ("UPDATE audit SET who = 'eve'", "DELETE FROM audit", "TRUNCATE audit"):
            with pytest.raises(Exception, match="only ever added to"):
                await place.run(text)
        assert check_chain(await accounts.audit("acme")) == []
        assert len(await accounts.audit("acme")) == 1
    finally:
        await place.aclose()


async def test_the_audit_log_of_sqlite_is_only_ever_added_to(tmp_path: Path):
    store = SqlStore.sqlite(tmp_path / "a.db")
    await store.accounts.append_audit(audit_record())
    with sqlite3.connect(tmp_path / "a.db") as connection:
        for text in ("UPDATE audit SET who = 'eve'", "DELETE FROM audit"):
            with pytest.raises(sqlite3.IntegrityError, match="only ever added to"):
                connection.execute(text)
    connection.close()
    assert len(await store.accounts.audit("acme")) == 1
    await store.aclose()


@pytest.mark.parametrize("kind", SQL)
async def test_cleanup_removes_old_marks_those_beyond_the_limit_and_logins_that_hold_no_more(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(retention, "FINGERPRINTS_LIMIT", 3)
    old, now = NOON - 31 * 86_400, NOON
    async with opened_sql(kind, tmp_path) as store:
        accounts = store.accounts
        await accounts.put_tenant(ACME)
        await accounts.put_user(ADA)
        await accounts.put_fingerprint("acme", "old", ConversationFingerprint("s", "m"), old)
        for tenant, many in (("acme", 5), ("b", 2)):
            for n in range(many):
                await accounts.put_fingerprint(tenant, f"h{n}", ConversationFingerprint("s", "m"), now - 60 + n)
        for each in (
            replace(KEY, revoked=old),
            replace(LINK, id="used", hash="1", revoked=old, expires=0.0),
            replace(LINK, id="expired", hash="2", expires=old),
            replace(LINK, id="fresh", hash="3", expires=now - 60),
            replace(LINK, id="good", hash="4", expires=0.0),
        ):
            await accounts.put_credential(each)

        removed = await store.run_maintenance(now)

        assert (removed.fingerprints, removed.credentials) == (3, 2)
        assert [await accounts.fingerprint("acme", f"h{n}") is not None for n in range(5)] == [
            False,
            False,
            True,
            True,
            True,
        ]
        assert await accounts.fingerprint("b", "h0") is not None
        assert {credential.id for credential in await accounts.credentials("acme")} == {"key1", "fresh", "good"}


@pytest.mark.parametrize("kind", ["memory", *SQL])
async def test_marks_go_with_the_session_they_lead_into(kind: str, tmp_path: Path):
    async with AsyncExitStack() as stack:
        store = MemoryStore() if kind == "memory" else await stack.enter_async_context(opened_sql(kind, tmp_path))
        for session in ("s", "s2"):
            await store.admit(send_message(session=session))
            await store.append(session, 0, [*turn_started_events(), *turn_ended_events()])
            await store.accounts.put_fingerprint("local", session, ConversationFingerprint(session, "t.out"), NOON)

        await store.erase("s")

        assert await store.accounts.fingerprint("local", "s") is None
        assert await store.accounts.fingerprint("local", "s2") == ConversationFingerprint("s2", "t.out")


async def test_accounts_of_a_store_that_is_closed_say_so(tmp_path: Path):
    store = SqlStore.sqlite(tmp_path / "a.db")
    await store.accounts.append_audit(audit_record())
    await store.aclose()
    with pytest.raises(StoreUnavailable):
        await store.accounts.append_audit(audit_record())
