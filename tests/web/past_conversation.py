"""A conversation that has been: made in memory, and brought into the rig as a file."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec import Struct

from everturn import Chat, Output, tool
from everturn.models.scripted import Answer, ScriptedModel, call, calls, say, think
from everturn.stores.export import export_session
from everturn.stores.memory import MemoryStore
from tests.helpers.scripted_server import texts
from tests.helpers.scripted_server.server import Rig

LAST = "And this is the end of it."


class Said(Struct, frozen=True):
    """What a person said, and what the model answered: thoughts, a place to look at, a text."""

    text: str
    answer: str
    thinks: str = ""
    looks: str = ""

    @property
    def steps(self) -> list[Answer]:
        """As a script has it."""
        if not self.looks:
            return [say(self.answer)]
        return [[think(self.thinks), calls(call("look", place=self.looks))], say(self.answer)]


@tool(read_only=True)
def look(place: str) -> Output:
    """Look at a place."""
    return Output(f"There is a lamp and a letter: {place}", title=place[:200])


def long(messages: int) -> list[Said]:
    """So many messages; every fifth answer is long markdown, every seventh looks first."""
    turns = messages // 2
    return [
        Said(
            f"Question {at}: what is in room {at}?",
            (f"{texts.SECTION.format(n=at)}\n" if at % 5 == 0 else "")
            + (LAST if at == turns - 1 else f"Room {at} has a *lamp* and a `letter`."),
            "I look first." if at % 7 == 0 else "",
            f"room {at}" if at % 7 == 0 else "",
        )
        for at in range(turns)
    ]


def bring(rig: Rig, exchanges: Sequence[Said]) -> str:
    """Bring a conversation into a rig; the name of its session there."""
    return bring_packed(rig, pack(exchanges))


def bring_packed(rig: Rig, data: bytes) -> str:
    """Bring an exported conversation into a rig; the name of its session there."""
    return rig.api("POST", "/api/import", data, {"Content-Type": "application/zip"})["id"]


def pack(exchanges: Sequence[Said]) -> bytes:
    """The export of a conversation."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as pool:
        file = Path(folder) / "past.zip"
        pool.submit(asyncio.run, _make(exchanges, file)).result()  # beside whatever loop a browser is driven by
        return file.read_bytes()


async def _make(exchanges: Sequence[Said], file: Path) -> None:
    store = MemoryStore()
    model = ScriptedModel(*(step for exchange in exchanges for step in exchange.steps))
    async with Chat(model, tools=[look], store=store, session="past") as chat:
        for exchange in exchanges:
            await (await chat.send(exchange.text))
    await export_session(store, "past", file)
