"""What administrators do with users: roles, removal, invitations, passwords, budgets; and what nobody may."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from argon2 import PasswordHasher

from everturn import api
from everturn.access.administration.accounts import hash_secret
from everturn.access.auth.authentication import Authenticator
from everturn.access.auth.passwords import (
    ADDRESS_BURST,
    FRESH_LOGIN,
    USER_BURST,
    PasswordLogins,
    check_new_password,
    password_support,
)
from everturn.access.context.agents import AgentSpec
from everturn.access.context.server_context import ServerContext
from everturn.core.events import GateOpened
from everturn.core.options import TurnOptions
from everturn.core.tenants.accounts import Principal
from everturn.errors import ConfigError, Forbidden, NotRecognised, TooMuch, UnknownLink, UnknownSession
from everturn.testing import FakeClock
from tests.helpers.tenants import a_house, access_of, over, start_session

GOOD = "a quiet green lamp"
NEW = "seven blue chairs there"


def logins_of(house: ServerContext, support: Any = "on") -> PasswordLogins:
    house.password_support = support
    door = Authenticator(house.accounts, house.app.clock)
    return PasswordLogins(house.accounts, house.app.clock, door, support, PasswordHasher(1, 8, 1))  # a cheap hash


async def audited(house: ServerContext, tenant: str = "ada") -> list[str]:
    return [record.did for record in await house.accounts.audit(tenant, 0, 1000)]


async def log_in(logins: PasswordLogins, password: str, user: str = "anna", address: str = "a") -> Principal:
    return (await logins.log_in("ada", user, password, address, None))[1]


async def test_an_invitation_makes_one_user_with_its_role_and_logs_them_in() -> None:
    async with a_house(clock=FakeClock()) as house:
        owner, logins = access_of(house, "owner"), logins_of(house)
        invitation = await owner.users.invite(api.NewInvitation(user="anna", name="Anna", role="approver"))
        assert invitation.secret.startswith("evi_")
        assert invitation.secret not in repr(await house.accounts.records.invitations("ada"))
        assert invitation.secret not in repr(await house.accounts.audit("ada", 0, 100))
        with pytest.raises(ConfigError, match="at least 12"):
            await logins.accept(invitation.secret, "short", None)
        cookie, principal = await logins.accept(invitation.secret, GOOD, None)
        assert (principal.user, principal.role, principal.kind) == ("anna", "approver", "login")
        assert cookie.startswith("evl_")
        with pytest.raises(UnknownLink):
            await logins.accept(invitation.secret, NEW, None)
        assert (await log_in(logins, GOOD)).role == "approver"
        (row,) = (await owner.users.invitations()).invitations
        assert row.used
        done = await audited(house)
        assert [did for did in done if did != "auth.login"] == ["user.invite", "invitation.accept", "auth.password"]
        stored = (await house.accounts.records.record("ada", "anna")).password
        assert stored.startswith("$argon2id$")
        assert GOOD not in stored


async def test_of_ten_who_accept_at_once_one_is_let_in() -> None:
    async with a_house() as house:
        logins = logins_of(house, "off")
        invitation = await access_of(house, "owner").users.invite(api.NewInvitation(user="anna"))
        came = await asyncio.gather(
            *(logins.accept(invitation.secret, "", None) for _ in range(10)), return_exceptions=True
        )
        assert sum(isinstance(each, UnknownLink) for each in came) == 9


async def test_an_invitation_expires_and_is_revoked_and_a_new_one_replaces_the_old() -> None:
    clock = FakeClock()
    async with a_house(clock=clock) as house:
        owner, logins = access_of(house, "owner"), logins_of(house)
        first = await owner.users.invite(api.NewInvitation(user="anna", hours=1))
        second = await owner.users.invite(api.NewInvitation(user="anna", hours=1))
        with pytest.raises(UnknownLink):
            await logins.find_invitation(first.secret)
        await logins.find_invitation(second.secret)
        clock.advance(3601)
        with pytest.raises(UnknownLink):
            await logins.accept(second.secret, GOOD, None)
        third = await owner.users.invite(api.NewInvitation(user="anna"))
        with pytest.raises(UnknownLink):  # of another tenant: as if it were not there
            await access_of(house, "owner", "bob").users.revoke_invitation(third.id)
        await owner.users.revoke_invitation(third.id)
        with pytest.raises(UnknownLink):
            await logins.accept(third.secret, GOOD, None)
        assert await house.accounts.user("ada", "anna") is None


async def test_nobody_invites_resets_or_removes_above_their_role() -> None:
    async with a_house() as house:
        owner, logins = access_of(house, "owner", "local"), logins_of(house)
        operator = "operator-local"
        for refused in (
            lambda: owner.users.invite(api.NewInvitation(user="new", role="operator")),
            lambda: owner.users.reset_password(operator),
            lambda: owner.users.remove(operator),
            lambda: owner.users.set_budget(operator, api.PutUserBudget(tokens=1)),
        ):
            with pytest.raises(Forbidden, match="higher than your role"):
                await refused()
        reset = await access_of(house, "operator", "local").users.reset_password(operator)
        with pytest.raises(Forbidden, match="higher than your role"):
            await owner.users.revoke_invitation(reset.id)
        assert (await logins.accept(reset.secret, GOOD, None))[1].role == "operator"


async def test_a_wrong_password_an_unknown_user_and_a_disabled_one_look_the_same_and_cost_a_hash() -> None:
    async with a_house(clock=FakeClock()) as house:
        owner, logins = access_of(house, "owner"), logins_of(house)
        for user in ("anna", "carl"):
            invitation = await owner.users.invite(api.NewInvitation(user=user))
            await logins.accept(invitation.secret, GOOD, None)
        await owner.accounts.put_user("carl", api.PutUser(is_active=False))
        counted, verify = list[str](), logins._verify

        async def counting(stored: str, password: str) -> bool:
            counted.append(stored)
            return await verify(stored, password)

        logins._verify = counting
        texts: set[str] = set()
        for user, password in (("anna", NEW), ("nobody", GOOD), ("carl", GOOD), ("owner-ada", GOOD)):
            with pytest.raises(NotRecognised) as refused:
                await log_in(logins, password, user)
            texts.add(str(refused.value))
        assert len(texts) == 1
        assert [bool(stored) for stored in counted] == [True, False, False, False]
        with pytest.raises(NotRecognised):
            await logins.log_in("bob", "anna", GOOD, "a", None)


async def test_guesses_are_limited_for_an_account_and_for_an_address_also_an_unknown_one() -> None:
    clock = FakeClock()
    async with a_house(clock=clock) as house:
        for user in ("anna", "nobody"):
            logins = logins_of(house)
            for tries in range(int(USER_BURST)):
                with pytest.raises(NotRecognised):
                    await log_in(logins, NEW, user, address=str(tries))
            with pytest.raises(TooMuch):
                await log_in(logins, NEW, user, address="another")
            clock.advance(31)
            with pytest.raises(NotRecognised):
                await log_in(logins, NEW, user, address="x")
        logins = logins_of(house)
        for tries in range(int(ADDRESS_BURST)):
            with pytest.raises(NotRecognised):
                await log_in(logins, NEW, f"user{tries}")
        with pytest.raises(TooMuch):
            await log_in(logins, NEW, "one more")


async def test_a_login_has_a_new_secret_and_ends_the_one_before() -> None:
    async with a_house() as house:
        logins, door = logins_of(house), Authenticator(house.accounts, house.app.clock)
        invitation = await access_of(house, "owner").users.invite(api.NewInvitation(user="anna"))
        first, _ = await logins.accept(invitation.secret, GOOD, None)
        second, _ = await logins.log_in("ada", "anna", GOOD, "a", first)
        assert first != second
        with pytest.raises(NotRecognised):
            await door.authenticate(None, first)
        assert (await door.authenticate(None, second)).user == "anna"


async def test_a_new_password_ends_the_logins_and_keeps_the_keys() -> None:
    async with a_house() as house:
        owner, logins = access_of(house, "owner"), logins_of(house)
        invitation = await owner.users.invite(api.NewInvitation(user="anna"))
        first, principal = await logins.accept(invitation.secret, GOOD, None)
        key = await owner.accounts.create_key(api.NewKey(user="anna"))
        with pytest.raises(Forbidden, match="current password"):
            await logins.change(principal, NEW, NEW)
        with pytest.raises(ConfigError, match="common"):
            await logins.change(principal, GOOD, "Password1234")
        second, principal = await logins.change(principal, GOOD, NEW)
        reset = await owner.users.reset_password("anna")
        assert (await log_in(logins, NEW)).user == "anna"  # until the link is used
        third, _ = await logins.accept(reset.secret, GOOD, None)
        door = Authenticator(house.accounts, house.app.clock)
        for cookie in (first, second):
            with pytest.raises(NotRecognised):
                await door.authenticate(None, cookie)
        assert (await door.authenticate(None, third)).user == "anna"
        assert (await door.authenticate(f"Bearer {key.secret}")).user == "anna"
        with pytest.raises(NotRecognised):
            await log_in(logins, NEW)
        with pytest.raises(Forbidden, match="browser"):
            await logins.change(await door.authenticate(f"Bearer {key.secret}"), GOOD, NEW)


async def test_a_first_password_needs_a_fresh_login_and_a_stolen_one_sets_none() -> None:
    clock = FakeClock()
    async with a_house(clock=clock) as house:
        logins, door = logins_of(house), Authenticator(house.accounts, house.app.clock)
        _, stolen = await door.create_login("ada", "member-ada", "operator", 86_400.0)
        clock.advance(FRESH_LOGIN + 1)
        with pytest.raises(Forbidden, match="log in again"):
            await logins.change(stolen, "", NEW)
        assert not (await house.accounts.records.record("ada", "member-ada")).password
        _, fresh = await door.create_login("ada", "member-ada", "operator", 86_400.0)
        clock.advance(FRESH_LOGIN - 1)
        _, after = await logins.change(fresh, "", NEW)
        clock.advance(FRESH_LOGIN + 1)
        await logins.change(after, NEW, GOOD)  # with the current password, a login may be old


async def test_a_disabled_user_is_out_and_stays_logged_out_when_enabled_again() -> None:
    async with a_house() as house:
        owner, logins = access_of(house, "owner"), logins_of(house)
        invitation = await owner.users.invite(api.NewInvitation(user="anna"))
        cookie, principal = await logins.accept(invitation.secret, GOOD, None)
        door = Authenticator(house.accounts, house.app.clock)
        reset = await owner.users.reset_password("anna")
        await owner.accounts.put_user("anna", api.PutUser(is_active=False))
        assert await door.active_credentials([principal]) == {principal.credential}  # what ends open streams
        with pytest.raises(UnknownLink):
            await logins.accept(reset.secret, NEW, None)
        await owner.accounts.put_user("anna", api.PutUser())
        with pytest.raises(NotRecognised):
            await door.authenticate(None, cookie)
        assert (await log_in(logins, GOOD)).user == "anna"


async def test_a_removed_user_is_out_and_nobody_gets_the_id() -> None:
    async with a_house() as house:
        owner, logins = access_of(house, "owner"), logins_of(house)
        invitation = await owner.users.invite(api.NewInvitation(user="anna"))
        cookie, _ = await logins.accept(invitation.secret, GOOD, None)
        key = await owner.accounts.create_key(api.NewKey(user="anna"))
        with pytest.raises(ConfigError, match="no such user"):
            await access_of(house, "owner", "bob").users.remove("anna")
        with pytest.raises(Forbidden, match="remove yourself"):
            await owner.users.remove("owner-ada")
        await owner.users.remove("anna")
        assert "anna" not in {user.id for user in (await owner.accounts.users()).users}
        door = Authenticator(house.accounts, house.app.clock)
        for shown in ((None, cookie), (f"Bearer {key.secret}", None)):
            with pytest.raises(NotRecognised):
                await door.authenticate(*shown)
        with pytest.raises(NotRecognised):
            await log_in(logins, GOOD)
        for refused in (
            lambda: owner.users.invite(api.NewInvitation(user="anna")),
            lambda: owner.accounts.put_user("anna", api.PutUser()),
            lambda: owner.users.remove("anna"),
        ):
            with pytest.raises(ConfigError):
                await refused()
        assert (await audited(house))[-1] == "user.remove"


async def test_usage_is_counted_by_user_model_and_agent_and_a_budget_holds() -> None:
    agents = (AgentSpec("helper", TurnOptions(model="scripted")),)
    async with a_house(clock=FakeClock(), agents=agents) as house:
        owner, member = access_of(house, "owner"), access_of(house, "member")
        await over(member, await start_session(member, "hello", private=True))
        (row,) = (await owner.users.usage()).rows
        assert (row.user, row.model, row.agent, row.spent.steps) == ("member-ada", "scripted", "helper", 1)
        assert (await access_of(house, "owner", "bob").users.usage()).rows == []
        await owner.users.set_budget("member-ada", api.PutUserBudget(steps=1))
        house.meter._user_readings.clear()  # a reading holds for a second
        with pytest.raises(TooMuch, match="your budget is used up: 1 of 1 steps"):
            await start_session(member, "hello", private=True)
        await over(owner, await start_session(owner, "hello", private=True))
        budgets = {user.id: user.budget for user in (await owner.accounts.users()).users if user.budget is not None}
        assert budgets["member-ada"].spent.steps == budgets["member-ada"].steps == 1
        assert len(budgets) == 1
        await owner.users.set_budget("member-ada", api.PutUserBudget())
        house.meter._user_readings.clear()
        await over(member, await start_session(member, "hello", private=True))


async def test_an_owner_sees_a_quarantined_private_session_without_text_and_runs_or_cancels_it() -> None:
    async with a_house() as house:
        owner, member = access_of(house, "owner"), access_of(house, "member")
        sent = await start_session(member, "pay the secret bill", private=True)
        store: Any = house.app.store
        while not any(isinstance(entry.event, GateOpened) for entry in await store.events(sent.session)):  # noqa: ASYNC110
            await asyncio.sleep(0)
        row = store._sessions[sent.session]
        row.quarantined, row.tries = "its driver died 5 times", 5
        listed = await owner.quarantine.list()
        (session,) = listed.sessions
        assert (session.id, session.by, session.reason) == (sent.session, "member-ada", "its driver died 5 times")
        assert "secret" not in repr(listed)
        assert (await access_of(house, "owner", "bob").quarantine.list()).sessions == []
        for refused in (
            access_of(house, "owner", "bob").quarantine.retry,
            access_of(house, "owner", "bob").quarantine.cancel,
        ):
            with pytest.raises(UnknownSession):
                await refused(sent.session)
        await owner.quarantine.retry(sent.session)
        assert (await owner.quarantine.list()).sessions == []
        assert (await owner.quarantine.cancel(sent.session)).turns == 1
        assert (await over(member, sent)).phase.is_terminal
        assert [did for did in await audited(house) if "." in did][-2:] == ["session.retry", "turn.cancel"]


@pytest.mark.parametrize("password", ["short", "x" * 11, "passwordpassword", "Password1234", "a" * 40, "annaannaannax"])
def test_weak_passwords_are_refused(password: str) -> None:
    with pytest.raises(ConfigError, match="password: "):
        check_new_password(password, "anna")


async def test_without_argon2_the_text_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    assert password_support(True) == "on"
    monkeypatch.setitem(sys.modules, "argon2", None)
    assert password_support(True) == "missing"
    assert password_support(False) == "off"
    async with a_house() as house:
        logins = logins_of(house, "missing")
        invitation = await access_of(house, "owner").users.invite(api.NewInvitation(user="anna"))
        for refused in (log_in(logins, GOOD), logins.accept(invitation.secret, GOOD, None)):
            with pytest.raises(ConfigError, match=r"everturn\[passwords\]"):
                await refused
        with pytest.raises(ConfigError, match=r"passwords = true"):
            await log_in(logins_of(house, "off"), GOOD)
        assert (await house.accounts.records.find_invitation(hash_secret(invitation.secret))) is not None
