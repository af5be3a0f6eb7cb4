"""A browser that logs in with an OpenID Connect provider: there and back, by the code flow with PKCE, state and nonce.

Nothing is kept here meanwhile: what must be known again comes back in a cookie of this browser, signed by us.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import secrets
from collections.abc import Mapping
from typing import Any, Final, cast
from urllib.parse import quote_plus, urlencode

import msgspec
from msgspec import Struct

from everturn.access.oidc import Issuer
from everturn.access.options import OidcOptions
from everturn.core.canonical import canonical
from everturn.errors import NotRecognised

log = logging.getLogger(__name__)

GOOD_FOR: Final = 600.0  # seconds from there to back
AGAIN: Final = "this login was not begun here, by this browser, in the last minutes; log in again"


class Flow(Struct, frozen=True):
    """Where to send a browser, and what it is to bring back: as a cookie that scripts cannot read."""

    url: str
    cookie: str


class _Begun(Struct, frozen=True):
    state: str
    nonce: str
    verifier: str
    redirect: str
    until: float


async def begin_flow(issuer: Issuer, secret: bytes, redirect: str, now: float) -> Flow:
    """Begin a login."""
    state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
    begun = _Begun(state, nonce, verifier, redirect, now + GOOD_FOR)
    where = (await issuer.document()).get("authorization_endpoint")
    if not isinstance(where, str):
        raise NotRecognised("the provider of logins does not say where one logs in")
    challenge = base64.urlsafe_b64encode(hashlib.sha256(begun.verifier.encode()).digest()).rstrip(b"=").decode()
    query = {
        "response_type": "code",
        "client_id": issuer.options.client_id,
        "redirect_uri": redirect,
        "scope": "openid profile email",
        "state": begun.state,
        "nonce": begun.nonce,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    said = msgspec.json.encode(begun)
    cookie = f"{_text(said)}.{_text(_mac(secret, said))}"
    return Flow(f"{where}{'&' if '?' in where else '?'}{urlencode(query)}", cookie)


async def finish_flow(
    issuer: Issuer, secret: bytes, code: str, state: str, cookie: str, redirect: str, now: float
) -> dict[str, Any]:
    """End a login: the claims of whoever has logged in.

    Raises:
        NotRecognised: it was not begun by this browser, or the provider does not know of it.
    """
    begun = _begun(secret, cookie)
    is_same = hmac.compare_digest(begun.state.encode(), state.encode("utf-8", "replace")) and begun.redirect == redirect
    if not is_same or now >= begun.until or not code:
        raise NotRecognised(AGAIN)
    document = await issuer.document()
    where = document.get("token_endpoint")
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": redirect,
        "client_id": issuer.options.client_id,
        "code_verifier": begun.verifier,
    }
    headers: dict[str, str] = {}
    if issuer.options.client_secret:
        prove(document, issuer.options, form, headers)
    try:
        answer: dict[str, Any] = msgspec.json.decode(await issuer.ask(str(where), form, headers), type=dict[str, Any])
    except (OSError, ValueError, TimeoutError, msgspec.MsgspecError) as error:
        log.warning("a login was not confirmed: %s: %s", where, error)
        raise NotRecognised("the provider of logins did not confirm this login; log in again") from None
    token = answer.get("id_token")
    if not isinstance(token, str):
        raise NotRecognised("the provider of logins did not say who this is")
    claims = await issuer.claims(token, issuer.options.client_id, is_login=True)
    if not hmac.compare_digest(str(claims.get("nonce")).encode(), begun.nonce.encode()):
        raise NotRecognised(AGAIN)
    return claims


def prove(document: Mapping[str, Any], options: OidcOptions, form: dict[str, str], headers: dict[str, str]) -> None:
    """Show the secret in the way that the provider takes: in a header, unless it only takes it in the form."""
    listed: Any = document.get("token_endpoint_auth_methods_supported")
    methods = (
        cast("list[Any]", listed) if isinstance(listed, list) else ["client_secret_basic"]
    )  # as the standard has it
    if "client_secret_post" in methods and "client_secret_basic" not in methods:
        form["client_secret"] = options.client_secret
        return
    pair = f"{quote_plus(options.client_id)}:{quote_plus(options.client_secret)}"
    headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"


def _begun(secret: bytes, cookie: str) -> _Begun:
    try:
        said, mac = (base64.b64decode(one + "=" * (-len(one) % 4), b"-_", validate=True) for one in cookie.split("."))
        if not hmac.compare_digest(mac, _mac(secret, said)):
            raise NotRecognised(AGAIN)
        return msgspec.json.decode(said, type=_Begun)
    except (ValueError, msgspec.MsgspecError):
        raise NotRecognised(AGAIN) from None


def _mac(secret: bytes, said: bytes) -> bytes:
    return hmac.digest(secret, canonical(["login", said.hex()]).encode(), hashlib.sha256)


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
