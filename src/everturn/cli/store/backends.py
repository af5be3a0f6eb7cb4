"""Session backends: a store in this process, or a server, behind one interface for listing, search, export and import."""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import time
from collections.abc import AsyncGenerator, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final, Literal, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn import api
from everturn.access.conversations.titles import with_titles
from everturn.chat.session_update import build_update
from everturn.cli.config_options import OPERATOR, open_store, require_existing_store, resolve_store
from everturn.cli.connect_token import load_connect_token
from everturn.client import Server
from everturn.core.events import SessionUpdated, TurnFailed, TurnStarted
from everturn.core.messages import Message
from everturn.core.store_ports import SessionFilter, SessionInfo, Store
from everturn.core.tenants.accounts import LOCAL, AuditRecord
from everturn.errors import ConfigError, StoreBusy, UnknownSession, UnreadableLog
from everturn.postgres.address import is_postgres_url
from everturn.stores.export import export_session, import_session, private_file
from everturn.stores.registry import without_password

SessionState = Literal["running", "waiting", "quarantined", "idle"]
SUB_TURN: Final = "this is the session of a sub-agent run; import that of its parent turn"


def _author(tenant: str) -> str:
    """Whose conversation an imported one is: the local user's; in another tenant, that of its owners."""
    return LOCAL if tenant == LOCAL else ""


class SessionRow(Struct, frozen=True):
    """A session in a list."""

    id: str
    title: str
    agent: str
    by: str
    created: float
    touched: float
    state: SessionState
    hits: tuple[str, ...] = ()  # texts of the messages that match a search
    pinned: bool = False
    archived: bool = False
    labels: tuple[str, ...] = ()


class SessionChange(Struct, frozen=True):
    """A change of how a session is listed; None leaves a field as it is."""

    title: str | None = None
    pinned: bool | None = None
    archived: bool | None = None
    labels: tuple[str, ...] | None = None


class SessionBackend(Protocol):
    """Where sessions are: a store or a server."""

    name: str

    async def list_sessions(
        self, limit: int, before: str = "", *, archived: bool = False, label: str = ""
    ) -> tuple[list[SessionRow], str]:
        """Return a page of sessions, last used first, and the `before` cursor of the next page ("": none).

        The first page begins with the pinned ones. With `archived`, the archived sessions are listed, and only they.
        """
        ...

    async def update(self, session: str, change: SessionChange) -> None:
        """Rename, pin, archive or label a session."""
        ...

    async def search(self, words: str, limit: int) -> list[SessionRow]:
        """Return the sessions with messages that contain these words, newest first."""
        ...

    async def messages(self, session: str) -> list[Message]:
        """Return the messages of the selected branch, oldest first."""
        ...

    async def why_failed(self, session: str, turn: str) -> str:
        """Return why a turn failed, or "" if it did not, or a server has the session."""
        ...

    async def erase(self, session: str) -> None:
        """Erase the session with all its content."""
        ...

    async def export(self, session: str, file: Path) -> None:
        """Write the session to a file."""
        ...

    async def import_session(self, file: Path, session: str) -> str:
        """Import a session from a file, and return its id."""
        ...


@asynccontextmanager
async def open_backend(options: argparse.Namespace) -> AsyncGenerator[SessionBackend]:
    """Open the store or the server that the options name.

    Raises:
        ConfigError: it does not exist, or there is no token for it.
    """
    if options.connect:
        if options.store:
            raise ConfigError("--store names a local file, and --connect a server; use one of them")
        async with Server(options.connect, load_connect_token(options)) as server:
            yield ServerBackend(server, options.connect)
        return
    name = require_existing_store(resolve_store(options))
    store = await open_store(options, name)
    try:
        yield StoreBackend(store, name, options.tenant)
    finally:
        await store.aclose()


def _parse_cursor(before: str) -> tuple[float, str] | None:
    if not before:
        return None
    touched, _, session = before.partition("~")
    try:
        return float(touched), session
    except ValueError:
        raise ConfigError("--before: copy the value that the previous page printed") from None


class StoreBackend:
    """A store in this process. A user with access to the store may do anything."""

    def __init__(self, store: Store, name: str, tenant: str) -> None:
        self.store, self.name, self._tenant = store, without_password(name), tenant
        self._url = name

    async def list_sessions(
        self, limit: int, before: str = "", *, archived: bool = False, label: str = ""
    ) -> tuple[list[SessionRow], str]:
        where, cursor = SessionFilter(archived=archived, label=label), _parse_cursor(before)
        infos = await self.store.session_page(self._tenant, limit=limit, before=cursor, where=where)
        pinned = [] if before else await self.store.session_page(self._tenant, where=replace(where, pinned=True))
        last = infos[-1] if len(infos) == limit else None
        infos = await with_titles(self.store, {info.id: info for info in (*pinned, *infos)}.values())
        waiting = await self.store.sessions_with_open_gates([info.id for info in infos])
        return [_make_row(info, waiting) for info in infos], f"{last.touched!r}~{last.id}" if last is not None else ""

    async def update(self, session: str, change: SessionChange) -> None:
        from everturn.cli.store.handover import attach  # only a change needs to know who has the store
        from everturn.cli.store.server import sidecar_path

        info = await self.require_session(session)
        if not is_postgres_url(self._url):
            try:
                await self.store.lock_for_process()
            except StoreBusy as busy:  # the process that has the store carries it out
                async with attach(sidecar_path(self._url, os.environ), busy) as client:
                    await ServerBackend(client.server, self.name).update(session, change)
                return
        now = time.time()
        command = build_update(
            f"cli_{secrets.token_hex(16)}", session, self._tenant, now, by=OPERATOR, **msgspec.structs.asdict(change)
        )
        await self.store.admit(command)
        if info.is_awake:  # another process drives it, or continues it later, and carries this out
            return
        claim = await self.store.claim(session, now)
        if claim is not None:
            updated = SessionUpdated(at=now, by=command.by, command=command.key, **msgspec.structs.asdict(change))
            updated = replace(updated, title=command.title, labels=command.labels)
            await self.store.append(session, claim.head, [updated], claim.epoch)

    async def search(self, words: str, limit: int) -> list[SessionRow]:
        hits = [(session, message.text) for session, message in await self.store.search(words, self._tenant, limit)]
        sessions = dict(_group_by_session(hits))
        infos, waiting = (
            await self.store.infos(list(sessions)),
            await self.store.sessions_with_open_gates(list(sessions)),
        )
        return [_make_row(infos[session], waiting, texts) for session, texts in sessions.items() if session in infos]

    async def messages(self, session: str) -> list[Message]:
        path = await self.store.path(session, (await self.require_session(session)).leaf)
        return [message for message in path if not message.hidden]

    async def why_failed(self, session: str, turn: str) -> str:
        last = next((entry.event for entry in reversed(await self.store.events(session, turn=turn))), None)
        return last.problem.text if isinstance(last, TurnFailed) else ""

    async def erase(self, session: str) -> None:
        await self.require_session(session)
        await self._audit("session.erase", session)  # before the erasure, so that a crash in between leaves a record
        await self.store.erase(session)

    async def export(self, session: str, file: Path) -> None:
        await self.require_session(session)
        await export_session(self.store, session, file)

    async def import_session(self, file: Path, session: str) -> str:
        name = await import_session(self.store, file, session or None, self._tenant, by=_author(self._tenant))
        starts = (entry.event for entry in await self.store.events(name) if isinstance(entry.event, TurnStarted))
        if any(event.options.lineage is not None for event in starts):
            await self.store.erase(name)
            raise UnreadableLog(SUB_TURN)
        await self._audit("session.import", name)
        return name

    async def require_session(self, session: str) -> SessionInfo:
        """Return a session of this tenant.

        Raises:
            UnknownSession: it does not exist; the text says where to look.
        """
        try:
            info = await self.store.info(session)
        except UnknownSession:
            info = None
        if info is None or info.tenant != self._tenant:
            raise UnknownSession(f"there is no session {session!r} in {self.name}; `everturn sessions` lists them")
        return info

    async def _audit(self, action: str, session: str) -> None:
        await self.store.accounts.append_audit(
            AuditRecord(self._tenant, time.time(), OPERATOR, "", action, session, "")
        )


class ServerBackend:
    """Sessions at a server, with the rights of the API key."""

    def __init__(self, server: Server, url: str) -> None:
        self._server, self.name = server, url

    async def list_sessions(
        self, limit: int, before: str = "", *, archived: bool = False, label: str = ""
    ) -> tuple[list[SessionRow], str]:
        rows: dict[str, SessionRow] = {}
        listed = 0
        while listed < limit:
            which: api.Archived = "only" if archived else "exclude"
            page = await self._server.sessions(min(limit - listed, 100), before, archived=which, label=label)
            listed += len(page.sessions)
            rows |= {
                view.id: _make_row(view, set(page.waiting))
                for view in (*page.pinned, *page.sessions)
                if view.id not in rows
            }
            before = page.next
            if not before:
                break
        return list(rows.values()), before

    async def update(self, session: str, change: SessionChange) -> None:
        with _naming_server(self.name, session):
            await self._server.session(session).update(**msgspec.structs.asdict(change))

    async def search(self, words: str, limit: int) -> list[SessionRow]:
        hits = [(hit.session, hit.message.text) for hit in await self._server.search(words, limit)]
        rows: list[SessionRow] = []
        for session, texts in _group_by_session(hits):
            remote = self._server.session(session)
            waiting = {session} if await remote.gates() else set[str]()
            rows.append(_make_row(await remote.info(), waiting, texts))
        return rows

    async def messages(self, session: str) -> list[Message]:
        with _naming_server(self.name, session):
            return await self._server.session(session).messages()

    async def why_failed(self, session: str, turn: str) -> str:
        return ""

    async def erase(self, session: str) -> None:
        with _naming_server(self.name, session):
            await self._server.session(session).erase()

    async def export(self, session: str, file: Path) -> None:
        with _naming_server(self.name, session):
            data = await self._server.session(session).export()
        with private_file(file) as out:
            await asyncio.to_thread(out.write, data)

    async def import_session(self, file: Path, session: str) -> str:
        if session:
            raise ConfigError("a server chooses the ids of sessions; leave --session out")
        data = await asyncio.to_thread(file.read_bytes)
        return (await self._server.import_session(data)).id


@contextmanager
def _naming_server(url: str, session: str) -> Generator[None]:
    """Add to UnknownSession where to look for the session."""
    try:
        yield
    except UnknownSession:
        more = f"`everturn sessions --connect {url}` lists them"
        raise UnknownSession(f"there is no session {session!r} at {url}; {more}") from None


def _group_by_session(hits: Iterable[tuple[str, str]]) -> list[tuple[str, tuple[str, ...]]]:
    by_session: dict[str, list[str]] = {}
    for session, text in hits:
        by_session.setdefault(session, []).append(text)
    return [(session, tuple(text)) for session, text in by_session.items()]


def _make_row(info: SessionInfo | api.SessionView, waiting: set[str], texts: tuple[str, ...] = ()) -> SessionRow:
    state: SessionState = "idle"
    if info.quarantined:
        state = "quarantined"
    elif info.is_awake:
        state = "running"
    elif info.id in waiting or getattr(info, "due", 0.0):
        state = "waiting"
    return SessionRow(
        info.id,
        info.title,
        info.agent,
        info.by,
        info.created,
        info.updated if isinstance(info, api.SessionView) else info.touched,
        state,
        texts,
        info.pinned,
        info.archived,
        tuple(info.labels),
    )
