"""A conversation that has come to a gate, and what anybody may try at it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from everturn import Chat, Turn, TurnOptions, tool
from everturn.app import App
from everturn.core.commands import AnyCommand, ResolveGate, Send
from everturn.core.events import CallStarted
from everturn.core.gates import Gate, GateResolution
from everturn.core.ports import Tool
from everturn.core.rules.policy import Rule
from everturn.core.store_ports import Store
from everturn.events import GateOpened, Phase
from everturn.testing import CountingIds, FakeClock, ScriptedModel, call, calls, say


class Asked:
    """A session whose turn waits at one gate; `ran` is what was really done."""

    def __init__(self, store: Store, session: str = "s1", **options: Any) -> None:
        self.ran: list[str] = []
        self.clock, self.session = FakeClock(), session
        self.store, self.options = store, options
        self.rules: list[Rule] = []
        self.turn: Turn
        self.gate: Gate

    def tools(self) -> list[Tool]:
        """What there is to be called."""

        @tool(approval="ask")
        def mail(to: str) -> str:
            """Send a mail."""
            self.ran.append(to)
            return "sent"

        return [mail]

    def app(self, tools: list[Tool] | None = None, **more: Any) -> App:
        """A process."""
        model = ScriptedModel(calls(call("mail", to="ada")), say("Done."), say("More."), say("Even more."))
        return App(
            model,
            tools=self.tools() if tools is None else tools,
            store=self.store,
            clock=self.clock,
            ids=CountingIds(f"{self.session}{len(self.ran)}{id(model)}"),
            rules=self.rules,
            **more,
        )

    def chat(self, app: App) -> Chat:
        """Its end of the conversation."""
        return Chat(app.model_for(""), app=app, session=self.session, options=TurnOptions(**self.options))

    @asynccontextmanager
    async def asking(self) -> AsyncGenerator[Chat]:
        """A process whose turn waits."""
        async with self.chat(self.app()) as chat:
            self.turn = await chat.send("please")
            async for shown in self.turn:
                if isinstance(shown, GateOpened):
                    self.gate = shown.gate
                    break
            await self.parked(chat)
            yield chat

    async def parked(self, chat: Chat) -> None:
        """Wait until nothing moves: nobody has said anything that was not acted on, and the turn waits or is over."""
        while True:
            pending = [command for command in await self.store.inbox(self.session) if not isinstance(command, Send)]
            if (
                not pending
                and (phase := (await self.turn.state()).phase)
                and (phase.is_terminal or phase is Phase.WAITING)
            ):
                return
            await asyncio.sleep(0.001)

    def answer(self, **changed: Any) -> ResolveGate:
        """The answer that would be right, or one that is not."""
        right: dict[str, Any] = {
            "key": f"answer-{self.session}",
            "session": self.session,
            "at": self.clock.now(),
            "gate": self.gate.id,
            "hash": self.gate.hash,
            "resolution": GateResolution(True, by="person"),
        }
        return ResolveGate(**{**right, **changed})

    async def starts(self) -> int:
        """How often the log says that something was started."""
        return sum(isinstance(entry.event, CallStarted) for entry in await self.store.events(self.session))

    async def attempt(self, chat: Chat, command: AnyCommand) -> BaseException | None:
        """Hand something in, and say what was wrong with it."""
        try:
            await chat.app.command(command)
        except Exception as error:
            return error
        return None
