"""A small world for crash tests: tools whose effects are counted outside the process, and processes that can die.

A `Story` says what the model, the tools, the plugins and the person do. It is told by a process that dies after a given
number of events; then another process takes over with nothing but the store, and the person goes on as people do: they
look at the screen, and answer what is still to be answered.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec

from everturn import Chat, ToolContext, Turn, TurnOptions
from everturn.app import App
from everturn.core.events import (
    CallFinished,
    CallNotified,
    CallResumed,
    CallStarted,
    CallSuspended,
    CommandDropped,
    Entry,
    Event,
    Gate,
    GateResolved,
    LateResultReceived,
    NestedCallRequested,
    PermissionDecided,
    RequestRetried,
    StepRestarted,
    SubagentStarted,
    ToolStepFinished,
    ToolStepStarted,
    TurnCancelled,
    TurnCompleted,
    TurnEvent,
    TurnFailed,
    TurnSuspended,
    WaitFinished,
    WaitStarted,
)
from everturn.core.history import render_history
from everturn.core.parts import FilePart
from everturn.core.ports import Model, Tool
from everturn.core.requests import ModelRequest, RequestCall, RequestMessage, RequestResult
from everturn.core.state import fold
from everturn.core.store_ports import Store
from everturn.driver.drive import LATE_RESULT_LOST
from everturn.errors import AnsweredOtherwise
from everturn.events import GateOpened
from everturn.running.drive_setup import TurnSettings
from everturn.testing import CountingIds, FakeClock, MemoryStore, MortalStore
from everturn.turn.finalize import ENDED_PROCESS_DIED
from tests.helpers.repeated_tools import repeated_tool

SESSION = "session_0"
OF_CALLS = (
    PermissionDecided
    | CallStarted
    | NestedCallRequested
    | SubagentStarted
    | ToolStepStarted
    | ToolStepFinished
    | WaitStarted
    | WaitFinished
    | CallSuspended
    | CallNotified
    | CallResumed
    | CallFinished
    | GateResolved
    | LateResultReceived
)


@dataclass
class World:
    """What outlives every process: the store, and the ledger of what was really done."""

    store: MemoryStore = field(default_factory=MemoryStore)
    done: Counter[str] = field(default_factory=Counter[str])  # call -> how often its effect happened
    effects: dict[str, str] = field(default_factory=dict[str, str])  # call -> effects of its tool
    requests: list[ModelRequest] = field(default_factory=list[ModelRequest])
    wrongs: list[str] = field(default_factory=list[str])
    release: asyncio.Event = field(default_factory=asyncio.Event)
    processes: int = 0

    async def happen(self, effects: str, ctx: ToolContext) -> None:
        """An effect: counted, and checked to have been written down before (I25)."""
        log = [entry.event for entry in await self.store.events(ctx.session)]
        if not any(isinstance(event, CallStarted) and event.call == ctx.call for event in log):
            self.wrongs.append(f"{ctx.call} ran before it was written down")
        if any(isinstance(event, CallFinished) and event.call == ctx.call for event in log):
            self.wrongs.append(f"{ctx.call} ran after it was settled")
        self.done[ctx.call] += 1
        self.effects[ctx.call] = effects

    def tools(self) -> list[Tool]:
        """A tool of every kind."""

        @repeated_tool(read_only=True)
        async def look(path: str, ctx: ToolContext) -> str:
            await self.happen("read", ctx)
            return f"content of {path}"

        @repeated_tool(idempotent=True)
        async def put(path: str, text: str, ctx: ToolContext) -> str:
            await self.happen("write", ctx)
            return f"wrote {len(text)} to {path}"

        @repeated_tool()
        async def pay(amount: int, ctx: ToolContext) -> str:
            await self.happen("once", ctx)
            return f"paid {amount}"

        @repeated_tool(approval="always")
        async def mail(to: str, ctx: ToolContext) -> str:
            await self.happen("once", ctx)
            return f"mailed {to}"

        @repeated_tool(read_only=True)
        async def fall(ctx: ToolContext) -> str:
            await self.happen("read", ctx)
            raise ValueError("it fell")

        @repeated_tool()
        async def wait(ctx: ToolContext) -> str:
            await self.happen("once", ctx)
            await self.release.wait()
            return "waited"

        @repeated_tool(read_only=True)
        async def linger(ctx: ToolContext) -> str:
            await self.happen("read", ctx)
            await self.release.wait()
            return "lingered"

        return [look, put, pay, mail, fall, wait, linger]


Play = Callable[[Chat, World], Awaitable[None]]


@dataclass(frozen=True)
class Story:
    """One scenario."""

    name: str
    model: Callable[[World], Model]
    play: Play
    plugins: Callable[[World], Sequence[object]] = lambda _: ()
    options: TurnOptions = field(default_factory=TurnOptions)
    settings: TurnSettings = field(default_factory=TurnSettings)
    tools: Callable[[World], list[Tool]] = World.tools


Reply = Callable[[Gate], dict[str, Any]]


async def watch(
    turn: Turn, *, resolution: dict[str, Any] | Reply | None = None, cancel_at: Callable[[Any], bool] | None = None
):
    """Look at a turn from its beginning to its end, answer its gates once it waits, and cancel it where that is told."""
    gates: list[Gate] = []
    async for event in turn:
        if isinstance(event, GateOpened):
            gates.append(event.gate)
        if isinstance(event, TurnSuspended) and resolution is not None:
            for gate in gates:  # a person who looks at the screen a second time answers a second time
                with suppress(AnsweredOtherwise):  # by an `always` that came with another
                    await turn.answer(gate, **(resolution(gate) if callable(resolution) else resolution))
        if cancel_at is not None and cancel_at(event):
            await turn.cancel(key="cancel")


class Process:
    """One process that tells a story on a store, until it ends or the process dies."""

    def __init__(self, story: Story, world: World, lives: int | None = None, before_next: bool = False) -> None:
        world.processes += 1
        self._story, self._world = story, world
        self.store = MortalStore(world.store, lives, before_next=before_next)
        self._model = story.model(world)
        ids = CountingIds("abcdefgh"[min(world.processes, 7)])
        store: Store = self.store
        self._app = App(
            self._model,
            tools=story.tools(world),
            plugins=story.plugins(world),
            store=store,
            clock=FakeClock(),
            ids=ids,
            settings=story.settings,
        )
        self.chat = Chat(self._model, session=SESSION, app=self._app, options=story.options)

    async def tell(self) -> bool:
        """Tell the story; False when the process died of it."""
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        play = asyncio.ensure_future(self._play())
        died = asyncio.ensure_future(self.store.died.wait())
        await asyncio.wait({play, died}, return_when="FIRST_COMPLETED")
        is_dead = self.store.died.is_set()
        self.store.kill()
        for task in (play, died):
            task.cancel()
        results = await asyncio.gather(play, died, return_exceptions=True)
        await self._app.aclose()
        self._world.requests += getattr(self._model, "requests", [])
        if not is_dead and isinstance(results[0], BaseException):
            raise results[0]
        return not is_dead

    async def _play(self) -> None:
        await self.chat.app.start()
        await self._story.play(self.chat, self._world)


async def tell(story: Story, lives: int | None = None, before_next: bool = False) -> World:
    """Tell a story with one death in it (or none), and return the world it leaves."""
    world = World()
    if not await Process(story, world, lives, before_next).tell():
        assert await Process(story, world).tell()
    return world


# What is the same -------------------------------------------------------------------------------------------------

_ID = re.compile(r"\b(turn|msg|gate|cmd)_[a-h]\d+")


async def entries_in(world: World) -> list[Entry]:
    return await world.store.events(SESSION)


def plain(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """A log without ids, times, hashes, announced restarts and retries: a process that takes over asks the model anew.

    What runs at the same time may be written in any order, so branches and parallel calls are put one after the other.
    """
    turns: dict[str, dict[str, list[Event]]] = {}
    for entry in entries:
        event = entry.event
        if isinstance(event, StepRestarted | RequestRetried):
            continue
        turn = event.turn if isinstance(event, TurnEvent) else ""
        call = event.gate.call if isinstance(event, GateOpened) else ""
        if isinstance(event, OF_CALLS):
            call = event.call
        turns.setdefault(turn, {}).setdefault(call, []).append(event)
    names: dict[str, str] = {}

    def rename(match: re.Match[str]) -> str:
        return names.setdefault(match[0], f"{match[1]}#{len(names)}")

    def strip(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: strip(item) for key, item in value.items() if key not in ("at", "first_chunk_at", "hash")}
        if isinstance(value, list | tuple):
            return [strip(item) for item in value]
        return _ID.sub(rename, value) if isinstance(value, str) else value

    return [
        strip(msgspec.to_builtins(event)) for turn in turns.values() for events in turn.values() for event in events
    ]


def unknown_calls(log: list[dict[str, Any]]) -> set[str]:
    """The calls a death left with an unknown outcome: while their turn ran, when it ended, or after that."""
    unknown: set[str] = set()
    for event in log:
        if event["type"] == "CallFinished" and (
            event["state"] == "outcome_unknown" or event["output"]["text"] == ENDED_PROCESS_DIED
        ):
            unknown.add(event["call"])
        if event["type"] == "LateResultReceived" and event["output"]["text"] == LATE_RESULT_LOST:
            unknown.add(event["call"])
    return unknown


def without_results(log: list[dict[str, Any]], calls: set[str]) -> list[dict[str, Any]]:
    """The log with the results of these calls left out, to compare the rest."""
    remaining = [
        event
        for event in log
        if event["type"] not in ("CallFinished", "LateResultReceived") or event["call"] not in calls
    ]
    return [_untold(event, calls) for event in remaining]


def _untold(event: dict[str, Any], calls: set[str]) -> dict[str, Any]:
    """An event with what a notice tells of these calls, and what a copied answer says of them, left out."""
    if event["type"] == "MessagesImported":
        messages = [
            {
                **message,
                "parts": [_unfinished(part) if part.get("call") in calls else part for part in message["parts"]],
            }
            for message in event["messages"]
        ]
        return {**event, "messages": messages}
    if event["type"] != "MessageAdded":
        return event
    kinds = {f"late_result:{call}" for call in calls}
    parts = [part if part.get("kind") not in kinds else {"kind": part["kind"]} for part in event["message"]["parts"]]
    return {**event, "message": {**event["message"], "parts": parts}}


def _unfinished(part: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in part.items() if name not in ("state", "output", "late")}


# What must always hold ----------------------------------------------------------------------------------------------


async def check(world: World) -> None:
    """The invariants, whatever happened: terminal turns, one result per call, effects at most once, valid history."""
    assert world.wrongs == []
    entries = await entries_in(world)
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))  # I4
    for turn in {entry.event.turn for entry in entries if isinstance(entry.event, TurnEvent)}:
        events = [entry.event for entry in entries if isinstance(entry.event, TurnEvent) and entry.event.turn == turn]
        assert fold(events).phase.is_terminal  # I6
        ends = [at for at, e in enumerate(events) if isinstance(e, TurnCompleted | TurnFailed | TurnCancelled)]
        assert len(ends) == 1  # I7
        assert all(isinstance(event, LateResultReceived) for event in events[ends[0] + 1 :])
    settled = Counter(entry.event.call for entry in entries if isinstance(entry.event, CallFinished))
    assert all(count == 1 for count in settled.values())  # I15
    for call, count in world.done.items():
        assert count == 1 or world.effects[call] != "once"  # I23
    tree = await world.store.tree(SESSION)
    for message in tree.messages.values():
        if message.id not in tree.deleted:
            for policy in ("full", "results", "digest", "none"):
                validate(render_history(tree.path(message.id), policy))
        for file in (part for part in message.parts if isinstance(part, FilePart)):  # whole, and what they say
            data = await world.store.blob(file.blob)
            assert (hashlib.sha256(data).hexdigest(), len(data)) == (file.blob, file.size)
    for request in world.requests:
        validate(request.messages)
    assert await world.store.inbox(SESSION) == []
    out = {entry.event.call for entry in entries if isinstance(entry.event, CallFinished) and entry.event.still_running}
    out -= {entry.event.call for entry in entries if isinstance(entry.event, LateResultReceived)}
    assert (await world.store.info(SESSION)).is_awake == bool(out)  # at rest, but for tools that still run
    dropped = [entry.event for entry in entries if isinstance(entry.event, CommandDropped)]
    assert all(event.reason for event in dropped)


def validate(messages: Sequence[RequestMessage]) -> None:
    """What every provider demands, at its strictest (I15, I17, I18)."""
    seen: set[str] = set()
    for at, message in enumerate(messages):
        assert message.parts, "an empty message"
        called = [part.call for part in message.parts if isinstance(part, RequestCall)]
        results = [part.call for part in message.parts if isinstance(part, RequestResult)]
        assert not set(called) & seen, "a call id twice"
        seen |= set(called)
        if called:
            after = messages[at + 1] if at + 1 < len(messages) else None
            assert after is not None, "calls without results"
            assert [part.call for part in after.parts if isinstance(part, RequestResult)] == called
        if results:
            before = messages[at - 1]
            assert at > 0, "results without calls"
            assert [part.call for part in before.parts if isinstance(part, RequestCall)] == results
            assert message.role == "tool"
        for part in message.parts:
            if isinstance(part, RequestCall):
                assert isinstance(msgspec.json.decode(part.arguments), dict)
