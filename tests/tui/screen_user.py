"""Somebody at the whole screen: types, presses, reads what is drawn, and waits for what is to come."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from textual.events import Event
from textual.pilot import Pilot

from everturn.client import Server
from everturn.core.messages import Message
from everturn.terminal.tui.app import TerminalApp
from everturn.terminal.tui.gates.dialog import GateScreen
from tests.helpers.scripted_server.server import Rig

PATIENCE = 60.0


class Person:
    """Sits in front of an app."""

    def __init__(self, app: TerminalApp, pilot: Pilot[Any], rig: Rig) -> None:
        self.app, self.pilot, self.rig = app, pilot, rig

    async def until(self, is_so: Callable[[], Any], description: str = "it", seconds: float = PATIENCE) -> None:
        """Wait for something to be so."""
        end = time.monotonic() + seconds
        while not is_so():
            assert time.monotonic() < end, f"{description} did not come; on the screen:\n{self.screen}"
            await asyncio.sleep(0.03)
            await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def type(self, text: str) -> None:
        for char in text:
            await self.pilot.press({" ": "space", "\n": "enter"}.get(char, char))

    async def say(self, text: str) -> str:
        """Say something and wait until it is safe; the session."""
        before = len(self.said())
        self.app.chat_screen.composer.write(text)
        await self.press("enter")
        await self.until(lambda: self.app.follower is not None and len(self.said()) > before, f"“{text}”")
        return self.session

    @property
    def session(self) -> str:
        assert self.app.follower is not None
        return self.app.follower.id

    def said(self) -> list[Message]:
        """What the person has said on the branch that is shown."""
        return [message for message in self.branch() if message.role == "user"]

    def branch(self) -> list[Message]:
        return [] if self.app.follower is None else self.app.follower.state.branch()

    @property
    def text(self) -> str:
        """The conversation, all of it, as it is drawn."""
        return self.app.chat_screen.transcript.text

    @property
    def screen(self) -> str:
        """What is on the screen now."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)

    async def sees(self, text: str) -> None:
        """A text comes to stand in the conversation, however its lines are broken."""
        wanted = "".join(text.split())
        await self.until(lambda: wanted in "".join(self.text.split()), f"“{text}”")

    async def reads(self, text: str) -> None:
        """A text comes to stand on the screen."""
        await self.until(lambda: text in self.screen, f"“{text}”")

    async def idle(self) -> None:
        """Nothing is under way in the session that is shown, and that is seen."""

        def is_idle() -> bool:
            follower = self.app.follower
            return follower is not None and bool(follower.state.turns) and follower.state.running is None

        await self.until(is_idle, "the end of the turn")

    async def gate(self, tool: str) -> GateScreen:
        """The question of a tool, open and ready to be answered: it opens by itself, or by the key."""

        def shown() -> GateScreen | None:
            screen = self.app.screen
            if isinstance(screen, GateScreen) and screen.summary.gate.tool == tool and not screen._is_over:
                return screen
            return None

        def is_ready() -> bool:
            screen = shown()
            return screen is not None and screen.accepts_keys and screen.summary.is_known

        await self.until(is_ready, f"the question of {tool}")
        await self.pilot.pause()
        found = shown()
        assert found is not None
        return found

    async def closed(self) -> None:
        """The question is gone."""
        await self.until(lambda: self.app.screen is self.app.chat_screen, "the conversation")

    async def allow(self, tool: str) -> None:
        screen = await self.gate(tool)
        await self.press("y")
        await self.until(lambda: self.app.screen is not screen, "the end of the question")

    async def confirm(self) -> None:
        from everturn.terminal.tui.confirm import Confirm

        await self.until(lambda: isinstance(self.app.screen, Confirm), "a question")
        await self.press("y")
        await self.until(lambda: not isinstance(self.app.screen, Confirm), "the answer")


class Hasty(TerminalApp):
    """An app that is sent keys before there is anything in it."""

    early: Sequence[Event] = ()

    def on_load(self) -> None:
        for event in self.early:
            self.post_message(event)


@asynccontextmanager
async def person(
    rig: Rig, session: str = "", size: tuple[int, int] = (100, 30), early: Sequence[Event] = (), **more: Any
) -> AsyncGenerator[Person]:
    """Somebody at an app that talks to the rig; `early` was pressed before there was anything to see."""
    async with Server(rig.url, (rig.home / "token").read_text().strip()) as server:
        app = Hasty(server, session, **more) if early else TerminalApp(server, session, **more)
        if isinstance(app, Hasty):
            app.early = early
        async with app.run_test(size=size, notifications=True) as pilot:
            user = Person(app, pilot, rig)
            await user.until(lambda: app.me.user and app.agents.agents, "the server")
            if session:
                await user.until(lambda: app.follower is not None and app.follower.state.turns, "the session")
            yield user
