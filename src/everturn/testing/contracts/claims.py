"""Claims contract of a store: the last claim of a session drives it, while there is work to do and it does not kill its
drivers.
"""

from __future__ import annotations

import asyncio
from typing import cast

import pytest
from msgspec.structs import replace

from everturn.core.commands import Cancel, FinishWait
from everturn.core.events import (
    CallFinished,
    CallSuspended,
    Event,
    LateResultReceived,
    LeafSelected,
    Problem,
    RequestRetried,
    StepRestarted,
    StepStarted,
    TitleSet,
    TurnStarted,
    TurnSuspended,
    WaitFinished,
    WaitStarted,
)
from everturn.core.options import TurnOptions
from everturn.core.parts import Output
from everturn.core.session_claims import MAX_QUICK_CLAIMS, QUARANTINE_SECONDS, RETRY_PAUSES
from everturn.core.state import fold
from everturn.core.store_ports import SessionClaim, Store, TurnSnapshotStore
from everturn.errors import KeyConflict, SessionBusy, SessionQuarantined, Stale, UnknownSession, UnknownTurn
from everturn.testing.contracts.samples import (
    NOON,
    answer_gate,
    call_requested_events,
    call_started_events,
    gate_opened_events,
    late_result_command,
    send_message,
    turn_ended_events,
    turn_started_events,
)
from everturn.testing.contracts.store_setup import StoreSetup
from everturn.turn_snapshot import take_snapshot


async def claim_session(store: Store, now: float = NOON) -> SessionClaim:
    """A claim of a session with work to do."""
    claim = await store.claim("s", now)
    assert claim is not None
    return claim


class ClaimSetup(StoreSetup):
    """How the suites of this module make a store."""

    async def quarantined(self) -> Store:
        """A store with a session that was claimed too often."""
        store = await self.make()
        await store.admit(send_message())
        at = NOON - sum(RETRY_PAUSES)
        for _ in range(MAX_QUICK_CLAIMS):
            await claim_session(store, at)
        for pause in RETRY_PAUSES:
            at += pause
            await claim_session(store, at)
        with pytest.raises(SessionQuarantined):
            await store.claim("s", NOON)
        return store


class ClaimContract(ClaimSetup):
    """Claims fence appends, are counted until the session makes progress, and are refused where there is no work."""

    # Fencing ----------------------------------------------------------------------------------------------------

    async def test_a_claim_says_all_that_its_driver_needs_to_go_on(self) -> None:
        store = await self.make()
        await store.admit(send_message())
        await store.append(
            "s",
            0,
            [
                *turn_started_events(),
                *gate_opened_events(),
                *turn_started_events("t2", command="k2"),
                *turn_ended_events("t2"),
            ],
        )
        await store.admit(answer_gate())

        claim = await claim_session(store)

        assert (claim.head, claim.info) == (await store.head("s"), await store.info("s"))
        assert list(claim.inbox) == [answer_gate()]
        assert [list(turn) for turn in claim.turns] == [await store.events("s", turn="t")]

    async def test_a_snapshot_of_a_turn_is_claimed_with_the_events_after_it_or_ignored(self) -> None:
        store = await self.make()
        if not hasattr(store, "keep_snapshot"):
            return  # a store need not have snapshots
        snapshots = cast("TurnSnapshotStore", store)
        await store.admit(send_message())
        events, more = [*turn_started_events(), *call_requested_events()], call_started_events()
        early = take_snapshot(fold(events[:1]), 1)
        snapshot = take_snapshot(fold(events), len(events))
        assert snapshot is not None
        assert early is not None
        snapshots.keep_snapshot("s", early)  # the append goes beyond it, so it is not written
        await store.append("s", 0, events[:2])
        assert list((await claim_session(store)).folded) == []
        snapshots.keep_snapshot("s", snapshot)
        await store.append("s", 2, events[2:])
        claim = await claim_session(store)
        assert (list(claim.folded), list(claim.turns)) == ([fold(events)], [])
        await store.append("s", len(events), more)
        claim = await claim_session(store)
        assert [[entry.event for entry in turn] for turn in claim.turns] == [more]
        assert claim.fold_turns() == [fold([*events, *more])]
        for bad in (replace(snapshot, fold="other code"), replace(snapshot, body=snapshot.body[:-9] + b"x" * 9)):
            head = await store.head("s")
            snapshots.keep_snapshot("s", replace(bad, seq=head + 1))
            await store.append("s", head, [LeafSelected(message="t.out", at=NOON)])
            claim = await claim_session(store)
            assert claim.fold_turns() == [fold([*events, *more])]
            assert [entry.event for turn in claim.turns for entry in turn] == [*events, *more]

    async def test_whoever_claimed_before_can_write_no_more(self) -> None:
        store = await self.make()
        await store.admit(send_message())
        first, second = await claim_session(store), await claim_session(store)
        assert second.epoch > first.epoch

        with pytest.raises(Stale):
            await store.append("s", 0, turn_started_events(), first.epoch)
        assert await store.head("s") == 0

        assert await store.append("s", 0, turn_started_events(), second.epoch) == 2
        with pytest.raises(Stale):
            await store.append("s", 2, turn_ended_events(), first.epoch)
        with pytest.raises(Stale):  # the right driver at the wrong position
            await store.append("s", 0, turn_ended_events(), second.epoch)
        assert await store.append("s", 2, turn_ended_events(), second.epoch) == 4

    async def test_of_many_who_claim_at_once_the_last_one_drives(self) -> None:
        store = await self.make()
        await store.admit(send_message())

        claims = await asyncio.gather(*(claim_session(store) for _ in range(MAX_QUICK_CLAIMS)))
        epochs = sorted(claim.epoch for claim in claims)

        assert len(set(epochs)) == MAX_QUICK_CLAIMS
        for epoch in epochs[:-1]:
            with pytest.raises(Stale):
                await store.append("s", 0, turn_started_events(), epoch)
        assert await store.append("s", 0, turn_started_events(), epochs[-1]) == 2

    # Work to do ---------------------------------------------------------------------------------------------------

    async def test_there_is_no_claim_where_nothing_is_to_be_done(self) -> None:
        store = await self.make_waiting()

        assert await store.claim("s", NOON + 1e6) is None  # it waits, for as long as it takes
        await store.admit(answer_gate())
        assert await store.claim("s", NOON) is not None
        await store.append("s", 6, [*turn_ended_events(command="a")])
        assert await store.claim("s", NOON) is None
        with pytest.raises(UnknownSession):
            await store.claim("absent", NOON)

    async def test_a_gate_that_expires_is_something_to_do_when_its_time_has_come(self) -> None:
        store = await self.make_waiting(expires=NOON + 60)

        info = await store.info("s")
        assert (info.is_awake, info.due) == (False, NOON + 60)
        assert [awake.id for awake in await store.sessions(awake=True)] == ["s"]
        assert await store.claim("s", NOON + 59) is None
        assert await store.claim("s", NOON + 60) is not None

        await store.admit(answer_gate())
        assert (await store.info("s")).due == 0.0

    async def test_a_turn_that_must_end_is_something_to_do_when_its_time_has_come(self) -> None:
        store = await self.make()
        await store.admit(send_message())
        events = turn_started_events()
        assert isinstance(events[0], TurnStarted)
        events[0] = replace(events[0], options=TurnOptions(timeout=60))
        await store.append("s", 0, [*events, *gate_opened_events(expires=NOON + 90)])

        assert (await store.info("s")).due == NOON + 60
        assert await store.claim("s", NOON + 59) is None
        assert await store.claim("s", NOON + 60) is not None
        await store.append("s", 6, turn_ended_events())
        assert (await store.info("s")).due == 0.0
        assert await store.claim("s", NOON + 1e6) is None

    async def test_a_timer_or_an_external_result_is_something_to_do_when_its_time_has_come(self) -> None:
        store = await self.make()
        await store.admit(send_message())
        waiting: list[Event] = [
            WaitStarted(turn="t", at=NOON, call="t.call", wait="w1", kind="timer", until=NOON + 60),
            WaitStarted(turn="t", at=NOON, call="t.call", wait="w2", kind="external", until=NOON + 90),
            CallSuspended(turn="t", at=NOON, call="t.call", waits=("w1", "w2")),
            TurnSuspended(turn="t", at=NOON, step=1),
        ]
        head = await store.append(
            "s", 0, [*turn_started_events(), *call_requested_events(), *call_started_events(), *waiting]
        )

        info = await store.info("s")
        assert (info.is_awake, info.due) == (False, NOON + 60)
        assert await store.claim("s", NOON + 59) is None
        assert await store.overdue(NOON + 60, NOON + 60) == ["s"]
        assert await store.claim("s", NOON + 60) is not None
        fired: list[Event] = [
            WaitFinished(turn="t", at=NOON + 60, call="t.call", wait="w1"),
            TurnSuspended(turn="t", at=NOON + 60, step=1),
        ]
        head = await store.append("s", head, fired)
        assert (await store.info("s")).due == NOON + 90

        result = FinishWait(key="w", session="s", at=NOON + 61, turn="t", call="t.call", wait="w2", value="1")
        assert (await store.admit(result)).is_new
        assert not (await store.admit(result)).is_new
        with pytest.raises(KeyConflict):
            await store.admit(replace(result, value="2"))
        with pytest.raises(UnknownTurn):
            await store.admit(replace(result, key="x", turn="none"))
        assert (await store.info("s")).is_awake
        await store.append(
            "s", head, [WaitFinished(turn="t", at=NOON + 61, call="t.call", wait="w2", value="1", command="w")]
        )
        assert (await store.inbox("s"), (await store.info("s")).due) == ([], 0.0)

    async def test_a_tool_that_outlived_its_turn_keeps_its_session_awake_until_it_hands_in_what_it_has(self) -> None:
        store = await self.make_waiting()
        left = CallFinished(turn="t", at=NOON, call="t.call", state="cancelled", output=Output(""), still_running=True)
        await store.append("s", 6, [left, *turn_ended_events()])

        assert (await store.info("s")).is_awake
        assert await store.open_turns("s") == []
        claim = await claim_session(store)
        assert [list(turn) for turn in claim.turns] == [await store.events("s", turn="t")]

        await store.admit(late_result_command("l"))
        arrived = LateResultReceived(turn="t", at=NOON, call="t.call", output=Output("late"), command="l")
        await store.append("s", 9, [arrived], claim.epoch)
        assert not (await store.info("s")).is_awake
        assert await store.claim("s", NOON) is None
        [_, message] = await store.path("s", "t.out")
        assert [part.late for part in message.parts if hasattr(part, "late")] == [Output("late")]  # type: ignore[union-attr]

    # A session that kills its drivers -------------------------------------------------------------------------------

    async def test_a_session_that_dies_again_and_again_rests_for_seconds_before_it_is_left_alone(self) -> None:
        store, at = await self.make(), NOON
        await store.admit(send_message())
        for _ in range(MAX_QUICK_CLAIMS):
            await claim_session(store, at)

        for pause in RETRY_PAUSES:
            with pytest.raises(SessionQuarantined) as resting:
                await store.claim("s", at + pause - 1)
            assert resting.value.retry_at == pytest.approx(at + pause)
            assert (await store.info("s")).quarantined == ""  # it is retried automatically
            at += pause
            await claim_session(store, at)

        with pytest.raises(SessionQuarantined) as alone:
            await store.claim("s", at + max(RETRY_PAUSES))
        assert alone.value.retry_at == 0.0
        assert (await store.info("s")).quarantined

    async def test_one_that_rests_and_moves_is_trusted_again(self) -> None:
        store = await self.make()
        await store.admit(send_message())
        for _ in range(MAX_QUICK_CLAIMS):
            await claim_session(store)
        claim = await claim_session(store, NOON + RETRY_PAUSES[0])

        await store.append("s", 0, turn_started_events(), claim.epoch)

        for _ in range(MAX_QUICK_CLAIMS - 1):
            await claim_session(store, NOON + RETRY_PAUSES[0])

    async def test_a_session_that_is_claimed_too_often_and_never_moves_is_left_alone_and_says_so(self) -> None:
        store = await self.quarantined()

        assert "s" in (await store.info("s")).quarantined
        with pytest.raises(SessionQuarantined):
            await store.claim("s", NOON + QUARANTINE_SECONDS - 1)

    async def test_a_new_command_gives_it_another_chance(self) -> None:
        store = await self.quarantined()

        await store.admit(Cancel(key="c", session="s", at=NOON, turn="t"))

        assert (await store.info("s")).quarantined == ""
        for _ in range(MAX_QUICK_CLAIMS):
            await claim_session(store)

    async def test_a_long_time_gives_it_one_more_try(self) -> None:
        store = await self.quarantined()

        await claim_session(store, NOON + QUARANTINE_SECONDS)
        with pytest.raises(SessionQuarantined):
            await store.claim("s", NOON + QUARANTINE_SECONDS + 1)

    async def test_a_session_that_moves_may_be_claimed_for_ever(self) -> None:
        store = await self.make()
        await store.admit(send_message())
        await store.append("s", 0, turn_started_events())

        for at in range(3 * MAX_QUICK_CLAIMS):
            claim = await claim_session(store)
            await store.append("s", 2 + at, [TitleSet(turn="t", at=NOON, title=str(at))], claim.epoch)

    async def test_a_step_that_only_begins_again_is_no_move(self) -> None:
        store = await self.make()
        await store.admit(send_message())
        first: list[Event] = [*turn_started_events(), StepStarted(turn="t", at=NOON, step=1)]
        await store.append("s", 0, first, (await claim_session(store)).epoch)

        for at in range(MAX_QUICK_CLAIMS - 1):
            claim = await claim_session(store)
            problem = Problem("rate", "too many requests")
            again = StepRestarted(turn="t", at=NOON, step=1)
            retried = RequestRetried(turn="t", at=NOON, step=1, attempt=2, attempts=3, problem=problem)
            await store.append("s", 3 + 2 * at, [again, retried], claim.epoch)

        with pytest.raises(SessionQuarantined):
            await store.claim("s", NOON)

    async def test_a_driver_that_ended_well_does_not_count(self) -> None:
        store = await self.make()
        await store.admit(send_message())

        for _ in range(3 * MAX_QUICK_CLAIMS):
            await store.release("s", (await claim_session(store)).epoch)
        old = await claim_session(store)
        for _ in range(MAX_QUICK_CLAIMS - 1):
            await claim_session(store)
        await store.release("s", old.epoch)  # it was superseded, and cannot release
        with pytest.raises(SessionQuarantined):
            await store.claim("s", NOON)

    async def test_a_session_says_which_agent_it_waits_for_until_something_happens_in_it(self) -> None:
        store = await self.make()
        await store.admit(send_message())
        await store.release("s", (await claim_session(store)).epoch, awaited_agent="billing")
        assert (await store.info("s")).awaited_agent == "billing"

        await store.admit(send_message("k2", turn="t2"))  # a new command may change it
        assert (await store.info("s")).awaited_agent == ""
        await store.release("s", (await claim_session(store)).epoch, awaited_agent="billing")
        claim = await claim_session(store)
        assert claim.info.awaited_agent == "billing"
        await store.append("s", 0, turn_started_events(), claim.epoch)
        assert (await store.info("s")).awaited_agent == ""

        await store.release("s", claim.epoch - 1, awaited_agent="billing")  # it was superseded
        assert (await store.info("s")).awaited_agent == ""

    # Sessions without a driver
    # --------------------------------------------------------------------------------------

    async def test_of_a_session_that_nobody_drives_one_is_told(self) -> None:
        store = await self.make()
        await store.admit(send_message())

        assert await store.overdue(NOON, NOON + 10) == []  # it was claimed just then
        assert await store.overdue(NOON + 5, NOON + 10) == ["s"]
        assert await store.overdue(NOON + 5, NOON + 10) == []
        assert await store.overdue(NOON + 15, NOON + 20) == ["s"]
        await claim_session(store, NOON + 30)
        assert await store.overdue(NOON + 25, NOON + 35) == []

    async def test_nobody_is_told_of_a_session_that_only_waits_until_it_is_due(self) -> None:
        store = await self.make_waiting(expires=NOON + 60)

        assert await store.overdue(NOON + 59, NOON + 59) == []
        assert await store.overdue(NOON + 60, NOON + 60) == ["s"]

    async def test_of_one_that_is_stuck_somebody_is_told_when_it_has_its_next_try(self) -> None:
        store = await self.quarantined()

        assert await store.overdue(NOON + 60, NOON + 60) == []
        assert await store.overdue(NOON + QUARANTINE_SECONDS, NOON + QUARANTINE_SECONDS) == ["s"]
        await claim_session(store, NOON + QUARANTINE_SECONDS + 1)
        with pytest.raises(SessionQuarantined) as again:
            await store.claim("s", NOON + QUARANTINE_SECONDS + 2)
        assert again.value.retry_at == 0.0  # it was its one retry

    # Copies and erased sessions
    # ---------------------------------------------------------------------------------------


class ClaimDirectoryContract(ClaimSetup):
    """Claims of sessions that were imported or erased."""

    async def test_a_session_made_from_the_log_of_another_goes_on_where_that_one_was(self) -> None:
        store = await self.make_waiting(expires=NOON + 60)
        log = await store.events("s")

        await store.restore("copy", "ada", [entry.event for entry in log])

        assert await store.events("copy") == log
        assert await store.tree("copy") == await store.tree("s")
        assert await store.path("copy", "t.out") == await store.path("s", "t.out")
        assert [row.gate.id for row in await store.gates("copy")] == ["t.gate"]
        assert replace(await store.info("copy"), id="s", tenant="local") == await store.info("s")
        assert (await store.info("copy")).tenant == "ada"
        assert (await store.admit(replace(answer_gate(), session="copy", tenant="ada"))).is_new
        assert (await store.admit(Cancel(key="c", session="copy", tenant="ada", turn="t"))).is_new
        assert await store.claim("copy", NOON) is not None
        assert await store.append("copy", len(log), turn_ended_events()) == len(log) + 2
        with pytest.raises(KeyConflict):
            await store.restore("s", "local", [entry.event for entry in log])

    async def test_of_an_erased_session_only_its_name_stays(self) -> None:
        store = await self.make_waiting()
        with pytest.raises(SessionBusy):
            await store.erase("s")
        await store.append("s", 6, turn_ended_events())

        await store.erase("s")

        for read in (store.inbox, store.events, store.head, store.info, store.open_turns, store.tree, store.gates):
            with pytest.raises(UnknownSession):
                await read("s")
        with pytest.raises(UnknownSession):
            await store.claim("s", NOON)
        with pytest.raises(UnknownSession):
            await store.append("s", 8, turn_started_events("t2"))
        with pytest.raises(UnknownSession):
            await store.admit(send_message("again", turn="t3"))
        with pytest.raises(KeyConflict):
            await store.restore("s", "local", turn_ended_events())
        assert await store.sessions() == []
        with pytest.raises(UnknownSession):
            await store.erase("absent")
