"""Authentication: turns an API key, a login cookie or an OpenID Connect token into a `Principal`, or refuses it.

All credentials are checked in one place, whatever carries them. A result is cached for two seconds, so that most requests
cost no query; a revoked credential is refused at the latest then.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from everturn.access.administration.accounts import KEY_PREFIX, hash_secret, new_secret
from everturn.access.auth.csrf import csrf_of, is_csrf
from everturn.access.auth.oidc import Issuer
from everturn.access.auth.oidc_claims import MAX_TOKEN_ROLE, is_user_of_issuer, principal_from_claims
from everturn.access.auth.oidc_login import LoginFlow, begin_flow, finish_flow
from everturn.access.auth.options import OidcOptions
from everturn.access.auth.token_file import load_or_create_token
from everturn.core.canonical_json import hash_values
from everturn.core.ports import Clock
from everturn.core.tenants.accounts import (
    LOCAL,
    Accounts,
    AuditRecord,
    Credential,
    CredentialKind,
    KnownCredential,
    Principal,
    Role,
    Tenant,
    User,
    is_at_least,
    lower_role,
    principal_of,
)
from everturn.errors import ConfigError, KeyConflict, NotRecognised

CACHE_SECONDS: Final = 2.0  # seconds for which a cached credential is used
RECENTLY_VALID_SECONDS: Final = (
    3600.0  # seconds for which a known credential is exempt from the rate limit of its address
)
CACHE_LIMIT: Final = 10_000
USE_SECONDS: Final = 60.0  # how exact the time of the last use of a credential is
LINK_SECONDS: Final = 600.0  # seconds for which a login link can be used
LOGIN_SECONDS: Final = 14 * 86_400.0  # seconds for which a browser stays logged in
CLAIMED_LOGIN_SECONDS: Final = 12 * 3600.0  # the same, where the provider's claims determine the role
LINK_PREFIX, LOGIN_PREFIX = "evn_", "evl_"
CREDENTIAL_HINT: Final = "show an API key or a token: `Authorization: Bearer …`; or log in"
_BEARER: Final = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] ([A-Za-z0-9._~+/=-]{16,8192})")
_SECRET: Final = re.compile(r"ev[kln]_[A-Za-z0-9_-]{32,128}")


class Authenticator:
    """Checks credentials, and creates logins."""

    def __init__(self, accounts: Accounts, clock: Clock, oidc: OidcOptions | None = None) -> None:
        self._accounts, self._clock = accounts, clock
        self._issuer = None if oidc is None else Issuer(oidc, clock)
        self._cached: dict[str, tuple[float, KnownCredential]] = {}
        self._tokens: dict[str, tuple[float, Principal]] = {}
        self._noted: dict[str, float] = {}  # id of a credential -> when its use was last stored
        self._last_valid: dict[str, float] = {}  # hash of a credential -> when it was last valid

    async def authenticate(self, authorization: str | None = None, cookie: str | None = None) -> Principal:
        """Authenticate a caller. If both are sent, both must be valid and of the same user.

        Raises:
            NotRecognised: there is no credential, or it is invalid; the text is the same in all cases.
        """
        hashes = [hash_secret(value) for value in (authorization, cookie) if value is not None]
        try:
            principal = await self._recognise(authorization, cookie)
        except NotRecognised:
            for value in hashes:
                self._last_valid.pop(value, None)
            raise
        for value in hashes:
            _remember(self._last_valid, value, self._clock.now())
        if principal.kind != "token":
            await self._note_use(principal.credential)
        return principal

    async def _note_use(self, credential: str) -> None:
        """Store when a credential was used, at most once in a minute."""
        now = self._clock.now()
        if 0 <= now - self._noted.get(credential, -USE_SECONDS) < USE_SECONDS:
            return
        _remember(self._noted, credential, now)
        await self._accounts.records.note_uses({credential: now})

    async def _recognise(self, authorization: str | None, cookie: str | None) -> Principal:
        principals: list[Principal] = []
        if authorization is not None:
            principals.append(await self._bearer(authorization))
        if cookie is not None:
            principals.append(await self._by_secret(cookie, "login"))
        if not principals or any(
            (principal.tenant, principal.user) != (principals[0].tenant, principals[0].user) for principal in principals
        ):
            raise NotRecognised(CREDENTIAL_HINT)
        return replace(principals[0], role=lower_role(principals[0].role, principals[-1].role))

    def was_recently_valid(self, authorization: str | None = None, cookie: str | None = None) -> bool:
        """Whether all of these credentials were recognised within the last hour; they may have become invalid since."""
        now = self._clock.now()
        credentials = [credential for credential in (authorization, cookie) if credential is not None]
        return bool(credentials) and all(
            0 <= now - self._last_valid.get(hash_secret(credential), -RECENTLY_VALID_SECONDS) < RECENTLY_VALID_SECONDS
            for credential in credentials
        )

    async def _bearer(self, authorization: str) -> Principal:
        match = _BEARER.fullmatch(authorization)
        if match is None:
            raise NotRecognised(CREDENTIAL_HINT)
        if match[1].startswith(KEY_PREFIX):
            return await self._by_secret(match[1], "key")
        if self._issuer is None or match[1].count(".") != 2:
            raise NotRecognised(CREDENTIAL_HINT)
        return await self._by_token(self._issuer, match[1])

    async def _by_secret(self, secret: str, kind: CredentialKind) -> Principal:
        if not _SECRET.fullmatch(secret):
            raise NotRecognised(CREDENTIAL_HINT)
        # Looked up by its hash, so the time of the lookup reveals nothing about the secret.
        secret_hash, now = hash_secret(secret), self._clock.now()
        at, known = self._cached.get(secret_hash, (0.0, None))
        if known is None or not 0 <= now - at < CACHE_SECONDS:
            self._cached.pop(secret_hash, None)
            known = await self._accounts.find_credential(secret_hash)
            if known is not None:
                _remember(self._cached, secret_hash, (now, known))
        principal = None if known is None or known.credential.kind != kind else principal_of(known, now)
        if principal is None:
            raise NotRecognised(CREDENTIAL_HINT)
        return principal

    # OpenID Connect tokens ---------------------------------------------------------------------------------------

    async def _by_token(self, issuer: Issuer, token: str) -> Principal:
        token_hash, now = hash_secret(token), self._clock.now()
        at, principal = self._tokens.get(token_hash, (0.0, None))
        if principal is None or not 0 <= now - at < CACHE_SECONDS or principal.expires <= now:
            self._tokens.pop(token_hash, None)
            try:
                claims = await issuer.claims(token)
            except NotRecognised:
                raise NotRecognised(CREDENTIAL_HINT) from None
            principal = await self._principal_of(issuer.options, claims, hash_values(token))
            _remember(self._tokens, token_hash, (now, principal))
        return principal

    async def _principal_of(self, options: OidcOptions, claims: dict[str, Any], unique: str) -> Principal:
        principal = await principal_from_claims(self._accounts, options, claims, unique, self._clock.now())
        if principal is None:
            raise NotRecognised(CREDENTIAL_HINT)
        return principal

    # Logins ------------------------------------------------------------------------------------------------------

    async def login_link(self, tenant: str = LOCAL, user: str = LOCAL, seconds: float = LINK_SECONDS) -> str:
        """Create a link that logs a browser in as a user, once, within `seconds`. Returns its secret.

        Raises:
            ConfigError: there is no such user.
        """
        if await self._accounts.user(tenant, user) is None:
            raise ConfigError(f"there is no user {user!r} in tenant {tenant!r}")
        return await self._create_credential("link", LINK_PREFIX, tenant, user, seconds, "operator")

    async def log_in(self, link: str, seconds: float = LOGIN_SECONDS) -> tuple[str, Principal]:
        """Use up a login link. Returns the secret of the cookie, and the principal.

        Raises:
            NotRecognised: the link was used before, has expired, or does not exist.
        """
        now = self._clock.now()
        known = await self._accounts.use_link(hash_secret(link), now) if _SECRET.fullmatch(link) else None
        # Using a link revokes it.
        used = None if known is None else replace(known, credential=replace(known.credential, revoked=0.0))
        if used is None or used.credential.kind != "link" or principal_of(used, now) is None:
            raise NotRecognised("this link was used before or has expired; create another one with `everturn login`")
        credential = used.credential
        return await self.create_login(credential.tenant, credential.user, credential.role, seconds)

    async def create_login(self, tenant: str, user: str, role: Role, seconds: float) -> tuple[str, Principal]:
        """Log a user in who was authenticated. Returns the secret of the cookie, which is always a new one, and the principal.

        Raises:
            NotRecognised: the user or the tenant is not active.
        """
        secret = await self._create_credential("login", LOGIN_PREFIX, tenant, user, seconds, role)
        principal = await self._by_secret(secret, "login")
        await self._note(tenant, user, principal.credential, "auth.login", principal.credential)
        return secret, principal

    async def log_out(self, principal: Principal) -> None:
        """Revoke a login."""
        if principal.kind == "login":
            await self._accounts.revoke(principal.tenant, principal.credential, self._clock.now())
            self.clear_cache()
            await self._note(
                principal.tenant, principal.user, principal.credential, "auth.logout", principal.credential
            )

    async def _create_credential(
        self, kind: CredentialKind, prefix: str, tenant: str, user: str, seconds: float, role: Role
    ) -> str:
        now = self._clock.now()
        secret, secret_hash = new_secret(prefix)
        name = f"{kind}_{secrets.token_hex(8)}"
        credential = Credential(name, tenant, user, kind, secret_hash, role=role, created=now, expires=now + seconds)
        await self._accounts.put_credential(credential)
        return secret

    def clear_cache(self) -> None:
        """Clear the caches."""
        self._cached.clear()
        self._tokens.clear()

    async def csrf(self, principal: Principal) -> str:
        """The CSRF token of a login."""
        return csrf_of(await self._accounts.keys.first("csrf"), principal)

    async def is_csrf(self, principal: Principal, token: str) -> bool:
        """Whether this is the CSRF token of the login."""
        async for key in self._accounts.keys.candidates("csrf"):
            if is_csrf(key, principal, token):
                return True
        return False

    async def begin_oidc(self, redirect: str) -> LoginFlow:
        """Start a login with the provider: redirect the browser to `url` and set `cookie`; both are valid for ten minutes.

        Raises:
            NotRecognised: no provider is configured for browsers, or it does not answer.
        """
        if self._issuer is None or not self._issuer.options.client_id:
            raise NotRecognised("this way to log in is not available here; " + CREDENTIAL_HINT)
        return await begin_flow(self._issuer, await self._accounts.keys.first("oidc"), redirect, self._clock.now())

    async def finish_oidc(
        self, code: str, state: str, cookie: str, redirect: str, seconds: float = LOGIN_SECONDS
    ) -> tuple[str, Principal]:
        """Finish a login after the provider's redirect. Returns the secret of the cookie, and the principal.

        Raises:
            NotRecognised: this browser has not started the login here lately, or the user is unknown.
        """
        if self._issuer is None or not self._issuer.options.client_id:
            raise NotRecognised("this way to log in is not available here; " + CREDENTIAL_HINT)
        keys = [key async for key in self._accounts.keys.candidates("oidc")]
        claims = await finish_flow(self._issuer, keys, code, state, cookie, redirect, self._clock.now())
        principal = await self._principal_of(self._issuer.options, claims, hash_values(code, state))
        cap: Role = principal.role if self._issuer.options.role_claim else MAX_TOKEN_ROLE
        if self._issuer.options.role_claim:  # a role that the provider revokes takes effect with the next login
            seconds = min(seconds, CLAIMED_LOGIN_SECONDS)
        return await self.create_login(principal.tenant, principal.user, cap, seconds)

    # The local operator, and revoked credentials -------------------------------------------------------------------

    async def local_token(self, path: str | Path) -> str:
        """The token of the local operator, in a file that only they can read. It is created when there is none.

        Raises:
            ConfigError: the file is not safe, or its token was revoked; the text says what to do.
        """
        accounts, now = self._accounts, self._clock.now()
        token = load_or_create_token(Path(path), new_secret(KEY_PREFIX)[0])
        if all(tenant.id != LOCAL for tenant in await accounts.tenants()):
            await accounts.put_tenant(Tenant(LOCAL, created=now))
        if await accounts.user(LOCAL, LOCAL) is None:
            await accounts.put_user(User(LOCAL, LOCAL, role="operator", created=now))
        known = await accounts.find_credential(hash_secret(token))
        if known is None:
            name = f"key_{secrets.token_hex(8)}"
            credential = Credential(name, LOCAL, LOCAL, "key", hash_secret(token), name="token file", created=now)
            try:
                await accounts.put_credential(credential)
            except KeyConflict:  # another node has registered the same file
                pass
        elif principal_of(known, now) is None:
            raise ConfigError(
                f"{path}: the token in this file was revoked; remove the file, and Everturn creates a new one"
            )
        return token

    async def active_credentials(self, principals: Iterable[Principal]) -> set[str]:
        """The credentials that are no longer valid, or have a lower role than before: their streams must end."""
        now, all_of_them = self._clock.now(), list(principals)
        known = await self._accounts.active_credentials(
            {principal.credential for principal in all_of_them if principal.kind != "token"}
        )
        users: dict[tuple[str, str], tuple[User, Tenant] | None] = {}
        invalid: set[str] = set()
        for principal in all_of_them:
            if principal.kind != "token":
                now_held = principal_of(known[principal.credential], now) if principal.credential in known else None
                is_invalid = now_held is None or not is_at_least(now_held.role, principal.role)
            else:
                if (principal.tenant, principal.user) not in users:
                    users[principal.tenant, principal.user] = await self._accounts.user(
                        principal.tenant, principal.user
                    )
                is_invalid = principal.expires <= now or not self._is_token_valid(
                    principal, users[principal.tenant, principal.user]
                )
            if is_invalid:
                invalid.add(principal.credential)
        return invalid

    def _is_token_valid(self, principal: Principal, account: tuple[User, Tenant] | None) -> bool:
        options = None if self._issuer is None else self._issuer.options
        if options is None or account is None or not account[0].is_active or not account[1].is_active:
            return False
        return is_user_of_issuer(options, account[0]) and (
            bool(options.role_claim) or is_at_least(account[0].role, principal.role)
        )

    async def _note(self, tenant: str, user: str, credential: str, did: str, on: str) -> None:
        await self._accounts.append_audit(AuditRecord(tenant, self._clock.now(), user, credential, did, on))


def _remember(cache: dict[str, Any], key: str, value: Any) -> None:
    if len(cache) >= CACHE_LIMIT:
        cache.clear()
    cache[key] = value
