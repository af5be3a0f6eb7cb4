"""A long turn, readers that come back to any node over HTTP, deaths, and a Stop: do they all see what is stored?"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Sequence
from contextlib import suppress

import aiohttp
from msgspec import Struct

from everturn.client.turn import RemoteTurn
from everturn.core.events import StepRestarted
from everturn.testing.provider import Call, Say
from tools.chaos.api import ApiCell, ApiReader, ApiTurnScreen, visit
from tools.chaos.api_tools import AHEAD
from tools.chaos.resume import compare_with_stored
from tools.chaos.scenario import pieces_of

PATIENCE = 120.0  # seconds in which the readers have to see the end, beyond what the text itself takes
LATE = 6  # readers that come when all is over, half of them at a node where it is an hour later
HOUR = 3600.0


class Sizes(Struct, frozen=True):
    """How much of everything."""

    deltas: int = 20_000
    readers: int = 50
    pace: float = 0.002  # seconds between two deltas
    stay: float = 2.0  # seconds a reader stays, on average
    seed: int = 0


class Streamed(Struct, frozen=True):
    """One turn, and what its readers saw."""

    ended: str
    deltas: int
    stored: int  # bytes
    readers: int
    visits: int
    moves: int
    reloads: int
    restarts: int
    streamed: float  # the share of the text that came over the bus, over all readers
    seconds: float
    load: float
    violations: list[str]


async def streaming(cell: ApiCell, sizes: Sizes, *, is_stopped: bool) -> Streamed:
    """Run one turn; its driver and a node die half-way, and somebody presses Stop later, if that is wanted."""
    began, rng = time.monotonic(), random.Random(f"{sizes.seed} {is_stopped}")
    pieces = pieces_of(sizes.deltas, sizes.seed)
    reply = [Say(piece, 1) for piece in pieces]
    cell.provider.script("long", [[Call("look", '{"path": "a"}')], reply], pace=sizes.pace)
    server, web = await cell.server(), await cell.web()
    turn = await server.start_session("Tell me everything.", agent="long")
    path = f"/api/sessions/{turn.session}/turns/{turn.id}/events"
    readers = [ApiReader(cell, web, path, random.Random(f"{sizes.seed}/{n}"), sizes.stay) for n in range(sizes.readers)]
    witness, whole = ApiTurnScreen(), len("".join(pieces))

    async def watch(size: float) -> None:
        while not witness.is_over and witness.size < size:
            at = rng.choice(cell.house.nodes).address
            await visit(witness, web, at + path, lambda screen: screen.size >= size)

    with suppress(TimeoutError):  # those who have not seen the end are told apart below
        async with asyncio.timeout(PATIENCE + 6 * sizes.pace * sizes.deltas), asyncio.TaskGroup() as group:
            for reader in readers:
                group.create_task(reader.read())
            await watch(whole / 2)
            await cell.kill_driver(turn.session)
            node = rng.choice(cell.house.nodes)
            await node.kill9()
            if is_stopped:
                await _begun_again(witness, web, cell, path)
                await watch(whole * rng.uniform(0.1, 0.9))
                await _stop(cell, web, turn, rng)
            await watch(float("inf"))
        await cell.bring_back(node)
    return await _judged(cell, turn, readers, witness, pieces, is_stopped, began)


async def _begun_again(witness: ApiTurnScreen, web: aiohttp.ClientSession, cell: ApiCell, path: str) -> None:
    """Wait until what was seen is void, because another worker has begun the step again."""
    most = witness.size
    while not witness.is_over and witness.size >= most:
        address = next(node.address for node in cell.house.nodes if node.is_running)
        await visit(witness, web, address + path, lambda screen: screen.size < most)


async def _stop(cell: ApiCell, web: aiohttp.ClientSession, turn: RemoteTurn, rng: random.Random) -> None:
    """Press Stop at any node; one that is dead is no excuse."""
    for node in rng.sample(cell.house.nodes, len(cell.house.nodes)):
        with suppress(aiohttp.ClientError):
            url = f"{node.address}/api/sessions/{turn.session}/turns/{turn.id}/cancel"
            async with web.post(url, json={}) as answer:
                if answer.status < 300:
                    return
    raise AssertionError("nobody took the Stop")


async def _judged(
    cell: ApiCell,
    turn: RemoteTurn,
    readers: Sequence[ApiReader],
    witness: ApiTurnScreen,
    pieces: Sequence[str],
    is_stopped: bool,
    began: float,
) -> Streamed:
    server, web = await cell.server(), await cell.web()
    stored = (await server.session(turn.session).messages())[-1].text
    events = [item.event async for item in turn.events() if item.event is not None]
    late = [ApiTurnScreen() for _ in range(LATE)]
    path = f"/api/sessions/{turn.session}/turns/{turn.id}/events"
    later = await cell.house.start_node(environment={AHEAD: str(HOUR)})
    for number, screen in enumerate(late):
        await visit(screen, web, (later.address if number % 2 else cell.addresses[0]) + path)
    await later.stop()
    cell.house.nodes.remove(later)
    named = {"the witness": witness}
    named |= {f"reader {number}": reader.screen for number, reader in enumerate(readers)}
    named |= {f"late reader {number}": screen for number, screen in enumerate(late)}
    violations = [
        f"{name}: {violation}" for name, screen in named.items() for violation in compare_with_stored(screen, stored)
    ]
    violations += [complaint for reader in readers for screen in reader.forgotten for complaint in screen.complaints]
    if len({screen.ended for screen in named.values()}) != 1:
        violations.append("they were told different ends")
    if not is_stopped and stored != "".join(pieces):
        violations.append("what is stored is not what the model said")
    if not "".join(pieces).startswith(stored):
        violations.append("what is stored is no beginning of what the model said")
    streamed = sum(reader.screen.live for reader in readers) / max(len(stored) * len(readers), 1)
    if streamed < 0.5:
        violations.append(f"only {streamed:.0%} of the text was streamed, so this proves little")
    restarts = sum(isinstance(event, StepRestarted) for event in events)
    if not restarts:
        violations.append("no worker took over, so this proves little")
    return Streamed(
        ended=type(events[-1]).__name__,
        deltas=len(pieces),
        stored=len(stored.encode()),
        readers=len(readers) + 1,
        visits=sum(reader.visits for reader in readers),
        moves=sum(reader.moves for reader in readers),
        reloads=sum(len(reader.forgotten) for reader in readers),
        restarts=restarts,
        streamed=streamed,
        seconds=time.monotonic() - began,
        load=os.getloadavg()[0],
        violations=violations,
    )
