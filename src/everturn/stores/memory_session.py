"""Session of the reference store: its log, its inbox, and the projections of both."""

from __future__ import annotations

from typing import cast

from everturn.core.commands import (
    AnyCommand,
    Cancel,
    ImportMessages,
    RateAnswer,
    ResolveGate,
    Send,
    UpdateSession,
)
from everturn.core.events import (
    AgentSelected,
    AnswerRated,
    AnswerStarted,
    CallClaimed,
    CallFinished,
    CallNotified,
    CallStarted,
    CommandDropped,
    Entry,
    Event,
    FilesChanged,
    FilesReverted,
    GateResolved,
    GrantRevoked,
    HookFinished,
    InstructionsSet,
    LateResultReceived,
    LeafSelected,
    LimitReached,
    MessageAdded,
    MessageDeleted,
    MessagesImported,
    PermissionDecided,
    SessionUpdated,
    StepFinished,
    StepStarted,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnFinishing,
    TurnStarted,
    TurnSuspended,
    WaitFinished,
)
from everturn.core.gate_rows import GateRow, apply_to_gates
from everturn.core.gates import CallClaim
from everturn.core.projections.event_index import EventIndex, index_key
from everturn.core.session_claims import (
    MAX_QUICK_CLAIMS,
    QUARANTINE_SECONDS,
    retry_pause,
)
from everturn.core.store_ports import (
    SessionFilter,
    SessionInfo,
    TurnSnapshot,
)
from everturn.core.tree import MessageTree
from everturn.core.waits import OpenWaits, apply_to_waits, next_wait
from everturn.errors import (
    GateClosed,
)
from everturn.stores.blob_refs import referenced_blobs
from everturn.stores.import_check import (
    parent_session,
)

_ACTED_ON = frozenset(
    (
        TurnStarted,
        MessageAdded,
        GateResolved,
        CallClaimed,
        CallNotified,
        WaitFinished,
        TurnFinishing,
        LateResultReceived,
        LeafSelected,
        AgentSelected,
        InstructionsSet,
        SessionUpdated,
        AnswerRated,
        MessageDeleted,
        MessagesImported,
        GrantRevoked,
        FilesReverted,
        CommandDropped,
    )
)
# The usual events of a step. Beyond the log and the tree they change nothing here.
_IN_TREE_ONLY = frozenset((AnswerStarted, StepStarted, StepFinished, PermissionDecided, CallStarted, HookFinished))
_TERMINAL = frozenset((TurnCompleted, TurnFailed, TurnCancelled))


class MemorySession:
    """A session of the store in memory: its log, and what the SQL store has in tables beside it."""

    def __init__(self, tenant: str) -> None:
        self.tenant = tenant
        self.log: list[Entry] = []
        self.by_turn: dict[str, list[Entry]] = {}
        self.by_index: dict[EventIndex, list[tuple[str, Entry]]] = {}  # each with its key
        self.tree = MessageTree()
        self.gates: dict[str, GateRow] = {}
        self.open_turns: dict[str, bool] = {}  # turn -> whether it is suspended
        self.admitted: dict[str, AnyCommand] = {}
        self.turns: set[str] = set()  # every requested turn, started or not
        self.inbox: dict[str, AnyCommand] = {}
        self.out: dict[str, set[str]] = {}  # turn -> its calls whose tools still run after they were answered
        self.deadlines: dict[str, float] = {}  # open turn -> when its time limit or its grace period ends
        self.waits: OpenWaits = {}
        self.claims: dict[str, tuple[str, CallClaim]] = {}  # gate -> the claim admitted last, and by which command
        self.roots: dict[str, str] = {}  # root -> the tree that was last recorded for it
        self.restored = 0  # the position up to which the log was imported
        self.epoch = self.tries = 0
        self.touched = 0.0
        self.quarantined = ""
        self.agent: str = ""  # that begins; from the first turn on the tree has it
        self.awaited_agent: str = ""
        self.by: str = ""
        self.parent: str = ""
        self.created: float = 0.0
        self.moved: float = 0.0
        self.pinned = self.archived = False
        self.labels: tuple[str, ...] = ()
        self.organized: float = 0.0
        self.mentions: set[str] = set()  # blobs
        self.snapshots: dict[str, TurnSnapshot] = {}  # of long turns that are open

    def keep(self, command: AnyCommand) -> None:
        """Store a command that passed the checks."""
        if isinstance(command, ImportMessages) and not (self.admitted or self.log):
            self.by, self.created = command.by, command.at
        self.admitted[command.key] = self.inbox[command.key] = command
        self.tries, self.quarantined, self.touched = 0, "", max(self.touched, command.at)
        self.awaited_agent = ""
        if not isinstance(command, UpdateSession | RateAnswer):
            self.moved = max(self.moved, command.at)
        self.mentions.update(referenced_blobs(command))
        if isinstance(command, Send):
            if not self.turns and not self.created:
                self.by, self.parent, self.created = command.options.by, parent_session(command.options), command.at
                self.agent = command.options.agent
            self.turns.add(command.turn)

    def apply(self, event: Event) -> None:
        entry = Entry(len(self.log) + 1, event)
        self.log.append(entry)
        self.tree.apply(event)
        self._index(entry)
        kind = type(event)
        turn = getattr(event, "turn", None)
        if turn is not None and kind in _IN_TREE_ONLY:
            self.by_turn.setdefault(turn, []).append(entry)
            if turn in self.open_turns:
                self.open_turns[turn] = False
            return
        apply_to_gates(self.gates, event)
        if turn is not None:
            self._apply_to_turn(turn, entry, event)
        if kind in _ACTED_ON:
            self.inbox.pop(cast("CommandDropped", event).command, None)
        if kind is CallClaimed:
            self._keep_claims()
        elif kind is SessionUpdated:
            self._organize(cast("SessionUpdated", event))
        elif kind in (FilesChanged, FilesReverted):
            root = cast("FilesChanged", event).root
            if (
                not root or entry.seq > self.restored
            ):  # an imported log is untrusted: folders of this machine are not its own
                self.roots[root] = cast("FilesChanged", event).after

    def _organize(self, event: SessionUpdated) -> None:
        self.pinned = self.pinned if event.pinned is None else event.pinned
        self.archived = self.archived if event.archived is None else event.archived
        self.labels = self.labels if event.labels is None else event.labels
        self.organized = max(self.organized, event.at)

    def is_listed(self, where: SessionFilter) -> bool:
        """Return whether a list with this filter has the session."""
        return (
            where.archived in (None, self.archived)
            and where.pinned in (None, self.pinned)
            and (not where.label or where.label in self.labels)
            and where.agent in ("", self.tree.agent or self.agent)
            and self.organized >= where.organized_since
        )

    def _index(self, entry: Entry) -> None:
        if (indexed := index_key(entry.event)) is not None:
            self.by_index.setdefault(indexed[0], []).append((indexed[1], entry))

    def _apply_to_turn(self, turn: str, entry: Entry, event: Event) -> None:
        kind = type(event)
        self.by_turn.setdefault(turn, []).append(entry)
        if kind in _TERMINAL:
            self.open_turns.pop(turn, None)
            self.deadlines.pop(turn, None)
            self.snapshots.pop(turn, None)
        elif kind is not CallClaimed and (
            turn in self.open_turns or kind is TurnStarted
        ):  # a claim leaves it suspended
            self.open_turns[turn] = kind is TurnSuspended
        if kind is TurnStarted or (
            kind is LimitReached and cast("LimitReached", event).limit == "seconds" and turn in self.open_turns
        ):
            self.deadlines[turn] = self._deadline(turn, kind is LimitReached)
        elif kind is CallFinished and cast("CallFinished", event).still_running:
            self.out.setdefault(turn, set()).add(cast("CallFinished", event).call)
        elif kind is LateResultReceived and turn in self.out:
            self.out[turn].discard(cast("LateResultReceived", event).call)
            if not self.out[turn]:
                del self.out[turn]
        apply_to_waits(self.waits, event)

    def _keep_claims(self) -> None:
        """The claim that was admitted last counts, also before it is in the log."""
        for gate, (key, claim) in self.claims.items():
            if key in self.inbox:
                self.gates[gate].claim = claim

    def _deadline(self, turn: str, is_limited: bool) -> float:
        started = self.by_turn[turn][0].event
        return started.options.due(started.at, is_limited) if isinstance(started, TurnStarted) else 0.0

    def rewind(self, seq: int) -> None:
        """Restore the state at `seq`, so that a failed append has written nothing."""
        log, admitted, turns, epoch, tries = self.log[:seq], self.admitted, self.turns, self.epoch, self.tries
        metadata = (self.agent, self.by, self.parent, self.created, self.moved, self.mentions)
        claims, restored, snapshots = self.claims, self.restored, self.snapshots
        self.__init__(self.tenant)
        self.admitted, self.inbox, self.turns, self.restored = admitted, dict(admitted), turns, restored
        self.epoch, self.tries = epoch, tries
        self.agent, self.by, self.parent, self.created, self.moved, self.mentions = metadata
        for entry in log:
            self.apply(entry.event)
        for command in self.inbox.values():
            if isinstance(command, ResolveGate):
                self.gates[command.gate].resolution = command.resolution
        self.claims = claims
        self.snapshots = {turn: snapshot for turn, snapshot in snapshots.items() if turn in self.open_turns}
        self._keep_claims()

    def refuse_if_cancelled(self, row: GateRow) -> None:
        if any(isinstance(c, Cancel) and c.turn == row.gate.turn for c in self.inbox.values()):
            raise GateClosed(f"gate {row.gate.id} is closed: its turn is being cancelled")

    def is_asked_by(self, session: str) -> bool:
        """Return whether a sub-agent run of a session, or of an ancestor of it, is in this inbox."""
        parents = [command.options.lineage for command in self.inbox.values() if isinstance(command, Send)]
        return any(parent is not None and f"{session}-".startswith(f"{parent.session}-") for parent in parents)

    @property
    def is_taken(self) -> bool:
        """Whether a turn is open or in the inbox."""
        return bool(self.open_turns) or any(isinstance(command, Send) for command in self.inbox.values())

    @property
    def is_awake(self) -> bool:
        return bool(self.inbox or self.out) or not all(self.open_turns.values())

    @property
    def due(self) -> float:
        gate_deadlines = (row.due for row in self.gates.values() if row.is_open and row.resolution is None)
        deadlines = (*gate_deadlines, *self.deadlines.values(), next_wait(self.waits))
        return min((time for time in deadlines if time), default=0.0)

    def is_resting(self, now: float) -> bool:
        """Return whether the session was claimed too often without progress; a time from a clock that was far ahead is ignored."""
        return self.tries >= MAX_QUICK_CLAIMS and -QUARANTINE_SECONDS < now - self.touched < retry_pause(self.tries)

    def info(self, name: str) -> SessionInfo:
        """Return the info of the session, which has this name."""
        metadata = (self.tree.agent or self.agent, self.by, self.parent, self.created, self.moved, self.awaited_agent)
        organized = (self.tree.is_renamed, self.pinned, self.archived, self.labels, self.organized)
        return SessionInfo(
            name,
            self.tree.title,
            self.tree.leaf,
            self.is_awake,
            self.due,
            self.quarantined,
            self.tenant,
            *metadata,
            *organized,
        )
