"""Logs that no driver of ours wrote, and that `fold` lets in all the same: a real driver takes them up and brings them
to an end. `scripts/properties` does this with fresh dice.
"""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec.structs import replace

from everturn import tool
from everturn.app import App
from everturn.core.commands import Cancel, ResolveGate, Send
from everturn.core.decide import TurnDone, WaitForInput, decide
from everturn.core.events import TurnEvent, TurnFailed, TurnStarted
from everturn.core.gates import GATE_KINDS_OF_RUNNING_TOOL, GateResolution
from everturn.core.hooks import SUSPEND
from everturn.core.phases import Phase
from everturn.core.state import TurnState, fold
from everturn.errors import InvalidEvent
from everturn.running.drive_setup import TurnSettings
from everturn.testing import CountingIds, FakeClock, MemoryStore, ScriptedModel, call, calls, say
from tests.helpers.random_events import wild
from tests.helpers.simulated_driver import NOTES, PLUGINS, Dice, carry_out

SESSION, KEY = "s", "k"
OURS = ("hook", "internal")  # a problem of these kinds is a fault of the driver's own


def foreign_log(dice: Dice, most: int = 40) -> list[TurnEvent]:
    """Events of one turn that `fold` accepts: what a driver would write, with made-up events between."""
    state, log = TurnState("t"), list[TurnEvent]()

    def take(event: TurnEvent) -> None:
        if type(event) is TurnStarted:
            event = replace(event, command=KEY, parent=None)
            event = event if event.input is None else replace(event, input=replace(event.input, parent=None))
        state.apply(event)
        log.append(event)

    for _ in range(most):
        action = decide(state, PLUGINS)
        if state.phase is Phase.IDLE or isinstance(action, WaitForInput | TurnDone) or dice.pick(True, False, False):
            try:
                take(wild(state, dice))
            except InvalidEvent:
                continue
        else:
            for event in carry_out(state, action, dice):
                take(event)
                if dice.pick(False, False, True):
                    break  # the process dies here
    return log


class Notes:
    """A plugin with the name of one that such a log may have: it is done with every step at once."""

    name = NOTES

    async def on_after_request(self, ctx: Any) -> object:
        return None if ctx.finish else SUSPEND


@tool(read_only=True)
async def look(a: int = 0) -> str:
    """Look."""
    return f"seen {a}"


class Unfit(AssertionError):
    """What the driver made of a log that `fold` accepts."""


async def drive_to_an_end(log: list[TurnEvent]) -> TurnState:
    """Let a real driver take a log up, answer what it asks, and cancel what then still waits.

    Raises:
        Unfit: the driver failed by a fault of its own, or the turn never ended.
    """
    store = MemoryStore()
    model = ScriptedModel([calls(call("look", a=1))], *[[say("so be it")]] * 50)
    app = App(
        model,
        tools=[look],
        plugins=[Notes()],
        store=store,
        clock=FakeClock(),
        ids=CountingIds("x"),
        settings=TurnSettings(),
    )
    await store.admit(Send(key=KEY, session=SESSION, turn="t", message="in", parts=()))
    try:
        async with asyncio.timeout(30):  # a turn that spins or hangs; no number is compared with the clock
            await store.append(SESSION, 0, log)
            return await _drive(app, store)
    except TimeoutError as error:
        raise Unfit("the driver did not let go of the turn") from error
    finally:
        await app.aclose()


async def _drive(app: App, store: MemoryStore) -> TurnState:
    for number in range(20):
        await app._driver.drive(SESSION)
        state = fold(entry.event for entry in await store.events(SESSION, turn="t"))
        if state.phase.is_terminal:
            return await _checked(store, state)
        if state.phase is not Phase.WAITING:
            raise Unfit(f"the driver left the turn in {state.phase}")
        # What a client is to run has to be claimed first; here nobody does.
        open_gates = [
            gate for name, gate in state.gate_details.items() if state.is_gate_open(name) and gate.kind != "client"
        ]
        if open_gates and number < 10:
            gate = open_gates[0]
            resolution = (
                GateResolution(True, result="{}") if gate.kind in GATE_KINDS_OF_RUNNING_TOOL else GateResolution(True)
            )
            await store.admit(
                ResolveGate(key=f"a{number}", session=SESSION, gate=gate.id, hash=gate.hash, resolution=resolution)
            )
        else:
            await store.admit(Cancel(key=f"c{number}", session=SESSION, turn="t"))
    raise Unfit("the turn is not over after twenty drives")


async def _checked(store: MemoryStore, state: TurnState) -> TurnState:
    last = [entry.event for entry in await store.events(SESSION, turn="t") if isinstance(entry.event, TurnFailed)]
    if last and last[-1].problem.kind in OURS:
        raise Unfit(f"{last[-1].problem.kind}: {last[-1].problem.text}")
    return state
