"""OAuth for MCP servers: puts a token on each request, or raises `NeedsLogin` if a person must log in.

The flow is the mcp library's. Added here are token storage (`token_storage`), the redirect of the browser
(`login_redirect`), and a mode without any flow: in a server process it would register a client and wait for a person who
is not there. Nothing here opens a browser.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import time
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from everturn.errors import AddressRefused, ConfigError, NeedsLogin
from everturn.mcp.config import ServerSpec
from everturn.mcp.login_redirect import LoginRedirect, LoopbackRedirect, Show
from everturn.mcp.token_storage import SavedTokens, TokenFile, TokenStorage

if TYPE_CHECKING:
    import httpx2

LOGIN_TIMEOUT = 300.0  # seconds for a person to log in
LOGGERS: Final = ("mcp.client.auth.oauth2", "mcp.client.auth.utils")


def is_logged_in(spec: ServerSpec, folder: str | Path) -> bool:
    """Whether there is a token; it may have been revoked."""
    return TokenFile(spec, folder).read().tokens is not None


def logout(spec: ServerSpec, folder: str | Path) -> None:
    """Delete the saved tokens."""
    TokenFile(spec, folder).path.unlink(missing_ok=True)


def auth_for(
    spec: ServerSpec, place: str | Path | TokenStorage, refused: Callable[[str], None] | None = None
) -> httpx2.Auth:
    """Return the authentication for `httpx2.AsyncClient(auth=…)`: it puts a token on every request, and refreshes it.

    A request raises `NeedsLogin` if there is no token, or the server accepts none: then a person has to `login`. `refused`
    is called first, because a library may hide the error.
    """
    return _provider(spec, _storage(spec, place), refused=refused)


def _storage(spec: ServerSpec, place: str | Path | TokenStorage) -> TokenStorage:
    return place if isinstance(place, TokenStorage) else TokenFile(spec, place)


async def login(
    spec: ServerSpec,
    place: str | Path | TokenStorage,
    show: Show,
    max_wait: float = LOGIN_TIMEOUT,
    redirect_to: Callable[[Show, Callable[[str], None]], LoginRedirect] = LoopbackRedirect,
) -> None:
    """Log a person in: `show` receives the address to open in a browser, by default one on this machine.

    Raises:
        NeedsLogin: the person did not log in, or was refused.
        ConfigError: the server has no login, cannot be reached, or leads the login to a refused address.
    """
    if spec.auth != "oauth":
        raise ConfigError(f'server {spec.name} has no login; set auth = "oauth" in its configuration')
    _check_installed()
    import httpx2
    from mcp.client.auth import OAuthFlowError

    from everturn.mcp.http import BoundedResponse, RedirectRefused, login_policy

    storage = _storage(spec, place)
    policy = login_policy(spec)
    redirect = redirect_to(show, policy.check)
    try:
        async with asyncio.timeout(max_wait):
            registered = _registered_uri(await storage.load())
            uri = await redirect.open(registered)
            if uri != registered:
                await storage.save(client=None)  # it was registered with another redirect URI
            provider = _provider(spec, storage, redirect, uri)
            async with httpx2.AsyncClient(
                auth=provider,
                headers=dict(spec.headers),
                timeout=30.0,
                transport=BoundedResponse(policy),
                trust_env=False,
            ) as client:
                response = await client.post(spec.url, json=_PING, headers={"Accept": _ACCEPT})
        if response.status_code in (401, 403):
            raise NeedsLogin(f"server {spec.name} does not accept the login that it has just issued; ask its operator")
        if (await storage.load()).tokens is None:
            raise ConfigError(f'server {spec.name} requires no login; remove auth = "oauth"')
        await storage.save(since=time.time())
    except TimeoutError:
        raise NeedsLogin(f"no one has logged in to {spec.name} in {max_wait:g} seconds; try again") from None
    except OAuthFlowError as error:  # its text may contain a secret
        reason = redirect.refused or type(error).__name__
        raise NeedsLogin(f"the login to {spec.name} failed: {reason}; try again") from None
    except AddressRefused as error:
        raise ConfigError(_refused_address_text(spec, str(error))) from None
    except httpx2.HTTPError as error:
        if isinstance(error, RedirectRefused):
            raise ConfigError(_refused_address_text(spec, str(error))) from None
        raise ConfigError(f"server {spec.name} cannot be reached: {type(error).__name__}; is its url right?") from None
    finally:
        await redirect.aclose()


def _refused_address_text(spec: ServerSpec, why: str) -> str:
    return (
        f"server {spec.name} leads its login to where we do not go on its word: {why}; if its authorization server is "
        'inside, name it: login_hosts = ["host:port"]'
    )


_ACCEPT: Final = "application/json, text/event-stream"
_PING: Final = {"jsonrpc": "2.0", "id": 0, "method": "ping"}


def _check_installed() -> None:
    if importlib.util.find_spec("mcp") is None:
        raise ConfigError("MCP servers need the mcp library: pip install 'everturn[mcp]'")


def _registered_uri(saved: SavedTokens) -> str:
    return cast("list[str]", (saved.client or {}).get("redirect_uris") or [""])[0]


class _NoSecrets(logging.Filter):
    """Log filter against secrets: the library logs failures with all data it was sent, which may include a token."""

    def filter(self, record: logging.LogRecord) -> bool:
        kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else ""
        if kind:
            record.msg, record.args = f"{record.getMessage()}: {kind}", ()
            record.exc_info = record.exc_text = None
        return True


_no_secrets = _NoSecrets()


def _provider(
    spec: ServerSpec,
    storage: TokenStorage,
    redirect: LoginRedirect | None = None,
    uri: str = "http://127.0.0.1:1/",
    refused: Callable[[str], None] | None = None,
) -> httpx2.Auth:
    _check_installed()
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import OAuthClientMetadata, OAuthMetadata
    from pydantic import AnyUrl

    for name in LOGGERS:
        logging.getLogger(name).addFilter(_no_secrets)  # addFilter ignores a filter that is already there

    class SavedOAuthProvider(OAuthClientProvider):
        """The library's flow, starting from the state that earlier processes saved."""

        async def _initialize(self) -> None:
            await super()._initialize()
            saved = await storage.load()
            self.context.token_expiry_time = saved.expires or None
            if saved.server is not None and self.context.oauth_metadata is None:
                self.context.oauth_metadata = OAuthMetadata.model_validate(saved.server)

        async def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
            flow = super()._auth_flow(request) if redirect is not None else _with_token(self, spec, request, refused)
            try:
                outgoing = await anext(flow)
                while True:
                    incoming = yield outgoing
                    outgoing = await flow.asend(incoming)
            except StopAsyncIteration:
                if redirect is not None and self.context.oauth_metadata is not None:
                    server = self.context.oauth_metadata.model_dump(mode="json", exclude_none=True)
                    await storage.save(server=server)
            finally:
                await flow.aclose()

    return SavedOAuthProvider(
        spec.url,
        OAuthClientMetadata(redirect_uris=[AnyUrl(uri)], client_name="everturn"),
        storage,
        redirect.begin if redirect is not None else None,
        redirect.wait if redirect is not None else None,
    )


async def _with_token(
    provider: Any, spec: ServerSpec, request: httpx2.Request, on_refusal: Callable[[str], None] | None
) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
    """Send with the saved token, refresh it once if it is refused, and never start a login."""
    context, refused = provider.context, ""
    for _ in range(2):
        async with context.lock:  # not held during the request, which may take as long as a call
            # Another process may have refreshed it, or a person logged in: all processes share the token.
            await provider._initialize()
            if context.current_tokens is not None and context.current_tokens.access_token == refused:
                context.token_expiry_time = 1.0  # the server refused it, so it has expired, whatever was saved
            if not context.is_token_valid() and context.can_refresh_token():
                response = yield await provider._refresh_token()
                if response.status_code in (429, *range(500, 600)):
                    response.raise_for_status()  # a temporary failure does not end the login
                if not await provider._handle_refresh_response(response):
                    await provider._initialize()
            tokens = context.current_tokens
        if tokens is None or tokens.access_token == refused:
            break
        refused = tokens.access_token
        provider._add_auth_header(request)
        if (yield request).status_code != 401:
            return
    text = _login_needed_text(spec)
    if on_refusal is not None:
        on_refusal(text)
    raise NeedsLogin(text)


def _login_needed_text(spec: ServerSpec) -> str:
    if spec.is_per_person:
        return f"server {spec.name} has no login of this person: log in on the page MCP servers"
    return f"server {spec.name} wants a login: `everturn mcp login FILE {spec.name}`, with the file that names it"
