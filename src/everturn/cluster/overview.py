"""A store → a line for every session in which something is to be done, and for every question: who waits for whom."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

from everturn.core.canonical import clean
from everturn.core.gates import GateRow
from everturn.core.ports import SessionInfo, Store
from everturn.errors import ConfigError
from everturn.stores.named import SUFFIXES, named_store

SHOWN = 40  # characters of a title
WAITS_FOR = {
    "call": "somebody to allow {tool}",
    "egress": "somebody to let {tool} send something out",
    "hand": "somebody to do what {tool} was called for",
    "result": "somebody to read what {tool} brought",
    "loop": "somebody to say whether {tool} is to go on in circles",
    "client": "a client to do {tool}",
}


async def overview(name: str, limit: int = 0, after: str = "") -> tuple[list[str], str]:
    """The sessions of a store that are not at rest, the stuck ones first; the questions that are open; how many there are.

    With a limit, a page of so many lines, and what to say as `after` for the next one; "" where there is none.

    Raises:
        ConfigError: there is no such store, or no such place in it.
    """
    if name == "memory":
        raise ConfigError("what is in memory only its own process sees; name a file or a database")
    if not await asyncio.to_thread(_is_there, name):
        raise ConfigError(f"there is no file {name}")  # looking must not make one
    store = named_store(name)
    try:
        return await overview_of(store, limit, after)
    finally:
        await store.aclose()


async def overview_of(store: Store, limit: int = 0, after: str = "") -> tuple[list[str], str]:
    """The same of a store that is open."""
    kind, place = _place(after)
    lines: list[str] = []
    more = ""
    for number in range(KINDS.index(kind), len(KINDS)):
        most = limit - len(lines) if limit else None
        if most == 0:
            more = KINDS[number]
            break
        told, more = await _page(store, KINDS[number], place, most)
        lines += told
        if more:
            break
        place = None
    tally = await store.tally()
    return [*lines, f"{_count(tally.live, 'session')} to drive, {_count(tally.gates, 'question')} open"], more


KINDS = ("stuck", "awake", "gates")  # in this order, with the place of the last one that was shown


async def _page(
    store: Store, kind: str, place: tuple[float, str, str] | None, most: int | None
) -> tuple[list[str], str]:
    """Lines of one kind, and where the next of it are; "" where there are none."""
    if kind == "gates":
        page = await store.gate_page(limit=most, after=place)
        whose = await store.infos([session for session, _ in page])
        told = [_question(session, row, whose.get(session)) for session, row in page]
        last = (page[-1][1].opened, page[-1][0], page[-1][1].gate.id) if page else None
    else:
        found = await store.sessions(
            kind == "awake", stuck=kind == "stuck", limit=most, after=place[:2] if place is not None else None
        )
        page, told = found, [_line(info) for info in found if kind == "stuck" or not info.stuck]
        last = (found[-1].created, found[-1].id, "") if found else None
    if most is None or len(page) < most or last is None:
        return told, ""
    return told, f"{kind}~{last[0]!r}~{last[2]}~{last[1]}"


def _place(after: str) -> tuple[str, tuple[float, str, str] | None]:
    """What kind a page begins with, and behind which of it."""
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
    raise ConfigError("--after: say what the page before said, as it is")


def _is_there(name: str) -> bool:
    return "://" in name or Path(name).suffix not in SUFFIXES or Path(name).exists()


def _line(info: SessionInfo) -> str:
    what = "waits for an answer"
    if info.stuck:
        what = f"stuck: {info.stuck!r}"
    elif info.is_awake:
        what = "runs"
    elif info.due:
        what += f" until {_time(info.due)}"
    # Names and titles are whatever somebody chose: in quotes nothing of it reaches the terminal as more than text.
    return f"{info.id!r}  {clean(info.title)[:SHOWN]!r}  {what}{_whose(info)}"


def _question(session: str, row: GateRow, info: SessionInfo | None) -> str:
    gate = row.gate
    what = WAITS_FOR.get(gate.kind, "an answer to {tool}").format(tool=repr(gate.tool[:SHOWN]))
    claimed = f", which {row.claim.by[:SHOWN]!r} does" if row.claim is not None else ""
    until = f", until {_time(gate.expires)}" if gate.expires else ""
    return f"{session!r}  {gate.id!r}  since {_time(row.opened)} waits for {what}{claimed}{until}{_whose(info)}"


def _whose(info: SessionInfo | None) -> str:
    """The tenant, agent and person, as far as there are any beside the local one."""
    if info is None:
        return ""
    told = {"tenant": info.tenant if info.tenant != "local" else "", "agent": info.agent, "by": info.by}
    return "".join(f"  {key}={value[:SHOWN]!r}" for key, value in told.items() if value)


def _time(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
