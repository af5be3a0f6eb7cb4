"""A store that is away for a moment, or slow: no turn hangs, nothing that was written is lost, and nothing is done twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from everturn import Chat, tool
from everturn.app import App
from everturn.calls.pipeline import OUTCOME_UNKNOWN
from everturn.core.events import (
    CallClaimed,
    CallFinished,
    CallNotified,
    CallResumed,
    CallStarted,
    CallSuspended,
    Event,
    FilesChanged,
    GateOpened,
    GateResolved,
    NestedCallRequested,
    PermissionDecided,
    StepFinished,
    SubagentStarted,
    TurnCompleted,
    TurnSuspended,
)
from everturn.core.parts import ToolPart
from everturn.core.ports import Question, SubagentRequest, ToolContext
from everturn.engine import inline
from everturn.errors import StoreUnavailable
from everturn.testing import CountingIds, MemoryStore, call, calls, say
from everturn.tools import client_tool, virtual_files
from everturn.tools.files import SessionFileSystem
from tests.helpers.conversations import Scenes, Talk

KINDS = [
    *(
        SubagentStarted,
        PermissionDecided,
        NestedCallRequested,
        CallSuspended,
        CallResumed,
        CallFinished,
        CallStarted,
        CallNotified,
        FilesChanged,
    ),
    *(GateResolved, CallClaimed, GateOpened, StepFinished, TurnCompleted, TurnSuspended),
]
STARTING = (StepFinished, PermissionDecided, CallStarted)  # the first of these are written together


class Away(MemoryStore):
    """Does not take, so many times, what somebody picks out; or takes it and does not say so."""

    def __init__(self, is_picked: Callable[[Event], bool], times: int = 1, has_written: bool = False) -> None:
        super().__init__()
        self.is_picked, self.times, self.has_written = is_picked, times, has_written

    async def append(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
        """Write it, or not."""
        if self.times and any(map(self.is_picked, events)):
            self.times -= 1
            if self.has_written:
                await super().append(session, after, events, epoch)
            raise StoreUnavailable("away for a moment")
        return await super().append(session, after, events, epoch)


class House:
    """Tools that need each other, people, a client, a sub-agent run and files; it counts what was done once and for all."""

    def __init__(self) -> None:
        done = self.done = Counter[str]()

        @tool()
        async def look() -> str:
            done["look"] += 1
            return "seen"

        @tool(read_only=True)
        async def peek() -> str:
            return "seen"

        @tool(idempotent=True)
        async def work(ctx: ToolContext) -> str:
            answer = (await ctx.ask(Question("Well?"))).result
            seen, rung, below = (
                await ctx.run_tool("peek", {}),
                await ctx.run_tool("ring", {}),
                await ctx.run_subagent(SubagentRequest("below")),
            )
            await SessionFileSystem.for_call(ctx).change("a.txt", lambda old: b"x\n")
            return f"{answer} {seen.text} {rung.text} {below.text}"

        @tool()
        async def held(ctx: ToolContext) -> str:
            done["held"] += 1
            return f"{(await ctx.ask(Question('Held?'))).result} {(await ctx.run_tool('slow', {})).text}"

        @tool(read_only=True)
        async def slow() -> str:
            await asyncio.sleep(0.01)
            return "slow"

        @tool(approval="always")
        async def gated() -> str:
            done["gated"] += 1
            return "rang"

        ring = client_tool("ring", "Ring.", {"type": "object", "properties": {}}, read_only=True)
        self.tools = [look, peek, work, held, slow, gated, ring, virtual_files()]
        self.model = Scenes(
            go=[calls(call("work"), call("held"), call("look")), say("Done.")],
            below=[calls(call("gated")), say("It rang.")],
        )

    @asynccontextmanager
    async def open(self, store: MemoryStore) -> AsyncGenerator[Chat]:
        """A process in which time passes by itself."""
        app = App(self.model, tools=self.tools, store=store, ids=CountingIds("x"))
        async with Chat(self.model, app=app, session="s") as chat:
            yield chat


async def answer_all(chat: Chat) -> None:
    """A person and a client who answer whatever is asked, for as long as anything is."""
    while True:
        for gate in await chat.gates():
            try:
                if gate.kind == "client":
                    await chat.claim(gate, "page")
                    await chat.answer(gate, result="rung", claim="page")
                elif gate.kind == "form":
                    await chat.answer(gate, result="yes")
                else:
                    await chat.answer(gate, allow="once")
            except Exception:  # it was answered, and that is not written yet
                await asyncio.sleep(0)
        await asyncio.sleep(0.002)


@pytest.mark.parametrize("has_written", [False, True], ids=["not written", "written"])
@pytest.mark.parametrize("kind", KINDS, ids=[kind.__name__ for kind in KINDS])
async def test_a_turn_ends_as_it_would_have_though_one_append_fails(
    kind: type[Event], has_written: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inline, "BACKOFF", 0.005)
    house, store = House(), Away(lambda event: isinstance(event, kind), has_written=has_written)
    async with house.open(store) as chat:
        answering = asyncio.ensure_future(answer_all(chat))
        try:
            assert (await (await chat.send("go"))).text == "Done."
        finally:
            answering.cancel()
        parts = [part for message in await chat.messages() for part in message.parts if isinstance(part, ToolPart)]
    assert store.times == 0
    texts = [part.output.text for part in parts if not part.parent and part.output is not None]
    if has_written and kind in STARTING:  # nobody knows that these did not begin, and they must not begin twice
        assert texts == ["yes seen rung It rang.", OUTCOME_UNKNOWN, OUTCOME_UNKNOWN]
        assert house.done == {"gated": 1}
    else:
        assert texts == ["yes seen rung It rang.", "yes slow", "seen"]
        assert house.done == {"look": 1, "held": 1, "gated": 1}


@pytest.mark.parametrize("kind", [NestedCallRequested, SubagentStarted, FilesChanged])
async def test_a_drive_notices_that_its_only_tool_could_not_write(
    kind: type[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inline, "BACKOFF", 0.005)
    house, store = House(), Away(lambda event: isinstance(event, kind))
    house.model = Scenes(go=[calls(call("only")), say("Done.")], below=[say("below")])

    @tool
    async def only(ctx: ToolContext) -> str:
        if kind is NestedCallRequested:
            return (await ctx.run_tool("peek", {})).text
        if kind is SubagentStarted:
            return (await ctx.run_subagent(SubagentRequest("below"))).text
        await SessionFileSystem.for_call(ctx).change("a.txt", lambda old: b"x\n")
        return "saved"

    house.tools.append(only)
    talk = Talk(store=store)
    async with house.open(store) as chat:
        await chat.send("go")
        await talk.until(TurnCompleted)
    assert (await talk.settled())[-1].output.text in ("seen", "below", "saved")
    assert len(await talk.events(kind)) == 1


@pytest.mark.parametrize("kind", [NestedCallRequested, CallFinished, GateResolved])
async def test_a_store_that_is_away_time_and_again_is_not_held_against_the_session(
    kind: type[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inline, "BACKOFF", 0.001)
    house, store = House(), Away(lambda event: isinstance(event, kind), times=8)
    talk = Talk(store=store)
    async with house.open(store) as chat:
        answering = asyncio.ensure_future(answer_all(chat))
        try:
            await chat.send("go")
            await talk.until(TurnCompleted)
        finally:
            answering.cancel()
    assert house.done == {"look": 1, "held": 1, "gated": 1}


class Slow(MemoryStore):
    """Takes its time to write the first change of files."""

    def __init__(self) -> None:
        super().__init__()
        self.is_writing, self.goes_on = asyncio.Event(), asyncio.Event()

    async def append(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
        """Write it, at last."""
        if any(isinstance(event, FilesChanged) for event in events):
            self.is_writing.set()
            await self.goes_on.wait()
        return await super().append(session, after, events, epoch)


async def test_a_file_is_not_lost_though_the_tool_that_writes_it_is_cancelled_meanwhile() -> None:
    store = Slow()

    @tool(idempotent=True)
    async def save(path: str, ctx: ToolContext) -> str:
        saving = asyncio.ensure_future(SessionFileSystem.for_call(ctx).change(path, lambda old: b"x\n"))
        await store.is_writing.wait()
        if not store.goes_on.is_set():
            saving.cancel()
            await asyncio.sleep(0)
            store.goes_on.set()
            return "given up"
        await saving
        return "saved"

    tools: list[Any] = [save, virtual_files()]
    talk = Talk(*tools, store=store, tools=("save", "@files"))
    both = [calls(call("save", path=path)) for path in ("a.txt", "b.txt")]
    await talk.tell(*both, calls(call("list_directory")), say("Done."))
    first, second = await talk.events(FilesChanged)
    assert second.before == first.after
    listed = (await talk.settled())[-1].output.text
    assert "a.txt" in listed
    assert "b.txt" in listed
