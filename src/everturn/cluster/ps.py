"""Process list of a store (`everturn ps`): a line for every active session, and for every open gate."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

from everturn.core.canonical_json import replace_surrogates
from everturn.core.gate_rows import GateRow
from everturn.core.store_ports import SessionInfo, Store
from everturn.errors import ConfigError
from everturn.stores.registry import SUFFIXES

SHOWN = 40  # characters of a title
WAITS_FOR = {
    "call": "a person to allow {tool}",
    "egress": "a person to let {tool} send data out",
    "manual": "a person to do {tool} by hand",
    "result": "a person to review the result of {tool}",
    "loop": "a person to say whether {tool} may be called again",
    "client": "a client to run {tool}",
    "limit": "a person to say whether the turn may take more steps",
}


async def list_store(
    name: str, open_store: Callable[[str], Awaitable[Store]], limit: int = 0, after: str = ""
) -> tuple[list[str], str]:
    """The active sessions of a store, quarantined ones first; the open gates; and how many there are.

    With a limit, returns a page of so many lines, and the value of `after` for the next page, or "".

    Raises:
        ConfigError: there is no such store, or `after` is invalid.
    """
    if name == "memory":
        raise ConfigError("a store in memory can be used only by its own process; name a file or a database")
    if not await asyncio.to_thread(_store_exists, name):
        raise ConfigError(f"there is no file {name}")  # reading must not create one
    store = await open_store(name)
    try:
        return await list_open_store(store, limit, after)
    finally:
        await store.aclose()


async def list_open_store(store: Store, limit: int = 0, after: str = "") -> tuple[list[str], str]:
    """The same for an open store."""
    kind, cursor = _parse_cursor(after)
    lines: list[str] = []
    next_cursor = ""
    for number in range(KINDS.index(kind), len(KINDS)):
        page_size = limit - len(lines) if limit else None
        if page_size == 0:
            next_cursor = KINDS[number]
            break
        page_lines, next_cursor = await _page(store, KINDS[number], cursor, page_size)
        lines += page_lines
        if next_cursor:
            break
        cursor = None
    tally = await store.count_all()
    return [*lines, f"{_count(tally.live, 'active session')}, {_count(tally.gates, 'open question')}"], next_cursor


KINDS = ("quarantined", "awake", "gates")  # in this order, with the cursor of the last line


async def _page(
    store: Store, kind: str, cursor: tuple[float, str, str] | None, most: int | None
) -> tuple[list[str], str]:
    """Lines of one kind, and the cursor of the next page, or ""."""
    if kind == "gates":
        page = await store.gate_page(limit=most, after=cursor)
        infos = await store.infos([session for session, _ in page])
        lines = [_gate_line(session, row, infos.get(session)) for session, row in page]
        last = (page[-1][1].opened, page[-1][0], page[-1][1].gate.id) if page else None
    else:
        sessions = await store.sessions(
            kind == "awake",
            quarantined=kind == "quarantined",
            limit=most,
            after=cursor[:2] if cursor is not None else None,
        )
        page, lines = (
            sessions,
            [_session_line(info) for info in sessions if kind == "quarantined" or not info.quarantined],
        )
        last = (sessions[-1].created, sessions[-1].id, "") if sessions else None
    if most is None or len(page) < most or last is None:
        return lines, ""
    return lines, f"{kind}~{last[0]!r}~{last[2]}~{last[1]}"


def _parse_cursor(after: str) -> tuple[str, tuple[float, str, str] | None]:
    """Parse a cursor: the kind a page begins with, and the last row before it."""
    if not after:
        return KINDS[0], None
    kind, at, gate, session = (*after.split("~", 3), "", "", "")[:4]
    if kind in KINDS and not at:
        return kind, None
    try:
        if kind in KINDS:
            return kind, (float(at), session, gate)
    except ValueError:
        pass
    raise ConfigError("--after: copy the value that the previous page printed")


def _store_exists(name: str) -> bool:
    return "://" in name or Path(name).suffix not in SUFFIXES or Path(name).exists()


def _session_line(info: SessionInfo) -> str:
    status = "waits for an answer"
    if info.quarantined:
        status = f"quarantined: {info.quarantined!r}"
    elif info.awaited_agent:
        status = f"waits for a process that knows agent {info.awaited_agent[:SHOWN]!r}"
    elif info.is_awake:
        status = "runs"
    elif info.due:
        status += f" until {_time(info.due)}"
    # Ids and titles are chosen by users: quoted, they cannot send control characters to the terminal.
    return f"{info.id!r}  {replace_surrogates(info.title)[:SHOWN]!r}  {status}{_owner_fields(info)}"


def _gate_line(session: str, row: GateRow, info: SessionInfo | None) -> str:
    gate = row.gate
    awaited = WAITS_FOR.get(gate.kind, "an answer to {tool}").format(tool=repr(gate.tool[:SHOWN]))
    claimed = f", which {row.claim.by[:SHOWN]!r} does" if row.claim is not None else ""
    until = f", until {_time(gate.expires)}" if gate.expires else ""
    return (
        f"{session!r}  {gate.id!r}  since {_time(row.opened)} waits for {awaited}{claimed}{until}{_owner_fields(info)}"
    )


def _owner_fields(info: SessionInfo | None) -> str:
    """The tenant (if not the local one), the agent and the user."""
    if info is None:
        return ""
    fields = {"tenant": info.tenant if info.tenant != "local" else "", "agent": info.agent, "by": info.by}
    return "".join(f"  {key}={value[:SHOWN]!r}" for key, value in fields.items() if value)


def _time(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
