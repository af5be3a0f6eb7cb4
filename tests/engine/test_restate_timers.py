"""Timers on Restate: `ctx.sleep`, `ctx.external`, `send(at=…)` and workflows, with a process that dies after any event.

Each process is an app with an engine of its own, at one address. The first dies with its store in the middle of a turn; the
second is only started: it sends nothing, so that whatever goes on is what Restate kept.

Every event takes minutes: `EVERTURN_CRASH_STEP=1` stops after each, and the default after every sixth.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import pytest
import pytest_asyncio
from tests.helpers.waiting import wait_until

from everturn import App, ToolContext, tool
from everturn.core.events import CallFinished, TurnCompleted, TurnFailed, TurnStarted, TurnSuspended
from everturn.core.ports import SubagentRequest
from everturn.engine.restate import RestateEngine
from everturn.testing import MemoryStore, MortalStore, ScriptedModel, call, calls, say
from tools.servers.process import free_port
from tools.servers.restate import RestateServer, restate_server

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(1200)]

STEP = int(os.environ.get("EVERTURN_CRASH_STEP", "6"))
PAUSE = 0.4  # seconds of real time: Restate has its own clock
SESSION = "s"
names = (f"timers{number}" for number in count())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RestateServer]:
    async with restate_server(tmp_path_factory.mktemp("restate")) as server:
        yield server


class Outside:
    """The world outside, which no crash reaches."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.tokens: list[str] = []

    def charge(self) -> str:
        self.counts["charge"] += 1
        return "receipt"

    def request(self, token: str) -> None:
        self.tokens.append(token)


class Process:
    """An app with its engine, until it is stopped."""

    def __init__(self, server: RestateServer, service: str, port: int, store: Any, outside: Outside) -> None:
        @tool(resumable=True)
        async def sleeper(ctx: ToolContext) -> str:
            receipt = await ctx.step("charge", outside.charge)
            await ctx.sleep(PAUSE)
            return receipt

        @tool(resumable=True)
        async def external(ctx: ToolContext) -> str:
            receipt = await ctx.step("charge", outside.charge)
            return receipt + await ctx.external(outside.request, timeout=600)

        self.engine = RestateEngine(server.ingress, server.admin, listen=("127.0.0.1", port), service=service)
        self.app = App(
            ScriptedModel(lambda request: self.answer(request)),
            tools=[sleeper, external],
            store=store,
            engine=self.engine,
        )

        @self.app.workflow
        async def refund(ctx: ToolContext) -> str:
            receipt = await ctx.step("charge", outside.charge)
            await ctx.sleep(PAUSE)
            notes = [(await ctx.run_subagent(SubagentRequest(f"look {n}"))).text for n in (1, 2)]
            return " ".join((receipt, *notes))

        self.refund = refund

    @staticmethod
    def answer(request: Any) -> Any:
        word = request.messages[-1].parts[0].text if request.messages[-1].role == "user" else ""
        return calls(call(word)) if word in ("sleeper", "external") else say("Done.")

    async def begin(self, name: str) -> str:
        """Send what the scenario begins with; returns its session."""
        if name == "workflow":
            return (await self.refund.start(key="first")).session
        at = time.time() + PAUSE if name == "scheduled" else None
        await self.app.chat(SESSION).send(name, key="first", at=at)
        return SESSION


EXPECTED = {"sleeper": "receipt", "external": "receipt parcel", "workflow": '"receipt Done. Done."', "scheduled": ""}


async def tell(server: RestateServer, name: str, lives: int | None) -> tuple[list[Any], Outside]:
    """The events of a scenario whose first process dies when its log has so many events; None: it does not."""
    store, outside = MemoryStore(), Outside()
    service, port = next(names), free_port()
    mortal = MortalStore(store, lives)
    first = Process(server, service, port, mortal, outside)
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    await first.app.start()
    session = await first.begin(name)

    async def events() -> list[Any]:
        return [entry.event for entry in await store.events(session)]

    async def is_over() -> list[Any]:
        log = await events()
        if any(isinstance(event, TurnSuspended) for event in log):
            process = second or first
            for token in outside.tokens:
                await process.app.complete(token, " parcel")
        return log if any(isinstance(event, TurnCompleted | TurnFailed) for event in log) else []

    second: Process | None = None
    if lives is not None:
        dying = asyncio.ensure_future(mortal.died.wait())
        alive = asyncio.ensure_future(wait_until(is_over, 60))
        await asyncio.wait({dying, alive}, return_when="FIRST_COMPLETED")
        for task in (dying, alive):
            task.cancel()
        await asyncio.gather(dying, alive, return_exceptions=True)
        mortal.kill()
        await first.engine.aclose()
        second = Process(server, service, port, store, outside)
        await second.app.start()
    try:
        return await wait_until(is_over, 60), outside
    finally:
        for process in filter(None, (second, first)):
            await process.app.aclose()


@pytest.mark.parametrize("name", EXPECTED)
async def test_a_process_that_dies_after_any_event_is_followed_by_one_that_ends_the_turn_once(
    server: RestateServer, name: str
) -> None:
    whole, outside = await tell(server, name, None)
    assert outside.counts["charge"] == (name != "scheduled")
    texts = [event.output.text for event in whole if isinstance(event, CallFinished)]
    assert texts == [EXPECTED[name]] if name != "scheduled" else texts == []
    outcomes: Counter[str] = Counter()
    for lives in range(1, len(whole), STEP):
        log, outside = await tell(server, name, lives)
        assert outside.counts["charge"] <= 1, f"stopped after {lives}"
        assert sum(isinstance(event, TurnStarted) for event in log) == 1
        assert sum(isinstance(event, TurnCompleted | TurnFailed) for event in log) == 1
        results = [(event.state, event.output.text) for event in log if isinstance(event, CallFinished)]
        outcomes[results[0][0] if results else "none"] += 1
        for state, text in results:
            assert text == EXPECTED[name] if state == "completed" else state == "outcome_unknown", (
                f"stopped after {lives}"
            )
    print(f"{name}: {len(whole)} events, {dict(outcomes)}")
    assert outcomes["outcome_unknown"] <= outcomes["completed"] + outcomes["none"] + 1
