"""Operations that read: rows → what the `Store` port speaks of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from everturn.core.asking import Claimed
from everturn.core.commands import AnyCommand
from everturn.core.events import Entry
from everturn.core.gates import GateRow
from everturn.core.messages import Message
from everturn.core.ports import SessionInfo, Tally
from everturn.core.tree import Tree
from everturn.errors import UnknownMessage, UnknownSession
from everturn.stores.sql import statements as say
from everturn.stores.sql.database import Operation, Query, Row
from everturn.wire import load, load_claim, load_command, load_gate, load_message


def entries(rows: Iterable[Row]) -> list[Entry]:
    """Events at their places."""
    return [Entry(seq, load(body)) for seq, body in rows]


def unknown(session: str, is_erased: bool = False) -> UnknownSession:
    """What to raise for a session that is not there, or not any more."""
    text = f"session {session!r} was erased" if is_erased else f"there is no session {session!r}"
    return UnknownSession(text, is_erased)


def row_of(session: str) -> Operation[Row]:
    """A session's own row: head, leaf, title, token, epoch, erased, tenant.

    Raises:
        UnknownSession: it is not there, or was erased.
    """
    found = yield Query(say.SESSION, (session,))
    if not found or found[0][5]:
        raise unknown(session, bool(found))
    return found[0]


def head(session: str) -> Operation[int]:
    """The position of the last event."""
    row = yield from row_of(session)
    return row[0]


def heads(sessions: Sequence[str]) -> Operation[dict[str, int]]:
    """The positions of many sessions."""
    rows = yield Query(say.HEADS, (msgspec.json.encode(sessions).decode(),))
    return {row[0]: row[1] for row in rows}


def inbox(session: str) -> Operation[list[AnyCommand]]:
    """The admitted commands no event has answered yet, oldest first."""
    rows = yield Query(say.INBOX, (session,))
    if not rows:
        yield from row_of(session)
    return [load_command(body) for (body,) in rows if body is not None]


def events(session: str, after: int, turn: str | None, most: int = say.END) -> Operation[list[Entry]]:
    """The log behind a position: all of it (as far as `most` reaches), or one turn's."""
    if turn is None:
        rows = yield Query(say.EVENTS, (session, after, most))
    else:
        rows = yield Query(say.TURN_EVENTS, (session, turn, after))
    if not rows:
        yield from row_of(session)
    return entries(rows)


def open_turns(session: str) -> Operation[list[str]]:
    """The turns that are not over, oldest first."""
    rows = yield Query(say.OPEN_TURNS, (session,))
    if not rows:
        yield from row_of(session)
    return [row[0] for row in rows]


def asked_for(session: str, turn: str) -> Operation[bool]:
    """Whether somebody asked for a turn."""
    rows = yield Query(say.ASKED_FOR, (session, turn))
    if not rows:
        yield from row_of(session)
    return bool(rows)


def under_way(tenant: str) -> Operation[int]:
    """How many turns of a tenant run or are asked for."""
    return int((yield Query(say.UNDER_WAY, (tenant,)))[0][0])


def path(session: str, leaf: str | None, limit: int | None = None) -> Operation[list[Message]]:
    """The branch that ends at a message, oldest first; with a limit, the last of it."""
    if leaf is None:
        yield from row_of(session)
        return []
    rows = yield Query(say.PATH, (session, leaf, say.END if limit is None else limit))
    if not rows:
        yield from row_of(session)
    found: list[Message] = []
    growing: dict[str, Tree] = {}
    at: str | None = leaf
    for name, parent, body, is_deleted, turn in rows:
        if is_deleted:
            break
        if turn is not None and turn not in growing:
            growing[turn] = yield from _fold(session, turn)
        found.append(load_message(body) if turn is None else growing[turn].messages[name])
        at = parent
    if at is not None and len(found) != limit:
        raise UnknownMessage(f"there is no message {at!r} in this session")
    found.reverse()
    return found


def _fold(session: str, turn: str) -> Operation[Tree]:
    """The messages of a turn that is still being written: its events complete them."""
    tree = Tree()
    for entry in entries((yield Query(say.TURN_EVENTS, (session, turn, 0)))):
        tree.apply(entry.event)
    return tree


def tree(session: str) -> Operation[Tree]:
    """All messages of a session, folded from the whole log."""
    folded = Tree()
    rows = yield Query(say.EVENTS, (session, 0, say.END))
    if not rows:
        yield from row_of(session)
    for row in rows:
        folded.apply(load(row[1]))
    return folded


def gates(session: str | None, tenant: str | None) -> Operation[list[GateRow]]:
    """The gates that stand open: in one session, in all of a tenant's, or in all there are."""
    if session is not None:
        rows = yield Query(say.GATES, (session,))
        if not rows or tenant is not None:
            row = yield from row_of(session)
            rows = rows if tenant in (None, row[6]) else []
    else:
        rows = yield Query(say.ALL_GATES) if tenant is None else Query(say.TENANT_GATES, (tenant,))
    return [GateRow(load_gate(body), opened, claim=claim_of(claim)) for body, opened, claim in rows]


def gate_page(
    session: str | None, tenant: str | None, limit: int | None, after: tuple[float, str, str] | None
) -> Operation[list[tuple[str, GateRow]]]:
    """A page of the gates that stand open, oldest first, each with its session."""
    place = (*(after or (-say.NEVER, "", "")), say.END if limit is None else limit)
    if session is not None:
        row = yield from row_of(session)
        if tenant not in (None, row[6]):
            return []
        rows = yield Query(say.SESSION_GATE_PAGE, (session, *place))
    elif tenant is not None:
        rows = yield Query(say.TENANT_GATE_PAGE, (tenant, *place))
    else:
        rows = yield Query(say.GATE_PAGE, ("", *place))
    return [(name, GateRow(load_gate(body), opened, claim=claim_of(claim))) for name, body, opened, claim in rows]


def waiting(sessions: Sequence[str]) -> Operation[set[str]]:
    """Of these sessions, those in which a gate stands open, or in a sub-turn of theirs."""
    return {row[0] for row in (yield Query(say.WAITING, (_ids(sessions),)))}


def infos(sessions: Sequence[str]) -> Operation[dict[str, SessionInfo]]:
    """Those of these sessions that there are."""
    found = [info_of(row) for row in (yield Query(say.INFOS, (_ids(sessions),)))]
    return {info.id: info for info in found}


def _ids(sessions: Sequence[str]) -> str:
    return msgspec.json.encode([one for one in dict.fromkeys(sessions) if "\0" not in one]).decode()


def tally() -> Operation[Tally]:
    """What is counted of the whole store."""
    ((gates, live, stuck, oldest),) = yield Query(say.TALLY)
    return Tally(int(gates), int(live), int(stuck), float(oldest or 0.0))


def claim_of(body: bytes | None) -> Claimed | None:
    """A client's claim, if there is one."""
    return None if body is None else load_claim(body)


def roots(session: str) -> Operation[dict[str, str]]:
    """The tree that was last recorded for each root."""
    rows = yield Query(say.ROOTS, (session,))
    if not rows:
        yield from row_of(session)
    return {row[0]: row[1] for row in rows}


def sessions(
    awake: bool, stuck: bool = False, limit: int | None = None, after: tuple[float, str] | None = None
) -> Operation[list[SessionInfo]]:
    """The sessions, those that somebody should drive, now or when they are due, or those that nobody drives any more."""
    statement = say.STUCK_SESSIONS if stuck else say.AWAKE_SESSIONS if awake else say.SESSIONS
    rows = yield Query(statement, (*(after or (-say.NEVER, "")), say.END if limit is None else limit))
    return [info_of(row) for row in rows]


def listed(tenant: str, limit: int, before: tuple[float, str] | None, since: float) -> Operation[list[SessionInfo]]:
    """A page of a tenant's sessions, those touched last first."""
    at, name = (say.NEVER, "") if before is None else before
    rows = yield Query(say.LISTED, (tenant, at, name, since, limit))
    return sorted(map(info_of, rows), key=lambda info: (info.touched, info.id), reverse=True)[:limit]


def mentions(session: str, blob: str) -> Operation[bool]:
    """Whether a session, or what was begun below it, speaks of a blob."""
    ((is_there, is_mentioned),) = yield Query(say.MENTIONS, (session, blob))
    if not is_there:
        yield from row_of(session)
    return bool(is_mentioned)


def info(session: str) -> Operation[SessionInfo]:
    """One session."""
    rows = yield Query(say.INFO, (session,))
    if not rows:
        yield from row_of(session)
    return info_of(rows[0])


def info_of(row: Row) -> SessionInfo:
    """A session as it is listed."""
    name, title, leaf, is_awake, due, *rest = row
    return SessionInfo(name, title, leaf, bool(is_awake), due if due < say.NEVER else 0.0, *rest)
