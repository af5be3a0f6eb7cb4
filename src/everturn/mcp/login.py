"""Logins to MCP servers for user interfaces: returns the address to open, and completes the login in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from everturn.errors import ConfigError, EverturnError, NeedsLogin
from everturn.mcp.config import ServerSpec

ADDRESS_TIMEOUT: Final = 20.0  # seconds for a server to name its login address


class PendingLogins:
    """The logins under way: one per server, shared by all users who ask for it."""

    def __init__(self, tokens: str | Path | None, done: Callable[[str], None]) -> None:
        self._tokens, self._done = tokens, done
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._addresses: dict[str, asyncio.Future[str]] = {}
        self._problems: dict[str, str] = {}

    def is_waiting(self, name: str) -> bool:
        """Whether a login is under way."""
        return name in self._tasks

    def problem(self, name: str) -> str:
        """Why the last login failed; "" if it did not, or there was none."""
        return self._problems.get(name, "")

    async def begin(self, spec: ServerSpec) -> str:
        """Return the address to open in a browser on this machine; of the login that is under way, if there is one.

        Raises:
            NeedsLogin: the server refused before the login began, or took too long.
            ConfigError: the server has no login, or no folder for tokens is configured.
        """
        if self._tokens is None:
            raise ConfigError("there is no folder for tokens: McpServers(…, tokens='folder')")
        if spec.name not in self._tasks:
            self._problems.pop(spec.name, None)
            self._addresses[spec.name] = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(self._run(spec, self._tokens), name=f"mcp-login-{spec.name}")
            self._tasks[spec.name] = task
        address, task = self._addresses[spec.name], self._tasks[spec.name]
        await asyncio.wait({address, task}, timeout=ADDRESS_TIMEOUT, return_when=asyncio.FIRST_COMPLETED)
        if address.done() and not address.cancelled():
            return address.result()
        if not task.done():
            task.cancel()
        raise NeedsLogin(self.problem(spec.name) or f"server {spec.name} does not say where one logs in; try again")

    async def aclose(self) -> None:
        """Cancel the logins under way."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=1)

    async def _run(self, spec: ServerSpec, tokens: str | Path) -> None:
        from everturn.mcp.oauth import login

        def show(address: str) -> None:
            # The server chose the address, and a person will click on it.
            if urlsplit(address).scheme not in ("https", "http"):
                raise ConfigError(f"server {spec.name} names no address to log in at")
            address_future = self._addresses[spec.name]
            if not address_future.done():
                address_future.set_result(address)

        try:
            await login(spec, tokens, show)
        except EverturnError as error:
            self._problems[spec.name] = str(error)
        except Exception as error:  # its text may contain a secret
            self._problems[spec.name] = f"the login to {spec.name} did not work: {type(error).__name__}"
        else:
            self._done(spec.name)
        finally:
            self._tasks.pop(spec.name, None)
