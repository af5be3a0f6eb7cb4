"""everturn as a chat application uses it: one `App` with one agent, a `Chat` per conversation, the turn is streamed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toolbox import TOOLS

from everturn import Agent, App, Chat, tool
from everturn.events import TextDelta
from everturn.models.registry import get_model

DISTRIBUTION = "everturn"


class Adapter:
    def __init__(self, base: str, model: str, tools: Sequence[str], history: list[dict[str, Any]]) -> None:
        functions = [tool(read_only=True, repeatable=True)(TOOLS[name]) for name in tools]
        self.agent = Agent(get_model("compatible:" + model, base_url=base), tools=functions)
        self.app, self.history = App(agents=[self.agent]), history

    async def new(self) -> Chat:
        chat = self.app.chat(agent=self.agent)
        if self.history:
            await chat.import_messages(self.history)
        return chat

    async def turn(self, chat: Chat, on_text: Callable[[str], None]) -> None:
        async for event in await chat.send("go"):
            if isinstance(event, TextDelta):
                on_text(event.text)
