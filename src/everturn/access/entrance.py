"""What somebody shows at the door → a `Principal`, or a refusal that says no more than what to show.

All that is shown is judged in one place, whatever carries it. What was found is remembered for two seconds, so that a
request costs no query; what was revoked is refused at the latest then.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from everturn.access.claiming import MOST, claimed, speaks_of
from everturn.access.csrf import csrf_of, is_csrf
from everturn.access.oidc import Issuer
from everturn.access.oidc_login import Flow, begin_flow, finish_flow
from everturn.access.options import OidcOptions
from everturn.access.people import KEY_PREFIX, hash_of, new_secret
from everturn.access.token_file import token_in
from everturn.core.accounts import (
    LOCAL,
    Accounts,
    AuditRecord,
    Credential,
    CredentialKind,
    Known,
    Principal,
    Role,
    Tenant,
    User,
    is_at_least,
    least,
)
from everturn.core.canonical import digest
from everturn.core.ports import Clock
from everturn.errors import ConfigError, KeyConflict, NotRecognised

FRESH: Final = 2.0  # seconds for which what was found is good
KNOWN_FOR: Final = 3600.0  # seconds for which somebody is no stranger, whatever else comes from their address
REMEMBERED: Final = 10_000
LINK: Final = 600.0  # seconds for which a link can be used
LOGIN: Final = 14 * 86_400.0  # seconds for which a browser stays logged in
CLAIMED_LOGIN: Final = 12 * 3600.0  # the same, where the provider says what somebody may do
LINK_PREFIX, LOGIN_PREFIX = "evn_", "evl_"
SHOW: Final = "show an API key or a token: `Authorization: Bearer …`; or log in"
_BEARER: Final = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] ([A-Za-z0-9._~+/=-]{16,8192})")
_SECRET: Final = re.compile(r"ev[kln]_[A-Za-z0-9_-]{32,128}")


class Entrance:
    """The door of a house."""

    def __init__(self, accounts: Accounts, clock: Clock, oidc: OidcOptions | None = None) -> None:
        self._accounts, self._clock = accounts, clock
        self._issuer = None if oidc is None else Issuer(oidc, clock)
        self._found: dict[str, tuple[float, Known]] = {}
        self._tokens: dict[str, tuple[float, Principal]] = {}
        self._good: dict[str, float] = {}  # hash of what was shown -> when it last held
        self._secrets: dict[str, bytes] = {}  # they never change

    async def recognise(self, authorization: str | None = None, cookie: str | None = None) -> Principal:
        """Whoever shows this. Of two things that are shown both must hold, and be of the same person.

        Raises:
            NotRecognised: nothing was shown, or it does not hold; the text is the same, whatever is wrong with it.
        """
        given = [hash_of(one) for one in (authorization, cookie) if one is not None]
        try:
            principal = await self._recognise(authorization, cookie)
        except NotRecognised:
            for one in given:
                self._good.pop(one, None)
            raise
        for one in given:
            _remember(self._good, one, self._clock.now())
        return principal

    async def _recognise(self, authorization: str | None, cookie: str | None) -> Principal:
        shown: list[Principal] = []
        if authorization is not None:
            shown.append(await self._bearer(authorization))
        if cookie is not None:
            shown.append(await self._by_secret(cookie, "login"))
        if not shown or any((one.tenant, one.user) != (shown[0].tenant, shown[0].user) for one in shown):
            raise NotRecognised(SHOW)
        return replace(shown[0], role=least(shown[0].role, shown[-1].role))

    def remembers(self, authorization: str | None = None, cookie: str | None = None) -> bool:
        """Whether all that is shown was recognised within the last hour; it may hold no more."""
        now = self._clock.now()
        shown = [one for one in (authorization, cookie) if one is not None]
        return bool(shown) and all(0 <= now - self._good.get(hash_of(one), -KNOWN_FOR) < KNOWN_FOR for one in shown)

    async def _bearer(self, authorization: str) -> Principal:
        match = _BEARER.fullmatch(authorization)
        if match is None:
            raise NotRecognised(SHOW)
        if match[1].startswith(KEY_PREFIX):
            return await self._by_secret(match[1], "key")
        if self._issuer is None or match[1].count(".") != 2:
            raise NotRecognised(SHOW)
        return await self._by_token(self._issuer, match[1])

    async def _by_secret(self, secret: str, kind: CredentialKind) -> Principal:
        if not _SECRET.fullmatch(secret):
            raise NotRecognised(SHOW)
        # Found by its hash: how long that takes says nothing of the secret.
        kept, now = hash_of(secret), self._clock.now()
        at, known = self._found.get(kept, (0.0, None))
        if known is None or not 0 <= now - at < FRESH:
            self._found.pop(kept, None)
            known = await self._accounts.known(kept)
            if known is not None:
                _remember(self._found, kept, (now, known))
        principal = None if known is None or known.credential.kind != kind else held(known, now)
        if principal is None:
            raise NotRecognised(SHOW)
        return principal

    # Tokens of a provider ----------------------------------------------------------------------------------------

    async def _by_token(self, issuer: Issuer, token: str) -> Principal:
        kept, now = hash_of(token), self._clock.now()
        at, principal = self._tokens.get(kept, (0.0, None))
        if principal is None or not 0 <= now - at < FRESH or principal.expires <= now:
            self._tokens.pop(kept, None)
            try:
                claims = await issuer.claims(token)
            except NotRecognised:
                raise NotRecognised(SHOW) from None
            principal = await self._claimed(issuer.options, claims, digest(token))
            _remember(self._tokens, kept, (now, principal))
        return principal

    async def _claimed(self, options: OidcOptions, claims: dict[str, Any], unique: str) -> Principal:
        who = await claimed(self._accounts, options, claims, unique, self._clock.now())
        if who is None:
            raise NotRecognised(SHOW)
        return who

    # Logins ------------------------------------------------------------------------------------------------------

    async def login_link(self, tenant: str = LOCAL, user: str = LOCAL, seconds: float = LINK) -> str:
        """The secret of a link that logs a browser in as a user, once, and soon.

        Raises:
            ConfigError: there is no such user.
        """
        if await self._accounts.user(tenant, user) is None:
            raise ConfigError(f"there is no user {user!r} in tenant {tenant!r}")
        return await self._make("link", LINK_PREFIX, tenant, user, seconds, "operator")

    async def log_in(self, link: str, seconds: float = LOGIN) -> tuple[str, Principal]:
        """Use a link up: the secret of a cookie, and who has it now.

        Raises:
            NotRecognised: it was used before, its time is over, or it is none.
        """
        now = self._clock.now()
        known = await self._accounts.use_link(hash_of(link), now) if _SECRET.fullmatch(link) else None
        # It is revoked by being used.
        used = None if known is None else replace(known, credential=replace(known.credential, revoked=0.0))
        if used is None or used.credential.kind != "link" or held(used, now) is None:
            raise NotRecognised("this link was used before, or its time is over; ask for another: everturn login")
        one = used.credential
        return await self._log_in(one.tenant, one.user, one.role, seconds)

    async def _log_in(self, tenant: str, user: str, role: Role, seconds: float) -> tuple[str, Principal]:
        secret = await self._make("login", LOGIN_PREFIX, tenant, user, seconds, role)
        principal = await self._by_secret(secret, "login")
        await self._note(tenant, user, principal.credential, "door.login", principal.credential)
        return secret, principal

    async def log_out(self, principal: Principal) -> None:
        """Let a login hold no more."""
        if principal.kind == "login":
            await self._accounts.revoke(principal.tenant, principal.credential, self._clock.now())
            self.forget()
            await self._note(
                principal.tenant, principal.user, principal.credential, "door.logout", principal.credential
            )

    async def _make(self, kind: CredentialKind, prefix: str, tenant: str, user: str, seconds: float, role: Role) -> str:
        now = self._clock.now()
        secret, kept = new_secret(prefix)
        name = f"{kind}_{secrets.token_hex(8)}"
        made = Credential(name, tenant, user, kind, kept, role=role, created=now, expires=now + seconds)
        await self._accounts.put_credential(made)
        return secret

    def forget(self) -> None:
        """Look everything up anew."""
        self._found.clear()
        self._tokens.clear()

    async def csrf(self, principal: Principal) -> str:
        """What the browser of a login sends along with whatever changes something."""
        return csrf_of(await self._secret("csrf"), principal)

    async def is_csrf(self, principal: Principal, token: str) -> bool:
        """Whether this was sent by a page of ours."""
        return is_csrf(await self._secret("csrf"), principal, token)

    async def begin_oidc(self, redirect: str) -> Flow:
        """Send a browser to the provider: to `url`, with `cookie` to be brought back; it is good for ten minutes.

        Raises:
            NotRecognised: no provider is configured for browsers, or it does not answer.
        """
        if self._issuer is None or not self._issuer.options.client_id:
            raise NotRecognised("nobody can log in so here; " + SHOW)
        return await begin_flow(self._issuer, await self._secret("oidc"), redirect, self._clock.now())

    async def finish_oidc(
        self, code: str, state: str, cookie: str, redirect: str, seconds: float = LOGIN
    ) -> tuple[str, Principal]:
        """A browser is back from the provider: the secret of its cookie, and who it is.

        Raises:
            NotRecognised: it was not sent there from here, by this browser, lately; or is nobody we know.
        """
        if self._issuer is None or not self._issuer.options.client_id:
            raise NotRecognised("nobody can log in so here; " + SHOW)
        secret, now = await self._secret("oidc"), self._clock.now()
        claims = await finish_flow(self._issuer, secret, code, state, cookie, redirect, now)
        who = await self._claimed(self._issuer.options, claims, digest(code, state))
        cap: Role = who.role if self._issuer.options.role_claim else MOST
        if self._issuer.options.role_claim:  # what the provider takes away is seen with the next one
            seconds = min(seconds, CLAIMED_LOGIN)
        return await self._log_in(who.tenant, who.user, cap, seconds)

    # Who operates this machine, and who is still welcome -----------------------------------------------------------

    async def local_token(self, path: str | Path) -> str:
        """The token of the local operator: in a file that only they can read, made when there is none.

        Raises:
            ConfigError: the file is not safe, or its token was revoked; the text says what to do.
        """
        accounts, now = self._accounts, self._clock.now()
        token = token_in(Path(path), new_secret(KEY_PREFIX)[0])
        if all(tenant.id != LOCAL for tenant in await accounts.tenants()):
            await accounts.put_tenant(Tenant(LOCAL, created=now))
        if await accounts.user(LOCAL, LOCAL) is None:
            await accounts.put_user(User(LOCAL, LOCAL, role="operator", created=now))
        known = await accounts.known(hash_of(token))
        if known is None:
            name = f"key_{secrets.token_hex(8)}"
            made = Credential(name, LOCAL, LOCAL, "key", hash_of(token), name="token file", created=now)
            try:
                await accounts.put_credential(made)
            except KeyConflict:  # another node found the same file
                pass
        elif held(known, now) is None:
            raise ConfigError(f"{path}: the token in it was revoked; remove the file, and a new one is made")
        return token

    async def standing(self, principals: Iterable[Principal]) -> set[str]:
        """Those of their credentials that hold no more, or for less than they did: what is open with them must end."""
        now, all_of_them = self._clock.now(), list(principals)
        known = await self._accounts.standing({one.credential for one in all_of_them if one.kind != "token"})
        users: dict[tuple[str, str], tuple[User, Tenant] | None] = {}
        gone: set[str] = set()
        for one in all_of_them:
            if one.kind != "token":
                now_held = held(known[one.credential], now) if one.credential in known else None
                is_gone = now_held is None or not is_at_least(now_held.role, one.role)
            else:
                if (one.tenant, one.user) not in users:
                    users[one.tenant, one.user] = await self._accounts.user(one.tenant, one.user)
                is_gone = one.expires <= now or not self._is_welcome(one, users[one.tenant, one.user])
            if is_gone:
                gone.add(one.credential)
        return gone

    def _is_welcome(self, one: Principal, found: tuple[User, Tenant] | None) -> bool:
        options = None if self._issuer is None else self._issuer.options
        if options is None or found is None or not found[0].is_active or not found[1].is_active:
            return False
        return speaks_of(options, found[0]) and (bool(options.role_claim) or is_at_least(found[0].role, one.role))

    async def _secret(self, name: str) -> bytes:
        if name not in self._secrets:
            self._secrets[name] = await self._accounts.secret(name)
        return self._secrets[name]

    async def _note(self, tenant: str, user: str, credential: str, did: str, on: str) -> None:
        await self._accounts.note(AuditRecord(tenant, self._clock.now(), user, credential, did, on))


def held(known: Known, now: float) -> Principal | None:
    """Who somebody is by a credential that was found; None when it holds no more. The one place where that is said."""
    one, user, tenant = known.credential, known.user, known.tenant
    is_over = bool(one.revoked) or (one.expires and one.expires <= now)
    if is_over or not user.is_active or not tenant.is_active:
        return None
    kind = "login" if one.kind == "login" else "key"
    return Principal(one.tenant, one.user, least(one.role, user.role), one.id, kind, one.expires)


def _remember(found: dict[str, Any], key: str, value: Any) -> None:
    if len(found) >= REMEMBERED:
        found.clear()
    found[key] = value
