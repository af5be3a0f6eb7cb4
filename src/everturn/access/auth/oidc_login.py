"""OpenID Connect login: the authorization code flow with PKCE, state and nonce.

The server stores nothing meanwhile: the state of the flow is in a cookie of this browser, signed by the server. Each attempt
has a cookie of its own, so that logins in two tabs do not disturb each other.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast
from urllib.parse import quote_plus, urlencode

import msgspec
from msgspec import Struct

from everturn.access.auth.oidc import Issuer
from everturn.access.auth.options import OidcOptions
from everturn.core.canonical_json import encode_canonical
from everturn.errors import NotRecognised

log = logging.getLogger(__name__)

FLOW_SECONDS: Final = 600.0  # seconds from the redirect to the callback
LOGIN_AGAIN: Final = "this login was not begun here, by this browser, in the last minutes; log in again"


class LoginFlow(Struct, frozen=True):
    """The URL to redirect a browser to, and the cookie to set (HttpOnly)."""

    url: str
    cookie: str
    state: str  # that comes back with the browser; it names the cookie


class _LoginState(Struct, frozen=True):
    state: str
    nonce: str
    verifier: str
    redirect: str
    until: float


async def begin_flow(issuer: Issuer, secret: bytes, redirect: str, now: float) -> LoginFlow:
    """Start a login."""
    state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
    login_state = _LoginState(state, nonce, verifier, redirect, now + FLOW_SECONDS)
    endpoint = (await issuer.document()).get("authorization_endpoint")
    if not isinstance(endpoint, str):
        raise NotRecognised("the login provider does not name its login page (authorization_endpoint)")
    challenge = base64.urlsafe_b64encode(hashlib.sha256(login_state.verifier.encode()).digest()).rstrip(b"=").decode()
    query = {
        "response_type": "code",
        "client_id": issuer.options.client_id,
        "redirect_uri": redirect,
        "scope": "openid profile email",
        "state": login_state.state,
        "nonce": login_state.nonce,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    data = msgspec.json.encode(login_state)
    cookie = f"{_text(data)}.{_text(_mac(secret, data))}"
    return LoginFlow(f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}", cookie, state)


async def finish_flow(
    issuer: Issuer, keys: Sequence[bytes], code: str, state: str, cookie: str, redirect: str, now: float
) -> dict[str, Any]:
    """Finish a login. Returns the claims of the user.

    Raises:
        NotRecognised: this browser has not started the login, or the provider does not confirm it.
    """
    login_state = _read_cookie(keys, cookie)
    is_same = (
        hmac.compare_digest(login_state.state.encode(), state.encode("utf-8", "replace"))
        and login_state.redirect == redirect
    )
    if not is_same or now >= login_state.until or not code:
        raise NotRecognised(LOGIN_AGAIN)
    document = await issuer.document()
    endpoint = document.get("token_endpoint")
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": redirect,
        "client_id": issuer.options.client_id,
        "code_verifier": login_state.verifier,
    }
    headers: dict[str, str] = {}
    if issuer.options.client_secret:
        add_client_secret(document, issuer.options, form, headers)
    try:
        answer: dict[str, Any] = msgspec.json.decode(
            await issuer.request(str(endpoint), form, headers), type=dict[str, Any]
        )
    except (OSError, ValueError, TimeoutError, msgspec.MsgspecError) as error:
        log.warning("a login was not confirmed: %s: %s", endpoint, error)
        raise NotRecognised("the login provider did not confirm this login; log in again") from None
    token = answer.get("id_token")
    if not isinstance(token, str):
        raise NotRecognised("the login provider did not name the user")
    claims = await issuer.claims(token, issuer.options.client_id, is_login=True)
    if not hmac.compare_digest(str(claims.get("nonce")).encode(), login_state.nonce.encode()):
        raise NotRecognised(LOGIN_AGAIN)
    return claims


def add_client_secret(
    document: Mapping[str, Any], options: OidcOptions, form: dict[str, str], headers: dict[str, str]
) -> None:
    """Authenticate the client with its secret: in a header, unless the provider only takes it in the form."""
    listed: Any = document.get("token_endpoint_auth_methods_supported")
    methods = (
        cast("list[Any]", listed) if isinstance(listed, list) else ["client_secret_basic"]
    )  # the default of the standard
    if "client_secret_post" in methods and "client_secret_basic" not in methods:
        form["client_secret"] = options.client_secret
        return
    pair = f"{quote_plus(options.client_id)}:{quote_plus(options.client_secret)}"
    headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"


def _read_cookie(keys: Sequence[bytes], cookie: str) -> _LoginState:
    try:
        data, mac = (
            base64.b64decode(part + "=" * (-len(part) % 4), b"-_", validate=True) for part in cookie.split(".")
        )
        if not any(hmac.compare_digest(mac, _mac(key, data)) for key in keys):
            raise NotRecognised(LOGIN_AGAIN)
        return msgspec.json.decode(data, type=_LoginState)
    except (ValueError, msgspec.MsgspecError):
        raise NotRecognised(LOGIN_AGAIN) from None


def _mac(secret: bytes, data: bytes) -> bytes:
    return hmac.digest(secret, encode_canonical(["login", data.hex()]).encode(), hashlib.sha256)


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
