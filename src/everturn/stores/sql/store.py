"""The verbs of the `Store` port, as operations on a database.

It keeps one thing of its own: the shadows of sessions that are being written here, so that an append need not read
anything. A shadow is taken out while an append is under way and put back when that is safe on disk; whatever goes wrong
in between, the next append reads it anew.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from everturn.core.asking import Grant
from everturn.core.commands import AnyCommand
from everturn.core.events import Entry, Event
from everturn.core.gates import GateRow
from everturn.core.messages import Message
from everturn.core.options import Spent
from everturn.core.parts import Usage
from everturn.core.ports import Claim, Receipt, SessionInfo, Tally
from everturn.core.tree import Tree
from everturn.errors import SessionStuck
from everturn.stores.sql import counting, granting, keeping, reading, searching, walls, writing
from everturn.stores.sql.accounts import SqlAccounts
from everturn.stores.sql.admitting import admit
from everturn.stores.sql.blobs import Blobs
from everturn.stores.sql.changes import Shadow
from everturn.stores.sql.database import Database, Operation

if TYPE_CHECKING:
    from everturn.stores.sql.keeping import Kept

RECENT = 512  # events of a session that are kept at hand for its readers
SHADOWS = 4096  # sessions; one that nothing is written in is a few hundred bytes
SHORT = 500  # events that are read at once; what a longer log holds is read aside


class _Recent(Struct):
    """The end of a session's log as it was written here: what readers at the live edge ask for, again and again."""

    begin: int  # the position before the first of them
    entries: list[Entry]

    def since(self, after: int, turn: str | None) -> list[Entry]:
        found = self.entries[after - self.begin :]
        return found if turn is None else [entry for entry in found if getattr(entry.event, "turn", None) == turn]


class SqlStore:
    """A store in a SQL database: in a file on this machine, or on a PostgreSQL server that many processes share."""

    def __init__(self, database: Database, folder: Path | None = None) -> None:
        self._database = database
        self._blobs = Blobs(database, folder, time.time)
        self._accounts = SqlAccounts(database)
        self._shadows: dict[str, Shadow] = {}  # the one that was used last is the last
        self._recent: dict[str, _Recent] = {}
        self._appending: set[str] = set()  # sessions whose file may be ahead of what is kept of them here
        self._name, self._numbers = os.urandom(8).hex(), count(1)

    @classmethod
    def sqlite(cls, path: str | Path) -> SqlStore:
        """A store in a file; it is made, or brought up to date, when it is first used. ":memory:" is kept nowhere."""
        from everturn.stores.sql.sqlite import Sqlite

        if str(path) == ":memory:":
            return cls(Sqlite(path))
        # By its one true name: through a link, another process would lock another file, and look for blobs elsewhere.
        path = os.path.realpath(path)
        return cls(Sqlite(path), Path(f"{path}-blobs"))

    @classmethod
    def postgres(cls, url: str, schema: str | None = None) -> SqlStore:
        """A store in a PostgreSQL database, of its own or in a schema of it; made or brought up to date on first use."""
        from everturn.stores.sql.postgres import Postgres

        return cls(Postgres(url, schema))

    # The door ---------------------------------------------------------------------------------------------------

    async def admit(self, command: AnyCommand) -> Receipt:
        """Check a command at the door and keep it, or say why not."""
        return await self._database.write(lambda again: admit(command, again), command.session)

    async def inbox(self, session: str) -> list[AnyCommand]:
        """The admitted commands no event has answered yet, oldest first."""
        return await self._database.read(lambda: reading.inbox(session))

    # Who drives -------------------------------------------------------------------------------------------------

    async def hold(self) -> None:
        """Be the one process that drives what is in here, until it is closed."""
        await self._database.hold()

    async def claim(self, session: str, now: float) -> Claim | None:
        """Become the driver of a session; None when there is nothing to do in it."""
        claimed = await self._database.write(lambda _: writing.claim(session, now), session)
        if isinstance(claimed, SessionStuck):
            raise claimed
        if claimed is None:
            return None
        self._keep(session, claimed[1])
        recent = self._recent.get(session)
        if recent is not None and recent.begin + len(recent.entries) != claimed[0].head:
            del self._recent[session]  # somebody else has written here meanwhile
        return claimed[0]

    async def release(self, session: str, epoch: int, tries: int = 0) -> None:
        """Say that a driver which wrote nothing has ended well."""
        await self._database.write(lambda _: writing.release(session, epoch, tries), session)

    async def overdue(self, before: float, now: float) -> list[str]:
        """Sessions to be driven that nobody has touched since `before`; of many who ask, one is told of each."""
        return await self._database.write(lambda _: writing.overdue(before, now), "")

    # The log ----------------------------------------------------------------------------------------------------

    async def append(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
        """Write events behind position `after`, all or none, and return the new position."""
        token = self._token()

        def operation(_: bool) -> Operation[tuple[int, Shadow | None]]:
            return writing.append(self._shadows.pop(session, None), session, after, events, epoch, token)

        # Until it is kept here as well, the log is read from the file: who has seen its head there must find it all.
        self._appending.add(session)
        try:
            head, shadow = await self._database.write(operation, session)
            if shadow is not None:
                self._keep(session, shadow)
                if getattr(self._database, "is_alone", False):  # for nobody else reads it
                    self._remember(session, after, events)
        except BaseException:
            self._recent.pop(session, None)
            raise
        finally:
            self._appending.discard(session)
        return head

    async def events(self, session: str, after: int = 0, turn: str | None = None) -> list[Entry]:
        """The log behind `after`: all of it, or one turn's."""
        recent = self._recent.get(session) if session not in self._appending else None
        if recent is not None and recent.begin <= after and getattr(self._database, "is_alone", False):
            return recent.since(after, turn)
        if turn is not None:
            return await self._database.read(lambda: reading.events(session, after, turn))
        found = await self._database.read(lambda: reading.events(session, after, None, SHORT))
        if len(found) == SHORT:
            last = found[-1].seq
            found += await self._database.read(lambda: reading.events(session, last, None), is_long=True)
        return found

    async def page(self, session: str, after: int, most: int) -> list[Entry]:
        """The log behind `after`, at most so many entries of it."""
        return await self._database.read(lambda: reading.events(session, after, None, most))

    async def head(self, session: str) -> int:
        """The position of the last event; 0 before the first."""
        return await self._database.read(lambda: reading.head(session))

    async def heads(self, sessions: Sequence[str]) -> dict[str, int]:
        """The positions of many sessions in one query; those that are not there are left out."""
        return await self._database.read(lambda: reading.heads(sessions))

    async def restore(self, session: str, tenant: str, events: Sequence[Event]) -> None:
        """Make a session that is not there yet from the log of another."""
        token = self._token()
        await self._database.write(lambda _: writing.restore(session, tenant, events, token), session, is_long=True)

    # What is read off it ----------------------------------------------------------------------------------------

    async def open_turns(self, session: str) -> list[str]:
        """The turns that are not over, oldest first."""
        return await self._database.read(lambda: reading.open_turns(session))

    async def asked_for(self, session: str, turn: str) -> bool:
        """Whether somebody asked for a turn."""
        return await self._database.read(lambda: reading.asked_for(session, turn))

    async def under_way(self, tenant: str) -> int:
        """How many turns of a tenant run or are asked for."""
        return await self._database.read(lambda: reading.under_way(tenant))

    async def path(self, session: str, leaf: str | None, limit: int | None = None) -> list[Message]:
        """The branch that ends at `leaf`, oldest first; with a limit, the last of it."""
        return await self._database.read(lambda: reading.path(session, leaf, limit))

    async def tree(self, session: str) -> Tree:
        """All messages of a session."""
        return await self._database.read(lambda: reading.tree(session), is_long=True)

    async def gates(self, session: str | None = None, *, tenant: str | None = None) -> list[GateRow]:
        """The gates that stand open: in one session, in all of a tenant's, or in all there are."""
        return await self._database.read(lambda: reading.gates(session, tenant), is_long=session is None)

    async def gate_page(
        self,
        session: str | None = None,
        *,
        tenant: str | None = None,
        limit: int | None = 200,
        after: tuple[float, str, str] | None = None,
    ) -> list[tuple[str, GateRow]]:
        """A page of the gates that stand open, oldest first, each with its session."""
        is_long = limit is None or limit > SHORT
        return await self._database.read(lambda: reading.gate_page(session, tenant, limit, after), is_long=is_long)

    async def waiting(self, sessions: Sequence[str]) -> set[str]:
        """Of these sessions, those in which a gate stands open, or in a sub-turn of theirs."""
        return await self._database.read(lambda: reading.waiting(sessions)) if sessions else set()

    async def tally(self) -> Tally:
        """What is counted of the whole store."""
        return await self._database.read(reading.tally)

    async def grants(self, session: str, now: float) -> list[Grant]:
        """The remembered answers that hold in a session, oldest first."""
        return await self._database.read(lambda: granting.grants(session, now))

    async def granted(self, tenant: str, now: float, limit: int = 200) -> list[tuple[str, Grant]]:
        """The remembered answers of a tenant that hold somewhere, newest first."""
        return await self._database.read(lambda: granting.granted(tenant, now, limit))

    async def spent(self, *, session: str = "", top: str = "", tenant: str = "", since: float = 0.0) -> Spent:
        """What was used: in a session with all sub-turns of it, by the sub-turns of the turn `top`, or by a tenant.

        The calls of a step that is under way are counted when the next one ends, or the turn does.
        """
        return await self._database.read(lambda: counting.spent(session, top, tenant, since))

    async def roots(self, session: str) -> dict[str, str]:
        """The tree that was last recorded for each root."""
        return await self._database.read(lambda: reading.roots(session))

    async def sessions(
        self,
        awake: bool = False,
        *,
        stuck: bool = False,
        limit: int | None = None,
        after: tuple[float, str] | None = None,
    ) -> list[SessionInfo]:
        """The sessions, oldest first; with `awake` those somebody should drive, with `stuck` those nobody drives."""
        return await self._database.read(lambda: reading.sessions(awake, stuck, limit, after), is_long=True)

    async def listed(
        self, tenant: str, *, limit: int = 50, before: tuple[float, str] | None = None, since: float = 0.0
    ) -> list[SessionInfo]:
        """A page of a tenant's sessions, without those of sub-turns: those touched last come first."""
        if limit < 1:
            return []
        return await self._database.read(lambda: reading.listed(tenant, limit, before, since), is_long=limit > SHORT)

    async def used(self, tenant: str, since: float = 0.0) -> list[tuple[int, str, Spent]]:
        """What a tenant's turns have used, by day (since 1970, UTC) and agent, oldest first."""
        return await self._database.read(lambda: counting.used(tenant, since), is_long=True)

    async def mentions(self, session: str, blob: str) -> bool:
        """Whether a session, or one of its sub-turns and theirs, speaks of a blob."""
        return await self._database.read(lambda: reading.mentions(session, blob))

    async def info(self, session: str) -> SessionInfo:
        """One session."""
        return await self._database.read(lambda: reading.info(session))

    async def infos(self, sessions: Sequence[str]) -> dict[str, SessionInfo]:
        """Those of these sessions that there are."""
        return await self._database.read(lambda: reading.infos(sessions)) if sessions else {}

    async def usage(self, session: str | None = None, *, tenant: str = "local", since: float = 0.0) -> Usage:
        """What the turns of a session have used in all, or those of a tenant since a time."""
        return await self._database.read(lambda: counting.usage(session, tenant, since))

    async def search(self, text: str, tenant: str | None = None, limit: int = 50) -> list[tuple[str, Message]]:
        """The newest messages that have the words of a text, with their sessions."""
        return await searching.search(self._database, text, tenant, limit)

    # Blobs, and what need not stay --------------------------------------------------------------------------------

    async def put_blob(self, data: bytes) -> str:
        """Keep bytes under their hash."""
        return await self._blobs.put(data)

    async def blob(self, name: str) -> bytes:
        """The bytes behind a hash."""
        return await self._blobs.get(name)

    async def erase(self, session: str) -> None:
        """Take everything out of a session, and out of those of its sub-turns, but that they were there."""
        self._forget(session)
        for gone in await keeping.erase(self._database, session):
            self._forget(gone)

    async def keep_house(self, now: float, idle: float | None = None, orphans: float = 86_400.0) -> Kept:
        """Let go of what nobody needs any more: see the guide about keeping."""
        try:
            return await keeping.keep_house(self._database, self._blobs, now, idle, orphans)
        finally:
            self._shadows.clear()  # some of them may be erased now
            self._recent.clear()

    # Whose it is --------------------------------------------------------------------------------------------------

    @property
    def accounts(self) -> SqlAccounts:
        """Who may come in, in the same database."""
        return self._accounts

    def within(self, tenant: str) -> AbstractContextManager[None]:
        """Read inside of it as this tenant: on PostgreSQL, rows of others are not there for such reads (walls.py)."""
        return walls.within(tenant)

    async def aclose(self) -> None:
        """Let go of the database. What was acknowledged is safe."""
        await self._database.aclose()

    def _token(self) -> str:
        return f"{self._name}{next(self._numbers)}"

    def _keep(self, session: str, shadow: Shadow) -> None:
        self._shadows[session] = shadow
        if len(self._shadows) > SHADOWS:
            self._forget(next(iter(self._shadows)))

    def _remember(self, session: str, after: int, events: Sequence[Event]) -> None:
        recent = self._recent.get(session)
        if recent is None or recent.begin + len(recent.entries) != after:
            recent = self._recent[session] = _Recent(after, [])
        recent.entries += [Entry(seq, event) for seq, event in enumerate(events, after + 1)]
        if len(recent.entries) > 2 * RECENT:
            recent.begin += len(recent.entries) - RECENT
            del recent.entries[:-RECENT]

    def _forget(self, session: str) -> None:
        self._shadows.pop(session, None)
        self._recent.pop(session, None)
