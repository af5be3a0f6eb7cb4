"""everturn by its front door: a `Chat` on the memory store, a session per conversation, one model for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toolbox import TOOLS

from everturn import Chat, TextDelta, tool
from everturn.core.commands import Send
from everturn.core.events import Event, TurnStarted
from everturn.models.registry import get_model
from everturn.testing import MemoryStore, ScriptedModel, say

DISTRIBUTION = "everturn"
SESSION = "peer"


class Adapter:
    def __init__(self, base: str, model: str, tools: Sequence[str], history: list[dict[str, Any]]) -> None:
        self.model = get_model("compatible:" + model, base_url=base)
        self.tools = [tool(read_only=True, repeatable=True)(TOOLS[name]) for name in tools]
        self.texts = [message["content"] for message in history]
        self.log: list[Event] = []

    async def new(self) -> Chat:
        if not self.texts:
            return Chat(self.model, tools=self.tools)
        if not self.log:
            self.log = await recorded(self.texts)
        store = MemoryStore()
        first = self.log[0]
        assert isinstance(first, TurnStarted)
        await store.admit(Send(key=first.command, session=SESSION, turn=first.turn))  # with it a session begins
        await store.append(SESSION, 0, self.log)
        return Chat(self.model, tools=self.tools, store=store, session=SESSION)

    async def turn(self, chat: Chat, on_text: Callable[[str], None]) -> None:
        async for event in await chat.send("go"):
            if isinstance(event, TextDelta):
                on_text(event.text)


async def recorded(texts: list[str]) -> list[Event]:
    """The log of a session in which all this was said, by turns that really ran."""
    script = [say(text, len(text)) for text in texts[1::2]]
    async with Chat(ScriptedModel(*script), session=SESSION) as chat:
        for text in texts[::2]:
            await (await chat.send(text))
        assert [message.text for message in await chat.messages()] == texts
        return [entry.event for entry in await chat.runtime.store.events(SESSION)]
