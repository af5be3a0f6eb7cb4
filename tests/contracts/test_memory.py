"""The reference adapters keep their contracts, and the contracts notice adapters that do not."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest
from msgspec.structs import replace

from everturn.bus.memory import MERGE_AFTER, _MemoryListener, _MemoryTail
from everturn.core.commands import AnyCommand, ResolveGate
from everturn.core.deltas import Cursor, DriverGone, Frame, TextDelta, TurnReader
from everturn.core.events import Entry, Event, FilesChanged
from everturn.core.gates import CallClaim
from everturn.core.messages import Message
from everturn.core.ports import Bus, Engine
from everturn.core.store_ports import Receipt, Store
from everturn.errors import EverturnError
from everturn.testing import FakeClock, InlineEngine, MemoryBus, MemoryStore
from everturn.testing.contracts import BusContract, EngineContract, StoreContract
from everturn.testing.contracts.clients import call_claimed
from everturn.testing.contracts.engine import RecordingDrive
from everturn.testing.contracts.samples import NOON, claim_call


class TestMemoryStore(StoreContract):
    async def make(self) -> Store:
        return MemoryStore()

    async def test_an_append_that_breaks_off_leaves_claims_and_trees_as_they_were(self) -> None:
        store = await self.make_offering()
        log = [entry.event for entry in await store.events("s")]
        folder = FilesChanged(turn="t", at=NOON, step=1, before="", after="c", root="/home/ada")
        await store.restore("copy", "local", [*log, folder])
        for session in ("s", "copy"):
            await store.admit(replace(claim_call(), session=session))
            events = [call_claimed(), replace(folder, root=""), replace(call_claimed("other"), gate="nobody")]
            with pytest.raises(KeyError):
                await store.append(session, len(await store.events(session)), events)

            [row] = await store.gates(session)
            assert row.claim == CallClaim("tab", NOON + 60)
            assert await store.inbox(session) == [replace(claim_call(), session=session)]
            assert await store.recorded_trees(session) == {}


class TestMemoryBus(BusContract):
    async def make(self) -> Bus:
        return MemoryBus()

    async def test_a_reader_that_fell_behind_is_shown_what_is_merged_from_its_beginning(self) -> None:
        bus = MemoryBus()
        slow, quick = bus.tail("t"), bus.tail("t")
        reader, seen, kept_up = TurnReader("t", Cursor(1)), "", 0
        for at in range(5 * MERGE_AFTER):
            bus.publish("t", [TextDelta("t", 1, 0, at, chr(97 + at % 26))])
            kept_up += len(await anext(quick))
            if at == MERGE_AFTER // 2:
                seen += "".join(frame.text for frame in await anext(slow) if isinstance(frame, TextDelta))
                reader = TurnReader("t", Cursor(1, (len(seen),)))
        for frame in await anext(slow):
            assert isinstance(frame, TextDelta)
            seen += piece.text if (piece := reader.delta(frame)) is not None else ""

        assert kept_up == 5 * MERGE_AFTER  # whoever keeps up is shown everything once
        assert seen == "".join(chr(97 + at % 26) for at in range(5 * MERGE_AFTER))
        assert len(bus.channels["t"].frames) < 2 * MERGE_AFTER

    async def test_a_reader_that_leaves_without_reading_leaves_nothing_behind(self) -> None:
        bus = MemoryBus()

        await bus.tail("t").aclose()

        assert bus.channels == {}

    async def test_a_reader_that_leaves_leaves_nothing_behind(self) -> None:
        bus = MemoryBus()
        tail = bus.tail("t")
        reading = asyncio.ensure_future(anext(tail))
        await self.settle()

        reading.cancel()
        await asyncio.wait({reading})
        await tail.aclose()

        assert bus.channels == {}


class TestInlineEngine(EngineContract):
    tries = 3

    async def make(self, clock: FakeClock) -> Engine:
        return InlineEngine(clock)

    async def test_closing_leaves_no_timer_behind(self) -> None:
        drives = RecordingDrive(failures=1)
        engine, clock = await self.serving(drives)
        await engine.wake("later", clock.now() + 60)
        await engine.wake("bad")
        await self.settle()
        assert clock.waiting == 2

        await engine.aclose()

        assert clock.waiting == 0


# Seeded bugs ----------------------------------------------------------------------------------------------------------


async def is_caught(suite: object, test: str) -> None:
    with pytest.raises((AssertionError, TimeoutError, EverturnError, pytest.fail.Exception)):
        await getattr(suite, test)()


class ForgetsKeys(MemoryStore):
    async def admit(self, command: AnyCommand) -> Receipt:
        if command.session in self._sessions:
            self._sessions[command.session].admitted.clear()
        return await super().admit(command)


class SeesEverybody(MemoryStore):
    async def admit(self, command: AnyCommand) -> Receipt:
        return await super().admit(replace(command, tenant="local"))


class TakesAnyHash(MemoryStore):
    async def admit(self, command: AnyCommand) -> Receipt:
        rows = self._sessions[command.session].gates if command.session in self._sessions else {}
        if isinstance(command, ResolveGate) and command.gate in rows:
            command = replace(command, hash=rows[command.gate].gate.hash)
        return await super().admit(command)


class LastAnswerWins(MemoryStore):
    async def admit(self, command: AnyCommand) -> Receipt:
        if isinstance(command, ResolveGate) and (row := self._sessions[command.session].gates.get(command.gate)):
            row.resolution = None
        return await super().admit(command)


class HasNoFence(MemoryStore):
    async def append(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
        return await super().append(session, await self.head(session), events)


class ReadsTheRoom(MemoryStore):
    async def path(self, session: str, leaf: str | None, limit: int | None = None) -> list[Message]:
        tree = self._session(session).tree
        return [message for message in tree.messages.values() if message in tree.path(leaf)]


class CountsFromZero(MemoryStore):
    async def events(self, session: str, after: int = 0, turn: str | None = None) -> list[Entry]:
        return [Entry(entry.seq - 1, entry.event) for entry in await super().events(session, after, turn)]


class KnowsEverySession(MemoryStore):
    async def heads(self, sessions: Sequence[str]) -> dict[str, int]:
        return {**dict.fromkeys(sessions, 0), **await super().heads(sessions)}


STORES: dict[type[MemoryStore], str] = {
    ForgetsKeys: "test_a_command_is_admitted_once_however_often_it_comes",
    SeesEverybody: "test_a_session_of_another_tenant_looks_like_none_at_all",
    TakesAnyHash: "test_an_answer_counts_for_the_bytes_that_were_shown",
    LastAnswerWins: "test_the_first_answer_wins_and_the_same_again_changes_nothing",
    HasNoFence: "test_an_append_from_another_position_is_refused_and_writes_nothing",
    ReadsTheRoom: "test_a_path_is_one_branch_and_costs_no_more_when_there_are_others",
    KnowsEverySession: "test_the_positions_of_many_sessions_are_read_at_once",
    CountsFromZero: "test_events_are_numbered_from_one_and_read_as_they_were_written",
}


@pytest.mark.parametrize(("broken", "test"), STORES.items(), ids=lambda case: getattr(case, "__name__", ""))
async def test_a_store_that_is_broken_is_caught(broken: type[MemoryStore], test: str):
    class Suite(StoreContract):
        async def make(self) -> Store:
            return broken()

    await is_caught(Suite(), test)


class ForgetsTheStep(MemoryBus):
    def publish(self, turn: str, frames: Sequence[Frame]) -> None:
        if turn in self.channels:  # somebody follows it
            super().publish(turn, frames)


class MixesTurns(MemoryBus):
    def publish(self, turn: str, frames: Sequence[Frame]) -> None:
        super().publish("all", frames)

    def tail(self, turn: str) -> _MemoryTail:
        return super().tail("all")


class NeverEnds(MemoryBus):
    def close(self, turn: str) -> None:
        pass


class RingsOnlyOnce(MemoryBus):
    def signal(self, session: str) -> None:
        super().signal(session)
        self.listeners.clear()


class _Deaf(_MemoryListener):
    async def wait(self) -> None:
        self.signalled.clear()
        await super().wait()


class HearsOnlyWhileWaiting(MemoryBus):
    def listen(self, session: str) -> _MemoryListener:
        ear = _Deaf(self, session)
        self.listeners.setdefault(session, []).append(ear)
        return ear


class CannotBeNudged(MemoryBus):
    def publish(self, turn: str, frames: Sequence[Frame]) -> None:
        if not isinstance(frames[0], DriverGone):
            super().publish(turn, frames)


class AnnouncesToAll(MemoryBus):
    def announce(self, topic: str, message: bytes) -> None:
        for other in list(self.topics):
            super().announce(other, message)


class HearsForEver(MemoryBus):
    def hear(self, topic: str, on_message: Callable[[bytes], None]) -> Callable[[], None]:
        super().hear(topic, on_message)
        return lambda: None


BUSES: dict[type[MemoryBus], str] = {
    CannotBeNudged: "test_a_reader_that_is_nudged_is_given_an_empty_batch_behind_what_came_before",
    ForgetsTheStep: "test_a_reader_that_comes_late_is_shown_the_step_that_is_under_way",
    MixesTurns: "test_turns_do_not_mix",
    NeverEnds: "test_when_a_turn_is_closed_its_readers_are_shown_the_rest_and_then_end",
    RingsOnlyOnce: "test_a_signal_between_two_waits_is_not_lost",
    AnnouncesToAll: "test_an_announcement_reaches_all_who_hear_its_topic_and_nobody_else",
    HearsForEver: "test_announcements_come_in_order_until_they_are_not_heard_any_more",
    HearsOnlyWhileWaiting: "test_a_signal_between_two_waits_is_not_lost",
}


@pytest.mark.parametrize(("broken", "test"), BUSES.items(), ids=lambda case: getattr(case, "__name__", ""))
async def test_a_bus_that_is_broken_is_caught(broken: type[MemoryBus], test: str):
    class Suite(BusContract):
        retry = 0.05

        async def make(self) -> Bus:
            return broken()

    await is_caught(Suite(), test)


class HasToBeClosed(MemoryBus):
    is_closed = False

    async def aclose(self) -> None:
        self.is_closed = True


async def test_a_bus_is_closed_after_its_test_without_a_word_of_its_author():
    class Suite(BusContract):
        async def make(self) -> Bus:
            return HasToBeClosed()

    suite = Suite()
    async with suite.dispose_made():
        bus = await suite.make()
        assert isinstance(bus, HasToBeClosed)
        assert not bus.is_closed
    assert bus.is_closed


class DrivesTwiceAtOnce(InlineEngine):
    def _start(self, session: str) -> None:
        super()._start(f"{session}{len(self._driving)}")

    async def serve(self, drive: Callable[[str], Awaitable[None]]) -> None:
        await super().serve(lambda session: drive(session[0]))


class ForgetsAWakeDuringADrive(InlineEngine):
    def _start(self, session: str) -> None:
        if session not in self._driving:
            super()._start(session)


class CannotWait(InlineEngine):
    async def wake(self, session: str, at: float | None = None, *, is_reminder: bool = False) -> None:
        await super().wake(session)


class GivesUpAtOnce(InlineEngine):
    async def _pause(self, seconds: float) -> None:
        await asyncio.get_running_loop().create_future()


class GoesOnWhenClosed(InlineEngine):
    async def aclose(self) -> None:
        pass


ENGINES: dict[type[InlineEngine], str] = {
    DrivesTwiceAtOnce: "test_a_session_is_driven_by_one_driver_at_a_time",
    ForgetsAWakeDuringADrive: "test_a_wake_during_a_drive_drives_once_more_however_many_there_were",
    CannotWait: "test_a_wake_at_a_time_drives_then_and_not_before",
    GivesUpAtOnce: "test_a_drive_that_fails_is_tried_again",
    GoesOnWhenClosed: "test_closing_cancels_what_is_under_way_and_waits_until_it_has_let_go",
}


@pytest.mark.parametrize(("broken", "test"), ENGINES.items(), ids=lambda case: getattr(case, "__name__", ""))
async def test_an_engine_that_is_broken_is_caught(broken: type[InlineEngine], test: str):
    class Suite(EngineContract):
        tries = 3

        async def make(self, clock: FakeClock) -> Engine:
            return broken(clock)

    await is_caught(Suite(), test)
