"""Log polling: a reader hears of an event whose announcement was lost, and many readers cost one query."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from everturn import Chat
from everturn.app import App
from everturn.bus.memory import MemoryBus
from everturn.core.commands import Select, Send
from everturn.core.deltas import DriverGone, Frame
from everturn.core.parts import TextPart
from everturn.events import TurnCompleted
from everturn.running import log_poll
from everturn.running.log_poll import LogPoll
from everturn.testing import MemoryStore, ScriptedModel, say

SOON = 5
MANY = 1001


class Counting(MemoryStore):
    """A store that counts its queries."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []

    async def heads(self, sessions: Sequence[str]) -> dict[str, int]:
        self.asked.append(len(sessions))
        return await super().heads(sessions)


class Dead(MemoryBus):
    """A bus that loses every word: whoever announces dies before it can."""

    def publish(self, turn: str, frames: Sequence[Frame]) -> None:
        if isinstance(frames[0], DriverGone):  # what a process tells itself
            super().publish(turn, frames)

    def close(self, turn: str) -> None:
        pass


@pytest.fixture
async def store() -> Counting:
    store = Counting()
    for number in range(MANY):
        send = Send(key="k", session=f"s{number}", turn="t", message="m", parts=(TextPart("hello"),))
        await store.admit(send)
    return store


async def test_many_readers_cost_one_query_for_each_thousand_sessions(store: Counting) -> None:
    poll = LogPoll(store)
    watches = [poll.watch(f"s{at}", lambda: 0, lambda: None) for at in range(MANY) for _ in range(3)]

    await poll.poll()

    assert poll.sessions == MANY
    assert store.asked == [1000, 1]
    for watch in watches:
        watch.close()
    assert poll.sessions == 0


async def test_only_a_reader_that_is_behind_is_told_and_once_for_each_position() -> None:
    store, notifications = MemoryStore(), list[str]()
    poll = LogPoll(store)
    async with Chat(ScriptedModel([say("a")], [say("b")]), store=store, session="s") as chat:
        await (await chat.send("go"))
        head = await store.head("s")
        watches = [
            poll.watch("s", lambda: head, lambda: notifications.append("knows")),
            poll.watch("s", lambda: 0, lambda: notifications.append("behind")),
            poll.watch("nobody", lambda: 0, lambda: notifications.append("gone")),
        ]
        for _ in range(3):
            await poll.poll()
        assert notifications == ["behind", "gone"]

        await (await chat.send("more"))
        await poll.poll()

        assert notifications == ["behind", "gone", "knows", "behind"]
        for watch in watches:
            watch.close()


async def test_a_turn_whose_end_nobody_announced_ends_for_its_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_poll, "POLL_INTERVAL", 0.01)
    app = App(ScriptedModel([say("a")]), bus=Dead())
    async with Chat("", app=app, session="s") as chat, asyncio.timeout(SOON):
        turn = await chat.send("go")

        shown = [item async for item in turn.events()]

        assert isinstance(shown[-1], TurnCompleted)
        assert app.log_poll.sessions == 0


async def test_a_command_that_was_acted_on_while_nobody_said_so_is_not_waited_for_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_poll, "POLL_INTERVAL", 0.01)
    app = App(ScriptedModel([say("a")]), bus=Dead())
    async with Chat("", app=app, session="s") as chat, asyncio.timeout(SOON):
        await (await chat.send("go"))
        tree = await chat.tree()
        command = Select(key="select", session="s", message=next(iter(tree.messages)))
        head = await app.store.head("s")

        await app.command(command)
        await app.wait_until_carried_out(command, head)

        assert await app.store.inbox("s") == []


async def test_a_store_that_fails_once_is_polled_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing(MemoryStore):
        failures = 1

        async def heads(self, sessions: Sequence[str]) -> dict[str, int]:
            if self.failures:
                self.failures = 0
                raise OSError("the database went away")
            return await super().heads(sessions)

    monkeypatch.setattr(log_poll, "POLL_INTERVAL", 0.01)
    poll, looked = LogPoll(Failing()), asyncio.Event()
    watch = poll.watch("s", lambda: 0, looked.set)

    async with asyncio.timeout(SOON):
        await looked.wait()

    assert "the database went away" in caplog.text
    watch.close()
