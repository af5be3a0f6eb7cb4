"""Passwords: hashes them with argon2id, and logs users in, changes passwords and accepts invitations.

The threats, and what answers them:

- Guessing: a token bucket per account and one per address, counted before anything is looked up. An account that does not
  exist has a bucket, too.
- Finding out who has an account: an unknown user, a disabled one, one without a password and a wrong password cost one
  argon2 verification each, against a hash of a random password if there is none, and have the same error.
- Exhausting the server: argon2 takes 64 MiB and some 50 ms of CPU. At most two run at once, in threads.
- A stolen cookie, or one that was planted before the login: every login has a new secret, and the login of the cookie
  that came with the request is revoked. A new password revokes all other logins of the user; API keys stay.
- A stolen login that makes itself permanent: a new password takes the current one, and a first password a login of the last
  ten minutes.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from typing import Any, Final

from everturn.access.administration.accounts import hash_secret
from everturn.access.auth.authentication import LOGIN_SECONDS, Authenticator
from everturn.core.canonical_json import encode_canonical, hash_values
from everturn.core.ports import Clock
from everturn.core.tenants.accounts import Accounts, AuditRecord, Principal, User
from everturn.core.tenants.user_records import Invitation, PasswordSupport
from everturn.errors import ConfigError, Forbidden, NotRecognised, TooMuch, UnknownLink

MIN_LENGTH: Final = 12  # characters of a password
MISSING: Final = "passwords need argon2: `pip install 'everturn[passwords]'`, and restart the server"
WRONG: Final = "the user or the password is wrong"
USED_UP: Final = "this link was used before, was revoked, or has expired; ask an administrator for another"
FRESH: Final = "you have no password yet: log out, log in again, and set one within ten minutes"
HASHES_AT_ONCE: Final = 2
FRESH_LOGIN: Final = 600.0  # seconds after a login in which a first password can be set
USER_BURST, USER_RATE = 10.0, 1 / 30  # attempts on one account: at once, and a second
ADDRESS_BURST, ADDRESS_RATE = 30.0, 0.5  # attempts of one address; many people may share it
BUCKET_LIMIT: Final = 10_000  # buckets that are remembered; the longest idle one is dropped first
COMMON: Final = frozenset(
    "passwordpassword password1234 password12345 password123456 123456789012 1234567890123 12345678901234 "
    "123456789123 123123123123 000000000000 111111111111 qwertyuiop123 qwertyuiopas qwertyqwerty qwerty123456 "
    "1q2w3e4r5t6y 1qaz2wsx3edc administrator adminadminadmin iloveyou1234 letmeinletmein welcomewelcome "
    "welcome12345 changemechangeme changeme1234 abcdefghijkl abcdefgh1234 abc123abc123 passw0rd1234 p@ssw0rd1234 "
    "trustno1trustno1 correcthorsebatterystaple superman1234 football1234 everturneverturn everturn1234".split()
)
"""Common passwords that are long enough to pass otherwise, in small letters."""


def password_support(is_on: bool) -> PasswordSupport:
    """Whether people log in with passwords here."""
    if not is_on:
        return "off"
    try:
        import argon2  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError:
        return "missing"
    return "on"


def check_new_password(password: str, user: str) -> None:
    """Refuse a password that is short, common, of few characters, or made of the user's id.

    Raises:
        ConfigError: the password is refused; the text says why.
    """
    folded = password.casefold()
    if len(password) < MIN_LENGTH:
        raise ConfigError(f"password: at least {MIN_LENGTH} characters")
    if folded in COMMON or len(set(folded)) < 5:
        raise ConfigError("password: this one is too common; choose another")
    if len(user) > 2 and len(folded.replace(user.casefold(), "")) < MIN_LENGTH // 2:
        raise ConfigError("password: it must not contain the user name")


class AttemptLimit:
    """A token bucket for each key."""

    def __init__(self, clock: Clock, burst: float, rate: float) -> None:
        self._clock, self._burst, self._rate = clock, burst, rate
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # key -> tokens left, and when

    def take(self, key: str) -> None:
        """Take a token.

        Raises:
            TooMuch: the bucket is empty.
        """
        now = self._clock.now()
        left, then = self._buckets.pop(key, (self._burst, now))
        left = min(self._burst, left + max(0.0, now - then) * self._rate)
        self._buckets[key] = (max(left - 1.0, 0.0), now)
        if len(self._buckets) > BUCKET_LIMIT:
            self._buckets.popitem(last=False)
        if left < 1.0:
            raise TooMuch("too many attempts to log in; wait a moment", (1.0 - left) / self._rate)

    def reset(self, key: str) -> None:
        """Fill the bucket: the login succeeded."""
        self._buckets.pop(key, None)


class PasswordLogins:
    """Logs users in with passwords, and accepts invitations."""

    def __init__(
        self,
        accounts: Accounts,
        clock: Clock,
        authenticator: Authenticator,
        support: PasswordSupport,
        hasher: Any = None,
    ) -> None:
        self._accounts, self._clock, self._authenticator = accounts, clock, authenticator
        self.support: PasswordSupport = support
        self._by_user = AttemptLimit(clock, USER_BURST, USER_RATE)
        self._by_address = AttemptLimit(clock, ADDRESS_BURST, ADDRESS_RATE)
        self._hashing = asyncio.Semaphore(HASHES_AT_ONCE)
        self._hasher: Any = hasher  # an `argon2.PasswordHasher`; None: one with the defaults of the library
        self._decoy = ""  # the hash of a random password

    async def log_in(
        self, tenant: str, user: str, password: str, address: str, before: str | None, seconds: float = LOGIN_SECONDS
    ) -> tuple[str, Principal]:
        """Log a user in. Returns the secret of the cookie, and the principal; `before` is the cookie that came along.

        Raises:
            NotRecognised: the user or the password is wrong; which of them, nothing tells.
            TooMuch: there were too many attempts lately.
            ConfigError: passwords are off.
        """
        self._require()
        account_key = hash_values(tenant, user)
        self._by_address.take(address)
        self._by_user.take(account_key)
        account = await self._accounts.user(tenant, user)
        record = await self._accounts.records.record(tenant, user)
        is_usable = account is not None and account[0].is_active and account[1].is_active and bool(record.password)
        is_right = await self._verify(record.password if is_usable else "", password)
        if not is_usable or not is_right:
            raise NotRecognised(WRONG)
        self._by_user.reset(account_key)
        if self._hasher.check_needs_rehash(record.password):
            await self._accounts.records.set_password(tenant, user, await self._hash(password), record.changed)
        if before is not None:
            await self._end_login(before)
        return await self._authenticator.create_login(tenant, user, "operator", seconds)

    async def change(
        self, principal: Principal, current: str, new: str, seconds: float = LOGIN_SECONDS
    ) -> tuple[str, Principal]:
        """Change the password of the caller, whose other logins end. Returns the secret of a new cookie, and the principal.

        Raises:
            Forbidden: the current password is wrong, there is none and the login is not fresh, or the caller is not a browser.
            ConfigError: the new password is refused.
        """
        self._require()
        if principal.kind != "login":
            raise Forbidden("a password can be changed only in a browser that is logged in")
        self._by_user.take(hash_values("change", principal.tenant, principal.user))
        record = await self._accounts.records.record(principal.tenant, principal.user)
        if record.password and not await self._verify(record.password, current):
            raise Forbidden("the current password is wrong")
        if not record.password and not await self._is_fresh(principal):
            raise Forbidden(FRESH)
        check_new_password(new, principal.user)
        await self._set(principal.tenant, principal.user, new, principal.credential)
        return await self._authenticator.create_login(principal.tenant, principal.user, "operator", seconds)

    async def _is_fresh(self, principal: Principal) -> bool:
        """Whether the caller has logged in lately. A login that was stolen before cannot set a first password."""
        known = await self._accounts.active_credentials({principal.credential})
        login = known.get(principal.credential)
        return login is not None and self._clock.now() - login.credential.created <= FRESH_LOGIN

    async def find_invitation(self, token: str) -> Invitation:
        """An invitation that can still be used.

        Raises:
            UnknownLink: there is none.
        """
        invitation = await self._accounts.records.find_invitation(hash_secret(token))
        if invitation is None or not invitation.is_open(self._clock.now()):
            raise UnknownLink(USED_UP)
        return invitation

    async def accept(
        self, token: str, password: str, before: str | None, seconds: float = LOGIN_SECONDS
    ) -> tuple[str, Principal]:
        """Use an invitation up: create its user, or set a password. Returns the secret of the cookie, and the principal.

        Raises:
            UnknownLink: the link was used before, was revoked, or has expired.
            ConfigError: the password is refused.
        """
        invitation = await self.find_invitation(token)
        if self.support == "missing":
            raise ConfigError(MISSING)
        if self.support == "on":
            check_new_password(password, invitation.user)  # before the link is used up
        elif invitation.kind == "reset":
            raise UnknownLink(USED_UP)
        now = self._clock.now()
        if await self._accounts.records.use_invitation(invitation.hash, now) is None:
            raise UnknownLink(USED_UP)
        tenant, user = invitation.tenant, invitation.user
        await self._note(tenant, user, f"{invitation.kind}.accept", invitation.id, role=invitation.role)
        if invitation.kind == "invitation":
            new = User(tenant, user, invitation.name, invitation.role, created=now)
            # Checked here too: somebody may have created the id, or removed it, since the invitation was made.
            if (await self._accounts.records.record(tenant, user)).removed or not await self._accounts.add_user(new):
                raise UnknownLink(USED_UP)
        elif not await self._is_active(tenant, user):
            raise UnknownLink(USED_UP)
        if self.support == "on":
            await self._set(tenant, user, password, "")
        if before is not None:
            await self._end_login(before)
        return await self._authenticator.create_login(tenant, user, "operator", seconds)

    async def _is_active(self, tenant: str, user: str) -> bool:
        account = await self._accounts.user(tenant, user)
        return account is not None and account[0].is_active and account[1].is_active

    async def _set(self, tenant: str, user: str, password: str, credential: str) -> None:
        """Store a new password, and end all logins of the user."""
        hashed = await self._hash(password)
        await self._note(tenant, user, "auth.password", user, credential)
        await self._accounts.records.set_password(tenant, user, hashed, self._clock.now())
        await self._accounts.records.revoke_credentials(tenant, user, self._clock.now(), with_keys=False)
        self._authenticator.clear_cache()

    async def _end_login(self, cookie: str) -> None:
        try:
            principal = await self._authenticator.authenticate(None, cookie)
        except NotRecognised:
            return
        await self._authenticator.log_out(principal)

    def _require(self) -> None:
        if self.support == "missing":
            raise ConfigError(MISSING)
        if self.support == "off":
            raise ConfigError("logins with a password are off; to allow them, set passwords = true under [auth]")

    def _argon2(self) -> Any:
        if self._hasher is None:
            from argon2 import PasswordHasher

            self._hasher = PasswordHasher()
        return self._hasher

    async def _hash(self, password: str) -> str:
        hasher = self._argon2()
        async with self._hashing:
            return await asyncio.to_thread(hasher.hash, _as_bytes(password))

    async def _verify(self, stored: str, password: str) -> bool:
        """Whether a password is the stored one; with "" the answer is no, and takes as long."""
        if not stored and not self._decoy:
            self._decoy = await self._hash(secrets.token_urlsafe(32))
        hasher = self._argon2()
        async with self._hashing:
            is_right = await asyncio.to_thread(_is_right, hasher, stored or self._decoy, password)
        return is_right and bool(stored)

    async def _note(self, tenant: str, user: str, did: str, on: str, credential: str = "", **detail: Any) -> None:
        text = encode_canonical(detail) if detail else ""
        await self._accounts.append_audit(AuditRecord(tenant, self._clock.now(), user, credential, did, on, text))


def _as_bytes(password: str) -> bytes:
    return password.encode("utf-8", "surrogatepass")


def _is_right(hasher: Any, stored: str, password: str) -> bool:
    from argon2.exceptions import InvalidHashError, VerificationError

    try:
        return hasher.verify(stored, _as_bytes(password))
    except (VerificationError, InvalidHashError):
        return False
