"""Five calls that ask, every process dead twice, a day in between: who was asked what, and what was done?"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import aiohttp
import msgspec
from msgspec import Struct

from everturn import api
from everturn.client.server import Server
from everturn.client.turn import RemoteTurn
from everturn.core.events import Event
from tools.chaos.api import MAILED, ApiCell
from tools.chaos.api_tools import AHEAD
from tools.chaos.scenario import effect_hash

DAY = 86_400.0
GLANCE = 0.1
FEEDBACK = "dan has left the company"


class Gated(Struct, frozen=True):
    """What came of it."""

    refused: dict[str, list[int]]  # status by kind of forgery
    requests_while_waiting: int  # of the model, for the session
    opened: float  # seconds between the question and its last answer, by the clocks of the installation
    sent: list[str]  # whom mails went to, in order
    seconds: float
    violations: list[str]


async def gating(cell: ApiCell, nodes: int = 3, workers: int = 3) -> Gated:
    """Ask, kill, answer some a day later, kill, answer the rest."""
    began, violations = time.monotonic(), list[str]()
    foreign = await cell.key("mallory", "other")
    before = cell.provider.requests
    turn = await (await cell.server()).start_session("Write to all five.", agent="asks")
    await _waiting(await cell.server(), turn.session, 5)

    await cell.kill_all()
    later = {AHEAD: str(DAY)}
    await cell.start(1, workers, later)  # somebody else's device, at a node that has not been there before
    server, [address] = await cell.server(), cell.addresses
    found = [gate for gate in await server.gates() if gate.session == turn.session]
    by_recipient = {str(msgspec.json.decode(view.gate.arguments)["to"]): view for view in found}
    if (
        sorted(by_recipient) != sorted(MAILED)
        or len(found) != 5
        or len(await server.session(turn.session).gates()) != 5
    ):
        violations.append(f"after the restart, {sorted(by_recipient)} are asked about")
    queued = await server.session(turn.session).send("And greet them.", agent="echo")
    door = _Door(address, await cell.web(), await cell.web(foreign))
    refused: dict[str, list[int]] = {}
    refused["forged"] = await door.forge(by_recipient["ada"])
    refused["foreign"] = await door.come_from_elsewhere(by_recipient["ada"])
    refused["altered"] = await door.alter(by_recipient["ada"])
    if cell.effects(turn.session):
        violations.append("something was done that nobody had allowed")
    await server.answer(by_recipient["ada"], allow="once")
    await server.answer(by_recipient["bob"], allow="once")
    await server.answer(by_recipient["cem"], allow="once", arguments={"to": "zoe"})
    await server.answer(by_recipient["dan"], deny=FEEDBACK)
    refused["twice"] = await door.submit_again(by_recipient["ada"], by_recipient["dan"])
    await server.answer(by_recipient["bob"], allow="once")  # the very same once more is no harm
    await _done(cell, turn.session, 3)
    await _waiting(server, turn.session, 1)
    waiting = cell.provider.requests - before
    if waiting != 1:
        violations.append(f"{waiting} requests went to the model, and its five calls are not done")
    if (await server.session(queued.session).turn(queued.id).state()).phase.is_terminal:
        violations.append("a message that came later did not wait")

    await cell.kill_all()
    await cell.start(nodes, workers, later)
    server = await cell.server()
    [left] = await _waiting(server, turn.session, 1)
    await server.answer(left, allow="once")
    events = await _ended(server, server.session(turn.session).turn(turn.id))
    await _ended(server, server.session(queued.session).turn(queued.id))
    violations += _wrong(cell, turn, events, refused)
    opened = max(event.at for event in events) - min(event.at for event in events)
    if opened < DAY:
        violations.append(f"only {opened:.0f} s passed")
    wanted = {effect_hash("mail", {"to": to}): to for to in (*MAILED, "zoe")}
    sent = [wanted.get(line.hash, "?") for line in cell.effects(turn.session)]
    return Gated(refused, waiting, opened, sent, time.monotonic() - began, violations)


def _wrong(cell: ApiCell, turn: RemoteTurn, events: list[Event], refused: dict[str, list[int]]) -> list[str]:
    found: list[str] = []
    wanted = {"forged": [404], "foreign": [404], "altered": [409], "twice": [409]}
    found += [f"{kind}: {codes}" for kind, codes in refused.items() if sorted(set(codes)) != wanted[kind]]
    effects = sorted(line.hash for line in cell.effects(turn.session))
    allowed = sorted(effect_hash("mail", {"to": to}) for to in ("ada", "bob", "zoe", "eve"))
    if effects != allowed:
        found.append(f"{len(effects)} mails were sent, and not the four that were allowed, once each")
    if type(events[-1]).__name__ != "TurnCompleted":
        found.append(f"the turn ended with {events[-1]}")
    requests = [request for request in cell.provider.seen if FEEDBACK in msgspec.json.encode(request.body).decode()]
    if not requests:
        found.append("the model was never told why it may not")
    if cell.provider.refusals:
        found.append(f"the provider refused: {cell.provider.refusals}")
    return found


class _Door:
    """Those who come with what is not theirs, or not true."""

    def __init__(self, address: str, web: aiohttp.ClientSession, foreign: aiohttp.ClientSession) -> None:
        self._address, self._web, self._foreign = address, web, foreign

    async def _post(self, web: aiohttp.ClientSession, session: str, gate: str, body: Any) -> int:
        url = f"{self._address}/api/sessions/{session}/gates/{gate}/answer"
        async with web.post(url, json=body) as answer:
            return answer.status

    async def forge(self, view: api.GateView) -> list[int]:
        """Ids that nobody gave out."""
        body, gate = {"hash": view.gate.hash, "allow": "once"}, view.gate.id
        forged = ((view.session, gate + "x"), (view.session, "gate_1"), ("session_1", gate))
        return [await self._post(self._web, session, gate_id, body) for session, gate_id in forged]

    async def come_from_elsewhere(self, view: api.GateView) -> list[int]:
        """The right id, of another tenant."""
        body = {"hash": view.gate.hash, "allow": "once"}
        return [await self._post(self._foreign, view.session, view.gate.id, body)]

    async def alter(self, view: api.GateView) -> list[int]:
        """An answer to something else than what is asked."""
        body = {"hash": view.gate.hash[:-1] + "-", "allow": "once"}
        return [await self._post(self._web, view.session, view.gate.id, body)]

    async def submit_again(self, allowed: api.GateView, denied: api.GateView) -> list[int]:
        """Once more, with another mind: no to what was allowed, yes to what was denied."""
        no, yes = {"hash": allowed.gate.hash, "deny": "no"}, {"hash": denied.gate.hash, "allow": "once"}
        return [
            await self._post(self._web, allowed.session, allowed.gate.id, no),
            await self._post(self._web, denied.session, denied.gate.id, yes),
        ]


async def _waiting(server: Server, session: str, count: int) -> list[api.GateView]:
    async with asyncio.timeout(60):
        while True:
            found = [gate for gate in await server.gates() if gate.session == session]
            if len(found) == count:
                return found
            await asyncio.sleep(GLANCE)


async def _done(cell: ApiCell, session: str, count: int) -> None:
    async with asyncio.timeout(60):
        while len(cell.effects(session)) < count:  # noqa: ASYNC110 - it happens in other processes
            await asyncio.sleep(GLANCE)


async def _ended(server: Server, turn: RemoteTurn) -> list[Event]:
    async with asyncio.timeout(60):
        return [item.event async for item in turn.events() if item.event is not None]
