"""The door: what is shown is judged in one place, whatever carries it; links work once; the token file is for one person."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Collection
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from everturn.access.administration.accounts import hash_secret, new_secret
from everturn.access.auth.authentication import CREDENTIAL_HINT, Authenticator
from everturn.core.tenants.accounts import (
    ROLES,
    Credential,
    CredentialKind,
    KnownCredential,
    Principal,
    Role,
    Tenant,
    User,
    lower_role,
)
from everturn.errors import ConfigError, NotRecognised
from everturn.stores.accounts import MemoryAccounts
from everturn.testing import FakeClock
from tests.helpers.tenants import settle


class Counted(MemoryAccounts):
    """Accounts that count what they are asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def find_credential(self, hash: str) -> KnownCredential | None:
        self.asked.append(hash)
        return await super().find_credential(hash)

    async def active_credentials(self, credentials: Collection[str]) -> dict[str, KnownCredential]:
        self.asked.append("standing")
        return await super().active_credentials(credentials)


async def a_door() -> tuple[Authenticator, Counted, FakeClock]:
    accounts, clock = Counted(), FakeClock()
    await settle(accounts)
    return Authenticator(accounts, clock), accounts, clock


async def a_key(
    accounts: MemoryAccounts,
    user: str = "member-ada",
    kind: CredentialKind = "key",
    role: Role = "operator",
    expires: float = 0.0,
) -> str:
    secret, digest = new_secret({"key": "evk_", "login": "evl_", "link": "evn_"}[kind])
    tenant = user.rpartition("-")[2]
    await accounts.put_credential(Credential(digest[:12], tenant, user, kind, digest, role=role, expires=expires))
    return secret


async def refused(door: Authenticator, authorization: str | None = None, cookie: str | None = None) -> str:
    with pytest.raises(NotRecognised) as raised:
        await door.authenticate(authorization, cookie)
    assert raised.value.__cause__ is None
    return str(raised.value)


# What is shown ---------------------------------------------------------------------------------------------------------


async def test_a_key_is_recognised_however_the_scheme_is_written() -> None:
    door, accounts, _ = await a_door()
    key = await a_key(accounts)
    for scheme in ("Bearer", "bearer", "BEARER"):
        principal = await door.authenticate(f"{scheme} {key}")
        assert principal == Principal("ada", "member-ada", "member", hash_secret(key)[:12], "key", 0.0)


async def test_nothing_and_everything_that_is_no_credential_is_refused_in_the_same_words() -> None:
    door, accounts, _ = await a_door()
    key, login, link = [await a_key(accounts, kind=kind) for kind in ("key", "login", "link")]
    headers = [
        None,
        "",
        key,
        f"Basic {key}",
        f"Bearer  {key}",
        f"Bearer {key} ",
        f" Bearer {key}",
        f"Bearer {key}\n",
        f"Bearer {key}\r\nX-Tenant: bob",
        f"Bearer {key},Bearer {key}",
        f"Bearer\t{key}",
        f"Bearer {key}\0",
        f"Bearer {key[:-1]}",
        f"Bearer {key}x",
        f"Bearer {key.upper()}",
        f"Bearer {hash_secret(key)}",
        f"Bearer {login}",  # what belongs into a cookie
        f"Bearer {link}",
        "Bearer evk_" + "x" * 43,
        "Bearer evk_' OR '1'='1' -- xxxxxxxxxxxxxxxxxxxxxxxxxx",
        "Bearer evk_" + "%" * 43,
        "Bearer " + "x" * 100_000,
        "Bearer a.b.c",
        "Bearer eyJhbGciOiJub25lIn0.e30.",
        "Bearer \ud800" + "x" * 40,
    ]
    texts = {await refused(door, header) for header in headers}
    for cookie in ("", key, link, login[:-1], login + " ", "evl_" + "x" * 43, "evl_'; DROP TABLE users;--" + "x" * 30):
        texts.add(await refused(door, None, cookie))
    assert texts == {CREDENTIAL_HINT}
    # What cannot be a secret is not even looked for.
    before = len(accounts.asked)
    await refused(door, "Bearer evk_' OR 1=1 --xxxxxxxxxxxxxxxxxxxxxxxxxxx")
    assert len(accounts.asked) == before


@given(shown=st.text(max_size=120), carrier=st.sampled_from(["header", "bearer", "cookie"]))
def test_whatever_is_shown_is_recognised_or_refused(shown: str, carrier: str) -> None:
    async def look() -> None:
        door, _, _ = await a_door()
        header = {"header": shown, "bearer": f"Bearer {shown}", "cookie": None}[carrier]
        assert await refused(door, header, shown if carrier == "cookie" else None) == CREDENTIAL_HINT

    asyncio.run(look())


async def test_a_role_is_capped_by_the_credential_whatever_carries_it() -> None:
    door, accounts, _ = await a_door()
    for mine in ("viewer", "member", "approver", "owner"):
        for cap in ROLES:
            key = await a_key(accounts, f"{mine}-ada", "key", cap)
            login = await a_key(accounts, f"{mine}-ada", "login", cap)
            assert (await door.authenticate(f"Bearer {key}")).role == lower_role(mine, cap)
            assert (await door.authenticate(None, login)).role == lower_role(mine, cap)


async def test_two_that_are_shown_are_of_one_person_and_do_no_more_than_the_lesser() -> None:
    door, accounts, _ = await a_door()
    key, capped = await a_key(accounts, "owner-ada"), await a_key(accounts, "owner-ada", role="viewer")
    login = await a_key(accounts, "owner-ada", "login", "approver")
    principal = await door.authenticate(f"Bearer {key}", login)
    assert (principal.role, principal.kind) == ("approver", "key")
    assert (await door.authenticate(f"Bearer {capped}", login)).role == "viewer"
    for other in ("member-ada", "owner-bob"):
        assert await refused(door, f"Bearer {key}", await a_key(accounts, other, "login")) == CREDENTIAL_HINT
    assert await refused(door, f"Bearer {key}", "evl_" + "x" * 43) == CREDENTIAL_HINT
    assert await refused(door, "Bearer evk_" + "x" * 43, login) == CREDENTIAL_HINT


async def test_what_holds_no_more_is_refused_two_seconds_later_at_the_latest() -> None:
    async def revoke(accounts: MemoryAccounts, key: str) -> None:
        assert await accounts.revoke("ada", hash_secret(key)[:12], 1.0)

    async def deactivate(accounts: MemoryAccounts, key: str) -> None:
        await accounts.put_user(User("ada", "member-ada", is_active=False))

    async def close(accounts: MemoryAccounts, key: str) -> None:
        await accounts.put_tenant(Tenant("ada", is_active=False))

    for end in (revoke, deactivate, close):
        door, accounts, clock = await a_door()
        key = await a_key(accounts)
        principal = await door.authenticate(f"Bearer {key}")
        for _ in range(100):
            await door.authenticate(f"Bearer {key}")
        assert len(accounts.asked) == 1, "a request costs no query"
        assert await door.active_credentials([principal]) == set()
        await end(accounts, key)
        assert await door.active_credentials([principal]) == {principal.credential}
        clock.advance(2)
        assert await refused(door, f"Bearer {key}") == CREDENTIAL_HINT


async def test_whoever_may_do_less_now_loses_what_is_open() -> None:
    door, accounts, clock = await a_door()
    keys = [await a_key(accounts, user) for user in ("owner-ada", "viewer-ada")]
    both = [await door.authenticate(f"Bearer {key}") for key in keys]
    await accounts.put_user(User("ada", "owner-ada", role="viewer"))
    accounts.asked.clear()
    assert await door.active_credentials(both * 1000) == {both[0].credential}
    assert accounts.asked == ["standing"], "one query for all that is open"
    assert await door.active_credentials([replace(both[1], credential="gone")]) == {"gone"}
    clock.advance(2)
    assert (await door.authenticate(f"Bearer {keys[0]}")).role == "viewer"


# Logins --------------------------------------------------------------------------------------------------------------


async def test_a_link_logs_one_browser_in_once() -> None:
    door, accounts, _ = await a_door()
    link = await door.login_link("ada", "owner-ada")
    tries = await asyncio.gather(*(door.log_in(link) for _ in range(50)), return_exceptions=True)
    (won,) = [result for result in tries if isinstance(result, tuple)]
    assert all(isinstance(result, NotRecognised) for result in tries if result is not won)
    cookie, principal = won
    assert (principal.user, principal.role, principal.kind) == ("owner-ada", "owner", "login")
    assert principal.expires
    assert await door.authenticate(None, cookie) == principal
    assert await door.is_csrf(principal, await door.csrf(principal))
    for token in (
        "",
        "x",
        (await door.csrf(principal))[:-1],
        await door.csrf(replace(principal, credential="other")),
        "\ud800",
    ):
        assert not await door.is_csrf(principal, token)
    await door.log_out(principal)
    assert await refused(door, None, cookie) == CREDENTIAL_HINT
    assert [record.did for record in await accounts.audit("ada")] == ["auth.login", "auth.logout"]


async def test_a_link_is_good_for_ten_minutes_and_for_whoever_is_welcome_then() -> None:
    door, accounts, clock = await a_door()
    late, gone = await door.login_link("ada", "owner-ada"), await door.login_link("bob", "member-bob")
    await accounts.put_user(User("bob", "member-bob", is_active=False))
    with pytest.raises(NotRecognised, match="create another one"):
        await door.log_in(gone)
    clock.advance(600)
    with pytest.raises(NotRecognised, match="create another one"):
        await door.log_in(late)
    for none in ("", "x", await a_key(accounts), "evn_" + "x" * 43, "evn_\0"):
        with pytest.raises(NotRecognised):
            await door.log_in(none)
    with pytest.raises(ConfigError):
        await door.login_link("ada", "nobody")


async def test_a_login_ends_with_its_time() -> None:
    door, _, clock = await a_door()
    cookie, principal = await door.log_in(await door.login_link("ada", "owner-ada"), seconds=60)
    clock.advance(60)
    assert await refused(door, None, cookie) == CREDENTIAL_HINT
    assert await door.active_credentials([principal]) == {principal.credential}


# The token file ------------------------------------------------------------------------------------------------------


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_the_local_operator_has_a_token_in_a_file_of_their_own(tmp_path: Path) -> None:
    accounts, clock, path = MemoryAccounts(), FakeClock(), tmp_path / "new" / "token"
    before = os.umask(0)
    try:
        token = await Authenticator(accounts, clock).local_token(path)
    finally:
        os.umask(before)
    assert path.read_text().strip() == token
    assert mode_of(path) == 0o600
    assert mode_of(path.parent) == 0o700
    assert os.listdir(path.parent) == ["token"]
    door = Authenticator(accounts, clock)
    assert await door.local_token(path) == token
    principal = await door.authenticate(f"Bearer {token}")
    assert (principal.tenant, principal.user, principal.role) == ("local", "local", "operator")
    assert len(await accounts.credentials("local")) == 1
    # Another store learns of the same token; one that was revoked does not come back.
    assert await Authenticator(MemoryAccounts(), clock).local_token(path) == token
    await accounts.revoke("local", principal.credential, clock.now())
    with pytest.raises(ConfigError, match="remove the file"):
        await Authenticator(accounts, clock).local_token(path)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660, 0o666, 0o610, 0o601])
async def test_a_token_file_that_others_can_open_is_not_used(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "token"
    door = Authenticator(MemoryAccounts(), FakeClock())
    await door.local_token(path)
    path.chmod(mode)
    with pytest.raises(ConfigError, match=f"chmod 600 {path}"):
        await door.local_token(path)


async def test_a_token_file_that_is_something_else_is_not_used(tmp_path: Path) -> None:
    door = Authenticator(MemoryAccounts(), FakeClock())
    await door.local_token(tmp_path / "good")
    (tmp_path / "link").symlink_to(tmp_path / "good")
    (tmp_path / "dangling").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "folder").mkdir(mode=0o700)
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name, text in (("empty", ""), ("short", "evk_x"), ("other", "password" * 10), ("large", "evk_" + "x" * 5000)):
        (tmp_path / name).touch(mode=0o600)
        (tmp_path / name).write_text(text)
    for name in ("link", "dangling", "folder", "pipe", "empty", "short", "other", "large"):
        with pytest.raises(ConfigError, match="remove it"):
            await door.local_token(tmp_path / name)
    assert not (tmp_path / "elsewhere").exists()


async def test_many_who_start_at_once_find_one_token(tmp_path: Path) -> None:
    accounts = MemoryAccounts()
    doors = [Authenticator(accounts, FakeClock()) for _ in range(20)]
    tokens = await asyncio.gather(*(door.local_token(tmp_path / "token") for door in doors))
    assert len(set(tokens)) == 1
    assert len(await accounts.credentials("local")) == 1
    assert os.listdir(tmp_path) == ["token"]
