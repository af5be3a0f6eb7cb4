"""OAuth for MCP servers: puts a token on each request, or raises `NeedsLogin` if a person must log in.

The flow is the mcp library's. Added here are token files that only their owner can read, a listener on this machine for
the redirect from the browser, and a mode without any flow: in a server process it would register a client and wait for
a person who is not there. Nothing here opens a browser.
"""

from __future__ import annotations

import asyncio
import hmac
import importlib.util
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import parse_qs, urlsplit

import msgspec
from msgspec import Struct

from everturn.core.canonical_json import hash_values
from everturn.errors import AddressRefused, ConfigError, NeedsLogin
from everturn.mcp.config import ServerSpec
from everturn.mcp.private_file import read_private, write_private

if TYPE_CHECKING:
    import httpx2
    from mcp.shared.auth import AuthorizationCodeResult

LOGIN_TIMEOUT = 300.0  # seconds for a person to log in
CALLBACK_PATH = "/callback"
LOGGERS: Final = ("mcp.client.auth.oauth2", "mcp.client.auth.utils")
_HEAD_LIMIT = 16_384  # bytes of a request to the listener
_PAGE: Final = "<!doctype html><meta charset=utf-8><title>everturn</title><p>{text}"


class _SavedTokens(Struct, omit_defaults=True):
    url: str = ""
    tokens: dict[str, Any] | None = None
    expires: float = 0.0  # 0: unknown
    client: dict[str, Any] | None = None
    server: dict[str, Any] | None = None  # metadata of the authorization server: where tokens are refreshed


class TokenFile:
    """Token storage of one server: the mcp library's `TokenStorage`, plus what the library forgets between two
    processes."""

    def __init__(self, spec: ServerSpec, folder: str | Path) -> None:
        self._url = spec.url
        self.path = Path(folder).expanduser() / f"{spec.name}-{hash_values(spec.url)[:12]}.json"

    def read(self) -> _SavedTokens:
        """Return the saved tokens; none if they are for another address."""
        data = read_private(self.path)
        try:
            saved = msgspec.json.decode(data, type=_SavedTokens) if data else _SavedTokens()
        except msgspec.DecodeError:
            raise ConfigError(f"{self.path} cannot be read; delete it, and log in again") from None
        return saved if saved.url == self._url else _SavedTokens()

    def write(self, **changed: Any) -> None:
        """Replace the saved values of these names."""
        saved = self.read()
        for name, value in changed.items():
            setattr(saved, name, value)
        saved.url = self._url
        write_private(self.path, msgspec.json.encode(saved))

    async def get_tokens(self) -> Any:
        """Return the tokens, in the type of the library."""
        from mcp.shared.auth import OAuthToken

        saved = await asyncio.to_thread(self.read)
        return None if saved.tokens is None else OAuthToken.model_validate(saved.tokens)

    async def set_tokens(self, tokens: Any) -> None:
        """Save the tokens, and when they expire."""
        expires = time.time() + tokens.expires_in if tokens.expires_in else 0.0
        await asyncio.to_thread(self.write, tokens=tokens.model_dump(mode="json", exclude_none=True), expires=expires)

    async def get_client_info(self) -> Any:
        """Return the client registration."""
        from mcp.shared.auth import OAuthClientInformationFull

        saved = await asyncio.to_thread(self.read)
        return None if saved.client is None else OAuthClientInformationFull.model_validate(saved.client)

    async def set_client_info(self, client_info: Any) -> None:
        """Save the client registration."""
        await asyncio.to_thread(self.write, client=client_info.model_dump(mode="json", exclude_none=True))


def is_logged_in(spec: ServerSpec, folder: str | Path) -> bool:
    """Whether there is a token; it may have been revoked."""
    return TokenFile(spec, folder).read().tokens is not None


def logout(spec: ServerSpec, folder: str | Path) -> None:
    """Delete the saved tokens."""
    TokenFile(spec, folder).path.unlink(missing_ok=True)


def auth_for(spec: ServerSpec, folder: str | Path) -> httpx2.Auth:
    """Return the authentication for `httpx2.AsyncClient(auth=…)`: it puts a token on every request, and refreshes it.

    A request raises `NeedsLogin` if there is no token, or the server accepts none: then a person has to `login`.
    """
    return _provider(spec, TokenFile(spec, folder))


async def login(
    spec: ServerSpec,
    folder: str | Path,
    show: Callable[[str], Awaitable[None] | None],
    max_wait: float = LOGIN_TIMEOUT,
) -> None:
    """Log a person in: `show` receives the address to open in a browser on this machine.

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

    file = TokenFile(spec, folder)
    policy = login_policy(spec)
    listener = _Listener(show, policy.check)
    try:
        async with asyncio.timeout(max_wait):
            await listener.open(_registered_port(file))
            if listener.port != _registered_port(file):
                await asyncio.to_thread(file.write, client=None)  # it was registered with another redirect URI
            provider = _provider(spec, file, listener)
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
        if not is_logged_in(spec, folder):
            raise ConfigError(f'server {spec.name} requires no login; remove auth = "oauth"')
    except TimeoutError:
        raise NeedsLogin(f"no one has logged in to {spec.name} in {max_wait:g} seconds; try again") from None
    except OAuthFlowError as error:  # its text may contain a secret
        reason = listener.refused or type(error).__name__
        raise NeedsLogin(f"the login to {spec.name} failed: {reason}; try again") from None
    except AddressRefused as error:
        raise ConfigError(_refused_address_text(spec, str(error))) from None
    except httpx2.HTTPError as error:
        if isinstance(error, RedirectRefused):
            raise ConfigError(_refused_address_text(spec, str(error))) from None
        raise ConfigError(f"server {spec.name} cannot be reached: {type(error).__name__}; is its url right?") from None
    finally:
        await listener.aclose()


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


def _registered_port(file: TokenFile) -> int:
    """Return the port of the registered redirect URI: many servers accept no other."""
    uris = cast("list[str]", (file.read().client or {}).get("redirect_uris") or [""])
    return urlsplit(uris[0]).port or 0


class _NoSecrets(logging.Filter):
    """Log filter against secrets: the library logs failures with all data it was sent, which may include a token."""

    def filter(self, record: logging.LogRecord) -> bool:
        kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else ""
        if kind:
            record.msg, record.args = f"{record.getMessage()}: {kind}", ()
            record.exc_info = record.exc_text = None
        return True


_no_secrets = _NoSecrets()


def _provider(spec: ServerSpec, file: TokenFile, listener: _Listener | None = None) -> httpx2.Auth:
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
            saved = await asyncio.to_thread(file.read)
            self.context.token_expiry_time = saved.expires or None
            if saved.server is not None and self.context.oauth_metadata is None:
                self.context.oauth_metadata = OAuthMetadata.model_validate(saved.server)

        async def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
            flow = super()._auth_flow(request) if listener is not None else _with_token(self, spec, request)
            try:
                outgoing = await anext(flow)
                while True:
                    incoming = yield outgoing
                    outgoing = await flow.asend(incoming)
            except StopAsyncIteration:
                if listener is not None and self.context.oauth_metadata is not None:
                    server = self.context.oauth_metadata.model_dump(mode="json", exclude_none=True)
                    await asyncio.to_thread(file.write, server=server)
            finally:
                await flow.aclose()

    redirect_uri = f"http://127.0.0.1:{listener.port if listener is not None else 1}{CALLBACK_PATH}"
    return SavedOAuthProvider(
        spec.url,
        OAuthClientMetadata(redirect_uris=[AnyUrl(redirect_uri)], client_name="everturn"),
        file,
        listener.begin if listener is not None else None,
        listener.wait if listener is not None else None,
    )


async def _with_token(
    provider: Any, spec: ServerSpec, request: httpx2.Request
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
    raise NeedsLogin(_login_needed_text(spec))


def _login_needed_text(spec: ServerSpec) -> str:
    return f"server {spec.name} wants a login: `everturn mcp login FILE {spec.name}`, with the file that names it"


class _Listener:
    """Waits on this machine for the redirect from the browser, once, with the state of this login."""

    def __init__(self, show: Callable[[str], Awaitable[None] | None], check: Callable[[str], None]) -> None:
        self._show, self._check = show, check
        self._server: asyncio.Server | None = None
        self._state = ""
        self._redirect: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()
        self.port = 0
        self.refused = ""

    async def open(self, port: int) -> None:
        """Listen, on this port if it is free."""
        try:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=_HEAD_LIMIT)
        except OSError:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_HEAD_LIMIT)
        self.port = self._server.sockets[0].getsockname()[1]

    async def begin(self, url: str) -> None:
        """Show the person the address to open, if the policy allows it.

        Raises:
            AddressRefused: the policy refuses the address.
        """
        self._check(url)
        self._state = (parse_qs(urlsplit(url).query).get("state") or [""])[0]
        shown = self._show(url)
        if shown is not None:
            await shown

    async def wait(self) -> AuthorizationCodeResult:
        """Return the parameters of the redirect."""
        return await self._redirect

    async def aclose(self) -> None:
        """Stop listening."""
        self._redirect.cancel()
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(10):
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            status, text = self._handle_redirect(head)
            page = _PAGE.format(text=text).encode()
            lines = f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(page)}\r\n"
            writer.write(f"{lines}Cache-Control: no-store\r\nConnection: close\r\n\r\n".encode() + page)
            await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # a broken connection; the browser can try again
        finally:
            writer.close()

    def _handle_redirect(self, head: str) -> tuple[str, str]:
        from mcp.shared.auth import AuthorizationCodeResult

        line, *rows = head.split("\r\n")
        method, _, rest = line.partition(" ")
        address = urlsplit(rest.partition(" ")[0])
        hosts = [value.strip() for name, _, value in (row.partition(":") for row in rows) if name.lower() == "host"]
        if method != "GET" or address.path != CALLBACK_PATH or hosts != [f"127.0.0.1:{self.port}"]:
            return "404 Not Found", "There is nothing here."
        query = {name: values[0] for name, values in parse_qs(address.query).items()}
        if not self._state or not hmac.compare_digest(query.get("state", "").encode(), self._state.encode()):
            # The state is of another login, so the code is not for this one: keep waiting.
            return "400 Bad Request", "This is not the login that was begun here; go back to the one that was."
        if self._redirect.done():
            return "400 Bad Request", "This login is over."
        if "error" in query or not query.get("code"):
            self.refused = f"it was refused ({query.get('error', 'no code')[:60]!r})"
        self._redirect.set_result(
            AuthorizationCodeResult(code=query.get("code", ""), state=query["state"], iss=query.get("iss"))
        )
        return "200 OK", "This can be closed now; go back to the terminal."
