"""A token that an OpenID Connect provider has issued → the claims in it, if they hold.

Only what the configured keys of the configured issuer have signed counts, by one of the configured algorithms. What a
token says of itself (which key, which algorithm) only chooses among these.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import urlencode

import msgspec

from everturn.access.options import OidcOptions
from everturn.core.ports import Clock
from everturn.egress import Limits, Policy
from everturn.errors import AddressRefused, ConfigError, FetchFailed, NotRecognised

log = logging.getLogger(__name__)

SIGNED: Final = frozenset(
    ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
)
"""Algorithms with a key that only the issuer has. With a shared one, whoever can check a token could also make it."""

KINDS: Final = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
"""The beginning of an algorithm -> the kind of key it takes."""

ID_CLAIMS: Final = frozenset(("nonce", "at_hash", "c_hash", "s_hash"))
ACCESS_CLAIMS: Final = frozenset(("scope", "scp", "client_id"))

GOOD_FOR: Final = 600.0  # seconds that keys are used before they are read again
PAUSE: Final = 30.0  # seconds between two looks for a key that nobody knows: a token can name any
LARGEST: Final = 1024 * 1024  # bytes of a document of the issuer's
PATIENCE: Final = 10.0  # seconds
BOUNDS: Final = Limits(size=LARGEST, total=PATIENCE)
LOOPBACK: Final = tuple(f"http://{host}{end}" for host in ("127.0.0.1", "[::1]", "localhost") for end in (":", "/"))
MOST_KEYS: Final = 100
REFUSED: Final = "the token is not one that is taken here"


class Issuer:
    """The provider: its documents, and the keys it signs with."""

    def __init__(self, options: OidcOptions, clock: Clock) -> None:
        if not options.issuer or not options.audience:
            raise ConfigError("oidc: the issuer and the audience must be given; any token would be taken otherwise")
        if others := sorted(set(options.algorithms) - SIGNED) or not options.algorithms:
            raise ConfigError(f"oidc: algorithms: {others}; there are: {', '.join(sorted(SIGNED))}")
        self.options, self._clock = options, clock
        self._keys: list[dict[str, Any]] = []
        self._read_at = -GOOD_FOR
        self._reading = asyncio.Lock()
        self._document: dict[str, Any] | None = None
        named = [options.issuer, *([options.jwks] if "://" in options.jwks else [])]
        self._policy = Policy(named, options.login_hosts)

    async def claims(self, token: str, audience: str = "", *, is_login: bool = False) -> dict[str, Any]:
        """What a token says, if it holds now. One that says who has logged in (an ID token) is for logins alone: it goes
        through browsers and logs, and whoever finds one must not be able to ask for anything with it.

        Raises:
            NotRecognised: it does not; why is for the log of the operator, not for whoever brings it.
        """
        import jwt  # only who is configured so pays for it

        try:
            header = jwt.get_unverified_header(token)
            algorithm = header.get("alg")
            if algorithm not in self.options.algorithms or algorithm not in SIGNED:
                raise NotRecognised(REFUSED)
            key = jwt.PyJWK(await self._key(header.get("kid"), algorithm), algorithm=algorithm)
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=audience or self.options.audience,
                issuer=self.options.issuer,
                # Times are looked at below, by our own clock.
                options={
                    "require": ["exp", "iss", "aud"],
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                },
            )
        except (jwt.PyJWTError, ValueError, TypeError, KeyError):
            raise NotRecognised(REFUSED) from None
        self._check_times(claims)
        if not is_login and not is_for_requests(
            header, claims, is_shared=self.options.audience == self.options.client_id
        ):
            raise NotRecognised(REFUSED)
        return claims

    def _check_times(self, claims: dict[str, Any]) -> None:
        now, leeway = self._clock.now(), self.options.leeway
        for name in ("exp", "nbf", "iat"):
            value = claims.get(name, None if name == "exp" else 0)
            if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
                raise NotRecognised(REFUSED)
            if (value + leeway <= now) if name == "exp" else (value - leeway > now):
                raise NotRecognised(REFUSED)

    async def _key(self, kid: object, algorithm: str) -> dict[str, Any]:
        """The key that a token says it was signed with; without a name only if there is no other."""
        now = self._clock.now()
        if not 0 <= now - self._read_at < GOOD_FOR:
            await self._read(GOOD_FOR)
        found = self._fit(kid, algorithm)
        if len(found) != 1:
            await self._read(PAUSE)  # it may be new
            found = self._fit(kid, algorithm)
        if len(found) != 1:
            raise NotRecognised(REFUSED)
        return found[0]

    def _fit(self, kid: object, algorithm: str) -> list[dict[str, Any]]:
        return [
            key
            for key in self._keys
            if (kid is None or key.get("kid") == kid)
            and key.get("alg", algorithm) == algorithm
            and key.get("use", "sig") == "sig"
            and key.get("kty") == KINDS[algorithm[:2]]
        ]

    async def _read(self, after: float) -> None:
        """Read the keys, unless they were read that short a time ago. If that fails the old ones stay."""
        async with self._reading:
            now = self._clock.now()
            if 0 <= now - self._read_at < after:
                return
            self._read_at = now  # also of a try that fails: a provider that is down is not asked with every request
            where = self.options.jwks or str((await self.document()).get("jwks_uri", ""))
            found = cast("list[Any]", (await self._load(where)).get("keys"))
            if isinstance(found, list):  # pyright: ignore[reportUnnecessaryIsInstance]
                self._keys = [cast("dict[str, Any]", key) for key in found[:MOST_KEYS] if isinstance(key, dict)]

    async def document(self) -> dict[str, Any]:
        """What the issuer says of itself: where its keys are, where one logs in.

        Raises:
            NotRecognised: it does not answer, or speaks for somebody else.
        """
        if self._document is None:
            found = await self._load(self.options.issuer.rstrip("/") + "/.well-known/openid-configuration")
            if found.get("issuer") != self.options.issuer:
                raise NotRecognised("the provider of logins says that it is another one")
            self._document = found
        return self._document

    async def ask(
        self, url: str, form: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
    ) -> bytes:
        """Ask the provider: by GET, or with a form by POST. No redirects, no proxies of the environment, all of it bounded.

        What is not at an address that was configured is named by the provider's document, and judged like any other.

        Raises:
            OSError: it did not answer well, or the address is not one to send secrets to.
        """
        if url.startswith("http://") and not url.startswith(LOOPBACK):
            raise OSError("a provider is asked by https")
        body, more = None, dict(headers or {})
        if form is not None:
            body = urlencode(form).encode()
            more["Content-Type"] = "application/x-www-form-urlencoded"
        try:
            answer = await self._policy.request("GET" if form is None else "POST", url, more, body, limits=BOUNDS)
        except (AddressRefused, FetchFailed) as error:
            raise OSError(str(error)) from None
        if answer.status != 200:
            raise OSError(f"status {answer.status}")
        return answer.body

    async def _load(self, where: str) -> dict[str, Any]:
        """A document at an address or in a file that the operator has named."""
        try:
            if "://" not in where:
                data = await asyncio.to_thread(_file, where)
            else:
                data = await self.ask(where)
            found = msgspec.json.decode(data)
        except (OSError, ValueError, msgspec.DecodeError, TimeoutError) as error:
            log.warning("nobody can be recognised by a token: %s: %s", where, error)
            raise NotRecognised("the provider of logins does not answer; try again") from None
        return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def is_for_requests(header: Mapping[str, Any], claims: Mapping[str, Any], *, is_shared: bool) -> bool:
    """Whether a token is an access token, as far as it can be told; `is_shared`: ID tokens are for the same audience.

    A token says so itself (`typ`: RFC 9068, and Keycloak's claim), or has what only ID tokens have. Where both kinds are
    for one audience, it has to have what only access tokens have.
    """
    kind = str(header.get("typ") or "JWT").lower().removeprefix("application/")
    said = str(claims.get("typ") or "").lower()
    if kind == "at+jwt" or said == "bearer":
        return True
    if kind != "jwt" or said in ("id", "refresh", "offline", "logout") or ID_CLAIMS & claims.keys():
        return False
    return not is_shared or bool(ACCESS_CLAIMS & claims.keys())


def _file(where: str) -> bytes:
    with Path(where).open("rb") as file:
        return file.read(LARGEST)
