"""`run_python` through the front door: its calls are calls of the turn, and a person who is asked holds nothing up."""

from __future__ import annotations

import asyncio

import pytest

from everturn import Chat, tool
from everturn.core.events import CallFinished, GateOpened, NestedCallRequested
from everturn.core.parts import ToolPart
from everturn.stores.memory import MemoryStore
from everturn.testing import MortalStore, ScriptedModel, call, calls, say
from everturn.tools.code.python import run_python

CODE = """
import time
found = [look(place=place) for place in ("hall", "attic")]
first = send(text=", ".join(found))
second = send(text=str(time.time()))
print(first, second)
"""


async def test_what_the_code_calls_is_asked_about_logged_and_done_once():
    sent: list[str] = []
    looked: list[str] = []

    @tool(read_only=True)
    async def look(place: str) -> str:
        looked.append(place)
        return f"seen {place}"

    @tool(approval="always")
    async def send(text: str) -> str:
        sent.append(text)
        return f"sent {len(sent)}"

    store = MemoryStore()
    model = ScriptedModel(calls(call("run_python", code=CODE)), say("Done."))
    async with Chat(model, tools=[run_python(), look, send], store=store) as chat:
        turn = await chat.send("look around and tell them")
        async for event in turn.events():
            if isinstance(event, GateOpened):
                await turn.answer(event.gate, allow="once")
        result = await turn
        events = [entry.event for entry in await store.events(chat.session)]
    assert result.message is not None
    [part] = [part for part in result.message.parts if isinstance(part, ToolPart) and part.name == "run_python"]
    assert part.output is not None
    assert part.output.text == "sent 1 sent 2"
    assert (looked, len(sent), sent[0]) == (["hall", "attic"], 2, "seen hall, seen attic")
    assert [event.name for event in events if isinstance(event, NestedCallRequested)] == [
        "look",
        "look",
        "send",
        "send",
    ]
    assert len([event for event in events if isinstance(event, CallFinished)]) == 5


SENDING = """
import random
first = send(text="one")
second = send(text=str(random.random()))
print(first, "and", second)
"""


class House:
    """What outlives a process: a store, and the ledger of what was done."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.sent: list[str] = []
        self.text = ""

    async def live(self, lives: int | None = None, *, before_next: bool = False) -> bool:
        """Be a process until the turn is over, or it dies: then it says False."""
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)

        @tool
        async def send(text: str) -> str:
            self.sent.append(text)
            return f"sent {text[:3]}"

        store = MortalStore(self.store, lives, before_next=before_next)
        model = ScriptedModel(calls(call("run_python", code=SENDING)), say("Done."))
        chat = Chat(model, tools=[run_python(), send], store=store, session="s")

        async def play() -> None:
            result = await (await chat.send("tell them", key="k"))
            assert result.message is not None
            parts = [part for part in result.message.parts if isinstance(part, ToolPart)]
            self.text = next((part.output.text for part in parts if part.name == "run_python" and part.output), "")

        playing, died = asyncio.ensure_future(play()), asyncio.ensure_future(store.died.wait())
        await asyncio.wait({playing, died}, return_when="FIRST_COMPLETED")
        is_dead = store.died.is_set()
        store.kill()
        for task in (playing, died):
            task.cancel()
        await asyncio.gather(playing, died, return_exceptions=True)
        await chat.aclose()
        return not is_dead


@pytest.mark.parametrize("before_next", [False, True])
async def test_wherever_the_process_dies_nothing_is_sent_twice(before_next: bool):
    deaths = 0
    for lives in range(1, 60):
        house = House()
        if await house.live(lives, before_next=before_next):
            break
        deaths += 1
        assert await house.live(), lives
        assert len(house.sent) == len(set(house.sent)) <= 2, lives
        assert house.text, lives
    assert deaths >= 10
