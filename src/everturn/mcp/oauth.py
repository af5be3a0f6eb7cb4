"""A server that wants a login → requests that carry a token, or word that somebody must log in (`NeedsLogin`).

The flow is the mcp library's. What is added here: tokens in a file that only their owner can read, a listener on this
machine for the way back from the browser, and where nobody sits in front of it no flow at all, for it would register a
client and wait for a person who is not there. Nothing here opens a browser.
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

from everturn.core.canonical import digest
from everturn.errors import AddressRefused, ConfigError, NeedsLogin
from everturn.mcp.config import ServerSpec
from everturn.mcp.keeping import read_private, write_private

if TYPE_CHECKING:
    import httpx2
    from mcp.shared.auth import AuthorizationCodeResult

PATIENCE = 300.0  # seconds a person has to log in
BACK = "/callback"
LOGGERS: Final = ("mcp.client.auth.oauth2", "mcp.client.auth.utils")
_HEAD_LIMIT = 16_384  # bytes of a request to the listener
_PAGE: Final = "<!doctype html><meta charset=utf-8><title>everturn</title><p>{text}"


class _Kept(Struct, omit_defaults=True):
    url: str = ""
    tokens: dict[str, Any] | None = None
    expires: float = 0.0  # 0: nobody said
    client: dict[str, Any] | None = None
    server: dict[str, Any] | None = None  # what the authorization server says of itself: where tokens are renewed


class TokenFile:
    """The tokens of one server; the mcp library's `TokenStorage`, with what it forgets between two processes."""

    def __init__(self, spec: ServerSpec, folder: str | Path) -> None:
        self._url = spec.url
        self.path = Path(folder).expanduser() / f"{spec.name}-{digest(spec.url)[:12]}.json"

    def read(self) -> _Kept:
        """What is kept; nothing, if it was for another address."""
        data = read_private(self.path)
        try:
            kept = msgspec.json.decode(data, type=_Kept) if data else _Kept()
        except msgspec.DecodeError:
            raise ConfigError(f"{self.path} cannot be read; delete it, and log in again") from None
        return kept if kept.url == self._url else _Kept()

    def write(self, **changed: Any) -> None:
        """Keep something in the place of what was kept under these names."""
        kept = self.read()
        for name, value in changed.items():
            setattr(kept, name, value)
        kept.url = self._url
        write_private(self.path, msgspec.json.encode(kept))

    async def get_tokens(self) -> Any:
        """The tokens, as the library wants them."""
        from mcp.shared.auth import OAuthToken

        kept = await asyncio.to_thread(self.read)
        return None if kept.tokens is None else OAuthToken.model_validate(kept.tokens)

    async def set_tokens(self, tokens: Any) -> None:
        """Keep them, and until when they hold."""
        expires = time.time() + tokens.expires_in if tokens.expires_in else 0.0
        await asyncio.to_thread(self.write, tokens=tokens.model_dump(mode="json", exclude_none=True), expires=expires)

    async def get_client_info(self) -> Any:
        """What we are registered as."""
        from mcp.shared.auth import OAuthClientInformationFull

        kept = await asyncio.to_thread(self.read)
        return None if kept.client is None else OAuthClientInformationFull.model_validate(kept.client)

    async def set_client_info(self, client_info: Any) -> None:
        """Keep it."""
        await asyncio.to_thread(self.write, client=client_info.model_dump(mode="json", exclude_none=True))


def is_logged_in(spec: ServerSpec, folder: str | Path) -> bool:
    """Whether there is a token to be tried; it may have been revoked."""
    return TokenFile(spec, folder).read().tokens is not None


def logout(spec: ServerSpec, folder: str | Path) -> None:
    """Forget what is kept."""
    TokenFile(spec, folder).path.unlink(missing_ok=True)


def auth_for(spec: ServerSpec, folder: str | Path) -> httpx2.Auth:
    """What puts a token on every request to a server, and renews it; for `httpx2.AsyncClient(auth=…)`.

    A request raises `NeedsLogin` when there is no token, or none that is taken: then a person has to `login`.
    """
    return _provider(spec, TokenFile(spec, folder))


async def login(
    spec: ServerSpec,
    folder: str | Path,
    show: Callable[[str], Awaitable[None] | None],
    patience: float = PATIENCE,
) -> None:
    """Let a person log in: `show` is given the address they have to open in a browser on this machine.

    Raises:
        NeedsLogin: they did not, or it was refused.
        ConfigError: the server wants no login, or does not do what servers do.
    """
    if spec.auth != "oauth":
        raise ConfigError(f'server {spec.name} is not one to log in to; say auth = "oauth" where it is named')
    _check_installed()
    import httpx2
    from mcp.client.auth import OAuthFlowError

    from everturn.mcp.http import Bounded, LedAstray, login_policy

    file = TokenFile(spec, folder)
    policy = login_policy(spec)
    listener = _Listener(show, policy.check)
    try:
        async with asyncio.timeout(patience):
            await listener.open(_port_before(file))
            if listener.port != _port_before(file):
                await asyncio.to_thread(file.write, client=None)  # it was registered for another way back
            provider = _provider(spec, file, listener)
            async with httpx2.AsyncClient(
                auth=provider, headers=dict(spec.headers), timeout=30.0, transport=Bounded(policy), trust_env=False
            ) as client:
                answer = await client.post(spec.url, json=_PING, headers={"Accept": _ACCEPT})
        if answer.status_code in (401, 403):
            raise NeedsLogin(f"server {spec.name} does not take the login it has just given; ask who runs it")
        if not is_logged_in(spec, folder):
            raise ConfigError(f'server {spec.name} wants no login; take auth = "oauth" out')
    except TimeoutError:
        raise NeedsLogin(f"nobody has logged in to {spec.name} in {patience:g} seconds; try again") from None
    except OAuthFlowError as error:  # its text may hold what nobody should read
        why = listener.refused or type(error).__name__
        raise NeedsLogin(f"the login to {spec.name} did not work: {why}; try again") from None
    except AddressRefused as error:
        raise ConfigError(_astray(spec, str(error))) from None
    except httpx2.HTTPError as error:
        if isinstance(error, LedAstray):
            raise ConfigError(_astray(spec, str(error))) from None
        raise ConfigError(f"server {spec.name} cannot be reached: {type(error).__name__}; is its url right?") from None
    finally:
        await listener.aclose()


def _astray(spec: ServerSpec, why: str) -> str:
    return (
        f"server {spec.name} leads its login to where we do not go on its word: {why}; if its authorization server is "
        'inside, name it: login_hosts = ["host:port"]'
    )


_ACCEPT: Final = "application/json, text/event-stream"
_PING: Final = {"jsonrpc": "2.0", "id": 0, "method": "ping"}


def _check_installed() -> None:
    if importlib.util.find_spec("mcp") is None:
        raise ConfigError("MCP servers need the mcp library: pip install 'everturn[mcp]'")


def _port_before(file: TokenFile) -> int:
    """The port of the way back that we are registered with: many servers take no other."""
    uris = cast("list[str]", (file.read().client or {}).get("redirect_uris") or [""])
    return urlsplit(uris[0]).port or 0


class _NoSecrets(logging.Filter):
    """The library logs failures with all that it was sent, and that may be a token."""

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
        logging.getLogger(name).addFilter(_no_secrets)  # once: the same one again is not added

    class Provider(OAuthClientProvider):
        """The library's flow, that begins where the process before it has ended."""

        async def _initialize(self) -> None:
            await super()._initialize()
            kept = await asyncio.to_thread(file.read)
            self.context.token_expiry_time = kept.expires or None
            if kept.server is not None and self.context.oauth_metadata is None:
                self.context.oauth_metadata = OAuthMetadata.model_validate(kept.server)

        async def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
            flow = super()._auth_flow(request) if listener is not None else _with_token(self, spec, request)
            try:
                wanted = await anext(flow)
                while True:
                    answer = yield wanted
                    wanted = await flow.asend(answer)
            except StopAsyncIteration:
                if listener is not None and self.context.oauth_metadata is not None:
                    server = self.context.oauth_metadata.model_dump(mode="json", exclude_none=True)
                    await asyncio.to_thread(file.write, server=server)
            finally:
                await flow.aclose()

    way_back = f"http://127.0.0.1:{listener.port if listener is not None else 1}{BACK}"
    return Provider(
        spec.url,
        OAuthClientMetadata(redirect_uris=[AnyUrl(way_back)], client_name="everturn"),
        file,
        listener.begin if listener is not None else None,
        listener.wait if listener is not None else None,
    )


async def _with_token(
    provider: Any, spec: ServerSpec, request: httpx2.Request
) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
    """Send with the token there is, renew it once if it is not taken, and never begin a login."""
    context, refused = provider.context, ""
    for _ in range(2):
        async with context.lock:  # not while the request is under way: it may take as long as a call
            # Another process may have renewed it, or a person logged in: a token is good for all of them.
            await provider._initialize()
            if context.current_tokens is not None and context.current_tokens.access_token == refused:
                context.token_expiry_time = 1.0  # it is over, whatever was said
            if not context.is_token_valid() and context.can_refresh_token():
                answer = yield await provider._refresh_token()
                if answer.status_code in (429, *range(500, 600)):
                    answer.raise_for_status()  # this is not the end of the login
                if not await provider._handle_refresh_response(answer):
                    await provider._initialize()
            tokens = context.current_tokens
        if tokens is None or tokens.access_token == refused:
            break
        refused = tokens.access_token
        provider._add_auth_header(request)
        if (yield request).status_code != 401:
            return
    raise NeedsLogin(_wanted(spec))


def _wanted(spec: ServerSpec) -> str:
    return f"server {spec.name} wants a login: `everturn mcp login FILE {spec.name}`, with the file that names it"


class _Listener:
    """Waits on this machine for the browser to come back, once, with the state it was sent away with."""

    def __init__(self, show: Callable[[str], Awaitable[None] | None], check: Callable[[str], None]) -> None:
        self._show, self._check = show, check
        self._server: asyncio.Server | None = None
        self._state = ""
        self._came: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()
        self.port = 0
        self.refused = ""

    async def open(self, port: int) -> None:
        """Listen: on this port if it is free."""
        try:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=_HEAD_LIMIT)
        except OSError:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_HEAD_LIMIT)
        self.port = self._server.sockets[0].getsockname()[1]

    async def begin(self, url: str) -> None:
        """Show the person where to go: not to whatever a server calls an address.

        Raises:
            AddressRefused: a person is not sent there.
        """
        self._check(url)
        self._state = (parse_qs(urlsplit(url).query).get("state") or [""])[0]
        shown = self._show(url)
        if shown is not None:
            await shown

    async def wait(self) -> AuthorizationCodeResult:
        """What the browser came back with."""
        return await self._came

    async def aclose(self) -> None:
        """Listen no more."""
        self._came.cancel()
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(10):
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            status, text = self._take(head)
            page = _PAGE.format(text=text).encode()
            lines = f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(page)}\r\n"
            writer.write(f"{lines}Cache-Control: no-store\r\nConnection: close\r\n\r\n".encode() + page)
            await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever it was, the browser can come again
        finally:
            writer.close()

    def _take(self, head: str) -> tuple[str, str]:
        from mcp.shared.auth import AuthorizationCodeResult

        line, *rows = head.split("\r\n")
        method, _, rest = line.partition(" ")
        address = urlsplit(rest.partition(" ")[0])
        hosts = [value.strip() for name, _, value in (row.partition(":") for row in rows) if name.lower() == "host"]
        if method != "GET" or address.path != BACK or hosts != [f"127.0.0.1:{self.port}"]:
            return "404 Not Found", "There is nothing here."
        given = {name: values[0] for name, values in parse_qs(address.query).items()}
        if not self._state or not hmac.compare_digest(given.get("state", "").encode(), self._state.encode()):
            # It is not the answer to what we asked: somebody else's code, and we go on waiting for ours.
            return "400 Bad Request", "This is not the login that was begun here; go back to the one that was."
        if self._came.done():
            return "400 Bad Request", "This login is over."
        if "error" in given or not given.get("code"):
            self.refused = f"it was refused ({given.get('error', 'no code')[:60]!r})"
        self._came.set_result(
            AuthorizationCodeResult(code=given.get("code", ""), state=given["state"], iss=given.get("iss"))
        )
        return "200 OK", "This can be closed now; go back to the terminal."
