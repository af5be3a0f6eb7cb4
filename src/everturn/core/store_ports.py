"""Store ports: the Protocols of the event log, the command inbox, the session directory and the blobs, and what they return.

`Accounts` is in `core.tenants.accounts`. Each port has a contract suite of its own in `everturn.testing.contracts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol, cast

from msgspec import Struct

from everturn.core.commands import AnyCommand
from everturn.core.events import (
    AgentSelected,
    AgentSwitched,
    Entry,
    Event,
    GateOpened,
    GateResolved,
    MessagesImported,
    TitleSet,
    TurnCancelled,
    TurnCompleted,
    TurnEvent,
    TurnFailed,
    TurnStarted,
    TurnSuspended,
)
from everturn.core.gate_rows import GateRow
from everturn.core.gates import Grant
from everturn.core.memory.user_memory import UserMemory
from everturn.core.messages import Message
from everturn.core.options import Spent
from everturn.core.projections.event_index import EventIndex
from everturn.core.schedules import ScheduleStore
from everturn.core.state import TurnState, fold
from everturn.core.tenants.accounts import Accounts
from everturn.core.tenants.settings import SettingStore
from everturn.core.tenants.sharing import Reader, SharingStore
from everturn.core.tree import MessageTree
from everturn.core.webhooks import WebhookStore


class Receipt(Struct, frozen=True, repr_omit_defaults=True):
    """The acknowledgement of a durable command. For a repeat it holds the command as it was first admitted."""

    command: AnyCommand
    is_new: bool


class UsageRecord(Struct, frozen=True, repr_omit_defaults=True):
    """What a request outside of a turn used, such as one for audio. It belongs to no session."""

    id: str  # unique: the same record counts once
    tenant: str
    user: str
    model: str
    at: float
    spent: Spent


class SessionInfo(Struct, frozen=True, repr_omit_defaults=True):
    """A session in a list."""

    id: str
    title: str = ""
    leaf: str | None = None
    is_awake: bool = False  # it has pending commands, turns that do more than wait, or tools that outlived their turn
    due: float = 0.0  # when it must be driven again even if nothing arrives; 0: never
    quarantined: str = ""  # why it is quarantined, until a new command arrives; "": it is not
    tenant: str = "local"
    agent: str = (
        ""  # that has it: of its last turn or handoff, or selected by a person; before its first turn, who begins
    )
    by: str = ""  # the user who started it
    parent: str = ""  # for a sub-agent run: the parent session
    created: float = 0.0
    touched: float = (
        0.0  # when a command arrived last, or a turn started, opened a gate, suspended or ended (see `is_shown`)
    )
    awaited_agent: str = ""  # it waits for a process that knows this agent: its last driver did not; "": it does not
    is_renamed: bool = False  # a person gave the title
    pinned: bool = False
    archived: bool = False
    labels: tuple[str, ...] = ()
    organized: float = 0.0  # when a person last renamed, pinned, archived or labelled it; 0: never


class SessionFilter(Struct, frozen=True):
    """Which sessions a list has; the default is all of them."""

    archived: bool | None = None  # only archived sessions, or only others
    pinned: bool | None = None
    label: str = ""  # sessions with this label
    agent: str = ""  # sessions that this agent has
    organized_since: float = 0.0  # sessions that a person organized at this time or later


ANY_SESSION = SessionFilter()


_SHOWN: frozenset[type[Event]] = frozenset(
    (
        TurnStarted,
        GateOpened,
        GateResolved,
        TurnSuspended,
        TurnCompleted,
        TurnFailed,
        TurnCancelled,
        TitleSet,
        MessagesImported,
        AgentSwitched,
        AgentSelected,
    )
)


def changes_session_list(event: Event) -> bool:
    """Whether an event changes what a list of sessions shows, so that `touched` is updated.

    The steps of a turn do not: lists are ordered by `touched`, and every step would rewrite its index.
    """
    return type(event) in _SHOWN


class TurnSnapshot(Struct, frozen=True):
    """The fold of a turn up to the position `seq`, as bytes, and the fingerprint of the code that folded it.

    It only saves time: whoever cannot read it folds the events.
    """

    turn: str
    seq: int
    fold: str
    body: bytes


class TurnSnapshotStore(Protocol):
    """A store that keeps snapshots of long turns. A store need not."""

    def keep_snapshot(self, session: str, snapshot: TurnSnapshot) -> None:
        """Write a snapshot in the transaction of the next append to this session, if that reaches its position.

        It replaces the last one of the turn, and is dropped when the turn ends.
        """
        ...


class SessionClaim(Struct, frozen=True):
    """A session as its new driver finds it. From now on the store accepts only appends with this epoch."""

    epoch: int
    head: int
    info: SessionInfo
    inbox: Sequence[AnyCommand] = ()
    turns: Sequence[Sequence[Entry]] = ()  # the events of every turn that is open, or whose tools still run
    tries: int = 1  # claims since its last progress, this one included
    folded: Sequence[TurnState] = ()  # long turns, folded from a snapshot: `turns` has the events after it, if any

    def fold_turns(self) -> list[TurnState]:
        """The present state of each of these turns; a turn is folded once."""
        states = {state.id: state for state in self.folded}
        for entries in self.turns:
            turn = cast("TurnEvent", entries[0].event).turn
            if turn in states:
                for entry in entries:
                    states[turn].apply(cast("TurnEvent", entry.event))
            else:
                states[turn] = fold(entry.event for entry in entries)
        return list(states.values())


class StoreCounts(Struct, frozen=True):
    """Counts over a whole store, for monitoring."""

    gates: int = 0  # open gates
    live: int = 0  # sessions to be driven, now or when they are due
    quarantined: int = 0  # quarantined sessions
    oldest: float = 0.0  # when the oldest waiting command arrived, of sessions in which no turn runs; 0: none


class EventLog(Protocol):
    """The event log of each session, the claims of its drivers, and what is read from it while turns run.

    Every write is one transaction.
    """

    async def claim(self, session: str, now: float) -> SessionClaim | None:
        """Become the driver of a session; None if there is nothing to do in it by `now`.

        The driver that claimed it before can no longer write. A session that is claimed repeatedly without progress
        kills its drivers: after three claims it is claimed again only after growing pauses (`retry_pause`), and then
        quarantined until a new command arrives or a long time has passed.

        Raises:
            SessionQuarantined: it may be claimed again at `retry_at`, or (0) is quarantined.
            UnknownSession: it does not exist.
        """
        ...

    async def release(self, session: str, epoch: int, tries: int = 0, awaited_agent: str = "") -> None:
        """Release a claim whose driver wrote nothing and ended without an error: it does not count; `tries` earlier
        ones do.

        `awaited_agent` is the agent of a turn that the driver leaves to a process that knows it; it is shown in
        `SessionInfo` until something is appended or a command arrives.
        """
        ...

    async def append(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
        """Append events after position `after`, all or none, and return the new position.

        Raises:
            Stale: the log has grown, or another driver has claimed the session; this writer lost the claim.
        """
        ...

    async def events(self, session: str, after: int = 0, turn: str | None = None) -> list[Entry]:
        """The log after position `after`: all entries, or those of one turn."""
        ...

    async def event_page(self, session: str, after: int, most: int) -> list[Entry]:
        """The log after position `after`, at most `most` entries."""
        ...

    async def indexed_events(
        self, session: str, index: EventIndex, key: str | None = None, limit: int | None = None
    ) -> list[Entry]:
        """The events that `core.projections.event_index` gives this key, or any key of that index: oldest first, at most `limit`.

        The cost grows with what is found, not with the log.
        """
        ...

    async def head(self, session: str) -> int:
        """The position of the last event; 0 before the first."""
        ...

    async def heads(self, sessions: Sequence[str]) -> dict[str, int]:
        """The positions of many sessions in one query; unknown sessions are left out."""
        ...

    async def open_turns(self, session: str) -> list[str]:
        """The turns that have not ended, oldest first."""
        ...

    async def turn_starts(self, session: str, before: int, limit: int) -> list[tuple[int, str]]:
        """The last turns that started before a position, newest first: the position of its first event, and the turn."""
        ...

    async def info(self, session: str) -> SessionInfo:
        """The entry of one session."""
        ...

    async def sessions(
        self,
        awake: bool = False,
        *,
        quarantined: bool = False,
        limit: int | None = None,
        after: tuple[float, str] | None = None,
    ) -> list[SessionInfo]:
        """The sessions, oldest first, by (created, id); `after` is that pair of the last row of the previous page.

        With `awake` only those to be driven, now or when they are due; with `quarantined` only the quarantined ones.
        """
        ...

    async def overdue(self, before: float, now: float) -> list[str]:
        """Sessions to be driven without activity since `before`; of concurrent callers, one gets each session."""
        ...

    async def path(self, session: str, leaf: str | None, limit: int | None = None) -> list[Message]:
        """The branch that ends at `leaf`, oldest first; with a limit, the last so many.

        The cost grows with its length only.
        """
        ...

    async def tree(self, session: str) -> MessageTree:
        """All messages of a session."""
        ...

    async def gates(self, session: str | None = None, *, tenant: str | None = None) -> list[GateRow]:
        """The open gates: of one session, of a tenant, or of the whole store."""
        ...

    async def grants(self, session: str, now: float) -> list[Grant]:
        """The valid grants of a session: its own, and those of its tenant."""
        ...

    async def spent(self, *, session: str = "", top: str = "", tenant: str = "", since: float = 0.0) -> Spent:
        """Usage of a session with its sub-agent runs, of the sub-agent runs of the turn `top`, or of a tenant.

        Running turns count with the steps and calls they have finished. For a tenant: turns with events after `since`,
        to within a minute.
        """
        ...

    async def recorded_trees(self, session: str) -> dict[str, str]:
        """The last recorded tree of each root; for a restored log only of the session's own root ("")."""
        ...


class CommandInbox(Protocol):
    """Admission: checks commands, and keeps the admitted ones until an event has completed them."""

    async def admit(self, command: AnyCommand) -> Receipt:
        """Check a command and store it, or raise.

        Raises:
            KeyConflict: the key was used before, for another command.
            UnknownSession, UnknownTurn, UnknownMessage, UnknownGate, UnknownGrant: it does not exist, or belongs to
                another tenant.
            HashMismatch: the answer is for other bytes than the gate shows.
            AnswerUnfit: the answer does not fit the gate.
            GateClosed: the turn is over or being cancelled.
            AnsweredOtherwise: the gate has another answer.
            GateExpired: the gate has expired.
            ClaimedOtherwise: another client holds the claim of this call.
            NotClaimed: the client that answers does not hold the claim.
            SessionBusy: a revert, or a message sent `alone`, while a turn is open or queued; another agent is selected
                while a turn is open.
        """
        ...

    async def inbox(self, session: str) -> list[AnyCommand]:
        """The admitted commands that no event has completed yet, oldest first."""
        ...

    async def turn_of_command(self, session: str, key: str) -> str:
        """The turn that the command with this key requested, or is about; "" if the store has no such command."""
        ...

    async def has_turn_command(self, session: str, turn: str) -> bool:
        """Whether the store has a command for this turn: started, queued, or dropped before its start."""
        ...

    async def lock_for_process(self) -> None:
        """Take the lock of the one process that drives this store, for an engine that works in one process only.

        Raises:
            StoreBusy: another process holds the lock.
        """
        ...


class SessionDirectory(Protocol):
    """Lists, counts and search over many sessions, and the import and erasure of whole sessions."""

    async def infos(self, sessions: Sequence[str]) -> dict[str, SessionInfo]:
        """The entries of those of these sessions that exist, by id."""
        ...

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
        """A page of a tenant's sessions, without sub-agent runs: last touched first, by (touched, id).

        `before` is that pair of the last row of the previous page; `since` leaves out sessions touched before that
        time. To organize a session (`UpdateSession`) does not touch it. `reader`: only the sessions that
        this reader may see, without temporary ones.
        """
        ...

    async def gate_page(
        self,
        session: str | None = None,
        *,
        tenant: str | None = None,
        limit: int | None = 200,
        after: tuple[float, str, str] | None = None,
    ) -> list[tuple[str, GateRow]]:
        """A page of the open gates, each with its session: oldest first, by (opened, session, gate).

        Of one session and its sub-agent runs, of a tenant, or of the whole store. `after` is that triple of the last
        row of the previous page. Without a limit (None) all are returned.
        """
        ...

    async def sessions_with_open_gates(self, sessions: Sequence[str]) -> set[str]:
        """Those of these sessions that have an open gate, in themselves or in a sub-agent run."""
        ...

    async def sessions_with_events(self, sessions: Sequence[str], index: EventIndex) -> set[str]:
        """Those of these sessions and of their sub-agent runs that have an event in an index."""
        ...

    async def count_all(self) -> StoreCounts:
        """Counts over the whole store. It reads no bodies, so it may be called often."""
        ...

    async def count_active_turns(self, tenant: str) -> int:
        """The number of running or queued turns of a tenant, sub-agent runs included, without those that wait for a
        person.
        """
        ...

    async def tenant_grants(self, tenant: str, now: float, limit: int = 200) -> list[tuple[str, Grant]]:
        """The valid grants of a tenant, newest first, each with the session it was given in."""
        ...

    async def usage_by_day(self, tenant: str, since: float = 0.0) -> list[tuple[int, str, Spent]]:
        """Usage of a tenant's turns by day (since 1970, UTC) and agent, oldest first."""
        ...

    async def usage_by_user(self, tenant: str, since: float = 0.0) -> list[tuple[str, str, str, Spent]]:
        """Usage of a tenant's turns by the user who started them, model and agent; "" is an unknown user or model.

        A turn counts for its last model.
        """
        ...

    async def record_usage(self, record: UsageRecord) -> None:
        """Count what a request outside of a turn used, for its tenant, user and model. The same id counts once."""
        ...

    async def user_spent(self, tenant: str, user: str, since: float = 0.0) -> Spent:
        """Usage of the turns that a user started, of their sub-agent runs, and of the user's requests outside of turns."""
        ...

    async def retry(self, session: str) -> bool:
        """Let a quarantined session be claimed again at once; False if it was not quarantined, and had no failed tries."""
        ...

    async def search(
        self,
        text: str,
        tenant: str | None = None,
        limit: int = 50,
        *,
        by: str | None = None,
        reader: Reader | None = None,
    ) -> list[tuple[str, Message]]:
        """Messages with all these words (or words with these prefixes), newest first, with their sessions.

        An answer is found once its turn is over; deleted and hidden messages are not. `by`: only in the sessions that
        this user started, without those of sub-agents. `reader`: only in the sessions that this reader may see. Both
        leave temporary sessions out.
        """
        ...

    async def refers_to_blob(self, session: str, blob: str) -> bool:
        """Whether a session, or one of its sub-agent runs (at any depth), refers to a blob."""
        ...

    async def restore(self, session: str, tenant: str, events: Sequence[Event]) -> None:
        """Create a session from an imported log. Its grants are not restored.

        Raises:
            KeyConflict: a session with this id exists, or existed.
        """
        ...

    async def erase(self, session: str) -> None:
        """Erase the content of a session and its sub-agent runs. Their ids and log positions stay.

        Raises:
            SessionBusy: a turn is running; cancel it first.
        """
        ...

    def restrict_to_tenant(self, tenant: str, reader: Reader | None = None) -> AbstractContextManager[None]:
        """A context in which reads are this tenant's, and one reader's: with row-level security, rows of other tenants
        and sessions that are private to others are invisible.
        """
        ...


class BlobStore(Protocol):
    """Bytes by their hash: files, and outputs too large for an event."""

    async def put_blob(self, data: bytes) -> str:
        """Store bytes under their hash, and return it."""
        ...

    async def blob(self, name: str) -> bytes:
        """The bytes with this hash."""
        ...


class TurnStore(EventLog, CommandInbox, Protocol):
    """The two ports that are enough to run turns; a new store implements them first."""

    async def aclose(self) -> None:
        """Close connections and files. Acknowledged writes are durable."""
        ...


class Store(TurnStore, SessionDirectory, BlobStore, Protocol):
    """A whole store: the log, the inbox, the directory, the blobs, and the accounts, memory files, schedules, webhooks and settings beside them."""

    @property
    def accounts(self) -> Accounts:
        """The accounts, stored beside the sessions."""
        ...

    @property
    def user_memory(self) -> UserMemory:
        """The memory files of users, stored beside the sessions."""
        ...

    @property
    def schedules(self) -> ScheduleStore:
        """The schedules, stored beside the sessions."""
        ...

    @property
    def sharing(self) -> SharingStore:
        """With whom conversations are shared, stored beside the sessions."""
        ...

    @property
    def settings(self) -> SettingStore:
        """The settings that administrators change at run time."""
        ...

    @property
    def webhooks(self) -> WebhookStore:
        """The webhooks, and the outbox that appends write."""
        ...
