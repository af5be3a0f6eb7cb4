"""Accounts contract: tenants, users, credentials, secrets, the audit log, and fingerprints."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace

from everturn.core.options import Budget
from everturn.core.tenants.accounts import (
    Accounts,
    AuditRecord,
    ConversationFingerprint,
    Credential,
    KnownCredential,
    Tenant,
    User,
    check_chain,
)
from everturn.core.tenants.user_records import AuditFilter, Invitation, UserBudget, UserRecord
from everturn.errors import ConfigError, Forbidden, KeyConflict
from everturn.testing.contracts.samples import NOON

ACME, EVIL = Tenant("acme", "Acme", created=NOON), Tenant("evil", created=NOON)
ADA, EVE = User("acme", "ada", "Ada", "owner", created=NOON), User("evil", "eve", created=NOON)
KEY = Credential("key1", "acme", "ada", "key", "a" * 64, "laptop", "member", NOON)
LINK = Credential("link1", "acme", "ada", "link", "b" * 64, created=NOON, expires=NOON + 60)
HOSTILE = ("'; DROP TABLE users; --", 'a"b', "a\\b", "\\' OR 1=1", "ünïcödé 你好 👋", "%_", " ", "")


def audit_record(did: str = "key.create", tenant: str = "acme", at: float = NOON) -> AuditRecord:
    """An audit record of an action by Ada."""
    return AuditRecord(tenant, at, "ada", "key1", did, "key2", '{"name":"é"}')


class AccountsContract:
    """The port `Accounts`. An adapter that several nodes share returns two of them in `make_two`."""

    async def make(self) -> Accounts:
        """Empty accounts."""
        raise NotImplementedError

    async def make_two(self) -> tuple[Accounts, Accounts]:
        """The same empty accounts on two nodes."""
        accounts = await self.make()
        return accounts, accounts

    async def make_with_users(self) -> Accounts:
        """Accounts with two tenants, and a user in each."""
        accounts = await self.make()
        await _furnish(accounts)
        return accounts

    # Tenants and users -------------------------------------------------------------------------------------------

    async def test_tenants_and_users_are_made_changed_and_listed_by_id(self) -> None:
        accounts = await self.make()
        assert await accounts.tenants() == await accounts.users("acme") == []
        await _furnish(accounts)
        bob = User("acme", "bob", role="viewer", is_active=False, created=NOON + 1)
        await accounts.put_user(bob)
        assert await accounts.tenants() == [ACME, EVIL]
        assert await accounts.users("acme") == [ADA, bob]
        assert await accounts.user("acme", "ada") == (ADA, ACME)

        other = replace(ADA, role="viewer", name="A.", origin="https://login.example")
        await accounts.put_user(other)
        await accounts.put_tenant(replace(ACME, is_active=False))
        assert await accounts.user("acme", "ada") == (other, replace(ACME, is_active=False))
        assert await accounts.users("acme") == [other, bob]
        assert await accounts.users("evil") == [EVE]

    async def test_a_user_is_added_once_and_who_is_there_stays_as_they_are(self) -> None:
        accounts = await self.make()
        await _furnish(accounts)
        assert not await accounts.add_user(replace(ADA, role="viewer"))
        bob = User("acme", "bob", created=NOON, origin="https://login.example")
        made = await asyncio.gather(*(accounts.add_user(replace(bob, created=NOON + n)) for n in range(5)))
        assert sorted(made) == [False] * 4 + [True]
        assert (await accounts.users("acme"))[0] == ADA
        assert [user.id for user in await accounts.users("acme")] == ["ada", "bob"]

    async def test_of_two_owners_who_demote_each_other_one_is_left(self) -> None:
        accounts = await self.make()
        await _furnish(accounts)
        with pytest.raises(Forbidden, match="last owner"):
            await accounts.put_user(replace(ADA, is_active=False), keeps_owner=True)
        bob = User("acme", "bob", role="owner", created=NOON)
        await accounts.put_user(bob, keeps_owner=True)
        demoted = [accounts.put_user(replace(user, role="member"), keeps_owner=True) for user in (ADA, bob)]
        results = await asyncio.gather(*demoted, return_exceptions=True)
        assert sorted(type(result).__name__ for result in results) == ["Forbidden", "NoneType"]
        assert sorted(user.role for user in await accounts.users("acme")) == ["member", "owner"]
        await accounts.put_user(replace(EVE, role="viewer"), keeps_owner=True)  # there was no owner before
        await accounts.put_user(replace(ADA, role="viewer"))
        await accounts.put_user(replace(bob, role="viewer"))
        assert [user.role for user in await accounts.users("acme")] == ["viewer", "viewer"]

    async def test_a_user_is_one_of_a_tenant_and_two_of_two(self) -> None:
        accounts = await self.make_with_users()
        await accounts.put_user(User("evil", "ada", role="viewer", created=NOON))

        acme_user, evil_user = await accounts.user("acme", "ada"), await accounts.user("evil", "ada")
        assert acme_user is not None
        assert evil_user is not None
        assert (acme_user[0].role, evil_user[0].role) == ("owner", "viewer")
        assert await accounts.user("acme", "eve") is await accounts.user("nobody", "ada") is None

    async def test_names_are_kept_as_they_are_whatever_is_in_them(self) -> None:
        accounts = await self.make()
        for n, name in enumerate(HOSTILE):
            await accounts.put_tenant(Tenant(name, name))
            await accounts.put_user(User(name, name, name))
            await accounts.put_credential(Credential(f"{n}{name}", name, name, "key", f"{n}{name}", name))
            await accounts.put_fingerprint(name, name, ConversationFingerprint(name, name), NOON)
            await accounts.append_audit(replace(audit_record(name, name), detail=name, on=name))
        for n, name in enumerate(HOSTILE):
            assert await accounts.users(name) == [User(name, name, name)]
            known = await accounts.find_credential(f"{n}{name}")
            assert known is not None
            assert (known.tenant.name, known.credential.user) == (name, name)
            assert await accounts.fingerprint(name, name) == ConversationFingerprint(name, name)
            assert check_chain(await accounts.audit(name)) == []
            assert set(await accounts.active_credentials([f"{n}{name}"])) == {f"{n}{name}"}

    @pytest.mark.parametrize("odd", ["a\0b", "\ud800"])
    async def test_a_name_that_cannot_be_kept_is_nobodys_and_raises_nothing_of_the_database(self, odd: str) -> None:
        accounts = await self.make_with_users()

        assert (
            await accounts.find_credential(odd)
            is await accounts.user(odd, odd)
            is await accounts.fingerprint(odd, odd)
            is None
        )
        assert await accounts.use_link(odd, NOON) is None
        assert not await accounts.revoke(odd, odd, NOON)
        assert await accounts.active_credentials([odd]) == {}
        assert await accounts.users(odd) == await accounts.credentials(odd) == await accounts.audit(odd) == []
        with suppress(ConfigError):  # it may be stored where that is possible
            await accounts.put_user(User("acme", odd))

    # Credentials -------------------------------------------------------------------------------------------------

    async def test_a_credential_is_known_by_its_hash_with_whose_it_is_as_they_are_now(self) -> None:
        accounts = await self.make_with_users()
        await accounts.put_credential(KEY)

        assert await accounts.find_credential(KEY.hash) == KnownCredential(KEY, ADA, ACME)
        assert await accounts.find_credential("c" * 64) is await accounts.find_credential(KEY.id) is None
        await accounts.put_user(replace(ADA, is_active=False))
        await accounts.put_tenant(replace(ACME, is_active=False))
        known = await accounts.find_credential(KEY.hash)
        assert known == KnownCredential(KEY, replace(ADA, is_active=False), replace(ACME, is_active=False))
        assert await accounts.active_credentials([KEY.id, "nobody's"]) == {KEY.id: known}
        assert await accounts.active_credentials([]) == {}

    async def test_a_credential_of_the_same_id_or_hash_is_refused_and_changes_nothing(self) -> None:
        accounts = await self.make_with_users()
        await accounts.put_credential(KEY)

        for other in (KEY, replace(KEY, hash="c" * 64), replace(KEY, id="key2", tenant="evil", user="eve")):
            with pytest.raises(KeyConflict):
                await accounts.put_credential(other)
        assert await accounts.credentials("acme") == [KEY]
        assert await accounts.credentials("evil") == []

    async def test_of_many_that_put_the_same_at_once_one_does(self) -> None:
        first, second = await self.make_two()
        await _furnish(first)
        puts = [
            accounts.put_credential(replace(KEY, id=f"key{n}", name=str(n)))
            for n, accounts in zip(range(20), (first, second) * 10, strict=True)
        ]
        results = await asyncio.gather(*puts, return_exceptions=True)

        assert sum(isinstance(each, KeyConflict) for each in results) == 19, results
        assert len(await first.credentials("acme")) == 1

    async def test_credentials_are_listed_by_tenant_and_user_oldest_first(self) -> None:
        accounts = await self.make_with_users()
        later = replace(KEY, id="key0", hash="c" * 64, created=NOON + 5, user="bob")
        foreign = Credential("key9", "evil", "eve", "key", "d" * 64)
        for each in (later, foreign, KEY):
            await accounts.put_credential(each)

        assert await accounts.credentials("acme") == [KEY, later]
        assert await accounts.credentials("acme", "bob") == [later]
        assert await accounts.credentials("acme", "eve") == await accounts.credentials("evil", "ada") == []

    async def test_a_credential_is_revoked_once_and_by_its_own_tenant(self) -> None:
        first, second = await self.make_two()
        await _furnish(first)
        await first.put_credential(KEY)

        assert not await first.revoke("evil", KEY.id, NOON + 1)
        assert not await first.revoke("acme", "nobody's", NOON + 1)
        results = await asyncio.gather(*(each.revoke("acme", KEY.id, NOON + 2) for each in (first, second) * 5))
        assert sorted(results) == [False] * 9 + [True]
        for accounts in (first, second):
            known = await accounts.find_credential(KEY.hash)
            assert known is not None
            assert known.credential == replace(KEY, revoked=NOON + 2)
            assert (await accounts.active_credentials([KEY.id]))[KEY.id] == known

    async def test_of_fifty_who_use_a_link_at_once_one_has_it(self) -> None:
        first, second = await self.make_two()
        await _furnish(first)
        await first.put_credential(LINK)

        results = await asyncio.gather(*(each.use_link(LINK.hash, NOON + 1) for each in (first, second) * 25))
        assert [each for each in results if each is not None] == [
            KnownCredential(replace(LINK, revoked=NOON + 1), ADA, ACME)
        ]
        assert await first.use_link(LINK.hash, NOON + 2) is None
        assert (await first.credentials("acme"))[0].revoked == NOON + 1

    async def test_what_is_no_link_or_no_longer_one_cannot_be_used_and_stays_as_it_is(self) -> None:
        accounts = await self.make_with_users()
        revoked = replace(LINK, id="gone", hash="e" * 64, revoked=NOON)
        for each in (KEY, LINK, revoked):
            await accounts.put_credential(each)

        assert await accounts.use_link(KEY.hash, NOON) is await accounts.use_link(revoked.hash, NOON) is None
        assert await accounts.use_link(LINK.hash, NOON + 60) is await accounts.use_link("f" * 64, NOON) is None
        assert sorted(await accounts.credentials("acme"), key=lambda credential: credential.id) == [revoked, KEY, LINK]
        assert await accounts.use_link(LINK.hash, NOON + 59) is not None

    # User records ------------------------------------------------------------------------------------------------

    async def test_password_budget_and_removal_are_stored_beside_the_user(self) -> None:
        accounts = await self.make_with_users()
        records = accounts.records
        assert await records.record("acme", "ada") == UserRecord("ada")
        await records.set_password("acme", "ada", "$argon2id$1", NOON)
        budget = UserBudget(Budget(tokens=1000, cost=0.5), 3600.0)
        await records.set_budget("acme", "ada", budget)
        await records.set_password("evil", "ada", "other", NOON)
        assert await records.record("acme", "ada") == UserRecord("ada", "$argon2id$1", NOON, budget)
        assert await records.all_records("acme") == {"ada": UserRecord("ada", "$argon2id$1", NOON, budget)}
        await records.set_budget("acme", "ada", UserBudget())
        assert (await records.record("acme", "ada")).budget == UserBudget()
        await records.remove_user("acme", "ada", NOON + 1)
        assert await records.record("acme", "ada") == UserRecord("ada", removed=NOON + 1)
        assert (await records.record("evil", "ada")).password == "other"

    async def test_all_logins_of_a_user_are_revoked_but_one_and_the_keys(self) -> None:
        accounts = await self.make_with_users()
        login = replace(KEY, id="login1", kind="login", hash="c" * 64)
        other, foreign = (
            replace(login, id="login2", hash="d" * 64),
            replace(login, id="f", hash="e" * 64, tenant="evil", user="eve"),
        )
        for each in (KEY, LINK, login, other, foreign):
            await accounts.put_credential(each)
        records = accounts.records
        assert await records.revoke_credentials("acme", "ada", NOON + 1, with_keys=False, but="login2") == 2
        assert {row.id for row in await accounts.credentials("acme") if row.revoked} == {"login1", "link1"}
        assert await records.revoke_credentials("acme", "ada", NOON + 2, with_keys=True) == 2
        assert {row.revoked for row in await accounts.credentials("acme")} == {NOON + 1, NOON + 2}
        assert not (await accounts.credentials("evil"))[0].revoked

    async def test_of_many_who_use_an_invitation_at_once_one_has_it(self) -> None:
        one, two = await self.make_two()
        await _furnish(one)
        new = Invitation("i1", "acme", "invitation", "bob", "f" * 64, created=NOON, expires=NOON + 60)
        await one.records.add_invitation(new)
        assert await two.records.find_invitation(new.hash) == new
        came = await asyncio.gather(*(each.records.use_invitation(new.hash, NOON + 1) for each in (one, two) * 10))
        assert sum(each is not None for each in came) == 1
        assert await one.records.invitations("acme") == [replace(new, used=NOON + 1)]
        assert await one.records.use_invitation(new.hash, NOON + 2) is None
        assert not await one.records.revoke_invitation("acme", "i1", NOON + 2)

    async def test_an_invitation_that_was_revoked_or_has_expired_cannot_be_used(self) -> None:
        accounts = await self.make_with_users()
        records = accounts.records
        for n, expires in ((1, NOON + 60), (2, NOON + 5)):
            made = Invitation(f"i{n}", "acme", "reset", "ada", str(n) * 64, created=NOON + n, expires=expires)
            await records.add_invitation(made)
        assert not await records.revoke_invitation("evil", "i1", NOON)
        assert await records.revoke_invitation("acme", "i1", NOON)
        assert await records.use_invitation("1" * 64, NOON) is None
        assert await records.use_invitation("2" * 64, NOON + 5) is None
        assert [row.id for row in await records.invitations("acme")] == ["i2", "i1"]
        assert await records.invitations("evil") == []
        assert await records.find_invitation("9" * 64) is None

    async def test_the_last_use_of_a_credential_is_the_latest(self) -> None:
        accounts = await self.make_with_users()
        await accounts.put_credential(KEY)
        assert await accounts.records.last_uses("acme") == {}
        for at in (NOON + 5, NOON + 2):
            await accounts.records.note_uses({KEY.id: at, "unknown": at})
        assert await accounts.records.last_uses("acme") == {KEY.id: NOON + 5}
        assert await accounts.records.last_uses("evil") == {}

    async def test_the_audit_log_is_searched_backwards(self) -> None:
        accounts = await self.make_with_users()
        for n, did in enumerate(("key.create", "key.revoke", "keys", "user.invite")):
            await accounts.append_audit(audit_record(did, at=NOON + n))
        await accounts.append_audit(audit_record("key.create", "evil"))

        async def found(before: int = 0, limit: int = 100, **where: Any) -> list[str]:
            rows = await accounts.records.search_audit("acme", AuditFilter(**where), before, limit)
            return [row.did for row in rows]

        assert await found() == ["user.invite", "keys", "key.revoke", "key.create"]
        assert await found(did="key") == ["key.revoke", "key.create"]
        assert await found(did="key.create") == ["key.create"]
        assert await found(by="ada", limit=1) == ["user.invite"]
        assert await found(by="bob") == await found(on="x") == await found(did="%") == []
        assert await found(before=3) == ["key.revoke", "key.create"]
        assert await found(since=NOON + 1, until=NOON + 3) == ["keys", "key.revoke"]
        assert await found(on="key2", did="user") == ["user.invite"]

    # Secrets -----------------------------------------------------------------------------------------------------

    async def test_a_secret_is_made_once_and_is_the_same_for_all(self) -> None:
        first, second = await self.make_two()

        found = await asyncio.gather(*(each.secret("cookies") for each in (first, second) * 10))
        assert len(set(found)) == 1
        assert len(found[0]) == 32
        assert await second.secret("cookies") == found[0] != await second.secret("other")

    async def test_a_rotated_key_verifies_until_it_is_retired(self) -> None:
        first, second = await self.make_two()
        (old,) = await first.keys.all("csrf")
        assert [key async for key in second.keys.candidates("csrf")] == [old]
        assert await second.keys.first("files") != old

        await first.keys.add("csrf", NOON)
        new = await first.keys.first("csrf")
        assert new != old
        assert await first.keys.all("csrf") == [new, old]
        assert [key.value for key in await second.keys.stored("csrf")] == [new, old]
        assert [key.created for key in await second.keys.stored("csrf")] == [NOON, 0.0]
        assert len(await first.keys.all("files")) == 1

        assert await first.keys.retire("csrf") == 1
        assert await first.keys.all("csrf") == [new]
        assert [key.value for key in await second.keys.stored("csrf")] == [new]
        assert await first.keys.retire("csrf") == 0

    async def test_configured_keys_sign_and_stored_ones_verify(self) -> None:
        accounts = await self.make()
        stored = await accounts.keys.first("csrf")
        accounts.keys.configured = ("n" * 32, "o" * 32)
        await accounts.keys.retire("csrf")  # deletes nothing, and reads them again

        first, second, last = await accounts.keys.all("csrf")
        assert len({first, second, last}) == 3
        assert last == stored
        assert await accounts.keys.first("files") not in (first, second)
        assert await accounts.keys.retire("csrf", keeps_newest=False) == 1
        assert await accounts.keys.all("csrf") == [first, second]
        assert await accounts.keys.stored("files") == []  # none was made: the configuration has them

    # Audit log ---------------------------------------------------------------------------------------------------

    async def test_what_was_done_is_numbered_and_chained_in_each_tenant(self) -> None:
        accounts = await self.make()
        noted = [await accounts.append_audit(audit_record(f"d{n}", "acme" if n % 2 else "evil")) for n in range(10)]

        records = await accounts.audit("acme")
        assert records == noted[1::2]
        assert [(record.n, record.did) for record in records] == [(n + 1, f"d{2 * n + 1}") for n in range(5)]
        assert check_chain(records) == check_chain(await accounts.audit("evil")) == []
        assert await accounts.audit("acme", after=2, limit=2) == records[2:4]
        assert check_chain(records[2:], before=records[1]) == []
        assert await accounts.audit("acme", after=5) == await accounts.audit("acme", limit=0) == []
        assert await accounts.audit("nobody") == []

    async def test_the_last_deed_to_a_subject_is_found(self) -> None:
        accounts = await self.make()
        deeds = [("user.change", "ann"), ("user.change", "bob"), ("key.create", "ann"), ("user.create", "ann")]
        for n, (did, on) in enumerate([*deeds, ("user.change", "bob")]):
            await accounts.append_audit(replace(audit_record(did), on=on, detail=f"{n}"))
        await accounts.append_audit(replace(audit_record("user.change", "evil"), on="ann", detail="theirs"))

        async def last(on: str, *did: str) -> str | None:
            found = await accounts.last_audit("acme", on, did)
            return None if found is None else found.detail

        assert await last("ann", "user.change", "user.create") == "3"
        assert await last("ann", "user.change") == "0"
        assert await last("bob", "user.create", "user.change") == "4"
        assert await last("bob", "key.create") is None
        assert await last("nobody", "user.change") is None

    async def test_a_hundred_who_note_at_once_leave_no_gap_and_no_fork(self) -> None:
        first, second = await self.make_two()
        numbers = count()

        noted = await asyncio.gather(
            *(each.append_audit(audit_record(f"d{next(numbers)}")) for each in (first, second) * 50)
        )

        records = await second.audit("acme", limit=200)
        assert check_chain(records) == []
        assert [record.n for record in records] == list(range(1, 101))
        assert {record.did for record in records} == {f"d{n}" for n in range(100)}
        assert sorted(noted, key=lambda record: record.n) == records

    async def test_a_chain_that_somebody_has_been_at_is_seen(self) -> None:
        accounts = await self.make()
        for n in range(6):
            await accounts.append_audit(audit_record(f"d{n}"))
        good = await accounts.audit("acme")

        for field, value in {"by": "eve", "at": 0.0, "did": "x", "on": "y", "detail": "", "credential": "k"}.items():
            bad = [*good[:2], replace(good[2], **{field: value}), *good[3:]]
            assert check_chain(bad) == ["record 3 is not what was written, or not behind what was written before it"]
        assert check_chain([*good[:2], *good[3:]])[0] == "where record 3 should be there is record 4"
        assert check_chain(good[1:])
        assert check_chain([good[1], good[0]])
        forged = [*good[:2], *(replace(record, n=record.n - 1) for record in good[3:])]
        assert check_chain(forged)

    # Fingerprints ------------------------------------------------------------------------------------------------

    async def test_a_mark_is_the_last_of_its_hash_in_its_tenant(self) -> None:
        accounts = await self.make()
        await accounts.put_fingerprint("acme", "h", ConversationFingerprint("s", "m1"), NOON)
        await accounts.put_fingerprint("acme", "h", ConversationFingerprint("s", "m2"), NOON + 1)
        await accounts.put_fingerprint("evil", "h2", ConversationFingerprint("s2", "m3"), NOON)

        assert await accounts.fingerprint("acme", "h") == ConversationFingerprint("s", "m2")
        assert await accounts.fingerprint("evil", "h") is await accounts.fingerprint("acme", "h2") is None


async def _furnish(accounts: Accounts) -> None:
    for tenant in (EVIL, ACME):
        await accounts.put_tenant(tenant)
    for user in (EVE, ADA):
        await accounts.put_user(user)
