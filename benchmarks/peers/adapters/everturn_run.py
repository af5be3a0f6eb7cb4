"""everturn as a program uses it that wants the result: `await agent.run(…)`, and the text is seen when it is whole."""

from __future__ import annotations

from collections.abc import Callable

from everturn import Chat

from .everturn import DISTRIBUTION as DISTRIBUTION
from .everturn import Adapter as ChatAdapter


class Adapter(ChatAdapter):
    async def turn(self, chat: Chat, on_text: Callable[[str], None]) -> None:
        if self.history:
            result = await self.agent.run("go", app=self.app, session=chat.session)
        else:
            result = await self.agent.run("go")  # in memory, in an app of its own
        on_text(result.output)
