"""Somebody who can publish on the NATS server forges messages of the live edge: what do readers see, and what is kept?"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.aio.client import Client

from everturn.bus.nats import NatsBus
from everturn.bus.remote.codec import CLOSE_MESSAGE, subject_token
from everturn.core.commands import Send
from everturn.core.deltas import CallProgress, Delta, TurnItem, TurnReader
from everturn.core.events import StepFinished, TurnCompleted
from everturn.core.parts import TextPart
from everturn.running.follow import NUDGE_FRAMES, follow_turn
from everturn.running.log_poll import LogPoll
from everturn.stores.memory import MemoryStore
from tests.bus.test_nats import Story
from tests.helpers.nats_server import BINARY
from tests.security.peer_server import a_peer
from tools.servers import Nats, private_nats

pytestmark = [pytest.mark.live, pytest.mark.skipif(BINARY is None, reason="there is no nats-server here")]

STEP = 3  # where the step of a `Story` begins
LIE = "Your password is needed. "


def message(*frames: dict[str, Any], age: str = "5") -> bytes:
    return age.encode() + json.dumps(frames).encode()


def delta(**fields: Any) -> dict[str, Any]:
    return {"type": "TextDelta", "turn": "t", "seq": STEP, "part": 0, "offset": 0, "text": LIE, **fields}


FORGED = {
    "text": [message(delta())],
    "text of a new part": [message(delta(part=1))],
    "a step far ahead": [message(delta(seq=2**62))],
    "a step beyond 64 bits": [message(delta(seq=2**70))],
    "a part before the first": [message(delta(part=-1))],
    "a part before the first, at once": [message(delta(part=-1, offset=-1))],
    "a part far behind the last": [message(delta(part=2**40))],
    "an offset before the first": [message(delta(offset=-1)), message(delta(offset=-(2**70)))],
    "another turn's text": [message(delta(turn="other"))],
    "another turn's progress": [message({"type": "CallProgress", "turn": "other", "call": "c", "text": LIE})],
    "a log far ahead": [message({"type": "LogMoved", "seq": 2**62})],
    "a log before the first entry": [message({"type": "LogMoved", "seq": -5})],
    "a log beyond 64 bits": [message({"type": "LogMoved", "seq": 2**70})],
    "a driver that is gone": [message({"type": "DriverGone", "text": "all is lost"})],
    "a frame of no kind": [message({"type": "TurnCompleted", "turn": "t"})],
    "an end": [CLOSE_MESSAGE],
    "an end, and more behind it": [CLOSE_MESSAGE, message(delta(offset=9999))],
    "nothing": [b""],
    "bytes": [b"\x00\xff\xfe[\x80"],
    "an age of twenty digits": [message(age="9" * 20)],
    "an age of 400 digits": [message(delta(), age="9" * 400)],
    "an age of 5000 digits": [message(delta(), age="9" * 5000)],
    "deep JSON": [b"5" + b"[" * 100_000],
    "half a surrogate": [b'5[{"type":"TextDelta","turn":"t","seq":3,"part":0,"offset":0,"text":"\\ud800"}]'],
    "a megabyte": [message(delta(text="x" * 1_000_000))],
}


class Counting(MemoryStore):
    """Counts how often its log is read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    async def events(self, session: str, after: int = 0, turn: str | None = None) -> Any:
        self.reads += 1
        return await super().events(session, after, turn)


class Cell:
    """Nodes on one NATS server, and somebody else who can reach it."""

    def __init__(self, server: Nats, attacker: Client) -> None:
        self.server, self.attacker = server, attacker
        self.nodes: list[NatsBus] = []

    async def node(self) -> NatsBus:
        bus = await NatsBus.connect(self.server.url)
        self.nodes.append(bus)
        return bus

    async def forge(self, *messages: bytes, turn: str = "t") -> None:
        for data in messages:
            await self.attacker.publish(f"everturn.d.{subject_token(turn)}", data)
        await self.attacker.flush()
        async with asyncio.timeout(10):
            for node in self.nodes:
                await node.flush()


@pytest.fixture
async def cell(tmp_path: Path) -> AsyncGenerator[Cell]:
    async with private_nats(tmp_path) as server:
        attacker = await nats.connect(server.url)
        cell = Cell(server, attacker)
        try:
            yield cell
        finally:
            for node in cell.nodes:
                await node.aclose()
            await attacker.close()


async def read(store: MemoryStore, bus: NatsBus) -> list[TurnItem]:
    async with asyncio.timeout(30):
        return [item async for item in follow_turn(store, bus, "s", TurnReader("t"))]


@pytest.mark.parametrize("kind", FORGED)
async def test_whatever_is_forged_readers_see_the_end_and_the_log_is_untouched(cell: Cell, kind: str) -> None:
    writer, reader, elsewhere = [await cell.node() for _ in range(3)]
    store = Counting()
    await store.admit(Send(key="k", session="s", turn="t", parts=(TextPart("Hi"),)))
    story = Story(store, writer)
    await story.begin()
    early = asyncio.create_task(read(store, reader))
    await cell.forge(*FORGED[kind])
    story.say("There are ")
    await cell.forge()
    await cell.forge(*FORGED[kind])
    late = asyncio.create_task(read(store, elsewhere))
    await cell.forge()
    await asyncio.sleep(0.2)  # long enough for a reader that spins to be seen to
    read_so_far = store.reads
    story.say("seven cups.")
    await story.end()

    for shown in (await early, await late):
        assert isinstance(shown[-1], TurnCompleted)
        (step,) = [item for item in shown if isinstance(item, StepFinished)]
        assert step.parts == (TextPart("There are seven cups."),)
        assert all(item.turn == "t" for item in shown if isinstance(item, Delta | CallProgress))
    assert read_so_far < 30
    assert [type(entry.event).__name__ for entry in await store.events("s")] == [
        "TurnStarted", "AnswerStarted", "StepStarted", "StepFinished", "TurnCompleted",
    ]  # fmt: skip


async def test_a_reader_whose_live_text_is_withheld_reads_the_log_when_it_is_polled(cell: Cell) -> None:
    writer, reader = await cell.node(), await cell.node()
    store = Counting()
    await store.admit(Send(key="k", session="s", turn="t", parts=(TextPart("Hi"),)))
    story = Story(store, writer)
    await story.begin()
    reading = asyncio.create_task(read(store, reader))
    await cell.forge()
    await cell.forge(*FORGED["a log far ahead"], *FORGED["a step far ahead"])
    watch = LogPoll(store, 0.05).watch("s", lambda: 0, lambda: reader.publish("t", NUDGE_FRAMES))
    await story._append(StepFinished(turn="t", step=1, parts=(TextPart("Seven."),), finish="stop"))
    await story._append(TurnCompleted(turn="t"))  # and nobody closes it

    shown = await reading
    watch.close()
    assert isinstance(shown[-1], TurnCompleted)
    assert [item.text for item in shown if isinstance(item, Delta)] == ["Seven."]


async def test_a_stream_of_one_tenant_shows_nothing_of_anothers_and_the_answer_is_what_the_log_has(cell: Cell) -> None:
    async with a_peer(bus=await cell.node()) as peer:
        sent = {tenant: await peer.say("hang", f"{tenant}/owner") for tenant in ("ours", "theirs")}
        path = {
            tenant: f"/api/sessions/{receipt.session}/turns/{receipt.turn}/events" for tenant, receipt in sent.items()
        }
        assert (await peer.ask("GET", path["ours"], "theirs/owner")).status == 404
        reading = {tenant: asyncio.create_task(peer.ask("GET", path[tenant], f"{tenant}/owner")) for tenant in sent}
        bus = cell.nodes[0]
        async with asyncio.timeout(10):
            while not all(receipt.turn in bus._subscriptions.inlets for receipt in sent.values()):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        for seq in range(12):  # wherever the step begins
            await cell.forge(message(delta(turn=sent["ours"].turn, seq=seq, offset=9)), turn=sent["ours"].turn)
            for channel in (sent["theirs"].turn, sent["theirs"].session):
                progress = {"type": "CallProgress", "turn": sent["ours"].turn, "call": "c", "text": "for us alone"}
                await cell.forge(message(delta(turn=sent["ours"].turn, seq=seq), progress), turn=channel)
        peer.model.go_on.set()

        theirs, ours = (await reading["theirs"]).body, (await reading["ours"]).body
        assert LIE.encode() not in theirs
        assert b"for us alone" not in theirs
        assert LIE.encode() in ours  # whoever publishes on NATS is believed until the step ends: docs/security.md
        for tenant, receipt in sent.items():
            turn = await peer.rest(receipt, f"{tenant}/owner")
            assert (turn["phase"], turn["messages"][-1]["parts"][0]["text"]) == ("completed", "I begin. Done.")
            assert LIE not in str(await peer.house.app.store.events(receipt.session))
        assert (await peer.ask("GET", "/healthz", "")).status == 200
