"""OpenID Connect tokens: verifies the signature, the times and the audience of a token, and returns its claims.

Only tokens count that a configured key of the configured issuer has signed with a configured algorithm. The header of a
token (key id, algorithm) only selects among these.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import urlencode

import msgspec

from everturn.access.auth.options import OidcOptions
from everturn.core.ports import Clock
from everturn.egress import EgressClient, FetchLimits
from everturn.errors import AddressRefused, ConfigError, FetchFailed, NotRecognised

log = logging.getLogger(__name__)

SIGNED: Final = frozenset(
    ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
)
"""Asymmetric algorithms. With a symmetric one, everyone who can verify a token could also create it."""

KINDS: Final = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
"""The first letters of an algorithm -> the type of key it uses."""

ID_CLAIMS: Final = frozenset(("nonce", "at_hash", "c_hash", "s_hash"))
ACCESS_CLAIMS: Final = frozenset(("scope", "scp", "client_id"))

KEY_CACHE_SECONDS: Final = 600.0  # seconds that keys are cached
KEY_FETCH_INTERVAL: Final = 30.0  # seconds between two fetches for an unknown key id: a token can name any
LARGEST: Final = 1024 * 1024  # bytes of a document of the issuer
FETCH_TIMEOUT: Final = 10.0  # seconds
FETCH_LIMITS: Final = FetchLimits(size=LARGEST, total=FETCH_TIMEOUT)
LOOPBACK: Final = tuple(f"http://{host}{end}" for host in ("127.0.0.1", "[::1]", "localhost") for end in (":", "/"))
MOST_KEYS: Final = 100
TOKEN_REFUSED: Final = "the token is not one that is taken here"


class Issuer:
    """An OpenID Connect provider: its discovery document, and its signing keys."""

    def __init__(self, options: OidcOptions, clock: Clock) -> None:
        if not options.issuer or not options.audience:
            raise ConfigError("oidc: issuer and audience are required; without them, any token would be accepted")
        if others := sorted(set(options.algorithms) - SIGNED) or not options.algorithms:
            raise ConfigError(f"oidc: algorithms: {others}; there are: {', '.join(sorted(SIGNED))}")
        self.options, self._clock = options, clock
        self._keys: list[dict[str, Any]] = []
        self._read_at = -KEY_CACHE_SECONDS
        self._reading = asyncio.Lock()
        self._document: dict[str, Any] | None = None
        named = [options.issuer, *([options.jwks] if "://" in options.jwks else [])]
        self._policy = EgressClient(named, options.login_hosts)

    async def claims(self, token: str, audience: str = "", *, is_login: bool = False) -> dict[str, Any]:
        """The claims of a token, if it is valid now. An ID token is accepted for logins only (`is_login`): it passes through
        browsers and logs, and an attacker who finds one must not be able to send requests with it.

        Raises:
            NotRecognised: the token is invalid; the reason is for the operator's log, not for the caller.
        """
        import jwt  # imported only where OpenID Connect is configured

        try:
            header = jwt.get_unverified_header(token)
            algorithm = header.get("alg")
            if algorithm not in self.options.algorithms or algorithm not in SIGNED:
                raise NotRecognised(TOKEN_REFUSED)
            key = jwt.PyJWK(await self._find_key(header.get("kid"), algorithm), algorithm=algorithm)
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=audience or self.options.audience,
                issuer=self.options.issuer,
                # Times are checked below, by our own clock.
                options={
                    "require": ["exp", "iss", "aud"],
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                },
            )
        except (jwt.PyJWTError, ValueError, TypeError, KeyError):
            raise NotRecognised(TOKEN_REFUSED) from None
        self._check_times(claims)
        if not is_login and not is_access_token(
            header, claims, is_shared=self.options.audience == self.options.client_id
        ):
            raise NotRecognised(TOKEN_REFUSED)
        return claims

    def _check_times(self, claims: dict[str, Any]) -> None:
        now, leeway = self._clock.now(), self.options.leeway
        for name in ("exp", "nbf", "iat"):
            value = claims.get(name, None if name == "exp" else 0)
            if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
                raise NotRecognised(TOKEN_REFUSED)
            if (value + leeway <= now) if name == "exp" else (value - leeway > now):
                raise NotRecognised(TOKEN_REFUSED)

    async def _find_key(self, kid: object, algorithm: str) -> dict[str, Any]:
        """The key that a token names; without a key id only if there is exactly one."""
        now = self._clock.now()
        if not 0 <= now - self._read_at < KEY_CACHE_SECONDS:
            await self._fetch_keys(KEY_CACHE_SECONDS)
        keys = self._matching_keys(kid, algorithm)
        if len(keys) != 1:
            await self._fetch_keys(KEY_FETCH_INTERVAL)  # it may be new
            keys = self._matching_keys(kid, algorithm)
        if len(keys) != 1:
            raise NotRecognised(TOKEN_REFUSED)
        return keys[0]

    def _matching_keys(self, kid: object, algorithm: str) -> list[dict[str, Any]]:
        return [
            key
            for key in self._keys
            if (kid is None or key.get("kid") == kid)
            and key.get("alg", algorithm) == algorithm
            and key.get("use", "sig") == "sig"
            and key.get("kty") == KINDS[algorithm[:2]]
        ]

    async def _fetch_keys(self, after: float) -> None:
        """Fetch the keys, unless they were fetched less than `after` seconds ago. If that fails the old ones stay."""
        async with self._reading:
            now = self._clock.now()
            if 0 <= now - self._read_at < after:
                return
            self._read_at = now  # also after a failure: a provider that is down is not queried with every request
            location = self.options.jwks or str((await self.document()).get("jwks_uri", ""))
            keys = cast("list[Any]", (await self._load(location)).get("keys"))
            if isinstance(keys, list):  # pyright: ignore[reportUnnecessaryIsInstance]
                self._keys = [cast("dict[str, Any]", key) for key in keys[:MOST_KEYS] if isinstance(key, dict)]

    async def document(self) -> dict[str, Any]:
        """The discovery document of the issuer: where its keys and endpoints are.

        Raises:
            NotRecognised: the provider does not answer, or names another issuer.
        """
        if self._document is None:
            document = await self._load(self.options.issuer.rstrip("/") + "/.well-known/openid-configuration")
            if document.get("issuer") != self.options.issuer:
                raise NotRecognised("the login provider reports a different issuer")
            self._document = document
        return self._document

    async def request(
        self, url: str, form: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
    ) -> bytes:
        """Send a request to the provider: GET, or POST with a form. No redirects, no proxies of the environment, bounded in
        time and size.

        An address that is not configured comes from the provider's document, and is checked like any other.

        Raises:
            OSError: the provider answers with an error, or the address is not safe for secrets.
        """
        if url.startswith("http://") and not url.startswith(LOOPBACK):
            raise OSError("a login provider needs an https URL")
        body, all_headers = None, dict(headers or {})
        if form is not None:
            body = urlencode(form).encode()
            all_headers["Content-Type"] = "application/x-www-form-urlencoded"
        try:
            answer = await self._policy.request(
                "GET" if form is None else "POST", url, all_headers, body, limits=FETCH_LIMITS
            )
        except (AddressRefused, FetchFailed) as error:
            raise OSError(str(error)) from None
        if answer.status != 200:
            raise OSError(f"status {answer.status}")
        return answer.body

    async def _load(self, location: str) -> dict[str, Any]:
        """Load a document from a URL or a file that the operator has configured."""
        try:
            if "://" not in location:
                data = await asyncio.to_thread(_read_file, location)
            else:
                data = await self.request(location)
            document = msgspec.json.decode(data)
        except (OSError, ValueError, msgspec.DecodeError, TimeoutError) as error:
            log.warning(
                "the keys of the login provider could not be loaded, so its tokens are not accepted: %s: %s",
                location,
                error,
            )
            raise NotRecognised("the login provider does not answer; try again") from None
        return cast("dict[str, Any]", document) if isinstance(document, dict) else {}


def is_access_token(header: Mapping[str, Any], claims: Mapping[str, Any], *, is_shared: bool) -> bool:
    """Whether a token is an access token, as far as it can be told; `is_shared`: ID tokens have the same audience.

    The token's type says so (`typ`: RFC 9068, and Keycloak's claim), or it has claims that only ID tokens have. Where both
    kinds have one audience, it must have claims that only access tokens have.
    """
    kind = str(header.get("typ") or "JWT").lower().removeprefix("application/")
    typ_claim = str(claims.get("typ") or "").lower()
    if kind == "at+jwt" or typ_claim == "bearer":
        return True
    if kind != "jwt" or typ_claim in ("id", "refresh", "offline", "logout") or ID_CLAIMS & claims.keys():
        return False
    return not is_shared or bool(ACCESS_CLAIMS & claims.keys())


def _read_file(path: str) -> bytes:
    with Path(path).open("rb") as file:
        return file.read(LARGEST)
