"""Usage contract of a store: counts steps, calls and tokens of every turn, on the account of the top-level turn."""

from __future__ import annotations

import pytest

from everturn.core.events import CallFinished, Event, LimitReached, StepInterrupted, StepStarted
from everturn.core.options import Budget, Lineage, Spent, TurnOptions
from everturn.core.parts import Output, Usage
from everturn.core.store_ports import Store, UsageRecord
from everturn.errors import Stale
from everturn.testing.contracts.samples import (
    NOON,
    PLAIN,
    call_requested_events,
    call_started_events,
    gate_opened_events,
    send_message,
    turn_ended_events,
    turn_started_events,
)
from everturn.testing.contracts.store_setup import StoreSetup

SOME = Usage(10, 2, 3, 1, 4, cost=0.5)


def subagent_turn_options(session: str = "s", turn: str = "t") -> TurnOptions:
    """The options of a sub-agent run."""
    return TurnOptions(lineage=Lineage(session, turn))


class UsageSetup(StoreSetup):
    """How the suites of this module make a store."""

    async def make_with_usage(self, *used: Event, options: TurnOptions = PLAIN) -> Store:
        """A store with a turn that has used something."""
        store = await self.make()
        await store.admit(send_message())
        await store.append("s", 0, [*turn_started_events(options=options), *used])
        return store

    async def add(self, store: Store, session: str, turn: str, options: TurnOptions, at: float = NOON) -> None:
        """Add a turn in a session of its own, with one step and one call."""
        await store.admit(send_message(session=session, turn=turn))
        await store.append(
            session,
            0,
            [
                *turn_started_events(turn, options=options),
                *call_requested_events(turn, SOME, at),
                *call_started_events(turn),
            ],
        )
        await store.append(session, 6, [*turn_ended_events(turn)])


class UsageContract(UsageSetup):
    """The usage after every append that ends a step or a turn; and when a turn has used up its time."""

    async def test_steps_calls_and_usage_are_counted_as_they_come(self) -> None:
        store = await self.make_with_usage()
        assert await store.spent(session="s") == Spent()
        events = [*call_requested_events(usage=SOME), *call_started_events()]
        await store.append("s", 2, events)
        assert (await store.spent(session="s")).usage == SOME
        assert (await store.spent(session="s")).steps == 1

        broken = StepInterrupted(turn="t", at=NOON, step=2, parts=(), finish="error", usage=Usage(1, 1))
        sub = Spent(7, 7, Usage(700, 70))  # is counted as that of the sub-agent run
        settled = CallFinished(turn="t", at=NOON, call="t.call", state="completed", output=Output(""), spent=sub)
        await store.append("s", 6, [settled, StepStarted(turn="t", at=NOON, step=2), broken])

        both = Spent(2, 1, SOME + Usage(1, 1))
        assert await store.spent(session="s") == both
        await store.append("s", 9, turn_ended_events())
        assert await store.spent(session="s") == await store.spent(tenant="local") == both

    async def test_many_turns_in_one_append_are_counted_each(self) -> None:
        first, second = (
            [*call_requested_events(usage=SOME), *call_started_events()],
            [*call_requested_events("t2", SOME), *call_started_events("t2")],
        )
        store = await self.make_with_usage(
            *first,
            *turn_ended_events(),
            *turn_started_events("t2", "t.out", command="k2"),
            *second,
            *turn_ended_events("t2"),
        )

        assert await store.spent(session="s") == Spent(2, 2, SOME + SOME)

    async def test_calls_of_a_turn_that_is_over_are_all_counted(self) -> None:
        store = await self.make_with_usage(*call_requested_events(usage=SOME))
        await store.append("s", 4, call_started_events())
        await store.append("s", 6, turn_ended_events())

        assert await store.spent(session="s") == Spent(1, 1, SOME)

    async def test_sub_turns_count_for_the_session_and_the_turn_at_the_top(self) -> None:
        store = await self.make_with_usage(*call_requested_events(usage=SOME), *call_started_events())
        await self.add(store, "sub", "t2", subagent_turn_options())
        await self.add(store, "deep", "t3", subagent_turn_options())
        await self.add(store, "other", "t4", subagent_turn_options("other's", "t5"))
        one_step = Spent(1, 1, SOME)
        await store.append("s", 6, turn_ended_events())

        assert await store.spent(session="s") == one_step + one_step + one_step
        assert await store.spent(top="t") == one_step + one_step
        assert await store.spent(session="sub") == Spent()  # it is on another account
        assert await store.spent(top="t2") == Spent()
        assert await store.spent(session="other's") == await store.spent(top="t5") == one_step
        assert await store.spent(session="nobody") == await store.spent(top="nobody") == Spent()

    async def test_a_tenants_turns_are_counted_that_moved_since(self) -> None:
        store = await self.make()
        await self.add(store, "a", "t1", PLAIN, NOON - 60)
        await store.admit(send_message(session="b", turn="t2"))
        await store.append("b", 0, [*turn_started_events("t2"), *call_requested_events("t2", SOME, NOON + 60)])

        assert (await store.spent(tenant="local")).steps == 2
        assert (await store.spent(tenant="local", since=NOON + 60)).steps == 1
        assert await store.spent(tenant="local", since=NOON + 61) == Spent()
        assert await store.spent(tenant="eve") == Spent()

    async def test_somebody_has_to_be_named(self) -> None:
        store = await self.make()

        with pytest.raises(TypeError):
            await store.spent()
        with pytest.raises(TypeError):
            await store.spent(session="s", tenant="local")

    async def test_an_append_that_is_refused_counts_nothing(self) -> None:
        store = await self.make_with_usage(*call_requested_events(usage=SOME))

        with pytest.raises(Stale):
            await store.append("s", 3, turn_ended_events())

        assert await store.spent(session="s") == Spent(1, 0, SOME)

    async def test_another_driver_goes_on_counting_where_the_first_one_was(self) -> None:
        store = await self.make_with_usage(*call_requested_events(usage=SOME), *call_started_events())
        claim = await store.claim("s", NOON)
        assert claim is not None

        settled = CallFinished(turn="t", at=NOON, call="t.call", state="completed", output=Output(""))
        await store.append("s", 6, [settled, *call_requested_events(usage=SOME, step=2)], claim.epoch)

        assert await store.spent(session="s") == Spent(2, 1, SOME + SOME)

    # Time -------------------------------------------------------------------------------------------------------------------

    async def test_a_turn_that_waits_is_due_when_its_time_is_used_up(self) -> None:
        for options in (
            TurnOptions(timeout=90, budget=Budget(seconds=60)),
            TurnOptions(timeout=90, lineage=Lineage("top", "t0", until=NOON + 60)),
            TurnOptions(timeout=90, budget=Budget(seconds=70), lineage=Lineage("top", "t0", until=NOON + 60)),
        ):
            store = await self.make_with_usage(*gate_opened_events(), options=options)

            info = await store.info("s")
            assert (info.is_awake, info.due) == (False, NOON + 60)
            assert [awake.id for awake in await store.sessions(awake=True)] == ["s"]
            assert await store.overdue(NOON + 59, NOON + 59) == []
            assert await store.claim("s", NOON + 59) is None
            assert await store.overdue(NOON + 60, NOON + 60) == ["s"]
            assert await store.claim("s", NOON + 60) is not None

    async def test_a_turn_that_has_reached_a_limit_is_due_when_it_must_end(self) -> None:
        reached = LimitReached(turn="t", at=NOON, limit="seconds", scope="turn", text="")
        for timeout, due in ((0.0, 0.0), (90.0, NOON + 90)):
            store = await self.make_with_usage(
                *gate_opened_events(), options=TurnOptions(timeout=timeout, budget=Budget(seconds=60))
            )
            await store.append("s", 6, [reached])

            assert (await store.info("s")).due == due
            await store.append("s", 7, turn_ended_events())
            assert (await store.info("s")).due == 0.0


class UsageDirectoryContract(UsageSetup):
    """Usage of sessions that were imported or erased."""

    async def test_a_request_outside_of_a_turn_counts_once_for_its_tenant_user_and_model(self) -> None:
        store = await self.make_with_usage()
        record = UsageRecord("audio_1", "local", "ada", "ear", NOON, Spent(1, 0, Usage(7, 3, cost=0.5)))
        for _ in range(2):
            await store.record_usage(record)
        await store.record_usage(UsageRecord("audio_2", "other", "ada", "ear", NOON, Spent(1)))
        assert await store.spent(tenant="local") == record.spent == await store.user_spent("local", "ada", NOON - 1)
        assert await store.spent(session="s") == Spent()
        assert await store.usage_by_user("local") == [("ada", "ear", "", record.spent)]
        assert await store.usage_by_day("local") == [(int(NOON // 86_400), "", record.spent)]
        assert await store.user_spent("local", "ada", NOON + 1) == Spent()

    async def test_what_was_used_stays_when_its_session_is_erased(self) -> None:
        store = await self.make_with_usage(*call_requested_events(usage=SOME), *turn_ended_events())
        await store.erase("s")

        assert await store.spent(tenant="local") == await store.spent(session="s") == Spent(1, 0, SOME)

    async def test_a_session_made_from_a_log_has_used_nothing_and_goes_on_its_own_account(self) -> None:
        store = await self.make_with_usage()
        await self.add(store, "sub", "t2", subagent_turn_options())
        log = [entry.event for entry in await store.events("sub")]
        await store.restore("copy", "eve", log)
        less = Usage(-(10**9), -(10**9), cost=-1e6)
        await store.restore(
            "forged",
            "local",
            [
                *turn_started_events("t3"),
                *call_requested_events("t3", less),
                *call_started_events("t3"),
                *turn_ended_events("t3"),
            ],
        )
        await store.restore("begun", "eve", log[:2])  # before its first step
        await store.append("begun", 2, call_requested_events("t2", SOME))
        one_step = Spent(1, 1, SOME)

        assert (
            await store.spent(session="s")
            == await store.spent(top="t")
            == await store.spent(tenant="local")
            == one_step
        )
        assert await store.spent(session="copy") == await store.spent(session="forged") == Spent()
        assert [spent for _, _, spent in await store.usage_by_day("local")] == [one_step]
        assert await store.spent(session="begun") == await store.spent(tenant="eve") == Spent(1, 0, SOME)
