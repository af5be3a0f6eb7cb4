"""A recording → everything once more: the same messages are sent, the same answers given, on real tools and no network.

Turns, messages and gates are called what they were called, so that what a model said of them still makes sense, and
the clock starts where it stood.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from everturn.chat.turn import Turn
from everturn.clock import SystemClock
from everturn.core.asking import Gate, Verdict
from everturn.core.commands import Answer, Delete, Revert, Revoke, Select, Send, Take
from everturn.core.events import (
    AnswerOpened,
    Event,
    FilesReverted,
    GateAnswered,
    GateOpened,
    GrantRevoked,
    LeafSelected,
    MessageDeleted,
    TurnParked,
    TurnStarted,
)
from everturn.core.policy import Rule
from everturn.core.ports import Tool, ToolSource
from everturn.errors import AnswerUnfit, CommandRefused, GateClosed, SessionBusy, UnknownGrant, UnknownMessage
from everturn.stores.memory import MemoryStore
from everturn.testing.doubles import CountingIds
from everturn.testing.replay.checking import compared
from everturn.testing.replay.comparing import differences
from everturn.testing.replay.model import replay_model
from everturn.testing.replay.playing import again as play_again
from everturn.testing.replay.recording import Recording
from everturn.testing.replay.steering import Steering
from everturn.tools.groups import Group
from everturn.turn.run import Settings
from everturn.wiring import Runtime

NEVER_ASKED = "nobody was asked this when it was recorded"
REFUSED = (CommandRefused, SessionBusy, UnknownGrant, UnknownMessage)
LEASE = 60.0  # seconds for a client that has its answer at hand


async def replay(
    recording: Recording,
    *,
    tools: Iterable[Tool | Group | ToolSource] | None = None,
    plugins: Iterable[object] = (),
    rules: Iterable[Rule] | str | Path = (),
    settings: Settings | None = None,
    ignore: Collection[str] = (),
) -> list[str]:
    """Let it all happen again, and say what is different; nothing, where nothing is.

    Without `tools` everything is played from the recording: tools, plugins, people, time. With them it happens on these,
    and they are judged by these rules. `ignore` names fields that do not count, beside those that never do; see
    `comparing`.

    Raises:
        ConfigError: this recording cannot be played again.
    """
    if tools is None:
        return compared(recording, await play_again(recording), ignore)
    again = await perform(recording, tools=tools, plugins=plugins, rules=rules, settings=settings)
    return differences(recording, again, ignore)


async def perform(
    recording: Recording,
    *,
    tools: Iterable[Tool | Group | ToolSource] = (),
    plugins: Iterable[object] = (),
    rules: Iterable[Rule] | str | Path = (),
    settings: Settings | None = None,
) -> Recording:
    """Let it all happen again with these tools, and record that."""
    model = replay_model(recording)
    steering = Steering(recording)
    runtime = steering.runtime = Runtime(
        model,
        tools=list(tools),
        plugins=[*plugins, *([steering] if steering.said else [])],
        store=MemoryStore(),
        clock=_Clock(recording.events[0].at),
        ids=_Ids(recording.events),
        settings=settings,
        rules=rules,
    )
    for name in {one.options.model for one in recording.events if isinstance(one, TurnStarted)} - {""}:
        runtime.add_model(model.named(name))
    try:
        await runtime.start()
        player = _Player(recording, runtime)
        for event in recording.events:
            with suppress(*REFUSED):  # a difference, and told as one
                await player.play(event)
        return await Recording.make(runtime.store, recording.session)
    finally:
        await runtime.aclose()


class _Player:
    """Whoever sent, answered and took back."""

    def __init__(self, recording: Recording, runtime: Runtime) -> None:
        self._runtime, self._session = runtime, recording.session
        asked = {event.gate.id: event.gate for event in recording.events if isinstance(event, GateOpened)}
        self._answers = [(asked[one.gate], one) for one in recording.events if isinstance(one, GateAnswered)]

    async def play(self, event: Event) -> None:
        """Do what led to an event, if somebody outside did."""
        session, now = self._session, self._runtime.clock.now()
        match event:
            case TurnStarted(input=said):
                send = Send(
                    key=event.command,
                    session=session,
                    at=now,
                    turn=event.turn,
                    message="" if said is None else said.id,
                    parts=None if said is None else said.parts,
                    parent=event.parent,
                    options=event.options,
                )
                await self._runtime.command(send)
                await self._follow(event.turn)
            case LeafSelected(message=message, command=key):
                await self._tell(Select(key=key, session=session, at=now, message=message))
            case MessageDeleted(message=message, command=key):
                await self._tell(Delete(key=key, session=session, at=now, message=message))
            case GrantRevoked(grant=grant, by=by, command=key):
                await self._tell(Revoke(key=key, session=session, at=now, grant=grant, by=by))
            case FilesReverted(root=root, after=tree, by=by, command=key):
                await self._tell(Revert(key=key, session=session, at=now, root=root, tree=tree, by=by))
            case _:
                pass

    async def _tell(self, command: Select | Delete | Revoke | Revert) -> None:
        after = await self._runtime.store.head(self._session)
        await self._runtime.command(command)
        await self._runtime.acted_on(command, after)

    async def _follow(self, turn: str) -> None:
        async for event in Turn(self._runtime, self._session, turn):
            if isinstance(event, GateOpened):
                key, verdict = self._answer_to(event.gate)
                if not verdict.by.startswith("plugin:"):  # that one answers again by itself,
                    await self._answer(event.gate, key, verdict)
            elif isinstance(event, TurnParked):
                for row in await self._runtime.store.gates(self._session):
                    if row.gate.turn == turn and row.is_open and row.verdict is None:  # or is not here
                        await self._answer(row.gate, f"deny-{row.gate.id}", Verdict(False, NEVER_ASKED, by="replay"))

    async def _answer(self, gate: Gate, key: str, verdict: Verdict) -> None:
        session, now = self._session, self._runtime.clock.now()
        try:
            if by := verdict.claim:
                take = Take(
                    key=f"{key}-take", session=session, at=now, gate=gate.id, hash=gate.hash, by=by, lease=LEASE
                )
                await self._runtime.command(take)
            answer = Answer(key=key, session=session, at=now, gate=gate.id, hash=gate.hash, verdict=verdict)
            await self._runtime.command(answer)
        except GateClosed:
            pass  # it was answered together with another
        except AnswerUnfit as error:
            no = Verdict(False, f"what was answered when it was recorded does not fit: {error}", by="replay")
            await self._answer(gate, f"{key}-no", no)

    def _answer_to(self, gate: Gate) -> tuple[str, Verdict]:
        for asked, answered in self._answers:
            if (asked.call, asked.kind, asked.tool) == (gate.call, gate.kind, gate.tool):
                self._answers.remove((asked, answered))
                return answered.command or f"answer-{gate.id}", answered.verdict
        return f"answer-{gate.id}", Verdict(False, NEVER_ASKED, by="replay")


class _Clock(SystemClock):
    """The time it was then, and from there on as it passes."""

    def __init__(self, start: float) -> None:
        self._ahead = start - time.time()

    def now(self) -> float:
        return time.time() + self._ahead


class _Ids:
    """The names that were given, in that order; and others once those are used up."""

    def __init__(self, events: Iterable[Event]) -> None:
        seen = list(events)
        self._given = {
            "msg": [one.message.id for one in seen if isinstance(one, AnswerOpened)][::-1],
            "gate": [one.gate.id for one in seen if isinstance(one, GateOpened)][::-1],
        }
        self._new = CountingIds("again_")

    def new(self, kind: str) -> str:
        given = self._given.get(kind)
        return given.pop() if given else self._new.new(kind)
