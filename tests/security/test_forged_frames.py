"""Frames of the live edge that no driver has sent, without a server: what `test_live_nats.py` does with one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.app import App
from everturn.bus.memory import MemoryBus
from everturn.bus.nats import READ_LOG
from everturn.bus.remote.codec import age_of, plausible_frames
from everturn.bus.remote.inbound import InboundTurn, within_memory_limit
from everturn.core.commands import Select, Send
from everturn.core.deltas import CallProgress, DriverGone, Frame, LogAdvanced, TextDelta, TurnReader
from everturn.core.events import Entry, StepStarted
from everturn.core.parts import TextPart
from everturn.core.ports import LiveTail
from everturn.engine.restate import open_worker_socket
from everturn.errors import UnreadableLog
from everturn.running.follow import follow_turn
from everturn.testing import MemoryStore, ScriptedModel

numbers = st.integers(-(2**70), 2**70) | st.integers(-3, 3)
frames = st.one_of(
    st.builds(TextDelta, st.sampled_from(["t", "u"]), numbers, numbers, numbers, st.text(max_size=5)),
    st.builds(CallProgress, st.sampled_from(["t", "u"]), st.just("c"), st.text(max_size=5)),
    st.builds(LogAdvanced, numbers),
    st.builds(DriverGone, st.text(max_size=5)),
)


@given(st.lists(frames, max_size=8))
def test_no_frame_from_outside_breaks_a_reader(received: list[Frame]) -> None:
    reader = TurnReader("t")
    list(reader.entry(Entry(1, StepStarted(turn="t", step=1))))
    for frame in plausible_frames(received, "t"):
        assert not isinstance(frame, DriverGone)
        if isinstance(frame, TextDelta):
            shown = reader.delta(frame)
            assert shown is None or (shown.turn, shown.seq) == ("t", 1)
    assert all(0 <= seen < 2**64 for seen in reader.cursor.offsets if seen != -1)


@pytest.mark.parametrize("frame", [TextDelta("t", 1, -1, 0, "x"), TextDelta("t", 1, 0, -1, "x"), LogAdvanced(-1)])
def test_a_frame_out_of_range_is_nobodys(frame: Frame) -> None:
    assert plausible_frames([frame, READ_LOG], "t") == [READ_LOG]


def test_a_frame_of_another_turn_is_not_shown() -> None:
    theirs: list[Frame] = [TextDelta("u", 1, 0, 0, "x"), CallProgress("u", "c", "x")]
    assert plausible_frames(theirs, "t") == []


@pytest.mark.parametrize("digits", [11, 400, 5000])
def test_an_age_that_no_date_has_is_not_a_message(digits: int) -> None:
    with pytest.raises(UnreadableLog):
        age_of(b"9" * digits + b"[]")


def test_a_step_that_never_ends_is_held_up_to_a_limit() -> None:
    inlet = InboundTurn("t", "everturn.d.t")
    megabyte: list[Frame] = [TextDelta("t", 1, 0, 0, "x" * 2**20), READ_LOG]
    retained = [
        frame for _ in range(20) for frame in within_memory_limit(inlet, megabyte) if isinstance(frame, TextDelta)
    ]
    assert 0 < len(retained) < 9
    assert within_memory_limit(inlet, [LogAdvanced(2), *megabyte]) == [LogAdvanced(2), *megabyte]


async def test_a_wake_for_a_name_that_no_database_takes_is_not_tried_for_ever() -> None:
    worker_module = pytest.importorskip("everturn.engine.restate.worker")
    driven: list[str] = []

    async def drive(session: str) -> None:
        driven.append(session)

    with open_worker_socket("127.0.0.1", 0) as sock:
        worker = worker_module.RestateWorker(drive, sock, "everturn", None)
        for session in ("nul \0", "s"):
            await worker._drive_once(session)
    assert driven == ["s"]


class Closed(MemoryBus):
    """A bus that says of everything that it is over, and counts who asks."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def tail(self, turn: str) -> Any:
        self.asked += 1
        tail: LiveTail = super().tail(turn)
        self.close(turn)
        return tail


async def test_a_reader_whose_bus_says_the_turn_is_over_when_it_is_not_does_not_spin() -> None:
    store, bus = MemoryStore(), Closed()
    await store.admit(Send(key="k", session="s", turn="t", parts=(TextPart("Hi"),)))
    reading = asyncio.ensure_future(anext(follow_turn(store, bus, "s", TurnReader("t"))))
    for _ in range(1000):
        await asyncio.sleep(0)
    assert bus.asked <= 2
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading


async def test_who_waits_for_a_command_on_such_a_bus_does_not_spin_either() -> None:
    class Counting(MemoryStore):
        asked = 0

        async def inbox(self, session: str) -> Any:
            self.asked += 1
            return await super().inbox(session)

    store = Counting()
    app = App(ScriptedModel(), store=store, bus=Closed())
    await store.admit(Send(key="k", session="s", turn="t", parts=(TextPart("Hi"),)))
    waiting = asyncio.ensure_future(app.wait_until_carried_out(Select(key="k", session="s", message="m"), 0))
    for _ in range(1000):
        await asyncio.sleep(0)
    assert store.asked <= 2
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await app.aclose()
