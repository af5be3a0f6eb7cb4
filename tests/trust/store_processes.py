"""An office: what outlives every process that works there, and a new process on the same file whenever one is wanted."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from everturn import Chat, Turn, TurnOptions, tool
from everturn.app import App
from everturn.core.commands import Send
from everturn.core.events import Event
from everturn.core.gates import Gate
from everturn.core.ports import Tool
from everturn.core.requests import RequestResult
from everturn.core.store_ports import Store
from everturn.engine.inline import InlineEngine
from everturn.events import Phase
from everturn.testing import FakeClock, ScriptedModel
from tests.helpers.events import events_of

NOW = 1_700_000_000.0


class Asleep(InlineEngine):
    """The engine of a node that takes commands and drives nothing."""

    async def wake(self, session: str, at: float | None = None, *, is_reminder: bool = False) -> None:
        """Leave it to others."""


class Office:
    """A file with sessions, a clock, and a file with what was really done, of which no runtime knows."""

    def __init__(self, folder: Path, now: float = NOW) -> None:
        self.file, self._done = folder / "office.db", folder / "done"
        self.clock = FakeClock(now)
        self.model: ScriptedModel  # of the newest process

    def tools(self) -> list[Tool]:
        """What there is to be called; each call leaves one line."""

        @tool(approval="ask")
        async def mail(to: str, text: str) -> str:
            """Send a mail."""
            self._note(f"mail {to}: {text}")
            return f"sent to {to}"

        @tool(approval="ask", subjects={"path": "path"})
        async def write(path: str) -> str:
            """Write a file."""
            self._note(f"write {path}")
            return f"wrote {path}"

        return [mail, write]

    def _note(self, text: str) -> None:
        file = os.open(self._done, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, f"{text}\n".encode())
        os.close(file)

    @property
    def done(self) -> list[str]:
        """What was really done; sorted, for calls run at the same time."""
        return sorted(self._done.read_text(encoding="utf-8").splitlines()) if self._done.exists() else []

    @asynccontextmanager
    async def process(
        self, *script: Any, session: str = "s1", store: Store | None = None, drives: bool = True, **options: Any
    ) -> AsyncGenerator[Chat]:
        """A new process, with everything it knows read from the file."""
        self.model = ScriptedModel(*script)
        app = App(
            self.model,
            tools=self.tools(),
            store=store or str(self.file),
            clock=self.clock,
            engine=None if drives else Asleep(self.clock),
        )
        async with Chat(self.model, app=app, session=session, options=TurnOptions(**options)) as chat:
            yield chat

    def told(self) -> dict[str, str]:
        """The results the model was shown last, by their calls."""
        parts = [part for message in self.model.requests[-1].messages for part in message.parts]
        return {part.call: part.text for part in parts if isinstance(part, RequestResult)}


async def rest(chat: Chat, turn: Turn) -> None:
    """Wait until a turn waits or is over, and nothing said of it is left to be acted on."""
    store = chat.app.store
    while True:
        pending = [command for command in await store.inbox(turn.session) if not isinstance(command, Send)]
        if not pending and await store.events(turn.session, turn=turn.id):
            phase = (await turn.state()).phase
            if phase.is_terminal or phase is Phase.WAITING:
                return
        await asyncio.sleep(0.001)


async def happened(chat: Chat, kind: type[Event]) -> None:
    """Wait until something has happened."""
    while True:
        if await count(chat, kind):
            return
        await asyncio.sleep(0.001)


async def asks(chat: Chat, text: str = "please") -> Turn:
    """Send a message, and wait until its turn waits."""
    turn = await chat.send(text)
    await rest(chat, turn)
    return turn


async def gates_by_subject(chat: Chat) -> dict[str, Gate]:
    """The open gates, by what their calls are about."""
    gates = await chat.gates()
    found = {next(iter(_about(gate))): gate for gate in gates}
    assert len(found) == len(gates)
    return found


def _about(gate: Gate) -> list[str]:
    arguments = json.loads(gate.arguments)
    return [arguments[name] for name in ("to", "path") if name in arguments]


async def events_in(chat: Chat, session: str = "s1") -> list[Event]:
    """What is in the log."""
    return await events_of(chat.app.store, session)


async def count(chat: Chat, kind: type[Event]) -> int:
    """How often something happened."""
    return sum(isinstance(event, kind) for event in await events_in(chat, chat.session))
