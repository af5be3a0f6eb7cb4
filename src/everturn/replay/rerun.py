"""Rerun on real tools: sends the recorded messages again and gives the recorded answers, with real tools and no
network.

Turns, messages and gates keep their ids, so that references to them in the model's answers stay valid, and the clock
starts at the recorded time.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from everturn.chat.turn import Turn
from everturn.clock import SystemClock
from everturn.core.commands import (
    ClaimCall,
    Delete,
    ImportMessages,
    RateAnswer,
    ResolveGate,
    Revert,
    Revoke,
    Select,
    SelectAgent,
    Send,
    SetInstructions,
    UpdateSession,
)
from everturn.core.events import (
    AgentSelected,
    AnswerRated,
    AnswerStarted,
    Event,
    FilesReverted,
    GateOpened,
    GateResolved,
    GrantRevoked,
    InstructionsSet,
    LeafSelected,
    MessageDeleted,
    MessagesImported,
    SessionUpdated,
    TurnStarted,
    TurnSuspended,
)
from everturn.core.gates import Gate, GateResolution
from everturn.core.ports import Tool, ToolSource
from everturn.core.rules.policy import Rule
from everturn.errors import (
    AnswerUnfit,
    CommandRefused,
    GateClosed,
    SessionBusy,
    UnknownGrant,
    UnknownMessage,
    UnknownSession,
)
from everturn.replay.check import find_all_differences
from everturn.replay.compare import differences
from everturn.replay.model import replay_model
from everturn.replay.play import import_key, rating_command, update_command
from everturn.replay.play import replay_offline as play_again
from everturn.replay.recording import Recording
from everturn.replay.replay_app import ReplayApp
from everturn.replay.steering_messages import Steering
from everturn.running.drive_setup import TurnSettings
from everturn.stores.memory import MemoryStore
from everturn.testing.doubles import CountingIds
from everturn.tools.groups import ToolGroup

NEVER_ASKED = "this was not asked when the session was recorded"
REFUSED = (CommandRefused, SessionBusy, UnknownGrant, UnknownMessage)
LEASE = 60.0  # seconds; the recorded answer follows at once


async def replay(
    recording: Recording,
    *,
    tools: Iterable[Tool | ToolGroup | ToolSource] | None = None,
    plugins: Iterable[object] = (),
    rules: Iterable[Rule] | str | Path = (),
    settings: TurnSettings | None = None,
    ignore: Collection[str] = (),
) -> list[str]:
    """Replay a recording, and list the differences; empty if there are none.

    Without `tools`, everything comes from the recording: tools, plugins, people, time. With them, calls run on these
    tools and under these rules. `ignore` names more fields that do not count; see `compare`.

    Raises:
        ConfigError: this recording cannot be replayed.
    """
    if tools is None:
        return find_all_differences(recording, await play_again(recording), ignore)
    played = await rerun_with_tools(recording, tools=tools, plugins=plugins, rules=rules, settings=settings)
    return differences(recording, played, ignore)


async def rerun_with_tools(
    recording: Recording,
    *,
    tools: Iterable[Tool | ToolGroup | ToolSource] = (),
    plugins: Iterable[object] = (),
    rules: Iterable[Rule] | str | Path = (),
    settings: TurnSettings | None = None,
) -> Recording:
    """Rerun a recording with these tools, and record the result."""
    model = replay_model(recording)
    steering = Steering(recording)
    app = steering.app = ReplayApp(
        model,
        tools=list(tools),
        plugins=[*plugins, *([steering] if steering.messages else [])],
        store=MemoryStore(),
        clock=_Clock(recording.events[0].at),
        ids=_RecordedIds(recording.events),
        settings=settings,
        rules=rules,
    )
    for name in {item.options.model for item in recording.events if isinstance(item, TurnStarted)} - {""}:
        app.add_model(model.with_name(name))
    try:
        await app.start()
        player = _CommandSender(recording, app)
        for event in recording.events:
            with suppress(*REFUSED):  # the comparison reports it as a difference
                await player.play(event)
        return await Recording.from_log(app.store, recording.session)
    finally:
        await app.aclose()


class _CommandSender:
    """Sends the recorded commands of people and clients."""

    def __init__(self, recording: Recording, app: ReplayApp) -> None:
        self._app, self._session = app, recording.session
        gates = {event.gate.id: event.gate for event in recording.events if isinstance(event, GateOpened)}
        self._answers = [(gates[item.gate], item) for item in recording.events if isinstance(item, GateResolved)]

    async def play(self, event: Event) -> None:
        """Cause an event again, if it came from outside."""
        session, now = self._session, self._app.clock.now()
        match event:
            case TurnStarted(input=message_sent):
                send = Send(
                    key=event.command,
                    session=session,
                    at=now,
                    turn=event.turn,
                    message="" if message_sent is None else message_sent.id,
                    parts=None if message_sent is None else message_sent.parts,
                    parent=event.parent,
                    options=event.options,
                )
                await self._app.command(send)
                await self._follow(event.turn)
            case LeafSelected(message=message, command=key):
                await self._run_command(Select(key=key, session=session, at=now, message=message))
            case AgentSelected(agent=agent, by=by, command=key):
                await self._run_command(SelectAgent(key=key, session=session, at=now, agent=agent, by=by))
            case InstructionsSet(text=text, by=by, command=key):
                await self._run_command(SetInstructions(key=key, session=session, at=now, text=text, by=by))
            case SessionUpdated():
                await self._run_command(replace(update_command(event, session), at=now))
            case AnswerRated():
                await self._run_command(replace(rating_command(event, session), at=now))
            case MessageDeleted(message=message, command=key):
                await self._run_command(Delete(key=key, session=session, at=now, message=message))
            case MessagesImported(messages=messages, by=by, command=key):
                parent = messages[0].parent if messages else None
                await self._run_command(
                    ImportMessages(
                        key=key or import_key(messages),
                        session=session,
                        at=now,
                        messages=messages,
                        parent=parent,
                        by=by,
                    )
                )
            case GrantRevoked(grant=grant, by=by, command=key):
                await self._run_command(Revoke(key=key, session=session, at=now, grant=grant, by=by))
            case FilesReverted(root=root, after=tree, by=by, command=key):
                await self._run_command(Revert(key=key, session=session, at=now, root=root, tree=tree, by=by))
            case _:
                pass

    async def _run_command(
        self,
        command: Select
        | SelectAgent
        | SetInstructions
        | UpdateSession
        | RateAnswer
        | Delete
        | Revoke
        | Revert
        | ImportMessages,
    ) -> None:
        try:
            after = await self._app.store.head(self._session)
        except UnknownSession:  # an import may create the session
            after = 0
        await self._app.command(command)
        await self._app.wait_until_carried_out(command, after)

    async def _follow(self, turn: str) -> None:
        async for event in Turn(self._app, self._session, turn):
            if isinstance(event, GateOpened):
                key, resolution = self._answer_to(event.gate)
                if not resolution.by.startswith("plugin:"):  # the plugin answers again itself,
                    await self._answer(event.gate, key, resolution)
            elif isinstance(event, TurnSuspended):
                for row in await self._app.store.gates(self._session):
                    if row.gate.turn == turn and row.is_open and row.resolution is None:  # or is missing here
                        await self._answer(
                            row.gate, f"deny-{row.gate.id}", GateResolution(False, NEVER_ASKED, by="replay")
                        )

    async def _answer(self, gate: Gate, key: str, resolution: GateResolution) -> None:
        session, now = self._session, self._app.clock.now()
        try:
            if by := resolution.claim:
                claim = ClaimCall(
                    key=f"{key}-take", session=session, at=now, gate=gate.id, hash=gate.hash, by=by, lease=LEASE
                )
                await self._app.command(claim)
            answer = ResolveGate(key=key, session=session, at=now, gate=gate.id, hash=gate.hash, resolution=resolution)
            await self._app.command(answer)
        except GateClosed:
            pass  # it was resolved together with another gate
        except AnswerUnfit as error:
            denial = GateResolution(False, f"the recorded answer does not fit: {error}", by="replay")
            await self._answer(gate, f"{key}-no", denial)

    def _answer_to(self, gate: Gate) -> tuple[str, GateResolution]:
        for recorded_gate, resolution in self._answers:
            if (recorded_gate.call, recorded_gate.kind, recorded_gate.tool) == (gate.call, gate.kind, gate.tool):
                self._answers.remove((recorded_gate, resolution))
                return resolution.command or f"answer-{gate.id}", resolution.resolution
        return f"answer-{gate.id}", GateResolution(False, NEVER_ASKED, by="replay")


class _Clock(SystemClock):
    """Clock that starts at the recorded time."""

    def __init__(self, start: float) -> None:
        self._ahead = start - time.time()

    def now(self) -> float:
        return time.time() + self._ahead


class _RecordedIds:
    """The recorded ids, in order; and new ones once those are used up."""

    def __init__(self, events: Iterable[Event]) -> None:
        event_list = list(events)
        self._recorded = {
            "msg": [event.message.id for event in event_list if isinstance(event, AnswerStarted)][::-1],
            "gate": [event.gate.id for event in event_list if isinstance(event, GateOpened)][::-1],
        }
        self._new = CountingIds("again_")

    def new(self, kind: str) -> str:
        recorded = self._recorded.get(kind)
        return recorded.pop() if recorded else self._new.new(kind)
