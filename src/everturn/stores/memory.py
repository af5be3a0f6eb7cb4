"""The reference store: everything in dictionaries, nothing on disk, the same checks at the door as any other.

No method awaits anything between its first read and its last write, so each is one transaction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import cast

from everturn.core.asking import Claimed, Grant
from everturn.core.commands import Answer, AnyCommand, Cancel, Delete, Late, Revert, Revoke, Select, Send, Stir, Take
from everturn.core.events import (
    CallSettled,
    CallStirred,
    CommandDropped,
    Entry,
    Event,
    FilesChanged,
    FilesReverted,
    GateAnswered,
    GateClaimed,
    GrantRevoked,
    LateArrived,
    LeafSelected,
    LimitReached,
    MessageAdded,
    MessageDeleted,
    StepRestarted,
    TurnCancelled,
    TurnCompleted,
    TurnEnding,
    TurnFailed,
    TurnParked,
    TurnStarted,
)
from everturn.core.gates import GateRow, apply_to_gates, check_answer, check_claim
from everturn.core.messages import Message
from everturn.core.options import Spent
from everturn.core.ports import (
    RESTS,
    STUCK,
    STUCK_FOR,
    TRIES,
    Claim,
    Receipt,
    SessionInfo,
    Tally,
    is_shown,
    is_stuck,
    retry_pause,
)
from everturn.core.tree import Tree
from everturn.errors import (
    GateClosed,
    KeyConflict,
    SessionBusy,
    SessionStuck,
    Stale,
    UnknownMessage,
    UnknownSession,
    UnknownTurn,
)
from everturn.stores.accounts import MemoryAccounts
from everturn.stores.books import Books
from everturn.stores.checking import BUSY, NOT_ALONE, began, session_above
from everturn.stores.mentions import blobs_in
from everturn.stores.words import asked, matches

_ACTED_ON = frozenset(
    (
        TurnStarted,
        MessageAdded,
        GateAnswered,
        GateClaimed,
        CallStirred,
        TurnEnding,
        LateArrived,
        LeafSelected,
        MessageDeleted,
        GrantRevoked,
        FilesReverted,
        CommandDropped,
    )
)
_TERMINAL = frozenset((TurnCompleted, TurnFailed, TurnCancelled))


class _Session:
    def __init__(self, tenant: str) -> None:
        self.tenant = tenant
        self.log: list[Entry] = []
        self.by_turn: dict[str, list[Entry]] = {}
        self.tree = Tree()
        self.gates: dict[str, GateRow] = {}
        self.open_turns: dict[str, bool] = {}  # turn -> whether it is parked
        self.admitted: dict[str, AnyCommand] = {}
        self.turns: set[str] = set()  # every turn somebody asked for, begun or not
        self.inbox: dict[str, AnyCommand] = {}
        self.out: dict[str, set[str]] = {}  # turn -> its calls whose tools run on without it
        self.deadlines: dict[str, float] = {}  # open turn -> when it is ended, or has used up its time
        self.claims: dict[str, tuple[str, Claimed]] = {}  # gate -> the claim admitted last, and by which command
        self.roots: dict[str, str] = {}  # the tree that was last recorded for each
        self.restored = 0  # the position up to which the log came from elsewhere
        self.epoch = self.tries = 0
        self.touched = 0.0
        self.stuck = ""
        self.agent: str = ""
        self.by: str = ""
        self.above: str = ""
        self.created: float = 0.0
        self.moved: float = 0.0
        self.mentions: set[str] = set()  # blobs

    def keep(self, command: AnyCommand) -> None:
        """Take a command in that was found to be good."""
        self.admitted[command.key] = self.inbox[command.key] = command
        self.tries, self.stuck, self.touched = 0, "", max(self.touched, command.at)
        self.moved = max(self.moved, command.at)
        self.mentions.update(blobs_in(command))
        if isinstance(command, Send):
            if not self.turns:
                self.by, self.above, self.created = command.options.by, session_above(command.options), command.at
            self.agent = command.options.agent
            self.turns.add(command.turn)

    def apply(self, event: Event) -> None:
        entry = Entry(len(self.log) + 1, event)
        self.log.append(entry)
        self.tree.apply(event)
        apply_to_gates(self.gates, event)
        kind = type(event)
        turn = getattr(event, "turn", None)
        if turn is not None:
            self.by_turn.setdefault(turn, []).append(entry)
            if kind in _TERMINAL:
                self.open_turns.pop(turn, None)
                self.deadlines.pop(turn, None)
            elif kind is not GateClaimed and (
                turn in self.open_turns or kind is TurnStarted
            ):  # with a claim it waits on
                self.open_turns[turn] = kind is TurnParked
            is_late = kind is LimitReached and cast("LimitReached", event).limit == "seconds"
            if kind is TurnStarted or (is_late and turn in self.open_turns):
                self.deadlines[turn] = self._deadline(turn, kind is LimitReached)
            elif kind is CallSettled and cast("CallSettled", event).out:
                self.out.setdefault(turn, set()).add(cast("CallSettled", event).call)
            elif kind is LateArrived and turn in self.out:
                self.out[turn].discard(cast("LateArrived", event).call)
                if not self.out[turn]:
                    del self.out[turn]
        if kind in _ACTED_ON:
            self.inbox.pop(cast("CommandDropped", event).command, None)
        if kind is GateClaimed:
            self._keep_claims()
        elif kind in (FilesChanged, FilesReverted):
            root = cast("FilesChanged", event).root
            if not root or entry.seq > self.restored:  # a log may come from anybody: our folders are not its
                self.roots[root] = cast("FilesChanged", event).after

    def _keep_claims(self) -> None:
        """What the door has given last counts, also before the log says so."""
        for gate, (key, claim) in self.claims.items():
            if key in self.inbox:
                self.gates[gate].claim = claim

    def _deadline(self, turn: str, is_limited: bool) -> float:
        started = self.by_turn[turn][0].event
        return started.options.due(started.at, is_limited) if isinstance(started, TurnStarted) else 0.0

    def rewind(self, seq: int) -> None:
        """Be as it was at `seq`: an append that failed has written nothing."""
        log, admitted, turns, epoch, tries = self.log[:seq], self.admitted, self.turns, self.epoch, self.tries
        listed = (self.agent, self.by, self.above, self.created, self.moved, self.mentions)
        claims, restored = self.claims, self.restored
        self.__init__(self.tenant)
        self.admitted, self.inbox, self.turns, self.restored = admitted, dict(admitted), turns, restored
        self.epoch, self.tries = epoch, tries
        self.agent, self.by, self.above, self.created, self.moved, self.mentions = listed
        for entry in log:
            self.apply(entry.event)
        for command in self.inbox.values():
            if isinstance(command, Answer):
                self.gates[command.gate].verdict = command.verdict
        self.claims = claims
        self._keep_claims()

    def refuse_if_cancelled(self, row: GateRow) -> None:
        if any(isinstance(c, Cancel) and c.turn == row.gate.turn for c in self.inbox.values()):
            raise GateClosed(f"gate {row.gate.id} is closed: its turn is being cancelled")

    def is_asked_by(self, session: str) -> bool:
        """Whether a sub-turn of a session, or of one above that, is to begin here."""
        above = [command.options.above for command in self.inbox.values() if isinstance(command, Send)]
        return any(one is not None and f"{session}-".startswith(f"{one.session}-") for one in above)

    @property
    def is_taken(self) -> bool:
        """Whether a turn is open, or asked for."""
        return bool(self.open_turns) or any(isinstance(command, Send) for command in self.inbox.values())

    @property
    def is_awake(self) -> bool:
        return bool(self.inbox or self.out) or not all(self.open_turns.values())

    @property
    def due(self) -> float:
        asked = (row.due for row in self.gates.values() if row.is_open and row.verdict is None)
        return min((time for time in (*asked, *self.deadlines.values()) if time), default=0.0)


class MemoryStore:
    """A store for one process and one lifetime."""

    def __init__(self) -> None:
        self._sessions: dict[str, _Session] = {}
        self._blobs: dict[str, bytes] = {}
        self._erased: set[str] = set()
        self._books = Books()
        self._accounts = MemoryAccounts()

    def _session(self, session: str) -> _Session:
        if session in self._erased:
            raise UnknownSession(f"session {session!r} was erased", is_erased=True)
        if session not in self._sessions:
            raise UnknownSession(f"there is no session {session!r}")
        return self._sessions[session]

    async def admit(self, command: AnyCommand) -> Receipt:
        """Check a command at the door and keep it, or say why not."""
        if command.session in self._erased:
            raise UnknownSession(f"session {command.session!r} was erased", is_erased=True)
        session = self._sessions.get(command.session)
        if session is None:
            if not isinstance(command, Send):
                raise UnknownSession(f"there is no session {command.session!r}")
            session = _Session(command.tenant)
        elif session.tenant != command.tenant:
            raise UnknownSession(f"there is no session {command.session!r}")
        if (earlier := session.admitted.get(command.key)) is not None:
            if earlier.body != command.body:
                raise KeyConflict(f"the key {command.key!r} was used before, for something else")
            return Receipt(earlier, is_new=False)
        if not self._check(session, command):
            return Receipt(command, is_new=False)
        self._sessions[command.session] = session
        session.keep(command)
        return Receipt(command, is_new=True)

    def _check(self, session: _Session, command: AnyCommand) -> bool:  # noqa: C901 - the door, command by command
        """Whether a command is news; it raises what is wrong with one that cannot be taken."""
        match command:
            case Send(session=name, parent=parent, at_leaf=at_leaf, turn=turn, message=message, alone=alone):
                if alone and session.is_taken:
                    raise SessionBusy(NOT_ALONE.format(session=name))
                if turn in session.turns or message in session.tree.messages:
                    raise KeyConflict(f"turn {turn!r} or message {message!r} is there already; make new ids")
                if not at_leaf and parent is not None:
                    session.tree.get(parent)
            case Answer(gate=gate, hash=hash, verdict=verdict, at=at):
                row = session.gates.get(gate)
                if not check_answer(row, gate, hash, verdict, at):
                    return False
                if row is not None:
                    # Taken at the door, in the same transaction: of two answers only one can be first.
                    session.refuse_if_cancelled(row)
                    row.verdict = verdict
            case Take(gate=gate, hash=hash, by=by, lease=lease, at=at, key=key):
                row = session.gates.get(gate)
                claim = check_claim(row, gate, hash, by, lease, at)
                if row is not None:
                    session.refuse_if_cancelled(row)
                    row.claim, session.claims[gate] = claim, (key, claim)
            case Cancel(turn=turn):
                if turn not in session.turns:
                    raise UnknownTurn(f"there is no turn {turn!r} in this session")
            case Late(turn=turn) | Stir(turn=turn):
                if turn not in session.by_turn:
                    raise UnknownTurn(f"there is no turn {turn!r} in this session")
            case Select(message=message):
                if message is not None:
                    session.tree.get(message)
            case Delete(message=message):
                session.tree.get(message)
            case Revoke(session=name, grant=grant):
                # Taken at the door like an answer: it holds no more, and of two who revoke it one is the first.
                self._books.revoke(name, session.tenant, grant)
            case Revert(session=name):
                if session.is_taken:
                    raise SessionBusy(BUSY.format(session=name))
        return True

    async def inbox(self, session: str) -> list[AnyCommand]:
        """The admitted commands no event has answered yet, oldest first."""
        return list(self._session(session).inbox.values())

    async def hold(self) -> None:
        """Nobody else can see it."""

    async def claim(self, session: str, now: float) -> Claim | None:
        """Become the driver of a session; None when there is nothing to do in it."""
        row = self._session(session)
        if not row.is_awake and not 0 < row.due <= now:
            return None
        if _rests(row, now):
            if not is_stuck(row.tries):
                pause = retry_pause(row.tries)
                raise SessionStuck(RESTS.format(session=session, tries=row.tries), row.touched + pause)
            row.stuck = STUCK.format(session=session, tries=row.tries)
            raise SessionStuck(row.stuck)
        row.epoch += 1
        row.tries += 1
        row.touched, row.stuck = now, ""
        turns = [row.by_turn[turn] for turn in row.by_turn if turn in row.open_turns or turn in row.out]
        return Claim(row.epoch, len(row.log), _info(session, row), list(row.inbox.values()), turns, row.tries)

    async def release(self, session: str, epoch: int, tries: int = 0) -> None:
        """Say that a driver which wrote nothing has ended well."""
        row = self._session(session)
        if row.epoch == epoch:
            row.tries = tries

    async def append(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
        """Write events behind position `after`, all or none, and return the new position."""
        row = self._session(session)
        if len(row.log) != after or epoch not in (None, row.epoch):
            raise Stale(f"session {session} is at {len(row.log)}, not at {after}: somebody else drives it")
        try:
            for event in events:
                row.apply(event)
        except BaseException:
            row.rewind(after)
            raise
        self._books.take(session, row.tenant, events)
        if any(type(event) is not StepRestarted for event in events):
            row.tries, row.touched = 1, max(row.touched, events[-1].at)  # it moved, and this claim with it
        row.moved = max((row.moved, *(event.at for event in events if is_shown(event))))
        row.mentions.update(name for event in events for name in blobs_in(event))
        return len(row.log)

    async def events(self, session: str, after: int = 0, turn: str | None = None) -> list[Entry]:
        """The log behind `after`: all of it, or one turn's."""
        row = self._session(session)
        if turn is None:
            return row.log[after:]
        entries = row.by_turn.get(turn, [])
        at = len(entries)
        while at and entries[at - 1].seq > after:
            at -= 1
        return entries[at:]

    async def page(self, session: str, after: int, most: int) -> list[Entry]:
        """The log behind `after`, at most so many entries of it."""
        return self._session(session).log[after : after + most]

    async def head(self, session: str) -> int:
        """The position of the last event; 0 before the first."""
        return len(self._session(session).log)

    async def heads(self, sessions: Sequence[str]) -> dict[str, int]:
        """The positions of many sessions; those that are not there are left out."""
        found: dict[str, int] = {}
        for session in sessions:
            with suppress(UnknownSession):
                found[session] = len(self._session(session).log)
        return found

    async def open_turns(self, session: str) -> list[str]:
        """The turns that are not over, oldest first."""
        return list(self._session(session).open_turns)

    async def asked_for(self, session: str, turn: str) -> bool:
        """Whether somebody asked for a turn."""
        sends = (command for command in self._session(session).admitted.values() if isinstance(command, Send))
        return any(command.turn == turn for command in sends)

    async def under_way(self, tenant: str) -> int:
        """How many turns of a tenant run or are asked for."""
        rows = [row for row in self._sessions.values() if row.tenant == tenant]
        asked_for = sum(isinstance(command, Send) for row in rows for command in row.inbox.values())
        return asked_for + sum(not is_parked for row in rows for is_parked in row.open_turns.values())

    async def path(self, session: str, leaf: str | None, limit: int | None = None) -> list[Message]:
        """The branch that ends at `leaf`, oldest first; with a limit, the last of it."""
        path = self._session(session).tree.path(leaf)
        return path if limit is None else path[max(len(path) - limit, 0) :]

    async def tree(self, session: str) -> Tree:
        """All messages of a session."""
        return self._session(session).tree.copy()

    async def gates(self, session: str | None = None, *, tenant: str | None = None) -> list[GateRow]:
        """The gates that stand open: in one session, in all of a tenant's, or in all there are."""
        rows = self._sessions.values() if session is None else [self._session(session)]
        return [
            gate
            for row in rows
            if tenant in (None, row.tenant)
            for gate in row.gates.values()
            if gate.is_open and gate.verdict is None
        ]

    async def gate_page(
        self,
        session: str | None = None,
        *,
        tenant: str | None = None,
        limit: int | None = 200,
        after: tuple[float, str, str] | None = None,
    ) -> list[tuple[str, GateRow]]:
        """A page of the gates that stand open, oldest first, each with its session."""
        if session is not None:
            self._session(session)
        found = [
            (name, gate)
            for name, row in self._sessions.items()
            if tenant in (None, row.tenant) and (session is None or name in self._below(session))
            for gate in row.gates.values()
            if gate.is_open and gate.verdict is None
            if after is None or (gate.opened, name, gate.gate.id) > after
        ]
        return sorted(found, key=lambda pair: (pair[1].opened, pair[0], pair[1].gate.id))[:limit]

    async def waiting(self, sessions: Sequence[str]) -> set[str]:
        """Of these sessions, those in which a gate stands open, or in a sub-turn of theirs."""
        there = [name for name in sessions if name in self._sessions]
        return {name for name in there if await self.gate_page(name, limit=1)}

    async def tally(self) -> Tally:
        """What is counted of the whole store."""
        waits = (
            row.touched
            for row in self._sessions.values()
            if row.inbox and not row.stuck and all(row.open_turns.values())
        )
        stuck = sum(bool(row.stuck) for row in self._sessions.values())
        live = len(await self.sessions(awake=True))
        return Tally(len(await self.gates()), live, stuck, min(waits, default=0.0))

    async def grants(self, session: str, now: float) -> list[Grant]:
        """The remembered answers that hold in a session, oldest first."""
        return self._books.grants(session, self._session(session).tenant, now)

    async def granted(self, tenant: str, now: float, limit: int = 200) -> list[tuple[str, Grant]]:
        """The remembered answers of a tenant that hold somewhere, newest first."""
        return self._books.granted(tenant, now)[:limit]

    async def spent(self, *, session: str = "", top: str = "", tenant: str = "", since: float = 0.0) -> Spent:
        """What was used: in a session with all sub-turns of it, by the sub-turns of the turn `top`, or by a tenant."""
        return self._books.spent(session=session, top=top, tenant=tenant, since=since)

    async def roots(self, session: str) -> dict[str, str]:
        """The tree that was last recorded for each root."""
        return dict(self._session(session).roots)

    async def sessions(
        self,
        awake: bool = False,
        *,
        stuck: bool = False,
        limit: int | None = None,
        after: tuple[float, str] | None = None,
    ) -> list[SessionInfo]:
        """The sessions, oldest first; with `awake` those somebody should drive, with `stuck` those nobody drives."""
        infos = sorted(
            (_info(name, row) for name, row in self._sessions.items()), key=lambda one: (one.created, one.id)
        )
        found = [info for info in infos if (info.is_awake or info.due or not awake) and (info.stuck or not stuck)]
        return [info for info in found if after is None or (info.created, info.id) > after][:limit]

    async def listed(
        self, tenant: str, *, limit: int = 50, before: tuple[float, str] | None = None, since: float = 0.0
    ) -> list[SessionInfo]:
        """A page of a tenant's sessions, those touched last first."""
        found = [
            _info(name, row)
            for name, row in self._sessions.items()
            if row.tenant == tenant and not row.above and row.moved >= since
            if before is None or (row.moved, name) < before
        ]
        return sorted(found, key=lambda info: (info.touched, info.id), reverse=True)[: max(limit, 0)]

    async def used(self, tenant: str, since: float = 0.0) -> list[tuple[int, str, Spent]]:
        """What a tenant's turns have used, by day and agent."""
        return self._books.used(tenant, since)

    async def mentions(self, session: str, blob: str) -> bool:
        """Whether a session, or one of its sub-turns and theirs, speaks of a blob."""
        return any(blob in self._sessions[name].mentions for name in self._below(session))

    def _below(self, session: str) -> set[str]:
        """A session, those of its sub-turns, and theirs."""
        tenant, names = self._session(session).tenant, {session}
        while below := {
            name
            for name, row in self._sessions.items()
            if row.above in names and row.tenant == tenant and name not in names
        }:
            names |= below
        return names

    async def overdue(self, before: float, now: float) -> list[str]:
        """Sessions to be driven that nobody has touched since `before`; of many who ask, one is told of each."""
        late: list[str] = []
        for name, row in self._sessions.items():
            is_left = _rests(row, now)
            is_old = row.touched < before or row.touched > now + STUCK_FOR  # by a clock that was ahead
            if (row.is_awake or 0 < row.due <= now) and is_old and not is_left:
                row.touched = now - retry_pause(row.tries)  # as suspect as it was: if it fails again, it rests again
                late.append(name)
        return late

    async def info(self, session: str) -> SessionInfo:
        """One session."""
        return _info(session, self._session(session))

    async def infos(self, sessions: Sequence[str]) -> dict[str, SessionInfo]:
        """Those of these sessions that there are."""
        return {name: _info(name, self._sessions[name]) for name in sessions if name in self._sessions}

    async def search(self, text: str, tenant: str | None = None, limit: int = 50) -> list[tuple[str, Message]]:
        """Messages with these words, newest first, with their sessions; an answer is found when its turn is over."""
        words = asked(text)
        found = [
            (name, message)
            for name, row in self._sessions.items()
            if tenant in (None, row.tenant)
            for message in row.tree.messages.values()
            if message.id not in row.tree.deleted and not message.hidden and matches(words, message.text)
            if message.role != "assistant" or message.turn not in row.open_turns
        ]
        return found[::-1][:limit] if words else []

    async def put_blob(self, data: bytes) -> str:
        """Keep bytes under their hash."""
        name = hashlib.sha256(data).hexdigest()
        self._blobs[name] = data
        return name

    async def blob(self, name: str) -> bytes:
        """The bytes behind a hash."""
        if name not in self._blobs:
            raise UnknownMessage(f"there is no blob {name!r}")
        return self._blobs[name]

    async def restore(self, session: str, tenant: str, events: Sequence[Event]) -> None:
        """Make a session that is not there yet from the log of another."""
        if session in self._sessions or session in self._erased:
            raise KeyConflict(f"there is, or was, a session {session!r}; import it under another name")
        row = _Session(tenant)
        row.restored = len(events)
        for event in events:
            row.apply(event)
        row.turns.update(row.by_turn)
        row.agent, row.by = began(events)
        if events:
            row.created, row.moved = events[0].at, events[-1].at
        row.mentions.update(name for event in events for name in blobs_in(event))
        self._sessions[session] = row
        self._books.take(session, tenant, events, is_restored=True)

    async def erase(self, session: str) -> None:
        """Take everything out of a session, and out of those of its sub-turns, but that they were there."""
        if session in self._erased:
            return
        self._session(session)
        below = set(self._books.below(session)) | {
            name for name, row in self._sessions.items() if row.is_asked_by(session)
        }
        gone = [session, *(name for name in below if name.startswith(f"{session}-") and name in self._sessions)]
        for name in gone:
            row = self._sessions[name]
            if row.inbox or row.open_turns or row.out:
                raise SessionBusy(f"a turn is under way in session {name!r}; cancel it, then erase the session")
        for name in gone:
            del self._sessions[name]
            self._erased.add(name)
            self._books.erase(name)
            self._accounts.forget(name)

    @property
    def accounts(self) -> MemoryAccounts:
        """Who may come in."""
        return self._accounts

    def within(self, tenant: str) -> AbstractContextManager[None]:
        """There are no walls in here: who asks is held back by what is asked alone."""
        return nullcontext()

    async def aclose(self) -> None:
        """There is nothing to let go of."""


def _rests(row: _Session, now: float) -> bool:
    """Whether a session was claimed too often without a move; a time of a clock that was far ahead says nothing."""
    return row.tries >= TRIES and -STUCK_FOR < now - row.touched < retry_pause(row.tries)


def _info(name: str, row: _Session) -> SessionInfo:
    about = (row.agent, row.by, row.above, row.created, row.moved)
    return SessionInfo(name, row.tree.title, row.tree.leaf, row.is_awake, row.due, row.stuck, row.tenant, *about)
