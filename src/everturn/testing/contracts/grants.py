"""Grants contract of a store: where a remembered answer applies, for how long, and who may revoke it."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from everturn.core.commands import Revoke, Send
from everturn.core.events import CallFinished, CommandDropped, Event, GateOpened, GateResolved, GrantRevoked
from everturn.core.parts import Output
from everturn.core.store_ports import Store
from everturn.errors import EverturnError, Stale, UnknownGrant, UnknownSession
from everturn.testing.contracts.samples import (
    NOON,
    call_requested_events,
    call_started_events,
    gate_opened_events,
    gate_resolved_with_grant,
    send_message,
    turn_ended_events,
    turn_started_events,
)
from everturn.testing.contracts.store_setup import StoreSetup


def revoke(key: str = "r", session: str = "s", grant: str = "t.gate", tenant: str = "local") -> Revoke:
    """The command that revokes a grant."""
    return Revoke(key=key, session=session, tenant=tenant, at=NOON, grant=grant, by="ada")


def revoked(grant: str = "t.gate", command: str = "") -> list[Event]:
    """The event of a revocation."""
    return [GrantRevoked(at=NOON, grant=grant, by="ada", command=command)]


class GrantSetup(StoreSetup):
    """How the suites of this module make a store."""

    async def begin(self, store: Store, session: str, turn: str, tenant: str = "local") -> None:
        """Start a turn in a session of its own that waits for a person."""
        message: Send = replace(send_message(session=session, turn=turn), tenant=tenant)
        await store.admit(message)
        await store.append(session, 0, [*turn_started_events(turn), *gate_opened_events(turn)])

    async def make_with_grant(self, where: str = "s", expires: float = 0.0) -> Store:
        """A store with a grant of session `s`; beside it are `top`, and `eve` of another tenant."""
        store = await self.make()
        await self.begin(store, "s", "t")
        await self.begin(store, "top", "t2")
        await self.begin(store, "eve", "t3", tenant="eve")
        await store.append("s", 6, [gate_resolved_with_grant(where, expires=expires)])
        return store

    async def applicable_grants(self, store: Store, session: str = "s", now: float = NOON) -> list[str]:
        """The ids of the grants that apply."""
        return [grant.id for grant in await store.grants(session, now)]


class GrantContract(GrantSetup):
    """Grants are written with their event, and are visible where they apply and nowhere else."""

    async def test_a_grant_is_read_as_it_was_written_where_it_holds_and_nowhere_else(self) -> None:
        store = await self.make_with_grant("s")
        event = gate_resolved_with_grant("s")
        assert isinstance(event, GateResolved)

        assert await store.grants("s", NOON) == [event.grant]
        assert await self.applicable_grants(store, "top") == await self.applicable_grants(store, "eve") == []
        with pytest.raises(UnknownSession):
            await store.grants("absent", NOON)

    async def test_a_grant_that_was_made_in_a_sub_turn_holds_at_the_top(self) -> None:
        store = await self.make_with_grant("top")

        assert await self.applicable_grants(store, "top") == ["t.gate"]
        assert await self.applicable_grants(store, "s") == []

    async def test_a_grant_for_everywhere_holds_in_all_sessions_of_its_tenant(self) -> None:
        store = await self.make_with_grant("")

        assert await self.applicable_grants(store, "s") == await self.applicable_grants(store, "top") == ["t.gate"]
        assert await self.applicable_grants(store, "eve") == []

    async def test_a_grant_for_a_session_of_another_tenant_does_not_hold_there(self) -> None:
        store = await self.make_with_grant("eve")

        assert await self.applicable_grants(store, "eve") == []

    async def test_a_grant_holds_until_it_expires(self) -> None:
        store = await self.make_with_grant("s", expires=NOON + 60)

        assert await self.applicable_grants(store, now=NOON + 59) == ["t.gate"]
        assert await self.applicable_grants(store, now=NOON + 60) == []

    async def test_grants_come_oldest_first(self) -> None:
        store = await self.make_with_grant("s")
        await store.append("top", 6, [gate_resolved_with_grant("", "t2", at=NOON - 60)])

        assert await self.applicable_grants(store) == ["t2.gate", "t.gate"]

    async def test_an_append_that_is_refused_remembers_nothing(self) -> None:
        store = await self.make_with_grant("s")

        with pytest.raises(Stale):
            await store.append("top", 5, [gate_resolved_with_grant("", "t2")])
        with pytest.raises(Stale):
            await store.append("top", 5, revoked())

        assert await self.applicable_grants(store) == ["t.gate"]
        assert await self.applicable_grants(store, "top") == []

    # Revocation
    # -----------------------------------------------------------------------------------------------------------

    async def test_a_revoked_grant_holds_no_more_and_the_command_stays_until_an_event_answers_it(self) -> None:
        store = await self.make_with_grant("")

        assert (await store.admit(revoke())).is_new

        assert await self.applicable_grants(store) == await self.applicable_grants(store, "top") == []
        assert await store.inbox("s") == [revoke()]
        await store.append("s", 7, revoked(command="r"))
        assert await store.inbox("s") == []
        assert await self.applicable_grants(store) == []

    async def test_a_revoked_grant_may_be_one_nobody_asked_to_revoke(self) -> None:
        store = await self.make_with_grant("")

        await store.append("top", 6, revoked())

        assert await self.applicable_grants(store) == []

    async def test_a_revoke_is_admitted_once_and_of_a_grant_there_is_one(self) -> None:
        store = await self.make_with_grant()
        await store.admit(revoke())

        assert not (await store.admit(revoke())).is_new
        with pytest.raises(UnknownGrant):
            await store.admit(revoke("again"))
        await store.append("s", 7, revoked(command="r"))
        assert not (await store.admit(revoke())).is_new
        with pytest.raises(UnknownGrant):
            await store.admit(revoke("again"))
        assert await store.inbox("s") == []

    async def test_of_two_who_revoke_at_once_one_is_the_first(self) -> None:
        store = await self.make_with_grant("")

        both = await asyncio.gather(store.admit(revoke("a")), store.admit(revoke("b", "top")), return_exceptions=True)

        assert sorted(isinstance(result, UnknownGrant) for result in both) == [False, True]
        assert len(await store.inbox("s")) + len(await store.inbox("top")) == 1

    async def test_a_grant_is_revoked_from_where_it_was_made_and_from_where_it_holds(self) -> None:
        for session in ("s", "top"):
            store = await self.make_with_grant("top")
            await store.admit(revoke(session=session))
            head = await store.head(session)
            await store.append(session, head, revoked(command="r"))

            assert await self.applicable_grants(store, "top") == []
            assert await store.inbox(session) == []

    async def test_what_is_no_grant_here_cannot_be_revoked_and_nothing_is_kept(self) -> None:
        store = await self.make_with_grant("s")
        refused: list[tuple[Revoke, type[EverturnError]]] = [
            (revoke(grant="nothing"), UnknownGrant),
            (revoke(session="top"), UnknownGrant),
            (revoke(session="eve", tenant="eve"), UnknownGrant),
            (revoke(tenant="eve"), UnknownSession),
            (revoke(session="absent"), UnknownSession),
        ]

        for command, error in refused:
            with pytest.raises(error):
                await store.admit(command)
        await store.append("top", 6, revoked())  # neither does an event of a session in which it does not apply
        await store.append("eve", 6, revoked())

        assert await store.inbox("s") == await store.inbox("top") == await store.inbox("eve") == []
        assert await self.applicable_grants(store) == ["t.gate"]

    async def test_a_grant_that_has_expired_can_still_be_revoked(self) -> None:
        store = await self.make_with_grant("s", expires=NOON - 60)

        assert (await store.admit(revoke())).is_new

    async def test_a_revoke_that_was_dropped_is_no_longer_in_the_inbox(self) -> None:
        store = await self.make_with_grant()
        await store.admit(revoke())

        await store.append("s", 7, [CommandDropped(at=NOON, command="r", reason="")])

        assert await store.inbox("s") == []

    # Copies and erased sessions
    # -------------------------------------------------------------------------------------------

    # Gates of every kind ----------------------------------------------------------------------------------------------------

    async def test_a_gate_of_any_kind_is_kept_as_it_is_and_closed_when_its_call_is_settled(self) -> None:
        output = Output("secret", private="0" * 64, metadata={"a": [1]})
        settled = CallFinished(turn="t", at=NOON, call="t.call", state="withheld", output=Output("withheld"))
        for kind in ("call", "result", "loop", "manual"):
            store = await self.make()
            await store.admit(send_message())
            [*_, opened, _] = gate_opened_events(kind=kind)
            assert isinstance(opened, GateOpened)
            before = call_started_events() if kind == "result" else []
            gate = replace(opened.gate, output=output if kind == "result" else None)
            await store.append(
                "s", 0, [*turn_started_events(), *call_requested_events(), *before, replace(opened, gate=gate)]
            )

            assert [row.gate for row in await store.gates("s")] == [gate]
            await store.append("s", await store.head("s"), [settled])
            assert await store.gates("s") == await store.gates() == []


class GrantDirectoryContract(GrantSetup):
    """Grants across sessions: lists of a tenant, and sessions that were imported or erased."""

    async def test_all_grants_of_a_tenant_are_found_with_the_sessions_they_were_given_in_newest_first(self) -> None:
        store = await self.make_with_grant("s", expires=NOON + 60)
        await store.append("top", 6, [gate_resolved_with_grant("", "t2", at=NOON - 60)])
        await store.append("eve", 6, [gate_resolved_with_grant("", "t3")])

        async def found(tenant: str, now: float = NOON, limit: int = 200) -> list[tuple[str, str]]:
            return [(origin, grant.id) for origin, grant in await store.tenant_grants(tenant, now, limit)]

        assert await found("local") == [("s", "t.gate"), ("top", "t2.gate")]
        assert await found("local", limit=1) == [("s", "t.gate")]
        assert await found("local", NOON + 60) == [("top", "t2.gate")]
        assert await found("eve") == [("eve", "t3.gate")]
        assert await found("nobody") == []

    async def test_a_session_made_from_a_log_grants_nothing_to_itself_or_to_others(self) -> None:
        for where in ("s", "top", ""):
            store = await self.make_with_grant(where)
            log = [entry.event for entry in await store.events("s")]
            before = await store.grants("top", NOON)
            await store.restore("copy", "local", log)
            await store.restore("foreign", "eve", log)

            # A grant that applies everywhere applies in the copy too, and still belongs to the original.
            assert await self.applicable_grants(store, "copy") == ([] if where else ["t.gate"])
            assert await self.applicable_grants(store, "foreign") == await self.applicable_grants(store, "eve") == []
            assert await store.grants("top", NOON) == before

    async def test_what_a_log_says_was_revoked_takes_nothing_from_others(self) -> None:
        store = await self.make_with_grant("")
        log = [entry.event for entry in await store.events("s")]

        await store.restore("copy", "local", [*log, *revoked()])

        assert [grant.session for grant in await store.grants("copy", NOON)] == [""]  # that of the original
        assert await self.applicable_grants(store) == ["t.gate"]

    async def test_a_copy_has_nothing_to_revoke(self) -> None:
        store = await self.make_with_grant("s")
        await store.restore("copy", "local", [entry.event for entry in await store.events("s")])

        with pytest.raises(UnknownGrant):
            await store.admit(revoke(session="copy"))

        assert await self.applicable_grants(store, "s") == ["t.gate"]

    async def test_an_erased_session_takes_the_grants_with_it_that_it_made_or_that_hold_in_it(self) -> None:
        for erased in ("s", "top"):
            store = await self.make_with_grant("top")
            for session, turn in (("s", "t"), ("top", "t2")):
                await store.append(session, await store.head(session), turn_ended_events(turn))

            await store.erase(erased)

            left = "top" if erased == "s" else "s"
            assert await self.applicable_grants(store, left) == []
            with pytest.raises(UnknownGrant):
                await store.admit(revoke(session=left))
            with pytest.raises(UnknownSession):
                await store.grants(erased, NOON)
