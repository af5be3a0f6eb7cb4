"""Somebody who wants to log in to a server → the address they have to open; the rest happens while they are there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from everturn.errors import ConfigError, EverturnError, NeedsLogin
from everturn.mcp.config import ServerSpec

FINDING: Final = 20.0  # seconds for a server to say where one logs in


class Logins:
    """The logins that are under way: one for each server, whoever has begun it."""

    def __init__(self, tokens: str | Path | None, done: Callable[[str], None]) -> None:
        self._tokens, self._done = tokens, done
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._addresses: dict[str, asyncio.Future[str]] = {}
        self._problems: dict[str, str] = {}

    def is_waiting(self, name: str) -> bool:
        """Whether somebody is logging in."""
        return name in self._tasks

    def problem(self, name: str) -> str:
        """Why the last login came to nothing; "": it did not, or there was none."""
        return self._problems.get(name, "")

    async def begin(self, spec: ServerSpec) -> str:
        """The address to be opened in a browser on this machine; that of the login which is under way, if one is.

        Raises:
            NeedsLogin: it was refused before it began, or took too long.
            ConfigError: the server wants no login, or it is not said where tokens are kept.
        """
        if self._tokens is None:
            raise ConfigError("nobody said where tokens are kept: McpServers(…, tokens='folder')")
        if spec.name not in self._tasks:
            self._problems.pop(spec.name, None)
            self._addresses[spec.name] = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(self._run(spec, self._tokens), name=f"mcp-login-{spec.name}")
            self._tasks[spec.name] = task
        address, task = self._addresses[spec.name], self._tasks[spec.name]
        await asyncio.wait({address, task}, timeout=FINDING, return_when=asyncio.FIRST_COMPLETED)
        if address.done() and not address.cancelled():
            return address.result()
        if not task.done():
            task.cancel()
        raise NeedsLogin(self.problem(spec.name) or f"server {spec.name} does not say where one logs in; try again")

    async def aclose(self) -> None:
        """Wait for nobody any more."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=1)

    async def _run(self, spec: ServerSpec, tokens: str | Path) -> None:
        from everturn.mcp.oauth import login

        def show(address: str) -> None:
            if urlsplit(address).scheme not in (
                "https",
                "http",
            ):  # it is the server's word, and somebody will click on it
                raise ConfigError(f"server {spec.name} names no address to log in at")
            found = self._addresses[spec.name]
            if not found.done():
                found.set_result(address)

        try:
            await login(spec, tokens, show)
        except EverturnError as error:
            self._problems[spec.name] = str(error)
        except Exception as error:  # its text may hold what nobody should read
            self._problems[spec.name] = f"the login to {spec.name} did not work: {type(error).__name__}"
        else:
            self._done(spec.name)
        finally:
            self._tasks.pop(spec.name, None)
