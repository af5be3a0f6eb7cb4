"""A store → a line for every session in which something is to be done, and for every question: who waits for whom."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from everturn.core.canonical import clean
from everturn.core.gates import GateRow
from everturn.core.ports import SessionInfo
from everturn.errors import ConfigError, UnknownSession
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


async def overview(name: str) -> list[str]:
    """The sessions of a store that are not at rest, the stuck ones first; the questions that are open; how many there are.

    Raises:
        ConfigError: there is no such store.
    """
    if name == "memory":
        raise ConfigError("what is in memory only its own process sees; name a file or a database")
    if not await asyncio.to_thread(_is_there, name):
        raise ConfigError(f"there is no file {name}")  # looking must not make one
    store = named_store(name)
    try:
        infos = await store.sessions(awake=True)
        gates = await store.gates()
        whose: dict[str, SessionInfo] = {info.id: info for info in infos}
        for session in {row.gate.session for row in gates} - set(whose):
            with suppress(UnknownSession):  # it was erased meanwhile
                whose[session] = await store.info(session)
        lines = [_line(info) for info in sorted(infos, key=lambda info: (not info.stuck, not info.is_awake, info.id))]
        lines += [_question(gate, whose.get(gate.gate.session)) for gate in sorted(gates, key=lambda gate: gate.opened)]
        return [*lines, f"{len(infos)} sessions to drive, {len(gates)} questions open"]
    finally:
        await store.aclose()


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


def _question(row: GateRow, info: SessionInfo | None) -> str:
    gate = row.gate
    what = WAITS_FOR.get(gate.kind, "an answer to {tool}").format(tool=repr(gate.tool[:SHOWN]))
    claimed = f", which {row.claim.by[:SHOWN]!r} does" if row.claim is not None else ""
    until = f", until {_time(gate.expires)}" if gate.expires else ""
    return f"{gate.session!r}  {gate.id!r}  since {_time(row.opened)} waits for {what}{claimed}{until}{_whose(info)}"


def _whose(info: SessionInfo | None) -> str:
    """The tenant, agent and person, as far as there are any beside the local one."""
    if info is None:
        return ""
    told = {"tenant": info.tenant if info.tenant != "local" else "", "agent": info.agent, "by": info.by}
    return "".join(f"  {key}={value[:SHOWN]!r}" for key, value in told.items() if value)


def _time(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"
