"""Logins to MCP servers for user interfaces: returns the address to open, and completes the login in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import urlsplit

import msgspec

from everturn.errors import ConfigError, EverturnError, NeedsLogin
from everturn.mcp.config import ServerSpec
from everturn.mcp.login_redirect import ANSWER_NAME, LoginRedirect, LoopbackRedirect, RedirectAnswer, Show, WebRedirect
from everturn.mcp.login_store import LoginStore, Person
from everturn.mcp.token_storage import TokenStorage

ADDRESS_TIMEOUT: Final = 20.0  # seconds for a server to name its login address
FINISH_TIMEOUT: Final = 30.0  # seconds for a server to exchange the code for a token
ANSWER_BYTES: Final = 8192

Owner = tuple[str, Person | None]
"""The server of a login, and whose it is; None: of the installation."""


class PendingLogin:
    """A login under way."""

    def __init__(self, begun_by: Person | None) -> None:
        self.begun_by = begun_by
        self.address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.task: asyncio.Task[None] | None = None
        self.redirect: WebRedirect | None = None


class PendingLogins:
    """The logins under way: one per server and person; that of the installation is shared by all who ask for it."""

    def __init__(
        self,
        storage: Callable[[ServerSpec, Person | None], TokenStorage],
        logins: Callable[[], LoginStore],
        done: Callable[[ServerSpec, Person | None], Awaitable[None]],
    ) -> None:
        self._storage, self._logins, self._done = storage, logins, done
        self._pending: dict[Owner, PendingLogin] = {}
        self._problems: dict[Owner, str] = {}

    def is_waiting(self, name: str, person: Person | None = None) -> bool:
        """Whether a login is under way."""
        return (name, person) in self._pending

    def problem(self, name: str, person: Person | None = None) -> str:
        """Why the last login failed; "" if it did not, or there was none."""
        return self._problems.get((name, person), "")

    async def begin(
        self, spec: ServerSpec, person: Person | None = None, *, by: Person | None = None, return_to: str = ""
    ) -> str:
        """Return the address to open in a browser; of the login that is under way, if there is one.

        The browser comes back to `return_to`, whose user `by` delivers the answer; without one, to a port of this machine.

        Raises:
            NeedsLogin: the server refused before the login began, or took too long.
            ConfigError: the server has no login, or no folder for tokens is configured.
        """
        storage, owner, by = self._storage(spec, person), (spec.name, person), by or person
        pending = self._pending.get(owner)
        if pending is not None and pending.begun_by != by and pending.redirect is not None:
            await self._cancel(owner)  # its answer is only taken from the user who began it
            pending = None
        if pending is None:
            self._problems.pop(owner, None)
            pending = self._pending[owner] = PendingLogin(by)
            redirect_to = self._redirect(pending, return_to, by) if return_to and by is not None else LoopbackRedirect
            work = self._run(spec, person, pending, storage, redirect_to)
            pending.task = asyncio.create_task(work, name=f"mcp-login-{spec.name}")
        address, task = pending.address, pending.task
        assert task is not None
        await asyncio.wait({address, task}, timeout=ADDRESS_TIMEOUT, return_when=asyncio.FIRST_COMPLETED)
        if address.done() and not address.cancelled():
            return address.result()
        if not task.done():
            task.cancel()
        elif not task.cancelled() and not self.problem(spec.name, person):
            raise ConfigError(f"there is a login to server {spec.name} already; log out first, to use another account")
        raise NeedsLogin(
            self.problem(spec.name, person) or f"server {spec.name} does not say where one logs in; try again"
        )

    def _redirect(
        self, pending: PendingLogin, return_to: str, by: Person
    ) -> Callable[[Show, Callable[[str], None]], LoginRedirect]:
        def make(show: Show, check: Callable[[str], None]) -> LoginRedirect:
            pending.redirect = WebRedirect(show, check, return_to, self._logins(), by)
            return pending.redirect

        return make

    async def finish(self, by: Person, answer: RedirectAnswer) -> str:
        """Deliver the answer with which the browser of a user came back, and return the server; "" if no login of theirs
        waits for it here.

        Raises:
            NeedsLogin: the login failed.
        """
        for (name, person), pending in list(self._pending.items()):
            if pending.begun_by == by and pending.redirect is not None and pending.redirect.deliver(answer):
                assert pending.task is not None
                await asyncio.wait({pending.task}, timeout=FINISH_TIMEOUT)
                if problem := self.problem(name, person):
                    raise NeedsLogin(problem)
                return name
        return ""

    async def leave(self, by: Person, answer: RedirectAnswer) -> None:
        """Store an answer for the process that began the login."""
        data = msgspec.json.encode(answer)
        if len(data) <= ANSWER_BYTES:
            await self._logins().write(by, ANSWER_NAME, data)

    async def cancel(self, person: Person) -> None:
        """Cancel the logins of a person."""
        for owner in [owner for owner, pending in self._pending.items() if person in (owner[1], pending.begun_by)]:
            await self._cancel(owner)

    async def _cancel(self, owner: Owner) -> None:
        task = self._pending[owner].task
        if task is not None:
            task.cancel()
            await asyncio.wait({task}, timeout=1)

    async def aclose(self) -> None:
        """Cancel the logins under way."""
        tasks = [pending.task for pending in self._pending.values() if pending.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=1)

    async def _run(
        self,
        spec: ServerSpec,
        person: Person | None,
        pending: PendingLogin,
        storage: TokenStorage,
        redirect_to: Callable[[Show, Callable[[str], None]], LoginRedirect],
    ) -> None:
        from everturn.mcp.oauth import login

        def show(address: str) -> None:
            # The server chose the address, and a person will click on it.
            if urlsplit(address).scheme not in ("https", "http"):
                raise ConfigError(f"server {spec.name} names no address to log in at")
            if not pending.address.done():
                pending.address.set_result(address)

        owner = (spec.name, person)
        try:
            await login(spec, storage, show, redirect_to=redirect_to)
        except EverturnError as error:
            self._problems[owner] = str(error)
        except Exception as error:  # its text may contain a secret
            self._problems[owner] = f"the login to {spec.name} did not work: {type(error).__name__}"
        else:
            await self._done(spec, person)
        finally:
            if self._pending.get(owner) is pending:
                del self._pending[owner]
