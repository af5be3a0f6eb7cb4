"""Read operations: query the database and decode the rows into the types of the `Store` port."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice

import msgspec

from everturn.core.commands import AnyCommand
from everturn.core.events import Entry
from everturn.core.gate_rows import GateRow
from everturn.core.gates import CallClaim
from everturn.core.messages import Message
from everturn.core.projections.event_index import EventIndex, index_key
from everturn.core.store_ports import SessionFilter, SessionInfo, StoreCounts
from everturn.core.tenants.sharing import Reader
from everturn.core.tree import MessageTree
from everturn.errors import UnknownMessage, UnknownSession
from everturn.stores.sql.body_compression import decompress_message
from everturn.stores.sql.database import Operation, Query, Row, remove_nul
from everturn.stores.sql.event_packs import event_at, unpack
from everturn.stores.sql.statements.conditions import END, NEVER
from everturn.stores.sql.statements.gates import (
    ALL_GATES,
    GATE_PAGE,
    GATES,
    SESSION_GATE_PAGE,
    TENANT_GATE_PAGE,
    TENANT_GATES,
    WAITING,
)
from everturn.stores.sql.statements.log import (
    ALL_MESSAGES,
    COUNT_ACTIVE_TURNS,
    EVENTS,
    INBOX,
    IS_TURN_REQUESTED,
    KEYED_EVENTS,
    OPEN_TURNS,
    PATH,
    TURN_EVENTS,
    TURN_OF_COMMAND,
    TURN_STARTS,
)
from everturn.stores.sql.statements.sessions import (
    AWAKE_SESSIONS,
    COUNT_ALL,
    HEADS,
    INFO,
    INFOS,
    LIST_NOT_PINNED,
    LIST_ORGANIZED,
    LIST_PINNED,
    LIST_READABLE,
    LIST_READABLE_NOT_PINNED,
    LIST_READABLE_PINNED,
    LIST_SESSIONS,
    MENTIONS,
    ROOTS,
    SESSION,
    SESSIONS,
    STUCK_SESSIONS,
    WITH_EVENTS,
)
from everturn.wire import load_claim, load_command, load_event, load_gate, load_message

_LABEL_END = "\n"  # a label is one line
KEY_LENGTH = 200  # characters of a key of the event index


def decode_entries(rows: Iterable[Row], after: int = 0, most: int | None = None) -> list[Entry]:
    """Decode rows of the log into entries: at most `most`, behind a position."""
    return [Entry(seq, load_event(body)) for seq, body in islice(unpack(rows, after), most)]


def unknown_session(session: str, is_erased: bool = False) -> UnknownSession:
    """Return the error for a session that does not exist, or was erased."""
    text = f"session {session!r} was erased" if is_erased else f"there is no session {session!r}"
    return UnknownSession(text, is_erased)


def session_row(session: str) -> Operation[Row]:
    """Return a session's own row: head, leaf, title, token, epoch, erased, tenant, agent, renamed.

    Raises:
        UnknownSession: the session does not exist, or was erased.
    """
    rows = yield Query(SESSION, (session,))
    if not rows or rows[0][5]:
        raise unknown_session(session, bool(rows))
    return rows[0]


def head(session: str) -> Operation[int]:
    """Return the position of the last event."""
    row = yield from session_row(session)
    return row[0]


def heads(sessions: Sequence[str]) -> Operation[dict[str, int]]:
    """Return the positions of many sessions."""
    rows = yield Query(HEADS, (msgspec.json.encode(sessions).decode(),))
    return {row[0]: row[1] for row in rows}


def inbox(session: str) -> Operation[list[AnyCommand]]:
    """Return the admitted commands that no event has handled yet, oldest first."""
    rows = yield Query(INBOX, (session,))
    if not rows:
        yield from session_row(session)
    return [load_command(body) for body, _ in rows if body is not None]


def events(session: str, after: int, turn: str | None, most: int = END) -> Operation[list[Entry]]:
    """Return the log after a position: all of it (at most `most` entries), or one turn's."""
    if turn is None:
        rows = yield Query(EVENTS, (session, after, most))
    else:
        rows = yield Query(TURN_EVENTS, (session, turn, after))
    if not rows:
        yield from session_row(session)
    return decode_entries(rows, after, most if most < END else None)


def indexed_events(session: str, index: EventIndex, key: str | None, limit: int | None) -> Operation[list[Entry]]:
    """Return the events of an index with this key, or all of them, oldest first."""
    # Of a key, all are read: others may begin with the same characters.
    most = END if key is not None or limit is None else limit
    rows = yield Query(KEYED_EVENTS, (session, index, None if key is None else stored_key(key), most))
    if not rows:
        yield from session_row(session)
    found = [row for row in rows if row[1] is not None]
    entries = [Entry(wanted, load_event(event_at(wanted, seq, body))) for seq, body, wanted in found]
    matching = entries if key is None else [entry for entry in entries if index_key(entry.event) == (index, key)]
    return matching[:limit]


def stored_key(key: str) -> str:
    """Return a key of the event index as it is stored: an imported log may have keys too long for an index."""
    return remove_nul(key)[:KEY_LENGTH]


def open_turns(session: str) -> Operation[list[str]]:
    """Return the turns that are not over, oldest first."""
    rows = yield Query(OPEN_TURNS, (session,))
    if not rows:
        yield from session_row(session)
    return [row[0] for row in rows]


def is_turn_requested(session: str, turn: str) -> Operation[bool]:
    """Return whether a turn was requested."""
    rows = yield Query(IS_TURN_REQUESTED, (session, turn))
    if not rows:
        yield from session_row(session)
    return bool(rows)


def turn_starts(session: str, before: int, limit: int) -> Operation[list[tuple[int, str]]]:
    """Return the last turns that started before a position, newest first."""
    rows = yield Query(TURN_STARTS, (session, before, limit))
    if not rows:
        yield from session_row(session)
    return [(started, turn) for started, turn in rows]


def turn_of_command(session: str, key: str) -> Operation[str]:
    """Return the turn that a command requested, or is about; "" if there is none."""
    rows = yield Query(TURN_OF_COMMAND, (session, remove_nul(key)))
    if not rows:
        yield from session_row(session)
    return rows[0][0] if rows else ""


def count_active_turns(tenant: str) -> Operation[int]:
    """Count the turns of a tenant that run or are in an inbox."""
    return int((yield Query(COUNT_ACTIVE_TURNS, (tenant,)))[0][0])


def path(session: str, leaf: str | None, limit: int | None = None) -> Operation[list[Message]]:
    """Return the branch that ends at a message, oldest first; with a limit, the end of it."""
    if leaf is None:
        yield from session_row(session)
        return []
    rows = yield Query(PATH, (session, leaf, END if limit is None else limit))
    if not rows:
        yield from session_row(session)
    messages: list[Message] = []
    unfinished: dict[str, MessageTree] = {}
    at: str | None = leaf
    for name, parent, body, is_deleted, turn in rows:
        if is_deleted:
            break
        if turn is not None and turn not in unfinished:
            unfinished[turn] = yield from _fold(session, turn)
        messages.append(load_message(decompress_message(body)) if turn is None else unfinished[turn].messages[name])
        at = parent
    if at is not None and len(messages) != limit:
        raise UnknownMessage(f"there is no message {at!r} in this session")
    messages.reverse()
    return messages


def _fold(session: str, turn: str) -> Operation[MessageTree]:
    """Fold the messages of a turn that is still being written: its events complete them."""
    tree = MessageTree()
    for entry in decode_entries((yield Query(TURN_EVENTS, (session, turn, 0)))):
        tree.apply(entry.event)
    return tree


def tree(session: str) -> Operation[MessageTree]:
    """Return all messages of a session, from their rows and the events of turns that are still being written."""
    row = yield from session_row(session)
    messages: dict[str, Message] = {}
    deleted: set[str] = set()
    unfinished: dict[str, MessageTree] = {}
    for group in _by_position((yield Query(ALL_MESSAGES, (session,)))):
        for name, _, _, body, is_deleted, turn in group:
            if turn is not None and turn not in unfinished:
                unfinished[turn] = yield from _fold(session, turn)
            messages[name] = load_message(decompress_message(body)) if turn is None else unfinished[turn].messages[name]
            if is_deleted:
                deleted.add(name)
    return MessageTree.from_messages(
        messages.values(), deleted, leaf=row[1], title=row[2], agent=row[7], is_renamed=row[8]
    )


def _by_position(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Group messages that were added by the same event, each parent before its child."""
    for _, same in groupby(rows, key=lambda row: row[2]):
        group = list(same)
        if len(group) > 1:
            by_parent = {row[1]: row for row in group}
            names = {row[0] for row in group}
            at = next((row for row in group if row[1] not in names), None)
            chain: list[Row] = []
            while at is not None and len(chain) < len(group):
                chain.append(at)
                at = by_parent.get(at[0])
            group = chain if len(chain) == len(group) else group
        yield group


def gates(session: str | None, tenant: str | None) -> Operation[list[GateRow]]:
    """Return the open gates of a session, of a tenant, or of the whole store."""
    if session is not None:
        rows = yield Query(GATES, (session,))
        if not rows or tenant is not None:
            row = yield from session_row(session)
            rows = rows if tenant in (None, row[6]) else []
    else:
        rows = yield Query(ALL_GATES) if tenant is None else Query(TENANT_GATES, (tenant,))
    return [GateRow(load_gate(body), opened, claim=decode_claim(claim)) for body, opened, claim, *_ in rows]


def gate_page(
    session: str | None, tenant: str | None, limit: int | None, after: tuple[float, str, str] | None
) -> Operation[list[tuple[str, GateRow]]]:
    """Return a page of open gates, oldest first, each with its session."""
    position = (*(after or (-NEVER, "", "")), END if limit is None else limit)
    if session is not None:
        row = yield from session_row(session)
        if tenant not in (None, row[6]):
            return []
        rows = yield Query(SESSION_GATE_PAGE, (session, *position))
    elif tenant is not None:
        rows = yield Query(TENANT_GATE_PAGE, (tenant, *position))
    else:
        rows = yield Query(GATE_PAGE, ("", *position))
    return [
        (name, GateRow(load_gate(body), opened, claim=decode_claim(claim))) for name, body, opened, claim, *_ in rows
    ]


def sessions_with_open_gates(sessions: Sequence[str]) -> Operation[set[str]]:
    """Return those of the sessions that have an open gate, in them or in a sub-agent run of theirs."""
    return {row[0] for row in (yield Query(WAITING, (_ids(sessions),)))}


def sessions_with_events(sessions: Sequence[str], index: EventIndex) -> Operation[set[str]]:
    """Return those of the sessions, and of their sub-agent runs, that have an event in an index."""
    return {row[0] for row in (yield Query(WITH_EVENTS, (_ids(sessions), index)))}


def infos(sessions: Sequence[str]) -> Operation[dict[str, SessionInfo]]:
    """Return the infos of those sessions that exist."""
    rows = [decode_info(row) for row in (yield Query(INFOS, (_ids(sessions),)))]
    return {info.id: info for info in rows}


def _ids(sessions: Sequence[str]) -> str:
    return msgspec.json.encode([session for session in dict.fromkeys(sessions) if "\0" not in session]).decode()


def count_all() -> Operation[StoreCounts]:
    """Return the counts over the whole store."""
    ((gates, live, quarantined, oldest),) = yield Query(COUNT_ALL)
    return StoreCounts(int(gates), int(live), int(quarantined), float(oldest or 0.0))


def decode_claim(body: bytes | None) -> CallClaim | None:
    """Decode a client's claim, if there is one."""
    return None if body is None else load_claim(body)


def roots(session: str) -> Operation[dict[str, str]]:
    """Return the tree that was last recorded for each root."""
    rows = yield Query(ROOTS, (session,))
    if not rows:
        yield from session_row(session)
    return {row[0]: row[1] for row in rows}


def sessions(
    awake: bool, quarantined: bool = False, limit: int | None = None, after: tuple[float, str] | None = None
) -> Operation[list[SessionInfo]]:
    """Return the sessions, oldest first; only those with work or a deadline (`awake`), or the `quarantined` ones."""
    statement = STUCK_SESSIONS if quarantined else AWAKE_SESSIONS if awake else SESSIONS
    rows = yield Query(statement, (*(after or (-NEVER, "")), END if limit is None else limit))
    return [decode_info(row) for row in rows]


def list_sessions(
    tenant: str,
    limit: int,
    before: tuple[float, str] | None,
    since: float,
    where: SessionFilter,
    reader: Reader | None = None,
) -> Operation[list[SessionInfo]]:
    """Return a page of a tenant's sessions, or of those that a reader may see, last touched first."""
    at, name = (NEVER, "") if before is None else before
    label = encode_labels((remove_nul(where.label),)) if where.label else ""
    filters = (where.archived, label, remove_nul(where.agent))
    if reader is None:
        statement = LIST_ORGANIZED if where.organized_since > 0 else LIST_SESSIONS
        if where.pinned is not None:
            statement = LIST_PINNED if where.pinned else LIST_NOT_PINNED
        rows = yield Query(statement, (tenant, at, name, since, limit, *filters, where.organized_since))
    else:
        statement = LIST_READABLE
        if where.pinned is not None:
            statement = LIST_READABLE_PINNED if where.pinned else LIST_READABLE_NOT_PINNED
        rows = yield Query(statement, (tenant, at, name, since, limit, *filters, reader.as_json(), reader.now))
    return sorted(map(decode_info, rows), key=lambda info: (info.touched, info.id), reverse=True)[:limit]


def references_blob(session: str, blob: str) -> Operation[bool]:
    """Return whether a session, or a session of its sub-agent runs, references a blob."""
    ((exists, is_mentioned),) = yield Query(MENTIONS, (session, blob))
    if not exists:
        yield from session_row(session)
    return bool(is_mentioned)


def info(session: str) -> Operation[SessionInfo]:
    """Return the info of a session."""
    rows = yield Query(INFO, (session,))
    if not rows:
        yield from session_row(session)
    return decode_info(rows[0])


def decode_info(row: Row) -> SessionInfo:
    """Decode a row into a session's info."""
    name, title, leaf, is_awake, due, *metadata = row
    is_renamed, pinned, archived, labels, organized = metadata[-5:]
    names = tuple(labels.split(_LABEL_END)[1:-1:2])
    metadata[-5:] = (bool(is_renamed), bool(pinned), bool(archived), names, organized)
    return SessionInfo(name, title, leaf, bool(is_awake), due if due < NEVER else 0.0, *metadata)


def encode_labels(labels: Iterable[str]) -> str:
    """Return labels as a column has them: each between two line ends, so that a whole label can be searched for."""
    return "".join(f"{_LABEL_END}{label}{_LABEL_END}" for label in labels)
