"""The suites about lists and accounts notice stores that do not keep them."""

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from everturn.core.commands import AnyCommand, Send
from everturn.core.events import Event
from everturn.core.gate_rows import GateRow
from everturn.core.options import Spent
from everturn.core.store_ports import ANY_SESSION, Receipt, SessionFilter, SessionInfo, Store
from everturn.core.tenants.accounts import (
    Accounts,
    AuditRecord,
    ConversationFingerprint,
    Credential,
    KnownCredential,
    append_to_chain,
)
from everturn.core.tenants.sharing import Reader
from everturn.errors import EverturnError
from everturn.stores.accounts import MemoryAccounts
from everturn.stores.memory import MemoryStore
from everturn.testing.contracts import AccountsContract, StoreContract

Before = tuple[float, str] | None


class ListsByName(MemoryStore):
    async def session_page(
        self,
        tenant: str,
        *,
        limit: int = 50,
        before: Before = None,
        since: float = 0.0,
        where: SessionFilter = ANY_SESSION,
        reader: Reader | None = None,
    ) -> list[SessionInfo]:
        return sorted(
            await super().session_page(tenant, limit=limit, before=before, since=since), key=lambda info: info.id
        )


class PagesByTimeAlone(MemoryStore):
    async def session_page(
        self,
        tenant: str,
        *,
        limit: int = 50,
        before: Before = None,
        since: float = 0.0,
        where: SessionFilter = ANY_SESSION,
        reader: Reader | None = None,
    ) -> list[SessionInfo]:
        return await super().session_page(tenant, limit=limit, before=before and (before[0], ""), since=since)


class ListsSubTurns(MemoryStore):
    async def session_page(
        self,
        tenant: str,
        *,
        limit: int = 50,
        before: Before = None,
        since: float = 0.0,
        where: SessionFilter = ANY_SESSION,
        reader: Reader | None = None,
    ) -> list[SessionInfo]:
        return [info for info in await self.sessions() if info.tenant == tenant]


class ReplacesAPersonsTitle(MemoryStore):
    async def append(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
        self._session(session).tree.is_renamed = False
        return await super().append(session, after, events, epoch)


class MovesWhatIsRenamed(MemoryStore):
    async def admit(self, command: AnyCommand) -> Receipt:
        receipt = await super().admit(command)
        self._session(command.session).moved = command.at
        return receipt


class IgnoresFilters(MemoryStore):
    async def session_page(
        self,
        tenant: str,
        *,
        limit: int = 50,
        before: Before = None,
        since: float = 0.0,
        where: SessionFilter = ANY_SESSION,
        reader: Reader | None = None,
    ) -> list[SessionInfo]:
        where = SessionFilter(archived=where.archived, organized_since=where.organized_since)
        return await super().session_page(tenant, limit=limit, before=before, since=since, where=where)


class MovesWithEveryStep(MemoryStore):
    async def append(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
        head = await super().append(session, after, events, epoch)
        self._session(session).moved = events[-1].at
        return head


class IsWhosLast(MemoryStore):
    async def admit(self, command: AnyCommand) -> Receipt:
        receipt = await super().admit(command)
        if isinstance(command, Send):
            self._session(command.session).by = command.options.by
        return receipt


class BelievesWhoseSubTurnItWas(MemoryStore):
    async def restore(self, session: str, tenant: str, events: Sequence[Event]) -> None:
        await super().restore(session, tenant, events)
        self._session(session).parent = "top"


class LetsItBeTogether(MemoryStore):
    async def admit(self, command: AnyCommand) -> Receipt:
        open_turns = getattr(self._sessions.get(command.session), "open_turns", None)
        is_sent = isinstance(command, Send) and not open_turns  # it overlooks what is only asked for
        return await super().admit(replace(command, alone=False) if is_sent else command)


class RefusesRepeats(MemoryStore):
    async def admit(self, command: AnyCommand) -> Receipt:
        row = self._sessions.get(command.session)
        if isinstance(command, Send) and command.alone and row is not None and row.is_taken:
            raise EverturnError("busy")
        return await super().admit(command)


class ShowsEverybodysGates(MemoryStore):
    async def gates(self, session: str | None = None, *, tenant: str | None = None) -> list[GateRow]:
        return await super().gates(session)


class AddsUpByDayAlone(MemoryStore):
    async def usage_by_day(self, tenant: str, since: float = 0.0) -> list[tuple[int, str, Spent]]:
        return [(day, "", spent) for day, _, spent in await super().usage_by_day(tenant, since)]


class CountsEverybodysUse(MemoryStore):
    async def usage_by_day(self, tenant: str, since: float = 0.0) -> list[tuple[int, str, Spent]]:
        return await super().usage_by_day("local", since)


class MentionsItselfAlone(MemoryStore):
    async def refers_to_blob(self, session: str, blob: str) -> bool:
        return blob in self._session(session).mentions


class MentionsAcrossTenants(MemoryStore):
    async def refers_to_blob(self, session: str, blob: str) -> bool:
        self._session(session)
        return any(blob in row.mentions for row in self._sessions.values())


class ForgetsWhatLogsMention(MemoryStore):
    async def restore(self, session: str, tenant: str, events: Sequence[Event]) -> None:
        await super().restore(session, tenant, events)
        self._session(session).mentions.clear()


class UsesLinksTwice(MemoryAccounts):
    async def use_link(self, hash: str, now: float) -> KnownCredential | None:
        known = await self.find_credential(hash)
        await asyncio.sleep(0)
        return None if known is None or known.credential.revoked else await super().use_link(hash, now) or known


class UsesKeysAsLinks(MemoryAccounts):
    async def use_link(self, hash: str, now: float) -> KnownCredential | None:
        return await super().use_link(hash, now) or await self.find_credential(hash)


class RevokesForAnybody(MemoryAccounts):
    async def revoke(self, tenant: str, credential: str, now: float) -> bool:
        found = self._credentials.get(credential)
        return found is not None and await super().revoke(found.tenant, credential, now)


class RevokesAgain(MemoryAccounts):
    async def revoke(self, tenant: str, credential: str, now: float) -> bool:
        await super().revoke(tenant, credential, now)
        return credential in self._credentials


class TakesTheLast(MemoryAccounts):
    async def put_credential(self, credential: Credential) -> None:
        self._credentials[credential.id] = credential
        self._by_hash[credential.hash] = credential.id


class HasASecretForEach(MemoryAccounts):
    async def secret(self, name: str) -> bytes:
        return os.urandom(32)


class ForksTheChain(MemoryAccounts):
    async def append_audit(self, record: AuditRecord) -> AuditRecord:
        chain = self._audit.setdefault(record.tenant, [])
        last = chain[-1] if chain else None
        await asyncio.sleep(0)
        chain.append(append_to_chain(record, last))
        return chain[-1]


class ChainsAllTenants(MemoryAccounts):
    async def append_audit(self, record: AuditRecord) -> AuditRecord:
        noted = await super().append_audit(replace(record, tenant="all"))
        return replace(noted, tenant=record.tenant)


class MarksForAll(MemoryAccounts):
    async def fingerprint(self, tenant: str, hash: str) -> ConversationFingerprint | None:
        return next((mark for (_, name), mark in self._fingerprints.items() if name == hash), None)


BROKEN: list[tuple[Callable[[], Any], str]] = [
    (ListsByName, "test_pages_go_from_the_one_touched_last_to_the_first_and_leave_none_out"),
    (PagesByTimeAlone, "test_pages_go_from_the_one_touched_last_to_the_first_and_leave_none_out"),
    (ListsSubTurns, "test_a_session_of_a_sub_turn_knows_whose_it_is_and_is_in_no_list"),
    (ListsSubTurns, "test_a_list_can_begin_at_a_time_and_erased_sessions_are_in_none"),
    (MovesWithEveryStep, "test_a_list_shows_turns_that_begin_ask_and_end_and_not_each_of_their_steps"),
    (ReplacesAPersonsTitle, "test_a_title_that_a_person_gave_is_not_replaced"),
    (MovesWhatIsRenamed, "test_an_update_is_a_command_and_does_not_move_the_session_in_a_list"),
    (IgnoresFilters, "test_a_list_is_filtered_by_what_people_did_with_sessions"),
    (IsWhosLast, "test_a_session_knows_who_began_it"),
    (BelievesWhoseSubTurnItWas, "test_a_restored_session_is_what_its_log_says_but_never_anybodys_sub_turn"),
    (LetsItBeTogether, "test_what_is_sent_alone_is_refused_while_a_turn_is_open_or_asked_for"),
    (LetsItBeTogether, "test_of_many_that_are_sent_alone_at_once_one_is_admitted"),
    (RefusesRepeats, "test_what_is_sent_alone_is_refused_while_a_turn_is_open_or_asked_for"),
    (ShowsEverybodysGates, "test_a_tenants_gates_are_those_of_its_sessions"),
    (AddsUpByDayAlone, "test_what_was_used_is_added_up_by_day_and_agent"),
    (CountsEverybodysUse, "test_what_was_used_is_added_up_by_day_and_agent"),
    (MentionsItselfAlone, "test_a_session_mentions_the_blobs_it_and_its_sub_turns_speak_of"),
    (MentionsAcrossTenants, "test_a_session_mentions_the_blobs_it_and_its_sub_turns_speak_of"),
    (ForgetsWhatLogsMention, "test_an_event_mentions_blobs_too_and_so_does_a_restored_log"),
]
BROKEN_ACCOUNTS: list[tuple[Callable[[], Any], str]] = [
    (UsesLinksTwice, "test_of_fifty_who_use_a_link_at_once_one_has_it"),
    (UsesKeysAsLinks, "test_what_is_no_link_or_no_longer_one_cannot_be_used_and_stays_as_it_is"),
    (RevokesForAnybody, "test_a_credential_is_revoked_once_and_by_its_own_tenant"),
    (RevokesAgain, "test_a_credential_is_revoked_once_and_by_its_own_tenant"),
    (TakesTheLast, "test_a_credential_of_the_same_id_or_hash_is_refused_and_changes_nothing"),
    (TakesTheLast, "test_of_many_that_put_the_same_at_once_one_does"),
    (HasASecretForEach, "test_a_secret_is_made_once_and_is_the_same_for_all"),
    (ForksTheChain, "test_a_hundred_who_note_at_once_leave_no_gap_and_no_fork"),
    (ChainsAllTenants, "test_what_was_done_is_numbered_and_chained_in_each_tenant"),
    (MarksForAll, "test_a_mark_is_the_last_of_its_hash_in_its_tenant"),
]
CAUGHT = (AssertionError, EverturnError, pytest.fail.Exception)


@pytest.mark.parametrize(("broken", "test"), BROKEN, ids=lambda case: getattr(case, "__name__", ""))
async def test_a_store_that_is_broken_is_caught(broken: Callable[[], Store], test: str):
    class Suite(StoreContract):
        def __init__(self, kind: Callable[[], Store]) -> None:
            self.kind = kind

        async def make(self) -> Store:
            return self.kind()

    await getattr(Suite(MemoryStore), test)()
    with pytest.raises(CAUGHT):
        await getattr(Suite(broken), test)()


@pytest.mark.parametrize(("broken", "test"), BROKEN_ACCOUNTS, ids=lambda case: getattr(case, "__name__", ""))
async def test_accounts_that_are_broken_are_caught(broken: Callable[[], Accounts], test: str):
    class Suite(AccountsContract):
        def __init__(self, kind: Callable[[], Accounts]) -> None:
            self.kind = kind

        async def make(self) -> Accounts:
            return self.kind()

    await getattr(Suite(MemoryAccounts), test)()
    with pytest.raises(CAUGHT):
        await getattr(Suite(broken), test)()
