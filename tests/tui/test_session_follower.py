"""A session that is followed: its state, its queue, what its sub-agent runs ask, and a server that is not heard."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from everturn import api
from everturn.client import Server
from everturn.core.events import TurnStarted
from everturn.core.messages import Message
from everturn.core.parts import TextPart
from everturn.errors import EverturnError, UnknownSession
from everturn.terminal.tui.session_follower import SessionFollower
from tests.helpers.scripted_server.server import Rig
from tests.helpers.transcript_app import text_delta

BEGUN = TurnStarted(turn="t", input=Message("in", None, "user", (TextPart("hello"),), turn="t"))


class Told:
    """A session whose stream is written by the test."""

    def __init__(self) -> None:
        self.id, self.is_broken = "s", False
        self.items: asyncio.Queue[api.StreamItem | Exception] = asyncio.Queue()
        self.waiting: list[api.QueuedView] = []

    def session(self, session: str) -> Any:
        return self

    def events(self, after: str = "") -> Any:
        return self

    async def log_tail(self, before: int = 0, turns: int = 0) -> api.LogTail:
        return api.LogTail(entries=[], start=1, seq=0)

    async def __aiter__(self) -> AsyncIterator[api.StreamItem]:
        while True:
            item = await self.items.get()
            if isinstance(item, Exception):
                raise item
            yield item

    async def aclose(self) -> None: ...

    async def queue(self) -> list[api.QueuedView]:
        return self.waiting

    async def gates(self) -> list[api.GateView]:
        return []


async def test_what_comes_is_folded_told_in_beats_and_the_queue_is_asked_for() -> None:
    source, updates, woken = Told(), list[set[str]](), asyncio.Event()
    source.waiting = [api.QueuedView(turn="u", message="next", at=0.0, text="later", files=[])]

    def changed(turns: set[str]) -> None:
        updates.append(turns)
        woken.set()

    follower = SessionFollower(cast("Server", source), "s", changed, lambda error: None)
    follower.start()
    source.items.put_nowait(api.StreamItem(seq=1, event=BEGUN))
    for at in range(200):
        source.items.put_nowait(api.StreamItem(delta=text_delta("t", at, "x")))
    async with asyncio.timeout(30):
        while not follower.state.queued_messages or len(follower.state.live.get("t", {0: None})) != 1:
            woken.clear()
            await woken.wait()
    assert follower.state.live["t"][0].text == "x" * 200
    assert [message.text for message in follower.state.queued_messages] == ["later"]
    assert len(updates) < 20, "told in beats, not for each piece"
    updates.clear()
    source.is_broken = True
    async with asyncio.timeout(30):
        while not follower.broken:
            woken.clear()
            await woken.wait()
    assert "" in updates[-1]
    await follower.aclose()


async def test_a_session_that_is_gone_is_reported() -> None:
    source, failed = Told(), asyncio.get_running_loop().create_future()
    follower = SessionFollower(cast("Server", source), "s", lambda turns: None, failed.set_result)
    follower.start()
    source.items.put_nowait(UnknownSession("the session was erased"))
    async with asyncio.timeout(30):
        error = await failed
    assert isinstance(error, EverturnError)
    await follower.aclose()


@pytest.mark.live
@pytest.mark.timeout(240)
async def test_a_turn_that_asks_and_a_sub_turn_that_asks_are_followed_at_the_real_server(rig: Rig) -> None:
    woken = asyncio.Event()
    async with Server(rig.url, (rig.home / "token").read_text().strip()) as server, asyncio.timeout(200):
        for prompt, is_below in (("mail", False), ("trip", True)):
            session = str(rig.say(prompt)["session"])
            failed: list[EverturnError] = []
            follower = SessionFollower(server, session, lambda turns: woken.set(), failed.append)
            follower.start()
            state = follower.state
            while not (state.subagent_gates if is_below else state.open_gates):
                woken.clear()
                follower.poll_now()
                await woken.wait()
            asked = state.subagent_gates[0].gate if is_below else state.open_gates[0]
            assert asked.tool == "send_mail"
            assert bool(state.open_gates) is not is_below, "what a sub-agent run asks is not in this log"
            where = state.subagent_gates[0].session if is_below else session
            assert [gate["gate"]["id"] for gate in rig.gates(where)] == [asked.id]
            [view] = [gate for gate in await follower.session.gates() if gate.gate.id == asked.id]
            await server.answer(view, allow="once")
            while state.running is not None or state.subagent_gates:
                woken.clear()
                follower.poll_now()
                await woken.wait()
            assert state.branch()[-1].text == rig.stored_text(session)
            assert not failed
            await follower.aclose()
