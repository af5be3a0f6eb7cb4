"""A store → a line for every session in which something is to be done: what runs, what waits, what is stuck."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

from everturn.core.canonical import clean
from everturn.core.ports import SessionInfo
from everturn.errors import ConfigError
from everturn.stores.named import SUFFIXES, named_store

SHOWN = 40  # characters of a title


async def overview(name: str) -> list[str]:
    """The sessions of a store that are not at rest, the stuck ones first, and how many questions are open in all.

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
        lines = [_line(info) for info in sorted(infos, key=lambda info: (not info.stuck, not info.is_awake, info.id))]
        gates = len(await store.gates())
        return [*lines, f"{len(lines)} sessions to drive, {gates} questions open"]
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
        what += f" until {datetime.fromtimestamp(info.due, UTC):%Y-%m-%d %H:%M:%S} UTC"
    # Names and titles are whatever somebody chose: in quotes nothing of it reaches the terminal as more than text.
    return f"{info.id!r}  {clean(info.title)[:SHOWN]!r}  {what}"
