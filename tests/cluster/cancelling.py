"""A tool that takes its time, and Stop: how soon the turn is over, what comes next, and where the late result goes."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Sequence
from contextlib import suppress

import msgspec
from msgspec import Struct

from everturn import api
from everturn.client.server import Server
from everturn.client.turn import RemoteTurn
from everturn.core.events import CallStarted, LateResultReceived, TurnCancelled
from everturn.core.parts import ToolPart
from everturn.testing.provider import Call, Say
from tools.chaos.api import ApiCell
from tools.chaos.waiting_sessions import Spread, spread

GLANCE = 0.02
LOST = "outcome_unknown"


class Sizes(Struct, frozen=True):
    """How much of everything."""

    stops: int = 50
    seconds: float = 30.0  # that the tool takes
    after: float = 1.0  # seconds after its start, Stop is pressed
    hard: int = 5
    crashes: int = 3  # of the worker, and as many of a node
    seed: int = 0


class Cancelled(Struct, frozen=True):
    """What came of it; times in milliseconds."""

    stops: int
    acknowledged: Spread  # from pressing Stop until the node has answered
    written: Spread  # from pressing Stop until the end stands in the log
    seen: Spread  # from pressing Stop until another node has shown the end
    accepted: Spread  # from seeing the end until the next message was taken
    killed: Spread  # from pressing Stop hard until the tool's processes are gone
    noise: Spread  # by how much a timer of this process was late, while the Stops were pressed
    late: int  # results that were attached afterwards, and told to the model in the turn behind
    lost: int  # those of which is known that nobody knows, because their worker died
    load: float
    seconds: float
    violations: list[str]


class _Stopped(Struct, frozen=True):
    turn: RemoteTurn
    acknowledged: float
    written: float
    seen: float
    accepted: float
    next: RemoteTurn


async def cancelling(cell: ApiCell, sizes: Sizes) -> Cancelled:
    """Stop tools again and again: gently, hard, and with deaths in between."""
    began, rng = time.monotonic(), random.Random(sizes.seed)
    arguments = msgspec.json.encode({"seconds": sizes.seconds}).decode()
    cell.provider.script("lingers", [[Call("linger", arguments)], [Say("That was all.")]])
    cell.provider.script("grinds", [[Call("grind", arguments)], [Say("That was all.")]])
    refused = len(cell.provider.refusals)
    servers = [await cell.server([address]) for address in cell.addresses]
    noise: list[float] = []
    looking = asyncio.create_task(_look(noise))
    stopped = [await _stop(servers, sizes, rng) for _ in range(sizes.stops)]
    looking.cancel()
    killed = [await _stop_hard(cell, servers, rng) for _ in range(sizes.hard)]
    wanted = [(stop, "late") for stop in stopped]
    violations, ends = await _look_after(cell, wanted, sizes)
    wanted = []
    for _ in range(sizes.crashes):  # of the node that took the Stop: nobody minds
        node = cell.house.nodes[0]
        fresh = [await cell.server([address]) for address in cell.addresses]
        wanted.append((await _stop(fresh, sizes, rng, at=0), "late"))
        await node.kill9()
        await cell.bring_back(node)
    more, ended = await _look_after(cell, wanted, sizes)
    violations, ends = violations + more, ends + ended
    for _ in range(sizes.crashes):  # of the worker whose tool it is: nobody knows any more what it came to
        fresh = [await cell.server([address]) for address in cell.addresses]
        stop = await _stop(fresh, sizes, rng)
        await cell.kill_driver(stop.turn.session)
        more, ended = await _look_after(cell, [(stop, "lost")], sizes)
        violations, ends = violations + more, ends + ended
    violations += [f"refused: {refusal}" for refusal in cell.provider.refusals[refused:]]
    return Cancelled(
        stops=len(stopped),
        acknowledged=spread(stop.acknowledged for stop in stopped),
        written=spread(stop.written for stop in stopped),
        seen=spread(stop.seen for stop in stopped),
        accepted=spread(stop.accepted for stop in stopped),
        killed=spread(killed or [0.0]),
        noise=spread(noise),
        late=ends.count("late"),
        lost=ends.count("lost"),
        load=os.getloadavg()[0],
        seconds=time.monotonic() - began,
        violations=violations,
    )


async def _look(late: list[float]) -> None:
    while True:
        began = time.monotonic()
        await asyncio.sleep(GLANCE)
        late.append(time.monotonic() - began - GLANCE)


async def _look_after(
    cell: ApiCell, wanted: Sequence[tuple[_Stopped, str]], sizes: Sizes
) -> tuple[list[str], list[str]]:
    """Wait for what comes late; what is wrong with it, and what it was."""
    violations, ends, server = list[str](), list[str](), await cell.server()
    for stop, expected in wanted:
        session = stop.turn.session
        found, is_told = await _settled(cell, server, stop, sizes.seconds + 60)
        ends.append(found)
        if found != expected:
            violations.append(f"{session}: {found}, and not {expected}")
        if not is_told:
            violations.append(f"{session}: the next turn was not told what came late")
        if (count := len(cell.effects(session))) != 1:
            violations.append(f"{session}: the tool ran {count} times")
    return violations, ends


async def _stop(servers: Sequence[Server], sizes: Sizes, rng: random.Random, at: int | None = None) -> _Stopped:
    """Begin at one node, stop at another, and watch at a third; then go on at once."""
    first, second, third = rng.sample(servers, 3)
    second = second if at is None else servers[at]
    begun = await first.start_session("Take your time.", agent="lingers")
    watched = third.session(begun.session).turn(begun.id).events()
    async with asyncio.timeout(60):
        async for item in watched:
            if isinstance(item.event, CallStarted):
                break
    await asyncio.sleep(sizes.after)
    pressed, clock = time.perf_counter(), time.time()

    async def press() -> float:
        await second.session(begun.session).turn(begun.id).cancel()
        return time.perf_counter()

    pressing = asyncio.create_task(press())
    ended: TurnCancelled | None = None
    async with asyncio.timeout(60):
        async for item in watched:
            if isinstance(item.event, TurnCancelled):
                ended, seen = item.event, time.perf_counter()
                break
        else:
            raise AssertionError("the turn ended otherwise")
    await watched.aclose()
    acknowledged = await pressing - pressed
    sent = time.perf_counter()
    again = await second.session(begun.session).send("Thank you.", agent="echo")
    accepted = time.perf_counter() - sent
    async with asyncio.timeout(60):
        await again
    return _Stopped(begun, acknowledged, ended.at - clock, seen - pressed, accepted, again)


async def _stop_hard(cell: ApiCell, servers: Sequence[Server], rng: random.Random) -> float:
    """Seconds until no process of the tool is left."""
    first, second = rng.sample(servers, 2)
    begun = await first.start_session("Take your time.", agent="grinds")
    group = 0
    async with asyncio.timeout(60):
        while not group:
            found = [line for line in cell.lines() if line.name == "group" and line.session == begun.session]
            group = int(found[0].key) if found else 0
            await asyncio.sleep(GLANCE)
    pressed = time.perf_counter()
    await second.session(begun.session).turn(begun.id).cancel(hard=True)
    with suppress(ProcessLookupError):
        async with asyncio.timeout(30):
            while True:
                os.killpg(group, 0)  # only asks whether anybody is there
                await asyncio.sleep(GLANCE)
    return time.perf_counter() - pressed


async def _settled(cell: ApiCell, server: Server, stop: _Stopped, max_wait: float) -> tuple[str, bool]:
    """What became of the call in the end, and whether a model is told."""
    session = server.session(stop.turn.session)
    item = api.StreamItem()
    watching = session.events()
    try:
        async with asyncio.timeout(max_wait):
            async for item in watching:
                if isinstance(item.event, LateResultReceived):
                    break
    except TimeoutError:
        return "nothing came late", False
    finally:
        await watching.aclose()
    assert isinstance(item.event, LateResultReceived)
    output = item.event.output
    parts = [part for message in await session.messages() for part in message.parts if isinstance(part, ToolPart)]
    if [part.late for part in parts] != [output]:
        return f"what came late is not beside its call: {parts}", False
    before = cell.provider.requests
    async with asyncio.timeout(60):
        await (await session.send("Anything new?", agent="echo"))
    seen = cell.provider.seen[-(cell.provider.requests - before) :]
    is_told = any(output.text in msgspec.json.encode(request.body).decode() for request in seen)
    return "lost" if output.code == LOST else "late", is_told
