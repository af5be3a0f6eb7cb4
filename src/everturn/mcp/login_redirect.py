"""Login redirects: how the browser of a person comes back with the code of a login.

On this machine it comes to a listener on a port (`LoopbackRedirect`). From anywhere else it comes to the web UI, which
delivers the code with the person's own session (`WebRedirect`): a code that another person's browser brings is refused,
or one person could put their account under the name of another.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import parse_qs, urlsplit

import msgspec
from msgspec import Struct

from everturn.mcp.login_store import LoginStore, Person

if TYPE_CHECKING:
    from mcp.shared.auth import AuthorizationCodeResult

CALLBACK_PATH = "/callback"
POLL: Final = 1.0  # seconds after which a code is looked for that another process received
ANSWER_NAME: Final = "answer.json"
"""Name under which a process stores an answer for the process that began the login: one for each person."""

_HEAD_LIMIT = 16_384  # bytes of a request to the listener
_PAGE: Final = "<!doctype html><meta charset=utf-8><title>everturn</title><p>{text}"

Show = Callable[[str], Awaitable[None] | None]
"""Shows a person the address to open in a browser."""


class LoginRedirect(Protocol):
    """Where the browser comes back to."""

    refused: str  # why the login was refused; "": it was not

    async def open(self, registered: str) -> str:
        """Return the redirect URI: the registered one if possible, because many servers accept no other."""
        ...

    async def begin(self, url: str) -> None:
        """Show the person the address to open, if the policy allows it."""
        ...

    async def wait(self) -> AuthorizationCodeResult:
        """Return the parameters of the redirect."""
        ...

    async def aclose(self) -> None:
        """Stop waiting."""
        ...


class RedirectAnswer(Struct, frozen=True, omit_defaults=True):
    """The parameters with which the browser came back."""

    state: str
    code: str = ""
    error: str = ""
    iss: str | None = None


class _Redirect:
    """What both ways share: the state of one login, and its answer."""

    def __init__(self, show: Show, check: Callable[[str], None]) -> None:
        self._show, self._check = show, check
        self._state = ""
        self._answer: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()
        self.refused = ""

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

    def _is_own(self, state: str) -> bool:
        return bool(self._state) and hmac.compare_digest(state.encode(), self._state.encode())

    def _resolve(self, answer: RedirectAnswer) -> None:
        from mcp.shared.auth import AuthorizationCodeResult

        if answer.error or not answer.code:
            self.refused = f"it was refused ({(answer.error or 'no code')[:60]!r})"
        self._answer.set_result(AuthorizationCodeResult(code=answer.code, state=answer.state, iss=answer.iss))


class LoopbackRedirect(_Redirect):
    """Waits on this machine for the redirect from the browser, once, with the state of this login."""

    def __init__(self, show: Show, check: Callable[[str], None]) -> None:
        super().__init__(show, check)
        self._server: asyncio.Server | None = None
        self.port = 0

    async def open(self, registered: str) -> str:
        """Listen, on the registered port if it is free."""
        known = urlsplit(registered)
        port = (known.port or 0) if known.path == CALLBACK_PATH else 0
        try:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=_HEAD_LIMIT)
        except OSError:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_HEAD_LIMIT)
        self.port = self._server.sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{self.port}{CALLBACK_PATH}"

    async def wait(self) -> AuthorizationCodeResult:
        """Return the parameters of the redirect."""
        return await self._answer

    async def aclose(self) -> None:
        """Stop listening."""
        self._answer.cancel()
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
        line, *rows = head.split("\r\n")
        method, _, rest = line.partition(" ")
        address = urlsplit(rest.partition(" ")[0])
        hosts = [value.strip() for name, _, value in (row.partition(":") for row in rows) if name.lower() == "host"]
        if method != "GET" or address.path != CALLBACK_PATH or hosts != [f"127.0.0.1:{self.port}"]:
            return "404 Not Found", "Not found."
        query = {name: values[0] for name, values in parse_qs(address.query).items()}
        if not self._is_own(query.get("state", "")):
            # The state is of another login, so the code is not for this one: keep waiting.
            return "400 Bad Request", "This is not the login that was begun here; go back to the one that was."
        if self._answer.done():
            return "400 Bad Request", "This login has ended."
        error = query.get("error", "")
        self._resolve(RedirectAnswer(query["state"], query.get("code", ""), error, query.get("iss")))
        return "200 OK", "This can be closed now; go back to the terminal."


class WebRedirect(_Redirect):
    """Waits until the web UI delivers the redirect, here or to another process of the installation."""

    def __init__(self, show: Show, check: Callable[[str], None], uri: str, store: LoginStore, person: Person) -> None:
        super().__init__(show, check)
        self._uri, self._store, self._person = uri, store, person

    async def open(self, registered: str) -> str:
        """Return the address of the web UI."""
        return self._uri

    def deliver(self, answer: RedirectAnswer) -> bool:
        """Take the answer of the browser; False if it is of another login."""
        if not self._is_own(answer.state) or self._answer.done():
            return False
        self._resolve(answer)
        return True

    async def wait(self) -> AuthorizationCodeResult:
        """Return the parameters of the redirect."""
        while True:
            done, _ = await asyncio.wait({self._answer}, timeout=POLL)
            if done:
                return self._answer.result()
            data = await self._store.read(self._person, ANSWER_NAME)
            if data is not None and self.deliver(msgspec.json.decode(data, type=RedirectAnswer)):
                await self._store.delete(self._person, ANSWER_NAME)

    async def aclose(self) -> None:
        """Stop waiting."""
        self._answer.cancel()
