"""Admission: checks a command and stores it in the inbox, with the checks of the reference store."""

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
    UpdateSession,
)
from everturn.core.gate_rows import GateRow, check_answer, check_claim, gate_deadline
from everturn.core.store_ports import Receipt
from everturn.errors import ConfigError, GateClosed, KeyConflict, SessionBusy, UnknownMessage, UnknownTurn
from everturn.stores.blob_refs import referenced_blobs
from everturn.stores.import_check import AGENT_BUSY, IMPORT_BUSY, REVERT_BUSY, SESSION_NOT_IDLE, parent_session
from everturn.stores.sql import grants
from everturn.stores.sql.blobs import reference_blobs
from everturn.stores.sql.database import Operation, Query, Row, Statement, remove_nul
from everturn.stores.sql.queries import decode_claim, unknown_session
from everturn.stores.sql.retention import stored_command
from everturn.stores.sql.statements.admission import (
    ADD_COMMAND,
    ADMISSION_STATE,
    GATE,
    HAS_OPEN_TURN,
    IS_BUSY,
    LOCK,
    NEW_SESSION,
    RECORD_ANSWER,
    RECORD_CLAIM,
    TOUCH,
    TOUCH_UNLISTED,
)
from everturn.wire import dump_claim, dump_command, dump_resolution, load_command, load_gate, load_resolution


def admit(command: AnyCommand, again: bool) -> Operation[Receipt]:
    """Check a command and store it. With `again`, an earlier run of unknown outcome may have stored it already.

    Raises:
        KeyConflict: the key was used for another command; and all errors of `Store.admit`.
    """
    session, body = command.session, _encode_command(command)
    exists = yield from _lock_or_create(command)
    if exists:
        state = (yield Query(ADMISSION_STATE, (session, command.key, *_lookup_ids(command))))[0]
        if state[0] is not None:
            # Equal to the byte, with ids and a time that differ for every request: an earlier run stored this one.
            return Receipt(stored_command(state[0], command), is_new=again and state[0] == body)
        if not (yield from _check(command, state)):
            return Receipt(command, is_new=False)
        yield Query(TOUCH_UNLISTED if isinstance(command, UpdateSession | RateAnswer) else TOUCH, (command.at, session))
    turn = command.turn if isinstance(command, Send | Cancel | LateResult) else ""
    yield Query(ADD_COMMAND, (session, command.key, turn, type(command).__name__, body))
    if isinstance(command, ResolveGate):
        # Recorded at admission, in the same transaction: of two answers only one can be first.
        yield Query(RECORD_ANSWER, (dump_resolution(command.resolution), session, command.gate))
    if names := referenced_blobs(command):
        yield from reference_blobs(session, names, command.at)
    return Receipt(command, is_new=True)


def _encode_command(command: AnyCommand) -> bytes:
    """Encode a command. One that cannot be decoded again would block its session for ever."""
    try:
        body = dump_command(command)
        decoded = load_command(body)
    except Exception as error:
        raise ConfigError(f"this {type(command).__name__} cannot be decoded after encoding: {error}") from error
    if decoded != command and not isinstance(
        command, LateResult
    ):  # a tool's result is accepted as far as it can be encoded
        raise ConfigError(f"this {type(command).__name__} would change when it is stored")
    return body


def _lock_or_create(command: AnyCommand) -> Operation[bool]:
    """Lock the session and return whether it existed; a message to an unknown session creates it."""
    rows = yield Query(LOCK, (command.session,))
    if not rows:
        if not isinstance(command, Send | ImportMessages):
            raise unknown_session(command.session)
        if command.parent is not None and not command.at_leaf:
            raise UnknownMessage(f"there is no message {command.parent!r} in this session")
        created = yield Query(NEW_SESSION, (*_of(command), command.at, command.at, 0, "", *_metadata(command)))
        if created:
            return False
        rows = yield Query(LOCK, (command.session,))  # another request created it at the same moment
    tenant, is_erased = rows[0]
    if tenant != command.tenant:
        raise unknown_session(command.session)
    if is_erased:
        raise unknown_session(command.session, is_erased=True)
    return True


def _metadata(command: Send | ImportMessages) -> tuple[str, str, str]:
    """Return the agent, the user and the parent of a new session."""
    if isinstance(command, ImportMessages):
        return "", remove_nul(command.by), ""
    options = command.options
    return remove_nul(options.agent), remove_nul(options.by), parent_session(options)


def _of(command: AnyCommand) -> tuple[str, str]:
    return command.session, command.tenant


def _lookup_ids(command: AnyCommand) -> tuple[str | None, str | None, str | None]:
    """Return what to look up: a turn, a message that must not exist, a message that must."""
    if isinstance(command, Send):
        return command.turn, command.message, None if command.at_leaf else command.parent
    if isinstance(command, Cancel | LateResult | NotifyCall | FinishWait):
        return command.turn, None, None
    if isinstance(command, ImportMessages):
        return None, command.messages[0].id, None if command.at_leaf else command.parent
    return None, None, command.message if isinstance(command, Select | Delete | RateAnswer) else None


def _check(command: AnyCommand, state: Row) -> Operation[bool]:  # noqa: C901 - command by command
    """Return whether a command is new; raise the error of an invalid one."""
    _, is_requested, has_started, has_message, has_parent = state
    match command:
        case ResolveGate():
            return (yield from _check_answer(command))
        case ClaimCall():
            yield from _record_claim(command)
        case Revert(session=session):
            yield from _refuse_if_busy(session, REVERT_BUSY)
        case ImportMessages(session=session, messages=messages):
            yield from _refuse_if_busy(session, IMPORT_BUSY)
            if has_message:
                raise KeyConflict(f"message {messages[0].id!r} already exists; import with another key")
        case SelectAgent(session=session):
            yield from _refuse_if_busy(session, AGENT_BUSY, HAS_OPEN_TURN)
        case Revoke():
            yield from grants.revoke(command)
        case Send(turn=turn, message=message):
            yield from _refuse_if_concurrent(command)
            if is_requested or has_started or has_message:
                raise KeyConflict(f"turn {turn!r} or message {message!r} already exists; create new ids")
        case Cancel(turn=turn):
            if not is_requested and not has_started:
                raise UnknownTurn(f"there is no turn {turn!r} in this session")
        case LateResult(turn=turn) | NotifyCall(turn=turn) | FinishWait(turn=turn):
            if not has_started:
                raise UnknownTurn(f"there is no turn {turn!r} in this session")
        case _:
            pass
    parent = _lookup_ids(command)[2]
    if parent is not None and not has_parent:
        raise UnknownMessage(f"there is no message {parent!r} in this session")
    return True


def _check_answer(command: ResolveGate) -> Operation[bool]:
    row, is_cancelled = yield from _gate(command)
    if not check_answer(row, command.gate, command.hash, command.resolution, command.at):
        return False
    if is_cancelled:
        raise _cancelled(command.gate)
    return True


def _record_claim(command: ClaimCall) -> Operation[None]:
    """Record a client's claim at admission, in the same transaction: of two claims only one can be first."""
    row, is_cancelled = yield from _gate(command)
    claim = check_claim(row, command.gate, command.hash, command.by, command.lease, command.at)
    if is_cancelled:
        raise _cancelled(command.gate)
    if row is not None:
        due = gate_deadline(row.gate, claim)
        yield Query(RECORD_CLAIM, (dump_claim(claim), due, command.key, command.session, command.gate))


def _refuse_if_concurrent(command: Send) -> Operation[None]:
    if command.alone:
        yield from _refuse_if_busy(command.session, SESSION_NOT_IDLE)


def _refuse_if_busy(session: str, message: str, is_busy_query: Statement = IS_BUSY) -> Operation[None]:
    ((is_busy,),) = yield Query(is_busy_query, (session,))
    if is_busy:
        raise SessionBusy(message.format(session=session))


def _gate(command: ResolveGate | ClaimCall) -> Operation[tuple[GateRow | None, bool]]:
    """Return a gate's current row, and whether its turn is being cancelled."""
    rows: list[Row] = []
    if "\0" not in command.gate:  # PostgreSQL rejects it as a parameter
        rows = yield Query(GATE, (command.session, command.gate))
    if not rows:
        return None, False
    body, opened, resolution, is_open, claim, is_cancelled = rows[0]
    resolution = None if resolution is None else load_resolution(resolution)
    return GateRow(load_gate(body), opened, resolution, bool(is_open), decode_claim(claim)), bool(is_cancelled)


def _cancelled(gate: str) -> GateClosed:
    return GateClosed(f"gate {gate} is closed: its turn is being cancelled")
