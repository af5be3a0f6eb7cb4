"""Client calls contract of a store: one client claims a call at admission, for a limited time, and only it may
answer.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from everturn.core.commands import AnyCommand, Cancel
from everturn.core.events import CallClaimed, CommandDropped, Event, GateResolved
from everturn.core.gates import CallClaim
from everturn.core.store_ports import Receipt, Store
from everturn.errors import (
    AnsweredOtherwise,
    AnswerUnfit,
    ClaimedOtherwise,
    EverturnError,
    GateClosed,
    GateExpired,
    HashMismatch,
    KeyConflict,
    NotClaimed,
    Stale,
    UnknownGate,
    UnknownSession,
)
from everturn.testing.contracts.samples import (
    DENY,
    DONE,
    NOON,
    answer_gate,
    claim_call,
    client_call_events,
    gate_opened_events,
    send_message,
    turn_ended_events,
    turn_started_events,
)
from everturn.testing.contracts.store_setup import StoreSetup


def call_claimed(by: str = "tab", until: float = NOON + 60, command: str = "c") -> CallClaimed:
    """The event of a claim, as a driver writes it."""
    return CallClaimed(turn="t", at=NOON, gate="t.gate", claim=CallClaim(by, until), command=command)


async def visible_state(store: Store) -> Any:
    """Everything that a reader can see of the session."""
    return (
        await store.info("s"),
        await store.inbox("s"),
        await store.gates("s"),
        await store.recorded_trees("s"),
        await store.events("s"),
    )


class ClientSetup(StoreSetup):
    """How the suites of this module make a store."""

    async def make_offering(self, expires: float = 0.0, once: bool = True) -> Store:
        """A store with a turn that waits for a client."""
        store = await self.make()
        await store.admit(send_message())
        await store.append("s", 0, [*turn_started_events(), *client_call_events(expires=expires, once=once)])
        return store

    async def refused(self, store: Store, command: AnyCommand, error: type[EverturnError]) -> None:
        """Check that a command is refused, and changes nothing visible."""
        before = await visible_state(store)
        with pytest.raises(error):
            await store.admit(command)
        assert await visible_state(store) == before

    async def holder(self, store: Store) -> CallClaim | None:
        """The client that holds the call, as the open gate says."""
        [row] = await store.gates("s")
        assert row.claim == (await store.gates())[0].claim
        return row.claim


class ClientContract(ClientSetup):
    """One of many clients holds a call; a claim is stored at admission, before its event is in the log."""

    # One at a time --------------------------------------------------------------------------------------------------

    async def test_a_call_is_claimed_at_the_door_and_the_gate_says_by_whom(self) -> None:
        store = await self.make_offering()
        assert await self.holder(store) is None

        receipt = await store.admit(claim_call())

        assert receipt == Receipt(claim_call(), is_new=True)
        assert await self.holder(store) == CallClaim("tab", NOON + 60)
        assert await store.inbox("s") == [claim_call()]
        assert (await store.info("s")).is_awake

    async def test_of_two_clients_at_once_one_has_the_call(self) -> None:
        store = await self.make_offering(once=False)

        tries = [store.admit(claim_call(f"c{at}", by=f"tab{at}")) for at in range(5)]
        results = await asyncio.gather(*tries, return_exceptions=True)

        first = [result for result in results if isinstance(result, Receipt)]
        assert len(first) == 1
        assert sum(isinstance(result, ClaimedOtherwise) for result in results) == 4
        assert await store.inbox("s") == [first[0].command]

    async def test_the_same_claim_again_is_the_same_one_and_gives_no_more_time(self) -> None:
        store = await self.make_offering()
        await store.admit(claim_call())

        again = await store.admit(claim_call(at=NOON + 30))

        assert again == Receipt(claim_call(), is_new=False)
        assert await self.holder(store) == CallClaim("tab", NOON + 60)
        await self.refused(store, claim_call(by="other"), KeyConflict)

    async def test_a_client_has_more_time_when_it_claims_once_more(self) -> None:
        store = await self.make_offering()
        await store.admit(claim_call())

        await store.admit(claim_call("c2", at=NOON + 30))

        assert await self.holder(store) == CallClaim("tab", NOON + 90)
        await self.refused(store, claim_call("c3", by="other", at=NOON + 80), ClaimedOtherwise)

    async def test_when_its_time_is_over_another_may_have_what_can_be_repeated(self) -> None:
        store = await self.make_offering(once=False)
        await store.admit(claim_call())
        await self.refused(store, claim_call("c2", by="other", at=NOON + 59), ClaimedOtherwise)

        await store.admit(claim_call("c2", by="other", at=NOON + 60))

        assert await self.holder(store) == CallClaim("other", NOON + 120)
        await self.refused(store, answer_gate(resolution=DONE, at=NOON + 61), NotClaimed)

    async def test_what_must_not_be_repeated_no_other_may_have_and_not_the_same_again(self) -> None:
        store = await self.make_offering()
        await store.admit(claim_call())

        await self.refused(store, claim_call("c2", by="other", at=NOON + 1e6), ClaimedOtherwise)
        await self.refused(store, claim_call("c2", at=NOON + 60), ClaimedOtherwise)

    # What cannot be claimed -----------------------------------------------------------------------------------------

    async def test_a_claim_that_cannot_be_is_refused_by_its_kind_and_changes_nothing(self) -> None:
        store = await self.make_offering(expires=NOON + 600)

        for command, error in (
            (claim_call(gate="nobody"), UnknownGate),
            (claim_call(gate="no\0body"), UnknownGate),
            (claim_call(hash="other"), HashMismatch),
            (claim_call(by=""), AnswerUnfit),
            (claim_call(lease=0.0), AnswerUnfit),
            (claim_call(lease=1e9), AnswerUnfit),
            (claim_call(at=NOON + 600), GateExpired),
            (replace(claim_call(), session="absent"), UnknownSession),
            (replace(claim_call(), tenant="eve"), UnknownSession),
        ):
            await self.refused(store, command, error)

        assert await self.holder(store) is None

    async def test_what_a_person_is_asked_no_client_can_claim(self) -> None:
        store = await self.make()
        await store.admit(send_message())
        await store.append("s", 0, [*turn_started_events(), *gate_opened_events()])

        await self.refused(store, claim_call(), AnswerUnfit)

    async def test_a_call_cannot_be_claimed_once_it_is_answered_or_its_turn_ends_or_is_to_be_cancelled(self) -> None:
        answered, ending, cancelling = (
            await self.make_offering(),
            await self.make_offering(),
            await self.make_offering(),
        )
        await answered.admit(claim_call())
        await answered.admit(answer_gate(resolution=DONE))
        await ending.append("s", await ending.head("s"), turn_ended_events()[:1])
        await cancelling.admit(Cancel(key="stop", session="s", turn="t"))

        await self.refused(answered, claim_call("c2"), AnsweredOtherwise)
        for store in (ending, cancelling):
            await self.refused(store, claim_call("c2"), GateClosed)

    # Answers --------------------------------------------------------------------------------------------------------

    async def test_an_answer_is_taken_from_whoever_has_the_call_and_only_then(self) -> None:
        store = await self.make_offering()
        await self.refused(store, answer_gate(resolution=DONE), NotClaimed)
        await store.admit(claim_call())

        await self.refused(store, answer_gate(resolution=replace(DONE, claim="other")), NotClaimed)
        await self.refused(store, answer_gate(resolution=replace(DONE, claim="")), NotClaimed)
        await self.refused(store, answer_gate(resolution=DONE, at=NOON + 60), NotClaimed)
        assert (await store.admit(answer_gate(resolution=DONE, at=NOON + 59))).is_new

        assert not (await store.admit(answer_gate("b", resolution=DONE, at=NOON + 59))).is_new
        await self.refused(store, answer_gate("d", resolution=replace(DONE, result='"other"')), AnsweredOtherwise)
        assert await store.inbox("s") == [claim_call(), answer_gate(resolution=DONE, at=NOON + 59)]
        assert await store.gates("s") == []

    async def test_an_answer_is_taken_after_the_claim_was_written_down_as_well(self) -> None:
        store = await self.make_offering()
        await store.admit(claim_call())
        await store.append("s", await store.head("s"), [call_claimed()])
        assert await store.inbox("s") == []
        assert await self.holder(store) == CallClaim("tab", NOON + 60)

        assert (await store.admit(answer_gate(resolution=DONE))).is_new
        resolved = GateResolved(turn="t", at=NOON, gate="t.gate", call="t.call", resolution=DONE, command="a")
        await store.append("s", await store.head("s"), [resolved])

        assert await store.gates("s") == []
        assert not (await store.admit(answer_gate("b", resolution=DONE))).is_new

    async def test_an_answer_that_comes_after_a_cancel_is_refused(self) -> None:
        store = await self.make_offering()
        await store.admit(claim_call())
        await store.admit(Cancel(key="stop", session="s", turn="t"))

        await self.refused(store, answer_gate(resolution=DONE), GateClosed)

    async def test_anybody_may_say_that_it_is_not_to_be_done(self) -> None:
        store = await self.make_offering()
        await store.admit(claim_call())

        assert (await store.admit(answer_gate(resolution=DENY))).is_new

    # Admission and log
    # ----------------------------------------------------------------------------------------------

    async def test_what_the_door_has_given_since_is_not_undone_by_what_is_written_down_only_now(self) -> None:
        store = await self.make_offering(once=False)
        await store.admit(claim_call())
        await store.admit(claim_call("c2", by="other", at=NOON + 60))

        await store.append("s", await store.head("s"), [call_claimed()])  # of the first claim

        assert await self.holder(store) == CallClaim("other", NOON + 120)
        await self.refused(store, claim_call("c3", by="third", at=NOON + 61), ClaimedOtherwise)
        await store.append("s", await store.head("s"), [call_claimed("other", NOON + 120, "c2")])
        assert await self.holder(store) == CallClaim("other", NOON + 120)
        assert await store.inbox("s") == []

    async def test_of_a_claim_that_was_renewed_the_last_counts_when_both_are_written_down(self) -> None:
        store = await self.make_offering()
        await store.admit(claim_call())
        await store.admit(claim_call("c2", at=NOON + 30))

        await store.append("s", await store.head("s"), [call_claimed()])
        assert ((await store.info("s")).due, await self.holder(store)) == (NOON + 90, CallClaim("tab", NOON + 90))
        await store.append("s", await store.head("s"), [call_claimed(until=NOON + 90, command="c2")])

        assert ((await store.info("s")).due, await self.holder(store)) == (NOON + 90, CallClaim("tab", NOON + 90))

    async def test_a_claim_stands_when_an_append_is_refused(self) -> None:
        store = await self.make_offering()
        await store.admit(claim_call())
        head = await store.head("s")
        before = await visible_state(store)

        with pytest.raises(Stale):
            await store.append("s", head - 1, [call_claimed("other")])

        assert await visible_state(store) == before

    async def test_a_claim_that_is_not_acted_on_leaves_the_inbox(self) -> None:
        store = await self.make_offering()
        await store.admit(claim_call())

        dropped: list[Event] = [
            *turn_ended_events()[:1],
            CommandDropped(at=NOON, command="c", reason="its turn is over"),
        ]
        await store.append("s", await store.head("s"), dropped)

        assert await store.inbox("s") == await store.gates("s") == []

    # Due ------------------------------------------------------------------------------------------------------------

    async def test_a_client_that_does_not_come_back_is_something_to_do_where_no_other_may_follow(self) -> None:
        store = await self.make_offering(expires=NOON + 600)
        assert (await store.info("s")).due == NOON + 600
        await store.admit(claim_call())
        assert (await store.info("s")).due == NOON + 60
        await store.append("s", await store.head("s"), [call_claimed()])

        assert ((await store.info("s")).due, (await store.info("s")).is_awake) == (NOON + 60, False)
        assert await store.claim("s", NOON + 59) is None
        assert await store.overdue(NOON + 59, NOON + 59) == []
        assert await store.overdue(NOON + 60, NOON + 60) == ["s"]
        assert await store.claim("s", NOON + 60) is not None

        await store.admit(claim_call("c2", at=NOON + 59))
        assert (await store.info("s")).due == NOON + 119
        await store.admit(answer_gate(resolution=DONE, at=NOON + 60))
        assert (await store.info("s")).due == 0.0

    async def test_where_another_may_follow_only_the_gate_is_due(self) -> None:
        store = await self.make_offering(expires=NOON + 600, once=False)
        await store.admit(claim_call())
        await store.append("s", await store.head("s"), [call_claimed()])

        assert (await store.info("s")).due == NOON + 600
        assert await store.claim("s", NOON + 60) is None

    async def test_no_client_has_a_call_longer_than_it_may_be_answered(self) -> None:
        store = await self.make_offering(expires=NOON + 30)

        await store.admit(claim_call())

        assert await self.holder(store) == CallClaim("tab", NOON + 30)


class ClientDirectoryContract(ClientSetup):
    """Client calls of sessions that were imported."""

    async def test_a_copy_knows_who_has_a_call(self) -> None:
        store = await self.make_offering()
        await store.admit(claim_call())
        await store.append("s", await store.head("s"), [call_claimed()])

        await store.restore("copy", "local", [entry.event for entry in await store.events("s")])

        [row] = await store.gates("copy")
        assert row.claim == CallClaim("tab", NOON + 60)
        assert (await store.info("copy")).due == NOON + 60
