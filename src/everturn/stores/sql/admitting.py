"""The door: a command → a receipt, or what is wrong with it. The checks are those of the reference store."""

from __future__ import annotations

from everturn.core.commands import Answer, AnyCommand, Cancel, Delete, Late, Revert, Revoke, Select, Send, Stir, Take
from everturn.core.gates import GateRow, check_answer, check_claim, due_of
from everturn.core.ports import Receipt
from everturn.errors import ConfigError, GateClosed, KeyConflict, SessionBusy, UnknownMessage, UnknownTurn
from everturn.stores.checking import BUSY, NOT_ALONE, session_above
from everturn.stores.mentions import blobs_in
from everturn.stores.sql import granting
from everturn.stores.sql import statements as say
from everturn.stores.sql.blobs import mention
from everturn.stores.sql.database import Operation, Query, Row, clean
from everturn.stores.sql.keeping import earlier
from everturn.stores.sql.reading import claim_of, unknown
from everturn.wire import dump_claim, dump_command, dump_verdict, load_command, load_gate, load_verdict


def admit(command: AnyCommand, again: bool) -> Operation[Receipt]:
    """Check a command and keep it. When `again` it may have been kept by a run of which nobody knows the end.

    Raises:
        KeyConflict: and everything else that the `Store` port says of `admit`.
    """
    session, body = command.session, _written(command)
    is_there = yield from _enter(command)
    if is_there:
        found = (yield Query(say.LOOK, (session, command.key, *_names(command))))[0]
        if found[0] is not None:
            # Equal to the byte, with ids and a time that are made anew for every try: it is this very one.
            return Receipt(earlier(found[0], command), is_new=again and found[0] == body)
        if not (yield from _check(command, found)):
            return Receipt(command, is_new=False)
        agent = clean(command.options.agent) if isinstance(command, Send) else None
        yield Query(say.TOUCH, (command.at, agent, session))
    turn = command.turn if isinstance(command, Send | Cancel | Late) else ""
    yield Query(say.KEEP, (session, command.key, turn, type(command).__name__, body))
    if isinstance(command, Answer):
        # Taken at the door, in the same transaction: of two answers only one can be first.
        yield Query(say.VERDICT, (dump_verdict(command.verdict), session, command.gate))
    if names := blobs_in(command):
        yield from mention(session, names, command.at)
    return Receipt(command, is_new=True)


def _written(command: AnyCommand) -> bytes:
    """A command as it is kept. What could not be read again would be in the way of its session for ever."""
    try:
        body = dump_command(command)
        again = load_command(body)
    except Exception as error:
        raise ConfigError(f"this {type(command).__name__} could not be read again: {error}") from error
    if again != command and not isinstance(command, Late):  # a tool's result is taken as far as it can be written
        raise ConfigError(f"this {type(command).__name__} would be another when it is read again")
    return body


def _enter(command: AnyCommand) -> Operation[bool]:
    """Lock the session, and say whether it was there; a message to one that is not makes it."""
    rows = yield Query(say.LOCK, (command.session,))
    if not rows:
        if not isinstance(command, Send):
            raise unknown(command.session)
        if command.parent is not None and not command.at_leaf:
            raise UnknownMessage(f"there is no message {command.parent!r} in this session")
        options = command.options
        about = (clean(options.agent), clean(options.by), session_above(options))
        made = yield Query(say.NEW_SESSION, (*_of(command), command.at, command.at, 0, "", *about))
        if made:
            return False
        rows = yield Query(say.LOCK, (command.session,))  # somebody else made it at the same moment
    tenant, is_erased = rows[0]
    if tenant != command.tenant:
        raise unknown(command.session)
    if is_erased:
        raise unknown(command.session, is_erased=True)
    return True


def _of(command: AnyCommand) -> tuple[str, str]:
    return command.session, command.tenant


def _names(command: AnyCommand) -> tuple[str | None, str | None, str | None]:
    """What to look for: a turn, a message that must not be there, a message that must."""
    if isinstance(command, Send):
        return command.turn, command.message, None if command.at_leaf else command.parent
    if isinstance(command, Cancel | Late | Stir):
        return command.turn, None, None
    return None, None, command.message if isinstance(command, Select | Delete) else None


def _check(command: AnyCommand, found: Row) -> Operation[bool]:
    """Whether a command is news; it raises what is wrong with one that cannot be taken."""
    _, is_asked_for, has_begun, has_message, has_place = found
    match command:
        case Answer():
            return (yield from _check_answer(command))
        case Take():
            yield from _take(command)
        case Revert(session=session):
            yield from _refuse_if_busy(session, BUSY)
        case Revoke():
            yield from granting.revoke(command)
        case Send(turn=turn, message=message):
            yield from _refuse_if_not_alone(command)
            if is_asked_for or has_begun or has_message:
                raise KeyConflict(f"turn {turn!r} or message {message!r} is there already; make new ids")
        case Cancel(turn=turn):
            if not is_asked_for and not has_begun:
                raise UnknownTurn(f"there is no turn {turn!r} in this session")
        case Late(turn=turn) | Stir(turn=turn):
            if not has_begun:
                raise UnknownTurn(f"there is no turn {turn!r} in this session")
        case _:
            pass
    place = _names(command)[2]
    if place is not None and not has_place:
        raise UnknownMessage(f"there is no message {place!r} in this session")
    return True


def _check_answer(command: Answer) -> Operation[bool]:
    row, is_cancelled = yield from _gate(command)
    if not check_answer(row, command.gate, command.hash, command.verdict, command.at):
        return False
    if is_cancelled:
        raise _cancelled(command.gate)
    return True


def _take(command: Take) -> Operation[None]:
    """Give a call to a client at the door, in the same transaction: of two claims only one can be first."""
    row, is_cancelled = yield from _gate(command)
    claim = check_claim(row, command.gate, command.hash, command.by, command.lease, command.at)
    if is_cancelled:
        raise _cancelled(command.gate)
    if row is not None:
        due = due_of(row.gate, claim)
        yield Query(say.TAKE, (dump_claim(claim), due, command.key, command.session, command.gate))


def _refuse_if_not_alone(command: Send) -> Operation[None]:
    if command.alone:
        yield from _refuse_if_busy(command.session, NOT_ALONE)


def _refuse_if_busy(session: str, why: str) -> Operation[None]:
    ((is_busy,),) = yield Query(say.IS_BUSY, (session,))
    if is_busy:
        raise SessionBusy(why.format(session=session))


def _gate(command: Answer | Take) -> Operation[tuple[GateRow | None, bool]]:
    """A gate as it stands, and whether its turn is being cancelled."""
    rows: list[Row] = []
    if "\0" not in command.gate:  # PostgreSQL cannot even look for that
        rows = yield Query(say.GATE, (command.session, command.gate))
    if not rows:
        return None, False
    body, opened, verdict, is_open, claim, is_cancelled = rows[0]
    given = None if verdict is None else load_verdict(verdict)
    return GateRow(load_gate(body), opened, given, bool(is_open), claim_of(claim)), bool(is_cancelled)


def _cancelled(gate: str) -> GateClosed:
    return GateClosed(f"gate {gate} is closed: its turn is being cancelled")
