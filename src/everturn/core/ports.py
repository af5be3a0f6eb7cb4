"""Where the world comes in: the only seams. That of tools is in `core.tooling`. Each adapter of a port passes the suite
of the same name in `everturn.testing`; the in-memory ones are the reference.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from msgspec import Struct

from everturn.core.accounts import Accounts
from everturn.core.asking import Grant
from everturn.core.chunks import Chunk
from everturn.core.commands import AnyCommand
from everturn.core.deltas import Frame
from everturn.core.events import (
    Entry,
    Event,
    GateAnswered,
    GateOpened,
    TitleSet,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnParked,
    TurnStarted,
)
from everturn.core.gates import GateRow
from everturn.core.messages import Message
from everturn.core.options import Spent
from everturn.core.parts import Output
from everturn.core.requests import ModelRequest
from everturn.core.tooling import (
    Blobs,
    Files,
    Preview,
    Progress,
    Question,
    SubAnswer,
    SubTurn,
    Tool,
    ToolContext,
    ToolSource,
)
from everturn.core.tree import Tree


class Model(Protocol):
    """Answers a request with a stream of chunks, in the batches in which they arrive.

    Closing the iterator ends the request. A stream without a `FinishChunk` was cut off. A model that is not for chat
    says so with an attribute `modality`; see `core.modality` for what its request holds.

    Raises:
        ModelError: the request failed, or the stream broke.
    """

    @property
    def name(self) -> str:
        """The badge a face shows."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Ask; each item is what one read from the wire brought."""
        ...


class Receipt(Struct, frozen=True):
    """A command that is safe. For a repeat it holds the command as it was admitted first."""

    command: AnyCommand
    is_new: bool


class SessionInfo(Struct, frozen=True):
    """A session in a list."""

    id: str
    title: str = ""
    leaf: str | None = None
    is_awake: bool = False  # it has commands to act on, turns that do not merely wait, or tools that outlived theirs
    due: float = 0.0  # when somebody should look at it again although nothing comes; 0: never
    stuck: str = ""  # why nobody drives it any more, until somebody asks something new of it
    tenant: str = "local"
    agent: str = ""  # of the turn that was asked for last
    by: str = ""  # who began it
    above: str = ""  # the session whose turn had it begun, for a sub-turn
    created: float = 0.0
    touched: float = (
        0.0  # when it was last asked for something, or a turn began, asks, waits or is over (see `is_shown`)
    )


_SHOWN: frozenset[type[Event]] = frozenset(
    (TurnStarted, GateOpened, GateAnswered, TurnParked, TurnCompleted, TurnFailed, TurnCancelled, TitleSet)
)


def is_shown(event: Event) -> bool:
    """Whether an event changes what a list of sessions shows, so that `touched` moves. The steps of a turn do not:
    a list is ordered by it, and would be written anew with each of them.
    """
    return type(event) in _SHOWN


TRIES = 3  # claims without a move after which a session rests before it is claimed again
RETRY_PAUSES = (3.0, 7.0, 15.0)  # seconds it rests after the third, the fourth and the fifth claim without a move
STUCK_FOR = 600.0  # seconds it rests after each further one: by then it is it that stops its drivers, not a neighbour
RESTS = "session {session} stopped its driver {tries} times without moving on; it is tried again by itself, apart from others"
STUCK = "session {session} stopped its driver {tries} times without moving on and is left alone; send or cancel to try again"


def retry_pause(tries: int) -> float:
    """Seconds for which a session rests that was claimed so often without a move.

    A worker that dies takes the tries of all its sessions along, and cannot say which of them stopped it. So the quick tries
    are followed by a few at growing distances, at which a session meets other neighbours; one that stops its driver then, too,
    is left alone.
    """
    if tries < TRIES:
        return 0.0
    return RETRY_PAUSES[tries - TRIES] if tries < TRIES + len(RETRY_PAUSES) else STUCK_FOR


def is_stuck(tries: int) -> bool:
    """Whether a session that was claimed so often without a move is left alone (quarantined) for a long time."""
    return tries >= TRIES + len(RETRY_PAUSES)


class Claim(Struct, frozen=True):
    """A session as its new driver finds it. From now on only appends with this epoch are taken."""

    epoch: int
    head: int
    info: SessionInfo
    inbox: Sequence[AnyCommand] = ()
    turns: Sequence[Sequence[Entry]] = ()  # the events of every turn that is open, or whose tools are still out
    tries: int = 1  # how many have claimed it since it last moved, this one included


class Tally(Struct, frozen=True):
    """What is counted of a whole store, for whoever looks after it."""

    gates: int = 0  # that stand open
    live: int = 0  # sessions that somebody should drive, now or when they are due
    stuck: int = 0  # sessions that stopped their drivers again and again, and are left alone for now
    oldest: float = (
        0.0  # since when a command waits for somebody to act on it, in a session no turn of which runs; 0: none
    )


class Store(Protocol):
    """The log, the inbox and their projections. Every write is one transaction."""

    async def admit(self, command: AnyCommand) -> Receipt:
        """Check a command at the door and keep it, or say why not.

        Raises:
            KeyConflict: the key was used before, for something else.
            UnknownSession: it is not there, or another tenant's; so are UnknownTurn, UnknownMessage, UnknownGate.
            HashMismatch: the answer is for other bytes than the gate shows.
            AnswerUnfit: it is no answer to what the gate asks.
            GateClosed: its turn is over or being cancelled; AnsweredOtherwise, GateExpired: it was, or has.
            ClaimedOtherwise: another client does this call; NotClaimed: it is not this client's to answer.
            UnknownGrant: there is none to be revoked.
            SessionBusy: files are not reverted, nor is anything sent `alone`, while a turn is open, or asked for.
        """
        ...

    async def inbox(self, session: str) -> list[AnyCommand]:
        """The admitted commands no event has answered yet, oldest first."""
        ...

    async def hold(self) -> None:
        """Be the one process that drives what is in here, for an engine that knows only its own process.

        Raises:
            StoreBusy: another process is.
        """
        ...

    async def claim(self, session: str, now: float) -> Claim | None:
        """Become the driver of a session; None when there is nothing to do in it by `now`.

        Whoever claimed it before can write no more. A session that is claimed again and again and never moves kills
        its drivers: after three claims it is claimed again only after pauses that grow (`retry_pause`), and then left
        alone until a new command or a long time gives it another chance.

        Raises:
            SessionStuck: it rests until `retry_at`, or (0) is left alone.
            UnknownSession: it is not there.
        """
        ...

    async def release(self, session: str, epoch: int, tries: int = 0) -> None:
        """Say that a driver which wrote nothing has ended well, so that its claim does not count; `tries` others do."""
        ...

    async def append(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
        """Write events behind position `after`, all or none, and return the new position.

        Raises:
            Stale: the log has moved on, or the session was claimed since; the writer is no longer the one writer.
        """
        ...

    async def events(self, session: str, after: int = 0, turn: str | None = None) -> list[Entry]:
        """The log behind `after`: all of it, or one turn's."""
        ...

    async def page(self, session: str, after: int, most: int) -> list[Entry]:
        """The log behind `after`, at most so many entries of it."""
        ...

    async def head(self, session: str) -> int:
        """The position of the last event; 0 before the first."""
        ...

    async def heads(self, sessions: Sequence[str]) -> dict[str, int]:
        """The positions of many sessions in one query; those that are not there are left out."""
        ...

    async def open_turns(self, session: str) -> list[str]:
        """The turns that are not over, oldest first."""
        ...

    async def asked_for(self, session: str, turn: str) -> bool:
        """Whether somebody asked for a turn whose command is still kept: begun, waiting, or dropped before it began."""
        ...

    async def under_way(self, tenant: str) -> int:
        """How many turns of a tenant run or are asked for, sub-turns among them; those that wait for somebody do not."""
        ...

    async def path(self, session: str, leaf: str | None, limit: int | None = None) -> list[Message]:
        """The branch that ends at `leaf`, oldest first; with a limit, the last so many. Its cost is its own length."""
        ...

    async def tree(self, session: str) -> Tree:
        """All messages of a session."""
        ...

    async def gates(self, session: str | None = None, *, tenant: str | None = None) -> list[GateRow]:
        """The gates that stand open: in one session, in all of a tenant's, or in all there are."""
        ...

    async def gate_page(
        self,
        session: str | None = None,
        *,
        tenant: str | None = None,
        limit: int | None = 200,
        after: tuple[float, str, str] | None = None,
    ) -> list[tuple[str, GateRow]]:
        """A page of the gates that stand open, each with its session: the oldest first, by (opened, session, gate).

        Of one session and its sub-turns, of all of a tenant's, or of all there are. `after` is that triple of the last one
        that was seen; None as the limit is all of them.
        """
        ...

    async def waiting(self, sessions: Sequence[str]) -> set[str]:
        """Of these sessions, those in which a gate stands open, or in a sub-turn of theirs."""
        ...

    async def tally(self) -> Tally:
        """What is counted of the whole store. It reads no bodies, so it may be asked often."""
        ...

    async def grants(self, session: str, now: float) -> list[Grant]:
        """The remembered answers that hold in a session at this time: its own, and those of its tenant."""
        ...

    async def granted(self, tenant: str, now: float, limit: int = 200) -> list[tuple[str, Grant]]:
        """The remembered answers of a tenant that hold somewhere, newest first, each with the session it was given in."""
        ...

    async def spent(self, *, session: str = "", top: str = "", tenant: str = "", since: float = 0.0) -> Spent:
        """What was used: in a session with all sub-turns of it, by the sub-turns of the turn `top`, or by a tenant.

        Turns under way count with the steps and calls they have ended. Of a tenant, turns that moved after `since`.
        """
        ...

    async def roots(self, session: str) -> dict[str, str]:
        """The tree that was last recorded for each root; of a restored log for the session's own ("") only."""
        ...

    async def sessions(
        self,
        awake: bool = False,
        *,
        stuck: bool = False,
        limit: int | None = None,
        after: tuple[float, str] | None = None,
    ) -> list[SessionInfo]:
        """The sessions, the oldest first, by (created, id); `after` is that pair of the last one that was seen.

        With `awake` only those that somebody should drive, now or when they are due; with `stuck` only those that nobody
        drives any more.
        """
        ...

    async def listed(
        self, tenant: str, *, limit: int = 50, before: tuple[float, str] | None = None, since: float = 0.0
    ) -> list[SessionInfo]:
        """A page of a tenant's sessions, without those of sub-turns: those touched last come first, by (touched, id).

        `before` is that pair of the last one that was seen; `since` leaves out what was touched before that time.
        """
        ...

    async def used(self, tenant: str, since: float = 0.0) -> list[tuple[int, str, Spent]]:
        """What a tenant's turns have used, by day (since 1970, UTC) and agent, oldest first."""
        ...

    async def mentions(self, session: str, blob: str) -> bool:
        """Whether a session, or one of its sub-turns and theirs, speaks of a blob."""
        ...

    async def overdue(self, before: float, now: float) -> list[str]:
        """Sessions to be driven that nobody has touched since `before`; of many who ask, one is told of each."""
        ...

    async def info(self, session: str) -> SessionInfo:
        """One session."""
        ...

    async def infos(self, sessions: Sequence[str]) -> dict[str, SessionInfo]:
        """Those of these sessions that there are, by id."""
        ...

    async def search(self, text: str, tenant: str | None = None, limit: int = 50) -> list[tuple[str, Message]]:
        """Messages with all these words (or words that begin so), newest first, with their sessions.

        An answer is found when its turn is over; what was deleted or hidden is not.
        """
        ...

    async def put_blob(self, data: bytes) -> str:
        """Keep bytes under their hash."""
        ...

    async def blob(self, name: str) -> bytes:
        """The bytes behind a hash."""
        ...

    async def restore(self, session: str, tenant: str, events: Sequence[Event]) -> None:
        """Make a session that is not there yet from the log of another. Nothing in it is remembered as granted.

        Raises:
            KeyConflict: there is, or was, a session of this name.
        """
        ...

    async def erase(self, session: str) -> None:
        """Take everything out of a session and those of its sub-turns but that they were there: names and positions stay.

        Raises:
            SessionBusy: a turn is under way; cancel it first.
        """
        ...

    def within(self, tenant: str) -> AbstractContextManager[None]:
        """Read inside of it as this tenant: where the store has walls, rows of others are not there for such reads."""
        ...

    @property
    def accounts(self) -> Accounts:
        """Who may come in, kept beside the sessions."""
        ...

    async def aclose(self) -> None:
        """Let go of what it holds. What was acknowledged is safe."""
        ...


class Engine(Protocol):
    """Sees to it that a woken session is driven: by one driver at a time, and again if that one dies."""

    is_durable: bool
    """Whether its wakes outlive this process. If not, the one process wakes what it finds unfinished at its start."""

    async def wake(self, session: str, at: float | None = None, *, is_reminder: bool = False) -> None:
        """Ask that somebody drive a session, at once or at a time. Many wakes are as good as one.

        A reminder, for what may merely stand in line, adds nothing to a line in which one of it stands.
        """
        ...

    async def serve(self, drive: Callable[[str], Awaitable[None]]) -> None:
        """Give the engine the function that drives; it returns once sessions can be woken."""
        ...

    async def leave(self) -> None:
        """Begin nothing new here; what is under way goes on until it is closed."""
        ...

    async def aclose(self) -> None:
        """Stop driving. What was under way stays in the log and goes on elsewhere."""
        ...


class Listening(Protocol):
    """A driver's ear."""

    async def wait(self) -> None:
        """Return once the session was signalled since the last time."""
        ...

    def close(self) -> None:
        """Stop listening."""
        ...


class Tail(Protocol):
    """A reader's end of a turn's live edge."""

    def __aiter__(self) -> AsyncIterator[Sequence[Frame]]: ...

    async def __anext__(self) -> Sequence[Frame]: ...

    async def aclose(self) -> None:
        """Stop reading."""
        ...


class Bus(Protocol):
    """Carries the live edge. It may lose frames: every reader can make them up from the log."""

    def publish(self, turn: str, frames: Sequence[Frame]) -> None:
        """Show frames of a turn to whoever follows it."""
        ...

    def tail(self, turn: str) -> Tail:
        """Follow a turn: what of the present step is still known, then what comes, until it is closed."""
        ...

    def close(self, turn: str) -> None:
        """The turn is over; those who follow it have been told, and nothing more comes."""
        ...

    def signal(self, session: str) -> None:
        """Tell whoever drives a session that its inbox has something."""
        ...

    def listen(self, session: str) -> Listening:
        """Hear the signals of a session."""
        ...


class Timer(Protocol):
    """Something that will happen unless it is cancelled."""

    def cancel(self) -> None:
        """Let it not happen."""
        ...


class Clock(Protocol):
    """Time, so that a test can own it."""

    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Call back after `delay` seconds."""
        ...


class Ids(Protocol):
    """Fresh names, so that a test can foresee them."""

    def new(self, kind: str) -> str:
        """A name nobody has used."""
        ...


__all__ = [
    "Blobs",
    "Bus",
    "Claim",
    "Clock",
    "Engine",
    "Files",
    "Ids",
    "Listening",
    "Model",
    "Output",
    "Preview",
    "Progress",
    "Question",
    "Receipt",
    "SessionInfo",
    "Store",
    "SubAnswer",
    "SubTurn",
    "Tail",
    "Tally",
    "Timer",
    "Tool",
    "ToolContext",
    "ToolSource",
]
