"""Admission of the reference store: the checks that a command must pass before it is in the inbox."""

from __future__ import annotations

from everturn.core.commands import (
    AnyCommand,
    Cancel,
    ClaimCall,
    Delete,
    FinishWait,
    ImportMessages,
    LateResult,
    NotifyCall,
    RateAnswer,
    ResolveGate,
    Revert,
    Revoke,
    Select,
    SelectAgent,
    Send,
    SetInstructions,
    UpdateSession,
)
from everturn.core.gate_rows import check_answer, check_claim
from everturn.errors import (
    KeyConflict,
    SessionBusy,
    UnknownTurn,
)
from everturn.stores.import_check import (
    AGENT_BUSY,
    IMPORT_BUSY,
    REVERT_BUSY,
    SESSION_NOT_IDLE,
)
from everturn.stores.memory_session import MemorySession
from everturn.stores.memory_usage import UsageTotals


def check_command(session: MemorySession, command: AnyCommand, totals: UsageTotals) -> bool:  # noqa: C901 - command by command
    """Return whether a command is new; raise the error of an invalid one. Answers, claims and revocations are recorded."""
    match command:
        case Send(session=name, parent=parent, at_leaf=at_leaf, turn=turn, message=message, alone=alone):
            if alone and session.is_taken:
                raise SessionBusy(SESSION_NOT_IDLE.format(session=name))
            if turn in session.turns or message in session.tree.messages:
                raise KeyConflict(f"turn {turn!r} or message {message!r} already exists; create new ids")
            if not at_leaf and parent is not None:
                session.tree.get(parent)
        case ResolveGate(gate=gate, hash=hash, resolution=resolution, at=at):
            row = session.gates.get(gate)
            if not check_answer(row, gate, hash, resolution, at):
                return False
            if row is not None:
                # Recorded at admission, in the same transaction: of two answers only one can be first.
                session.refuse_if_cancelled(row)
                row.resolution = resolution
        case ClaimCall(gate=gate, hash=hash, by=by, lease=lease, at=at, key=key):
            row = session.gates.get(gate)
            claim = check_claim(row, gate, hash, by, lease, at)
            if row is not None:
                session.refuse_if_cancelled(row)
                row.claim, session.claims[gate] = claim, (key, claim)
        case Cancel(turn=turn):
            if turn not in session.turns:
                raise UnknownTurn(f"there is no turn {turn!r} in this session")
        case LateResult(turn=turn) | NotifyCall(turn=turn) | FinishWait(turn=turn):
            if turn not in session.by_turn:
                raise UnknownTurn(f"there is no turn {turn!r} in this session")
        case Select(message=message):
            if message is not None:
                session.tree.get(message)
        case Delete(message=message) | RateAnswer(message=message):
            session.tree.get(message)
        case Revoke(session=name, grant=grant):
            # Revoked at admission, as answers are: it is void at once, and of two revocations one is first.
            totals.revoke(name, session.tenant, grant)
        case ImportMessages(session=name, messages=messages, parent=parent, at_leaf=at_leaf):
            if session.is_taken:
                raise SessionBusy(IMPORT_BUSY.format(session=name))
            if any(message.id in session.tree.messages for message in messages):
                raise KeyConflict(f"message {messages[0].id!r} already exists; import with another key")
            if not at_leaf and parent is not None:
                session.tree.get(parent)
        case Revert(session=name):
            if session.is_taken:
                raise SessionBusy(REVERT_BUSY.format(session=name))
        case SetInstructions() | UpdateSession():
            pass  # a turn that runs does not matter
        case SelectAgent(session=name):
            if session.open_turns:
                raise SessionBusy(AGENT_BUSY.format(session=name))
    return True
