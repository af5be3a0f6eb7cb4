"""Users, keys and tenants: nobody gives away more than they have, and what was done is written down."""

from __future__ import annotations

import asyncio

import pytest

from everturn import api
from everturn.access.auth.authentication import Authenticator
from everturn.core.tenants.accounts import User
from everturn.errors import ConfigError, EverturnError, Forbidden, NotRecognised, UnknownKey
from everturn.testing import FakeClock
from tests.helpers.tenants import a_house, access_of


async def test_an_owner_makes_users_up_to_their_own_role() -> None:
    async with a_house() as house:
        owner = access_of(house, "owner")
        for role in ("viewer", "member", "approver", "owner"):
            assert (await owner.accounts.put_user(f"new-{role}", api.PutUser(role=role))).role == role
        with pytest.raises(Forbidden, match="higher than your role"):
            await owner.accounts.put_user("new", api.PutUser(role="operator"))
        with pytest.raises(Forbidden, match="higher than your role"):
            await owner.accounts.create_key(api.NewKey(role="operator"))
        assert {user.id for user in (await owner.accounts.users()).users} >= {"new-owner", "new-viewer"}
        assert "new" not in {user.id for user in (await owner.accounts.users()).users}


async def test_an_owner_does_not_touch_an_operator() -> None:
    async with a_house() as house:
        owner, operator = access_of(house, "owner", "local"), access_of(house, "operator", "local")
        key = await operator.accounts.create_key(api.NewKey(role="operator"))
        for refused in (
            lambda: owner.accounts.put_user("operator-local", api.PutUser(role="viewer")),
            lambda: owner.accounts.put_user("operator-local", api.PutUser(is_active=False)),
            lambda: owner.accounts.create_key(api.NewKey(user="operator-local", role="viewer")),
            lambda: owner.accounts.revoke_key(key.id),
        ):
            with pytest.raises(Forbidden, match="higher than your role"):
                await refused()
        assert await Authenticator(house.accounts, house.app.clock).authenticate(f"Bearer {key.secret}")


async def test_the_last_owner_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    async with a_house() as house:
        owner = access_of(house, "owner")
        for put in (api.PutUser(role="member"), api.PutUser(role="owner", is_active=False)):
            with pytest.raises(Forbidden, match="last owner"):
                await owner.accounts.put_user("owner-ada", put)
        await owner.accounts.put_user("second", api.PutUser(role="owner"))
        looked = house.accounts.users

        async def slowly(tenant: str) -> list[User]:
            found = await looked(tenant)
            await asyncio.sleep(0.01)  # as long as another request takes, on a real store
            return found

        monkeypatch.setattr(house.accounts, "users", slowly)
        results = await asyncio.gather(
            owner.accounts.put_user("owner-ada", api.PutUser(role="viewer")),
            owner.accounts.put_user("second", api.PutUser(role="viewer")),
            return_exceptions=True,
        )
        assert sum(isinstance(result, Forbidden) for result in results) == 1
        left = [user.id for user in (await owner.accounts.users()).users if user.role == "owner"]
        assert len(left) == 1


@pytest.mark.parametrize("user", ["", " ", "everturn", "plugin:x", "a\nb", "x" * 201, "a ", "\0", "a\u202eb"])
async def test_nobody_is_called_what_would_be_taken_for_something_else(user: str) -> None:
    async with a_house() as house:
        with pytest.raises(ConfigError):
            await access_of(house, "owner").accounts.put_user(user, api.PutUser())


async def test_a_key_is_shown_once_holds_for_its_role_and_is_revoked() -> None:
    clock = FakeClock()
    async with a_house(clock=clock) as house:
        owner, door = access_of(house, "owner"), Authenticator(house.accounts, clock)
        key = await owner.accounts.create_key(api.NewKey(name="ci", user="approver-ada", role="member"))
        assert key.secret.startswith("evk_")
        assert len(key.secret) >= 47
        principal = await door.authenticate(f"Bearer {key.secret}")
        assert (principal.tenant, principal.user, principal.role, principal.kind) == (
            "ada",
            "approver-ada",
            "member",
            "key",
        )
        listed = (await owner.accounts.keys()).keys
        assert [entry.id for entry in listed] == [key.id]
        stored_text = (
            repr(await house.accounts.credentials("ada")) + repr(listed) + repr((await owner.accounts.audit()).records)
        )
        assert key.secret not in stored_text
        assert key.secret[4:] not in stored_text
        await owner.accounts.revoke_key(key.id)
        clock.advance(2)
        with pytest.raises(NotRecognised):
            await door.authenticate(f"Bearer {key.secret}")
        did = [(record.did, record.on) for record in (await owner.accounts.audit()).records]
        assert did == [("key.create", key.id), ("key.revoke", key.id)]


async def test_a_key_of_another_tenant_is_an_absent_one() -> None:
    async with a_house() as house:
        theirs = await access_of(house, "owner", "bob").accounts.create_key(api.NewKey())
        answers: set[tuple[type[EverturnError], str]] = set()
        for key in (theirs.id, "key_never", "", "\0"):
            with pytest.raises(UnknownKey) as raised:
                await access_of(house, "owner").accounts.revoke_key(key)
            answers.add((type(raised.value), str(raised.value)))
        assert len(answers) == 1
        for user in ("owner-bob", "nobody"):
            with pytest.raises(ConfigError, match="there is no user"):
                await access_of(house, "owner").accounts.create_key(api.NewKey(user=user))
        assert await Authenticator(house.accounts, house.app.clock).authenticate(f"Bearer {theirs.secret}")


async def test_whoever_is_deactivated_has_no_key_and_gets_none() -> None:
    clock = FakeClock()
    async with a_house(clock=clock) as house:
        owner, door = access_of(house, "owner"), Authenticator(house.accounts, clock)
        key = await owner.accounts.create_key(api.NewKey(user="member-ada"))
        await owner.accounts.put_user("member-ada", api.PutUser(is_active=False))
        clock.advance(2)
        with pytest.raises(NotRecognised):
            await door.authenticate(f"Bearer {key.secret}")
        with pytest.raises(ConfigError):
            await owner.accounts.create_key(api.NewKey(user="member-ada"))
        assert (await owner.accounts.audit()).records[-1].did == "user.deactivate"


async def test_a_key_expires_and_does_not_begin_in_the_past() -> None:
    clock = FakeClock()
    async with a_house(clock=clock) as house:
        owner, door = access_of(house, "owner"), Authenticator(house.accounts, clock)
        with pytest.raises(ConfigError, match="expires"):
            await owner.accounts.create_key(api.NewKey(expires=clock.now()))
        key = await owner.accounts.create_key(api.NewKey(expires=clock.now() + 1))
        assert (await door.authenticate(f"Bearer {key.secret}")).expires == clock.now() + 1
        clock.advance(1)  # remembered, and yet over
        with pytest.raises(NotRecognised):
            await door.authenticate(f"Bearer {key.secret}")


async def test_tenants_are_seen_to_by_operators_who_do_not_lock_themselves_out() -> None:
    async with a_house() as house:
        operator = access_of(house, "operator", "local")
        assert (await operator.accounts.put_tenant("new", api.PutTenant(name="New"))).id == "new"
        assert {tenant.id for tenant in (await operator.accounts.tenants()).tenants} == {"ada", "bob", "local", "new"}
        with pytest.raises(Forbidden, match="your own tenant"):
            await operator.accounts.put_tenant("local", api.PutTenant(is_active=False))
        for tenant in ("", "A", "../x", "a b", "x" * 64, "ä", "\0"):
            with pytest.raises(ConfigError):
                await operator.accounts.put_tenant(tenant, api.PutTenant())
        await operator.accounts.put_tenant("bob", api.PutTenant(is_active=False))
        key = "evk_" + "x" * 43
        with pytest.raises(NotRecognised):
            await Authenticator(house.accounts, house.app.clock).authenticate(f"Bearer {key}")


async def test_a_user_of_another_tenant_with_the_same_name_is_somebody_else() -> None:
    async with a_house() as house:
        await house.accounts.put_user(User("bob", "same", role="owner"))
        await access_of(house, "owner").accounts.put_user("same", api.PutUser(role="viewer", is_active=False))
        found = await house.accounts.user("bob", "same")
        assert found is not None
        assert (found[0].role, found[0].is_active) == ("owner", True)
