"""One session has a share of the workers: whatever its programs wait for, others find one."""

from __future__ import annotations

import asyncio

import pytest
from tests.helpers.conversations import Scenes
from tests.helpers.waiting import wait_until

from everturn import App, Chat, tool
from everturn.core.events import CallFinished
from everturn.errors import ToolError
from everturn.sandbox import monty
from everturn.sandbox.fair_share import FairShare
from everturn.sandbox.monty import AT_ONCE, SHARE, Monty
from everturn.stores.memory import MemoryStore
from everturn.testing import call, calls, say
from everturn.tools.code.python import run_python


async def test_no_more_than_a_share_is_had_at_once_and_who_waits_is_told():
    shares, most, now, waited = FairShare(2, 60), 0, 0, list[int]()

    async def use(number: int) -> None:
        nonlocal most, now
        async with shares.acquire("one", lambda: waited.append(number)):
            now += 1
            most = max(most, now)
            await asyncio.sleep(0)
            now -= 1

    await asyncio.gather(*map(use, range(5)))
    assert (most, waited) == (2, [2, 3, 4])
    assert not shares._places


async def test_who_waits_too_long_is_told_so_and_others_and_nobody_do_not_wait():
    shares = FairShare(1, 0.01)

    def never() -> None:
        raise AssertionError

    async with (
        shares.acquire("one", never),
        shares.acquire("two", never),
        shares.acquire("", never),
        shares.acquire("", never),
    ):
        with pytest.raises(ToolError, match=r"1 programs of this session are running.*run fewer at once"):
            async with shares.acquire("one", lambda: None):
                raise AssertionError
    async with shares.acquire("one", never):
        pass


async def test_who_gives_up_waiting_takes_nothing_along():
    shares = FairShare(1, 60)
    async with shares.acquire("one", lambda: None):
        began = asyncio.Event()

        async def use() -> None:
            async with shares.acquire("one", began.set):
                raise AssertionError

        waiting = asyncio.ensure_future(use())
        await began.wait()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    async with shares.acquire("one", began.clear):
        assert began.is_set()
    assert not shares._places


async def test_programs_of_one_session_that_wait_leave_workers_to_another(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(monty, "SHARE", 2)
    monkeypatch.setattr(monty, "AT_ONCE", 3)
    monkeypatch.setattr("everturn.tools.code.python._sandboxes", [sandbox := Monty()])
    go, begun = asyncio.Event(), 0

    @tool(read_only=True)
    async def slow(n: int) -> int:
        nonlocal begun
        begun += 1
        await go.wait()
        return n

    greedy = calls(*(call("run_python", code=f"slow(n={n})") for n in range(5)))
    model = Scenes(greedy=[greedy, say("Done.")], poor=[calls(call("run_python", code="1 + 1")), say("Done.")])
    store = MemoryStore()
    app = App(model, tools=[run_python(), slow], store=store)
    async with Chat(model, app=app, session="greedy") as chat:
        turn = await chat.send("greedy")
        await wait_until(lambda: begun == 2)
        await (await Chat(model, app=app, session="poor").send("poor"))
        assert begun == 2
        go.set()
        await turn
        settled = [
            (entry.event.state, entry.event.output.text)
            for session in ("poor", "greedy")
            for entry in await store.events(session)
            if isinstance(entry.event, CallFinished)
        ]
    assert settled[0] == ("completed", "2")
    assert len(settled) == 1 + 2 * 5
    assert {state for state, _ in settled} == {"completed"}
    await sandbox.aclose()


def test_a_share_is_a_part_of_all():
    assert SHARE * 2 <= AT_ONCE
