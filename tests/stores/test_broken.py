"""The suites about grants, spending, clients and files notice stores that do not keep them."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from everturn.core.commands import AnyCommand, Cancel, ClaimCall, NotifyCall, Revert, Revoke
from everturn.core.events import CallClaimed, Event, GateResolved, GrantRevoked, TurnStarted
from everturn.core.gate_rows import GateRow
from everturn.core.gates import Grant
from everturn.core.options import Spent
from everturn.core.store_ports import Receipt, Store
from everturn.errors import EverturnError
from everturn.stores.memory import MemoryStore
from everturn.testing.contracts import StoreContract


class SharesWithEverybody(MemoryStore):
    async def grants(self, session: str, now: float) -> list[Grant]:
        return [grant for whose in ("local", "eve") for grant in self._totals.grants(session, whose, now)]


class ForgetsWhereItHolds(MemoryStore):
    async def append(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
        narrow = [
            replace(event, grant=replace(event.grant, session=session))
            if isinstance(event, GateResolved) and event.grant is not None
            else event
            for event in events
        ]
        return await super().append(session, after, narrow, epoch)


class NeverExpires(MemoryStore):
    async def grants(self, session: str, now: float) -> list[Grant]:
        return await super().grants(session, 0.0)


class RemembersWhatItRefuses(MemoryStore):
    async def append(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
        self._totals.take(session, self._session(session).tenant, events)
        return await super().append(session, after, events, epoch)


class RevokesWhatItLikes(MemoryStore):
    async def admit(self, command: AnyCommand) -> Receipt:
        if isinstance(command, Revoke):
            self._totals._revoke = lambda *args: True  # type: ignore[method-assign]
        return await super().admit(command)


class RevokesByNameAlone(MemoryStore):
    async def append(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
        head = await super().append(session, after, events, epoch)
        gone = {event.grant for event in events if isinstance(event, GrantRevoked)}
        books = self._totals
        books._grants = {place: grant for place, grant in books._grants.items() if place[1] not in gone}
        return head


class BelievesAnyLog(MemoryStore):
    async def restore(self, session: str, tenant: str, events: Sequence[Event]) -> None:
        take = self._totals.take
        self._totals.take = lambda *args, **_: take(*args)
        await super().restore(session, tenant, events)


class KeepsGrantsOfTheErased(MemoryStore):
    async def erase(self, session: str) -> None:
        self._totals.erase = lambda session: None
        await super().erase(session)


class LeavesSubTurns(MemoryStore):
    async def erase(self, session: str) -> None:
        self._totals.below = lambda session: []
        await super().erase(session)


class GoesByNames(MemoryStore):
    async def erase(self, session: str) -> None:
        self._totals.below = lambda session: list(self._sessions)
        await super().erase(session)


class CountsOnlyItself(MemoryStore):
    async def append(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
        head = await super().append(session, after, events, epoch)
        for event in events:
            if isinstance(event, TurnStarted):
                self._totals._used[session, event.turn].home = session
        return head


class CountsSinceEver(MemoryStore):
    async def spent(self, *, session: str = "", top: str = "", tenant: str = "", since: float = 0.0) -> Spent:
        return await super().spent(session=session, top=top, tenant=tenant)


class ForgetsWhatTheErasedUsed(MemoryStore):
    async def erase(self, session: str) -> None:
        await super().erase(session)
        self._totals._used.clear()


class KnowsOnlyTimeouts(MemoryStore):
    async def append(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
        head = await super().append(session, after, events, epoch)
        self._session(session).deadlines.clear()
        return head


class ForgetsWhoHasIt(MemoryStore):
    async def admit(self, command: AnyCommand) -> Receipt:
        receipt = await super().admit(command)
        if isinstance(command, ClaimCall):
            self._sessions["s"].gates[command.gate].claim = None
        return receipt


class TakesItFromOthers(MemoryStore):
    async def admit(self, command: AnyCommand) -> Receipt:
        if isinstance(command, ClaimCall) and command.session in self._sessions:
            for row in self._sessions[command.session].gates.values():
                row.claim = None
        return await super().admit(command)


class OverlooksACancel(MemoryStore):
    async def admit(self, command: AnyCommand) -> Receipt:
        if isinstance(command, ClaimCall):
            inbox = self._sessions["s"].inbox
            cancels = {key: inbox.pop(key) for key, queued in list(inbox.items()) if isinstance(queued, Cancel)}
            try:
                return await super().admit(command)
            finally:
                inbox.update(cancels)
        return await super().admit(command)


class BelievesTheLogMore(MemoryStore):
    async def append(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
        self._session(session).claims.clear()
        return await super().append(session, after, events, epoch)


class WakesWithAClaim(MemoryStore):
    async def append(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
        head = await super().append(session, after, events, epoch)
        if any(isinstance(event, CallClaimed) for event in events):
            self._session(session).open_turns["t"] = False
        return head


class ShowsNoClaims(MemoryStore):
    async def gates(self, session: str | None = None, *, tenant: str | None = None) -> list[GateRow]:
        return [GateRow(row.gate, row.opened) for row in await super().gates(session, tenant=tenant)]


class RevertsAtAnyTime(MemoryStore):
    async def admit(self, command: AnyCommand) -> Receipt:
        if isinstance(command, Revert) and (row := self._sessions.get(command.session)) is not None:
            turns, row.open_turns = row.open_turns, {}
            try:
                return await super().admit(command)
            finally:
                row.open_turns = turns
        return await super().admit(command)


class StirsWhatHasNotBegun(MemoryStore):
    async def admit(self, command: AnyCommand) -> Receipt:
        if isinstance(command, NotifyCall) and command.session in self._sessions:
            self._sessions[command.session].by_turn.setdefault(command.turn, [])
        return await super().admit(command)


class KnowsFoldersFromAnyLog(MemoryStore):
    async def restore(self, session: str, tenant: str, events: Sequence[Event]) -> None:
        await super().restore(session, tenant, ())
        await self.append(session, 0, events)


class KeepsTheFirstTree(MemoryStore):
    async def append(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
        before = dict(self._session(session).roots)
        head = await super().append(session, after, events, epoch)
        self._session(session).roots.update(before)
        return head


CANCELLED = "test_a_call_cannot_be_claimed_once_it_is_answered_or_its_turn_ends_or_is_to_be_cancelled"

BROKEN: list[tuple[Callable[[], Any], str]] = [
    (SharesWithEverybody, "test_a_grant_for_a_session_of_another_tenant_does_not_hold_there"),
    (SharesWithEverybody, "test_a_grant_for_everywhere_holds_in_all_sessions_of_its_tenant"),
    (ForgetsWhereItHolds, "test_a_grant_that_was_made_in_a_sub_turn_holds_at_the_top"),
    (NeverExpires, "test_a_grant_holds_until_it_expires"),
    (RemembersWhatItRefuses, "test_an_append_that_is_refused_remembers_nothing"),
    (RemembersWhatItRefuses, "test_steps_calls_and_usage_are_counted_as_they_come"),
    (RevokesWhatItLikes, "test_a_revoke_is_admitted_once_and_of_a_grant_there_is_one"),
    (RevokesWhatItLikes, "test_what_is_no_grant_here_cannot_be_revoked_and_nothing_is_kept"),
    (RevokesByNameAlone, "test_what_is_no_grant_here_cannot_be_revoked_and_nothing_is_kept"),
    (BelievesAnyLog, "test_a_session_made_from_a_log_grants_nothing_to_itself_or_to_others"),
    (BelievesAnyLog, "test_what_a_log_says_was_revoked_takes_nothing_from_others"),
    (BelievesAnyLog, "test_a_session_made_from_a_log_has_used_nothing_and_goes_on_its_own_account"),
    (LeavesSubTurns, "test_an_erased_session_takes_those_of_its_sub_turns_with_it"),
    (LeavesSubTurns, "test_an_erased_sub_turn_takes_those_below_it_with_it_and_leaves_those_above"),
    (GoesByNames, "test_a_log_that_calls_itself_that_of_a_sub_turn_is_not_erased_with_another"),
    (GoesByNames, "test_an_erased_session_takes_those_of_its_sub_turns_with_it"),
    (KeepsGrantsOfTheErased, "test_an_erased_session_takes_the_grants_with_it_that_it_made_or_that_hold_in_it"),
    (CountsOnlyItself, "test_sub_turns_count_for_the_session_and_the_turn_at_the_top"),
    (CountsSinceEver, "test_a_tenants_turns_are_counted_that_moved_since"),
    (ForgetsWhatTheErasedUsed, "test_what_was_used_stays_when_its_session_is_erased"),
    (ForgetsWhoHasIt, "test_a_call_is_claimed_at_the_door_and_the_gate_says_by_whom"),
    (ForgetsWhoHasIt, "test_of_two_clients_at_once_one_has_the_call"),
    (ForgetsWhoHasIt, "test_an_answer_is_taken_from_whoever_has_the_call_and_only_then"),
    (TakesItFromOthers, "test_of_two_clients_at_once_one_has_the_call"),
    (TakesItFromOthers, "test_when_its_time_is_over_another_may_have_what_can_be_repeated"),
    (TakesItFromOthers, "test_what_must_not_be_repeated_no_other_may_have_and_not_the_same_again"),
    (OverlooksACancel, CANCELLED),
    (BelievesTheLogMore, "test_what_the_door_has_given_since_is_not_undone_by_what_is_written_down_only_now"),
    (BelievesTheLogMore, "test_of_a_claim_that_was_renewed_the_last_counts_when_both_are_written_down"),
    (WakesWithAClaim, "test_where_another_may_follow_only_the_gate_is_due"),
    (ShowsNoClaims, "test_a_copy_knows_who_has_a_call"),
    (RevertsAtAnyTime, "test_files_are_not_reverted_while_a_turn_is_open_or_asked_for"),
    (StirsWhatHasNotBegun, "test_a_call_is_stirred_in_a_turn_that_has_begun"),
    (KnowsFoldersFromAnyLog, "test_a_log_from_elsewhere_says_nothing_of_folders_here"),
    (KeepsTheFirstTree, "test_for_each_root_the_tree_that_was_recorded_last_is_known"),
    (KeepsTheFirstTree, "test_a_revert_stands_in_the_inbox_until_it_is_acted_on_or_dropped"),
    (KnowsOnlyTimeouts, "test_a_turn_that_waits_is_due_when_its_time_is_used_up"),
    (KnowsOnlyTimeouts, "test_a_turn_that_has_reached_a_limit_is_due_when_it_must_end"),
]


@pytest.mark.parametrize(("broken", "test"), BROKEN, ids=lambda case: getattr(case, "__name__", ""))
async def test_a_store_that_is_broken_is_caught(broken: Callable[[], Store], test: str):
    class Suite(StoreContract):
        async def make(self) -> Store:
            return broken()

    class Sound(StoreContract):
        async def make(self) -> Store:
            return MemoryStore()

    await getattr(Sound(), test)()
    with pytest.raises((AssertionError, EverturnError, pytest.fail.Exception)):
        await getattr(Suite(), test)()
