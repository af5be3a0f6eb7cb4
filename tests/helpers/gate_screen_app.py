"""An app of a few lines around one screen, at the real server: to be asked something, and to answer."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Static

from everturn import api
from everturn.client import Server
from everturn.errors import EverturnError
from everturn.terminal.tui.gates.dialog import GateScreen
from everturn.terminal.tui.gates.keys import KeyBar
from everturn.terminal.tui.gates.scroll import ScrolledRows
from everturn.terminal.tui.host import Language, Severity
from everturn.terminal.tui.session_follower import SessionFollower
from everturn.terminal.tui.themes import THEMES
from tests.helpers.scripted_server.server import Rig

T = TypeVar("T")
PATIENCE = 20.0


class Stand(App[int]):
    """A host for screens: it knows what waits, and keeps what it was told."""

    def __init__(self, server: Server, me: api.Me, language: Language = "en", theme: str = "everturn-dark") -> None:
        super().__init__()
        self.server, self.me, self.language = server, me, language
        self.agents = api.AgentList(agents=[])
        self.inbox_gates: list[api.GateView] = []
        self.follower: SessionFollower | None = None
        self.told: list[str] = []
        self.opened: list[str] = []
        self.answers: list[bool | None] = []
        for known_theme in THEMES:
            self.register_theme(known_theme)
        self.theme = theme

    async def open_session(self, session: str, leaf: str | None = None) -> None:
        self.opened.append(session)

    async def attempt(self, doing: Awaitable[T]) -> T | None:
        try:
            return await doing
        except EverturnError as error:
            self.show_message(str(error), "error")
            return None

    def show_message(self, text: str, severity: Severity = "information") -> None:
        self.told.append(text)

    async def look(self) -> None:
        """See what waits, as the stream of the inbox would tell."""
        self.inbox_gates = await self.server.gates()

    def ask(self, view: api.GateView) -> GateScreen:
        screen = GateScreen(view)
        self.push_screen(screen, self.answers.append)
        return screen


class Desk:
    """Somebody at the terminal: presses, reads, and waits for what is to come."""

    def __init__(self, app: Stand, pilot: Pilot[int], rig: Rig) -> None:
        self.app, self.pilot, self.rig = app, pilot, rig

    async def until(self, is_so: Callable[[], Any], awaited: str = "") -> None:
        """Wait for something to be so."""
        end = time.monotonic() + PATIENCE
        while not is_so():
            assert time.monotonic() < end, f"{awaited or 'it'} did not come; on the screen: {self.text}"
            await asyncio.sleep(0.02)
            await self.pilot.pause()

    async def gate(self, session: str, tool: str = "") -> api.GateView:
        """The first gate of a session, or of a sub-agent run of it."""
        end = time.monotonic() + PATIENCE
        while True:
            found = [gate for gate in await self.app.server.session(session).gates() if tool in ("", gate.gate.tool)]
            if found:
                await self.app.look()
                return found[0]
            assert time.monotonic() < end, "nothing is asked"
            await asyncio.sleep(0.03)

    async def asked(self, text: str, tool: str = "", **more: Any) -> tuple[str, GateScreen]:
        """Say something that leads to a question, and have the question in front of oneself."""
        session = (await asyncio.to_thread(self.rig.say, text, **more))["session"]
        await asyncio.to_thread(self.rig.share, session)
        return session, await self.show(await self.gate(session, tool))

    async def show(self, view: api.GateView, *, is_steady: bool = True) -> GateScreen:
        screen = self.app.ask(view)
        await self.until(
            lambda: screen.is_mounted and bool(screen.query(KeyBar)) and screen.query_one("#body", ScrolledRows).rows
        )
        await self.until(lambda: screen.summary.is_known, "the tool")
        if is_steady:
            await self.until(lambda: screen.accepts_keys)
        return screen

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def type(self, text: str) -> None:
        """Type a text, letter by letter."""
        for char in text:
            await self.pilot.press({" ": "space", "\n": "enter"}.get(char, char))

    async def gone(self) -> bool | None:
        """The dialog has closed; what it says."""
        await self.until(lambda: self.app.answers, "an answer")
        return self.app.answers.pop()

    async def idle(self, session: str) -> None:
        await asyncio.to_thread(self.rig.wait_idle, session)

    @property
    def text(self) -> str:
        """All that is on the screen, as it is drawn, without colours."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)

    @property
    def line(self) -> str:
        """What is wrong, as the dialog says it."""
        return str(self.app.screen.query_one("#problem", Static).content)


@asynccontextmanager
async def at(
    rig: Rig,
    size: tuple[int, int] = (100, 30),
    *,
    user: str = "",
    language: Language = "en",
    theme: str = "everturn-dark",
    url: str = "",
) -> AsyncGenerator[Desk, None]:
    """Somebody in front of a terminal, logged in."""
    token = (rig.home / "token").read_text().strip()
    if user:
        token = rig.api("POST", "/api/keys", {"user": user, "role": user})["secret"]
    async with Server(url or rig.url, token) as server:
        app = Stand(server, await server.me(), language, theme)
        async with app.run_test(size=size) as pilot:
            yield Desk(app, pilot, rig)
            with suppress(Exception):
                await pilot.pause()


def harmless(text: str) -> bool:
    """Whether a terminal would only show it."""
    return re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200b-\u200f]", text) is None


def screen_of(app: Stand) -> Screen[Any]:
    return app.screen


__all__ = ["Desk", "Stand", "at", "harmless"]
