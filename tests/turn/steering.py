"""Turns that are told something while they run: a model that waits, and ways to look at what became of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from everturn import Chat
from everturn.core.commands import NotifyCall
from everturn.core.events import Event, TurnStarted
from everturn.core.requests import ModelRequest
from everturn.core.store_ports import Store
from everturn.errors import CommandRefused
from everturn.testing import ScriptedModel
from tests.helpers.crash_harness import validate
from tests.helpers.events import events_of
from tests.helpers.stores import ALL, opened

SOON = 5  # seconds after which something that should have happened is taken to hang


@pytest.fixture(params=ALL)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Store]:
    """An empty one of each kind."""
    async with opened(request.param, tmp_path) as store:
        yield store


class Slow(ScriptedModel):
    """A model that says its first answer only when it is let."""

    def __init__(self, *script: Any) -> None:
        super().__init__(*script)
        self.asked, self.go_on = asyncio.Event(), asyncio.Event()

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        self.asked.set()
        await self.go_on.wait()
        async for batch in super().stream(request):
            yield batch


async def wait_until_processed(chat: Chat) -> None:
    """Wait until the driver has looked at everything that was sent: what comes behind it was acted on."""
    app, [turn, *_] = chat.app, await turns_of(chat)
    stir = NotifyCall(key=app.ids.new("cmd"), session=chat.session, turn=turn, call="none")
    async with asyncio.timeout(SOON):
        await app.command(stir)
        with pytest.raises(CommandRefused):
            await app.wait_until_carried_out(stir, 0)


async def events_in(chat: Chat) -> list[Event]:
    return await events_of(chat.app.store, chat.session)


async def turns_of(chat: Chat) -> list[str]:
    return [event.turn for event in await events_in(chat) if isinstance(event, TurnStarted)]


def summarize_messages(request: ModelRequest) -> list[str]:
    """Who speaks in a request, and of people what."""
    validate(request.messages)
    return [
        "".join(getattr(part, "text", "") for part in message.parts) if message.role == "user" else message.role
        for message in request.messages
    ]


async def texts(chat: Chat) -> list[str]:
    return [message.text for message in await chat.messages()]


async def wait_for_gates(chat: Chat, number: int) -> None:
    async with asyncio.timeout(SOON):
        while len(await chat.gates()) < number:  # noqa: ASYNC110 - what is waited for rings no bell
            await asyncio.sleep(0.005)
