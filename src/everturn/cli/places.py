"""Where conversations are: a store at hand, or a server → the same few things that can be asked of either."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import AsyncGenerator, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final, Literal, Protocol

from msgspec import Struct

from everturn import api
from everturn.access.titles import with_titles
from everturn.cli.people import BY, store_meant, there
from everturn.cli.tokens import token_for
from everturn.client import Server
from everturn.core.accounts import AuditRecord
from everturn.core.events import TurnStarted
from everturn.core.messages import Message
from everturn.core.ports import SessionInfo, Store
from everturn.errors import ConfigError, UnknownSession, UnreadableLog
from everturn.stores.named import named_store, without_password
from everturn.stores.portable import export_session, import_session, private_file

State = Literal["running", "waiting", "stuck", "at rest"]
SUB_TURN: Final = "this is the session of a sub-turn; import that of the turn above it"


class Listed(Struct, frozen=True):
    """A conversation in a list."""

    id: str
    title: str
    agent: str
    by: str
    created: float
    touched: float
    state: State
    found: tuple[str, ...] = ()  # what the messages say that have the words


class Place(Protocol):
    """Where conversations are."""

    name: str

    async def listed(self, limit: int, before: str = "") -> tuple[list[Listed], str]:
        """A page of those touched last, first; and what to say as `before` for the next one, "" where there is none."""
        ...

    async def search(self, words: str, limit: int) -> list[Listed]:
        """Those with messages that have these words, the newest first."""
        ...

    async def messages(self, session: str) -> list[Message]:
        """The selected branch, oldest first."""
        ...

    async def erase(self, session: str) -> None:
        """Take everything out of it."""
        ...

    async def export(self, session: str, file: Path) -> None:
        """Write it to a file."""
        ...

    async def bring_in(self, file: Path, session: str) -> str:
        """Make one of a file, and say what it is called."""
        ...


@asynccontextmanager
async def open_place(options: argparse.Namespace) -> AsyncGenerator[Place]:
    """The place that is meant.

    Raises:
        ConfigError: there is none, or nothing to show at its door.
    """
    if options.connect:
        if options.store:
            raise ConfigError("--store names a file here, and --connect a server; say one of them")
        async with Server(options.connect, token_for(options)) as server:
            yield ServerPlace(server, options.connect)
        return
    name = there(store_meant(options))
    store = named_store(name)
    try:
        yield StorePlace(store, name, options.tenant)
    finally:
        await store.aclose()


def _place(before: str) -> tuple[float, str] | None:
    if not before:
        return None
    touched, _, session = before.partition("~")
    try:
        return float(touched), session
    except ValueError:
        raise ConfigError("--before: say what the page before said, as it is") from None


class StorePlace:
    """A store at hand. Whoever has it may do anything."""

    def __init__(self, store: Store, name: str, tenant: str) -> None:
        self.store, self.name, self._tenant = store, without_password(name), tenant

    async def listed(self, limit: int, before: str = "") -> tuple[list[Listed], str]:
        infos = await self.store.listed(self._tenant, limit=limit, before=_place(before))
        infos = await with_titles(self.store, infos)
        waiting = await self.store.waiting([info.id for info in infos])
        last = infos[-1] if len(infos) == limit else None
        return [_listed(info, waiting) for info in infos], f"{last.touched!r}~{last.id}" if last is not None else ""

    async def search(self, words: str, limit: int) -> list[Listed]:
        found = [(session, one.text) for session, one in await self.store.search(words, self._tenant, limit)]
        sessions = dict(_by_session(found))
        infos, waiting = await self.store.infos(list(sessions)), await self.store.waiting(list(sessions))
        return [_listed(infos[session], waiting, said) for session, said in sessions.items() if session in infos]

    async def messages(self, session: str) -> list[Message]:
        path = await self.store.path(session, (await self.known(session)).leaf)
        return [one for one in path if not one.hidden]

    async def erase(self, session: str) -> None:
        await self.known(session)
        await self._note("session.erase", session)  # first: what is gone can no longer say that it was
        await self.store.erase(session)

    async def export(self, session: str, file: Path) -> None:
        await self.known(session)
        await export_session(self.store, session, file)

    async def bring_in(self, file: Path, session: str) -> str:
        name = await import_session(self.store, file, session or None, self._tenant, by=BY)
        begun = (entry.event for entry in await self.store.events(name) if isinstance(entry.event, TurnStarted))
        if any(event.options.above is not None for event in begun):
            await self.store.erase(name)
            raise UnreadableLog(SUB_TURN)
        await self._note("session.import", name)
        return name

    async def known(self, session: str) -> SessionInfo:
        """A session of this tenant.

        Raises:
            UnknownSession: it is not there; the text says where to look.
        """
        try:
            info = await self.store.info(session)
        except UnknownSession:
            info = None
        if info is None or info.tenant != self._tenant:
            raise UnknownSession(f"there is no session {session!r} in {self.name}; `everturn sessions` lists them")
        return info

    async def _note(self, did: str, session: str) -> None:
        await self.store.accounts.note(AuditRecord(self._tenant, time.time(), BY, "", did, session, ""))


class ServerPlace:
    """A server, as whoever holds the key may use it."""

    def __init__(self, server: Server, url: str) -> None:
        self._server, self.name = server, url

    async def listed(self, limit: int, before: str = "") -> tuple[list[Listed], str]:
        found: list[Listed] = []
        while len(found) < limit:
            page = await self._server.sessions(min(limit - len(found), 100), before)
            found += [_listed(one, set(page.waiting)) for one in page.sessions]
            before = page.next
            if not before:
                break
        return found, before

    async def search(self, words: str, limit: int) -> list[Listed]:
        found = [(one.session, one.message.text) for one in await self._server.search(words, limit)]
        seen: list[Listed] = []
        for session, said in _by_session(found):
            there = self._server.session(session)
            waiting = {session} if await there.gates() else set[str]()
            seen.append(_listed(await there.info(), waiting, said))
        return seen

    async def messages(self, session: str) -> list[Message]:
        with _asked_at(self.name, session):
            return await self._server.session(session).messages()

    async def erase(self, session: str) -> None:
        with _asked_at(self.name, session):
            await self._server.session(session).erase()

    async def export(self, session: str, file: Path) -> None:
        with _asked_at(self.name, session):
            data = await self._server.session(session).export()
        with private_file(file) as out:
            await asyncio.to_thread(out.write, data)

    async def bring_in(self, file: Path, session: str) -> str:
        if session:
            raise ConfigError("a server chooses what a session is called; leave --session out")
        data = await asyncio.to_thread(file.read_bytes)
        return (await self._server.bring_in(data)).id


@contextmanager
def _asked_at(url: str, session: str) -> Generator[None]:
    """Say of a session that is not there what to do about it."""
    try:
        yield
    except UnknownSession:
        more = f"`everturn sessions --connect {url}` lists them"
        raise UnknownSession(f"there is no session {session!r} at {url}; {more}") from None


def _by_session(found: Iterable[tuple[str, str]]) -> list[tuple[str, tuple[str, ...]]]:
    by_session: dict[str, list[str]] = {}
    for session, said in found:
        by_session.setdefault(session, []).append(said)
    return [(session, tuple(said)) for session, said in by_session.items()]


def _listed(info: SessionInfo | api.SessionView, waiting: set[str], said: tuple[str, ...] = ()) -> Listed:
    state: State = "at rest"
    if info.stuck:
        state = "stuck"
    elif info.is_awake:
        state = "running"
    elif info.id in waiting or getattr(info, "due", 0.0):
        state = "waiting"
    return Listed(info.id, info.title, info.agent, info.by, info.created, info.touched, state, said)
