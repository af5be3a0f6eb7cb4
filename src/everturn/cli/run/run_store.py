"""Store of `everturn run`: the one of the terminal by default, the last session in it, and saving a run afterwards.

One process drives a store. A run that finds the store in use is sent to the process that serves it. If that is not
possible (it does not serve, or an option is only for this process), the run goes on in memory, and its session is
imported into the store when its turn is over.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from everturn import App
from everturn.base_app import BaseApp
from everturn.cli.config_options import checked_store, config_file
from everturn.cli.store.backends import StoreBackend
from everturn.client import Server
from everturn.config.build import configured_store
from everturn.config.load import load_config
from everturn.core.ports import Tool
from everturn.core.store_ports import SessionInfo
from everturn.core.tenants.accounts import LOCAL
from everturn.errors import ConfigError, EverturnError, UnknownSession
from everturn.stores.export import export_session
from everturn.stores.registry import get_store, without_password

UNSAVED: Final = "the session of this run is not saved: {why}"
NO_LAST: Final = "there is no session of this folder to continue; leave -c out to start one"
PAGE: Final = 100  # sessions that are read at once, and
MAX_PAGES: Final = 20  # at most, in search of the last session
NEEDS_STORE: Final = ("session", "goes_on", "resume", "idempotency_key", "wait")
"""Options that mean nothing without a store."""


class RunApp(App):
    """Runtime of one run: it drives the session of the run and its sub-agent runs, and nothing else of the store.

    Other unfinished sessions have other tools, and due schedules a process that stays.
    """

    run_agent = ""  # the agent of the run, if it has tools of its own

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools of the runtime, and those of the run's agent."""
        registry = self.binding(self.run_agent).registry if self.run_agent else self.registry
        return {**self.registry.tools, **registry.tools}

    async def start(self) -> None:
        """Start without schedules and webhooks."""
        await super(App, self).start()

    async def _unfinished_sessions(self) -> list[SessionInfo]:
        return []

    async def drive(self, session: str) -> None:
        """Continue what is unfinished in a session and its sub-agent runs."""
        if self.engine.is_durable:
            return
        for info in await self.store.sessions(awake=True):
            if await self._is_within(info, session):
                await self.engine.wake(info.id, None if info.is_awake else info.due)

    async def _is_within(self, info: SessionInfo, session: str) -> bool:
        while info.id != session and info.parent:
            try:
                info = await self.store.info(info.parent)
            except UnknownSession:
                return False
        return info.id == session


def choose_store(options: argparse.Namespace, tell: Callable[[str], None]) -> bool:
    """Set --store to the store of the terminal, if no other is named; return whether it was chosen by default.

    Raises:
        ConfigError: that store cannot be used, and an option needs one.
    """
    if options.store or options.no_save:
        return False
    loaded = load_config(config_file(options))
    try:
        store = configured_store(loaded, "", os.environ)
    except ConfigError as error:
        if any(getattr(options, name) for name in NEEDS_STORE):
            raise
        tell(UNSAVED.format(why=error))  # a read-only home: an answer is better than none
        return False
    options.store = "" if store == "memory" else store
    return bool(options.store)


async def find_last_session(store: Any, agent: str) -> str:
    """Return the session of an agent that was used last.

    Raises:
        ConfigError: it has none.
    """
    before: tuple[float, str] | None = None
    for _ in range(MAX_PAGES):
        infos: list[SessionInfo] = await store.session_page(LOCAL, limit=PAGE, before=before)
        for info in infos:
            if info.agent == agent and not info.parent:
                return info.id
        if len(infos) < PAGE:
            break
        before = (infos[-1].touched, infos[-1].id)
    raise ConfigError(NO_LAST)


async def find_last_remote_session(server: Server, agent: str) -> str:
    """Return the session of an agent that was used last, at a server; without an agent, of any.

    Raises:
        ConfigError: it has none.
    """
    before = ""
    for _ in range(MAX_PAGES):
        page = await server.sessions(PAGE, before)
        for view in page.sessions:
            if agent in ("", view.agent) and not view.parent:
                return view.id
        before = page.next
        if not before:
            break
    raise ConfigError(NO_LAST)


async def save_session(app: BaseApp, session: str, store: str, tell: Callable[[str], None]) -> None:
    """Import the session of a finished run into a store that another process drives."""
    target = get_store(store)
    try:
        await checked_store(target)  # it is written without keys here
        with tempfile.TemporaryDirectory(prefix="everturn-") as folder:
            file = Path(folder, "session.zip")
            await export_session(app.store, session, file)
            await StoreBackend(target, store, LOCAL).import_session(file, session)
    except (EverturnError, OSError) as error:
        tell(UNSAVED.format(why=f"{without_password(store)}: {error}"))
    finally:
        await target.aclose()
