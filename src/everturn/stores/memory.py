"""In-memory store: the reference implementation of the `Store` port, in dictionaries, with the same admission checks.

No method awaits anything between its first read and its last write, so each is one transaction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING

from everturn.core.commands import (
    AnyCommand,
    Cancel,
    ImportMessages,
    LateResult,
    Send,
)
from everturn.core.events import (
    Entry,
    Event,
    FileUploadChanged,
    RequestRetried,
    StepRestarted,
)
from everturn.core.gate_rows import GateRow
from everturn.core.gates import Grant
from everturn.core.memory.search_terms import matches, query_terms
from everturn.core.messages import Message
from everturn.core.options import Spent
from everturn.core.projections.event_index import EventIndex
from everturn.core.session_claims import (
    PAUSED_TEXT,
    QUARANTINE_SECONDS,
    QUARANTINED_TEXT,
    is_quarantined,
    retry_pause,
)
from everturn.core.state import TurnState
from everturn.core.store_ports import (
    ANY_SESSION,
    Receipt,
    SessionClaim,
    SessionFilter,
    SessionInfo,
    StoreCounts,
    TurnSnapshot,
    UsageRecord,
    changes_session_list,
)
from everturn.core.tenants.sharing import Reader
from everturn.core.tree import MessageTree
from everturn.errors import (
    KeyConflict,
    SessionBusy,
    SessionQuarantined,
    Stale,
    UnknownMessage,
    UnknownSession,
)
from everturn.stores.accounts import MemoryAccounts
from everturn.stores.blob_refs import referenced_blobs
from everturn.stores.import_check import (
    creator_of,
)
from everturn.stores.memory_admission import check_command
from everturn.stores.memory_session import MemorySession
from everturn.stores.memory_usage import UsageTotals
from everturn.stores.rate_limits import MemoryRateLimits
from everturn.stores.schedules import DictSchedules
from everturn.stores.sharing import DictSharing
from everturn.stores.user_memory import DictUserMemory
from everturn.stores.webhooks import DictWebhooks
from everturn.turn_snapshot import load_snapshot

if TYPE_CHECKING:
    from everturn.stores.settings import DictSettings


class MemoryStore:
    """A store for one process; its content ends with the process."""

    def __init__(self) -> None:
        self._sessions: dict[str, MemorySession] = {}
        self._blobs: dict[str, bytes] = {}
        self._snapshots: dict[str, list[TurnSnapshot]] = {}  # to be stored with the next append
        self._erased: set[str] = set()
        self._totals = UsageTotals()
        self._accounts = MemoryAccounts()
        self._user_memory = DictUserMemory()
        self._schedules = DictSchedules()
        self._sharing = DictSharing(self._author_of)
        self.rate_limits = MemoryRateLimits()
        self._webhooks = DictWebhooks()
        self._settings: DictSettings | None = None

    def _session(self, session: str) -> MemorySession:
        if session in self._erased:
            raise UnknownSession(f"session {session!r} was erased", is_erased=True)
        if session not in self._sessions:
            raise UnknownSession(f"there is no session {session!r}")
        return self._sessions[session]

    async def admit(self, command: AnyCommand) -> Receipt:
        """Check a command, and store it in the inbox or raise what is wrong with it."""
        if command.session in self._erased:
            raise UnknownSession(f"session {command.session!r} was erased", is_erased=True)
        session = self._sessions.get(command.session)
        if session is None:
            if not isinstance(command, Send | ImportMessages):
                raise UnknownSession(f"there is no session {command.session!r}")
            session = MemorySession(command.tenant)
        elif session.tenant != command.tenant:
            raise UnknownSession(f"there is no session {command.session!r}")
        if (earlier := session.admitted.get(command.key)) is not None:
            if earlier.body != command.body:
                raise KeyConflict(f"the key {command.key!r} was used before for a different request")
            return Receipt(earlier, is_new=False)
        if not check_command(session, command, self._totals):
            return Receipt(command, is_new=False)
        self._sessions[command.session] = session
        session.keep(command)
        return Receipt(command, is_new=True)

    async def inbox(self, session: str) -> list[AnyCommand]:
        """Return the admitted commands that no event has handled yet, oldest first."""
        return list(self._session(session).inbox.values())

    async def lock_for_process(self) -> None:
        """Do nothing: no other process can see this store."""

    async def claim(self, session: str, now: float) -> SessionClaim | None:
        """Claim a session for a driver; None when it has no work."""
        row = self._session(session)
        if not row.is_awake and not 0 < row.due <= now:
            return None
        if row.is_resting(now):
            if not is_quarantined(row.tries):
                pause = retry_pause(row.tries)
                raise SessionQuarantined(PAUSED_TEXT.format(session=session, tries=row.tries), row.touched + pause)
            row.quarantined = QUARANTINED_TEXT.format(session=session, tries=row.tries)
            raise SessionQuarantined(row.quarantined)
        row.epoch += 1
        row.tries += 1
        row.touched, row.quarantined = now, ""
        turns = [row.by_turn[turn] for turn in row.by_turn if turn in row.open_turns or turn in row.out]
        folded: list[TurnState] = []
        for snapshot in row.snapshots.values():
            if (state := load_snapshot(snapshot)) is not None:
                folded.append(state)
                at = next(at for at, entries in enumerate(turns) if entries is row.by_turn[snapshot.turn])
                turns[at] = [entry for entry in turns[at] if entry.seq > snapshot.seq]
        turns = [entries for entries in turns if entries]
        commands = list(row.inbox.values())
        return SessionClaim(row.epoch, len(row.log), row.info(session), commands, turns, row.tries, folded)

    async def retry(self, session: str) -> bool:
        """Let a quarantined session be claimed again at once."""
        row = self._session(session)
        if not row.tries and not row.quarantined:
            return False
        row.tries, row.quarantined = 0, ""
        return True

    async def release(self, session: str, epoch: int, tries: int = 0, awaited_agent: str = "") -> None:
        """Record that a driver which wrote nothing has ended normally."""
        row = self._session(session)
        if row.epoch == epoch:
            row.tries, row.awaited_agent = tries, awaited_agent

    async def append(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
        """Append events after position `after`, all or none, and return the new position."""
        row = self._session(session)
        if len(row.log) != after or epoch not in (None, row.epoch):
            raise Stale(f"session {session} is at {len(row.log)}, not at {after}: another process drives it")
        kept = self._snapshots.pop(session, ())
        try:
            for event in events:
                row.apply(event)
        except BaseException:
            row.rewind(after)
            raise
        row.snapshots.update({s.turn: s for s in kept if s.seq == len(row.log) and s.turn in row.open_turns})
        row.awaited_agent = ""
        self._totals.take(session, row.tenant, events)
        is_progress, mentions = False, row.mentions
        for seq, event in enumerate(events, after + 1):
            self._webhooks.record(session, row.tenant, seq, event)
            is_progress = is_progress or type(event) not in (StepRestarted, RequestRetried, FileUploadChanged)
            if changes_session_list(event) and event.at > row.moved:
                row.moved = event.at
            if names := referenced_blobs(event):
                mentions.update(names)
        if is_progress:
            row.tries, row.touched = 1, max(row.touched, events[-1].at)  # and this claim made it
        return len(row.log)

    def keep_snapshot(self, session: str, snapshot: TurnSnapshot) -> None:
        """Store the snapshot of a turn with the next append, if that reaches its position."""
        self._snapshots.setdefault(session, []).append(snapshot)

    async def events(self, session: str, after: int = 0, turn: str | None = None) -> list[Entry]:
        """Return the log after `after`: all of it, or one turn's."""
        row = self._session(session)
        if turn is None:
            return row.log[after:]
        entries = row.by_turn.get(turn, [])
        at = len(entries)
        while at and entries[at - 1].seq > after:
            at -= 1
        return entries[at:]

    async def event_page(self, session: str, after: int, most: int) -> list[Entry]:
        """Return at most `most` entries of the log after `after`."""
        return self._session(session).log[after : after + most]

    async def indexed_events(
        self, session: str, index: EventIndex, key: str | None = None, limit: int | None = None
    ) -> list[Entry]:
        """Return the events of an index with this key, or all of them, oldest first."""
        indexed = self._session(session).by_index.get(index, ())
        return [entry for name, entry in indexed if key in (None, name)][:limit]

    async def head(self, session: str) -> int:
        """Return the position of the last event; 0 before the first."""
        return len(self._session(session).log)

    async def heads(self, sessions: Sequence[str]) -> dict[str, int]:
        """Return the positions of many sessions; unknown sessions are left out."""
        positions: dict[str, int] = {}
        for session in sessions:
            with suppress(UnknownSession):
                positions[session] = len(self._session(session).log)
        return positions

    async def open_turns(self, session: str) -> list[str]:
        """Return the turns that are not over, oldest first."""
        return list(self._session(session).open_turns)

    async def turn_starts(self, session: str, before: int, limit: int) -> list[tuple[int, str]]:
        """Return the last turns that started before a position, newest first."""
        starts = ((entries[0].seq, turn) for turn, entries in self._session(session).by_turn.items() if turn)
        return sorted((start for start in starts if start[0] < before), reverse=True)[:limit]

    async def turn_of_command(self, session: str, key: str) -> str:
        """Return the turn that a command requested, or is about."""
        command = self._session(session).admitted.get(key)
        return command.turn if isinstance(command, Send | Cancel | LateResult) else ""

    async def has_turn_command(self, session: str, turn: str) -> bool:
        """Return whether a turn was requested."""
        sends = (command for command in self._session(session).admitted.values() if isinstance(command, Send))
        return any(command.turn == turn for command in sends)

    async def count_active_turns(self, tenant: str) -> int:
        """Count the turns of a tenant that run or are in an inbox."""
        rows = [row for row in self._sessions.values() if row.tenant == tenant]
        requested = sum(isinstance(command, Send) for row in rows for command in row.inbox.values())
        return requested + sum(not is_suspended for row in rows for is_suspended in row.open_turns.values())

    async def path(self, session: str, leaf: str | None, limit: int | None = None) -> list[Message]:
        """Return the branch that ends at `leaf`, oldest first; with a limit, the end of it."""
        path = self._session(session).tree.path(leaf)
        return path if limit is None else path[max(len(path) - limit, 0) :]

    async def tree(self, session: str) -> MessageTree:
        """Return all messages of a session."""
        return self._session(session).tree.copy()

    async def gates(self, session: str | None = None, *, tenant: str | None = None) -> list[GateRow]:
        """Return the open gates of a session, of a tenant, or of the whole store."""
        rows = self._sessions.values() if session is None else [self._session(session)]
        return [
            gate
            for row in rows
            if tenant in (None, row.tenant)
            for gate in row.gates.values()
            if gate.is_open and gate.resolution is None
        ]

    async def gate_page(
        self,
        session: str | None = None,
        *,
        tenant: str | None = None,
        limit: int | None = 200,
        after: tuple[float, str, str] | None = None,
    ) -> list[tuple[str, GateRow]]:
        """Return a page of open gates, oldest first, each with its session."""
        if session is not None:
            self._session(session)
        matching = [
            (name, gate)
            for name, row in self._sessions.items()
            if tenant in (None, row.tenant) and (session is None or name in self._below(session))
            for gate in row.gates.values()
            if gate.is_open and gate.resolution is None
            if after is None or (gate.opened, name, gate.gate.id) > after
        ]
        return sorted(matching, key=lambda pair: (pair[1].opened, pair[0], pair[1].gate.id))[:limit]

    async def sessions_with_open_gates(self, sessions: Sequence[str]) -> set[str]:
        """Return those of the sessions that have an open gate, in them or in a sub-agent run of theirs."""
        existing = [name for name in sessions if name in self._sessions]
        return {name for name in existing if await self.gate_page(name, limit=1)}

    async def sessions_with_events(self, sessions: Sequence[str], index: EventIndex) -> set[str]:
        """Return those of the sessions, and of their sub-agent runs, that have an event in an index."""
        found, waiting = set[str](), [name for name in sessions if name in self._sessions]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                tenant = self._sessions[name].tenant
                waiting += [id for id, row in self._sessions.items() if row.parent == name and row.tenant == tenant]
        return {name for name in found if self._sessions[name].by_index.get(index)}

    async def count_all(self) -> StoreCounts:
        """Return the counts over the whole store."""
        waits = (
            row.touched
            for row in self._sessions.values()
            if row.inbox and not row.quarantined and all(row.open_turns.values())
        )
        quarantined = sum(bool(row.quarantined) for row in self._sessions.values())
        live = len(await self.sessions(awake=True))
        return StoreCounts(len(await self.gates()), live, quarantined, min(waits, default=0.0))

    async def grants(self, session: str, now: float) -> list[Grant]:
        """Return the grants that are valid in a session, oldest first."""
        return self._totals.grants(session, self._session(session).tenant, now)

    async def tenant_grants(self, tenant: str, now: float, limit: int = 200) -> list[tuple[str, Grant]]:
        """Return a tenant's valid grants with their sessions, newest first."""
        return self._totals.tenant_grants(tenant, now)[:limit]

    async def spent(self, *, session: str = "", top: str = "", tenant: str = "", since: float = 0.0) -> Spent:
        """Return the usage of a session with its sub-agent runs, of turn `top`'s sub-agent runs, or of a tenant."""
        return self._totals.spent(session=session, top=top, tenant=tenant, since=since)

    async def recorded_trees(self, session: str) -> dict[str, str]:
        """Return the tree that was last recorded for each root."""
        return dict(self._session(session).roots)

    async def sessions(
        self,
        awake: bool = False,
        *,
        quarantined: bool = False,
        limit: int | None = None,
        after: tuple[float, str] | None = None,
    ) -> list[SessionInfo]:
        """Return the sessions, oldest first; only those with work (`awake`), or quarantined ones (`quarantined`)."""
        infos = sorted(
            (row.info(name) for name, row in self._sessions.items()),
            key=lambda session: (session.created, session.id),
        )
        matching = [
            info for info in infos if (info.is_awake or info.due or not awake) and (info.quarantined or not quarantined)
        ]
        return [info for info in matching if after is None or (info.created, info.id) > after][:limit]

    async def session_page(
        self,
        tenant: str,
        *,
        limit: int = 50,
        before: tuple[float, str] | None = None,
        since: float = 0.0,
        where: SessionFilter = ANY_SESSION,
        reader: Reader | None = None,
    ) -> list[SessionInfo]:
        """Return a page of a tenant's sessions, last touched first."""
        infos = [
            row.info(name)
            for name, row in self._sessions.items()
            if row.tenant == tenant and not row.parent and row.moved >= since
            if (before is None or (row.moved, name) < before) and row.is_listed(where)
            if reader is None or self._is_listed(name, reader)
        ]
        return sorted(infos, key=lambda info: (info.touched, info.id), reverse=True)[: max(limit, 0)]

    def _is_listed(self, session: str, reader: Reader) -> bool:
        """Return whether a session is in the lists of a reader; that of a sub-agent run follows its root session."""
        seen = {session}
        while (parent := self._sessions[session].parent) and parent in self._sessions and parent not in seen:
            session = parent
            seen.add(session)
        row = self._sessions[session]
        is_readable = not row.parent and self._sharing.is_readable(reader, session, row.by)
        return is_readable and not self._sharing.is_temporary(session)

    async def usage_by_day(self, tenant: str, since: float = 0.0) -> list[tuple[int, str, Spent]]:
        """Return the usage of a tenant's turns by day and agent."""
        return self._totals.usage_by_day(tenant, since)

    async def usage_by_user(self, tenant: str, since: float = 0.0) -> list[tuple[str, str, str, Spent]]:
        """Return the usage of a tenant's turns by user, model and agent."""
        return self._totals.usage_by_user(tenant, since)

    async def record_usage(self, record: UsageRecord) -> None:
        """Count what a request outside of a turn used."""
        self._totals.record(record)

    async def user_spent(self, tenant: str, user: str, since: float = 0.0) -> Spent:
        """Return the usage of the turns that a user started."""
        return self._totals.user_spent(tenant, user, since)

    async def refers_to_blob(self, session: str, blob: str) -> bool:
        """Return whether a session, or a session of its sub-agent runs, references a blob."""
        return any(blob in self._sessions[name].mentions for name in self._below(session))

    def _below(self, session: str) -> set[str]:
        """Return a session and, recursively, the sessions of its sub-agent runs."""
        tenant, names = self._session(session).tenant, {session}
        while children := {
            name
            for name, row in self._sessions.items()
            if row.parent in names and row.tenant == tenant and name not in names
        }:
            names |= children
        return names

    async def overdue(self, before: float, now: float) -> list[str]:
        """Return sessions with work that no driver has touched since `before`; each is returned to one caller only."""
        names: list[str] = []
        for name, row in self._sessions.items():
            is_resting = row.is_resting(now)
            is_old = row.touched < before or row.touched > now + QUARANTINE_SECONDS  # written by a clock that was ahead
            if (row.is_awake or 0 < row.due <= now) and is_old and not is_resting:
                row.touched = now - retry_pause(row.tries)  # its tries still count: if it fails again, it pauses again
                names.append(name)
        return names

    async def info(self, session: str) -> SessionInfo:
        """Return the info of a session."""
        return self._session(session).info(session)

    async def infos(self, sessions: Sequence[str]) -> dict[str, SessionInfo]:
        """Return the infos of those sessions that exist."""
        return {name: self._sessions[name].info(name) for name in sessions if name in self._sessions}

    async def search(
        self,
        text: str,
        tenant: str | None = None,
        limit: int = 50,
        *,
        by: str | None = None,
        reader: Reader | None = None,
    ) -> list[tuple[str, Message]]:
        """Return messages with these terms and their sessions, newest first; answers only after their turn is over."""
        terms = query_terms(text)
        matching = [
            (name, message)
            for name, row in self._sessions.items()
            if tenant in (None, row.tenant) and (by is None or (row.by == by and not row.parent))
            if by is None or not self._sharing.is_temporary(name)
            if reader is None or self._is_listed(name, reader)
            for message in row.tree.messages.values()
            if message.id not in row.tree.deleted and not message.hidden and not message.refused
            if matches(terms, message.text)
            if message.role != "assistant" or message.turn not in row.open_turns
        ]
        return matching[::-1][:limit] if terms else []

    async def put_blob(self, data: bytes) -> str:
        """Store bytes under their hash."""
        name = hashlib.sha256(data).hexdigest()
        self._blobs[name] = data
        return name

    async def blob(self, name: str) -> bytes:
        """Return the bytes of a hash."""
        if name not in self._blobs:
            raise UnknownMessage(f"there is no blob {name!r}")
        return self._blobs[name]

    async def restore(self, session: str, tenant: str, events: Sequence[Event]) -> None:
        """Create a session from the log of another."""
        if session in self._sessions or session in self._erased:
            raise KeyConflict(f"session {session!r} exists, or was erased; import it under another id")
        row = MemorySession(tenant)
        row.restored = len(events)
        for event in events:
            row.apply(event)
        row.turns.update(row.by_turn)
        row.by = creator_of(events)
        if events:
            row.created, row.moved = events[0].at, events[-1].at
        row.mentions.update(name for event in events for name in referenced_blobs(event))
        self._sessions[session] = row
        self._totals.take(session, tenant, events, is_restored=True)

    async def erase(self, session: str) -> None:
        """Erase a session and the sessions of its sub-agent runs; only their names stay taken."""
        if session in self._erased:
            return
        self._session(session)
        children = set(self._totals.below(session)) | {
            name for name, row in self._sessions.items() if row.is_asked_by(session)
        }
        names = [session, *(name for name in children if name.startswith(f"{session}-") and name in self._sessions)]
        for name in names:
            row = self._sessions[name]
            if row.inbox or row.open_turns or row.out:
                raise SessionBusy(f"a turn is running in session {name!r}; cancel it, then erase the session")
        for name in names:
            del self._sessions[name]
            self._erased.add(name)
            self._totals.erase(name)
            self._accounts.forget(name)
            self._user_memory.forget_session(name)
            self._sharing.forget_session(name)

    @property
    def accounts(self) -> MemoryAccounts:
        """The accounts of this store."""
        return self._accounts

    @property
    def user_memory(self) -> DictUserMemory:
        """The memory files of this store."""
        return self._user_memory

    @property
    def schedules(self) -> DictSchedules:
        """The schedules of this store."""
        return self._schedules

    @property
    def settings(self) -> DictSettings:
        """The settings that administrators change."""
        from everturn.stores.settings import DictSettings

        if self._settings is None:
            self._settings = DictSettings()
        return self._settings

    @property
    def webhooks(self) -> DictWebhooks:
        """The webhooks and their outbox."""
        return self._webhooks

    @property
    def sharing(self) -> DictSharing:
        """The shares of conversations."""
        return self._sharing

    def _author_of(self, session: str) -> str | None:
        row = self._sessions.get(session)
        return None if row is None else row.by

    def restrict_to_tenant(self, tenant: str, reader: Reader | None = None) -> AbstractContextManager[None]:
        """Do nothing: this store has no row security; each query restricts itself to its tenant."""
        return nullcontext()

    async def aclose(self) -> None:
        """Do nothing: this store holds no resources."""
