"""Admission contract of a store: each command is admitted once, only for objects that exist, and only from their
tenant.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from msgspec.structs import replace

from everturn.core.commands import AnyCommand, Cancel, Delete, LateResult, ResolveGate, Select, Send
from everturn.core.events import GateResolved
from everturn.core.parts import Output, TextPart
from everturn.errors import (
    EverturnError,
    GateClosed,
    HashMismatch,
    KeyConflict,
    SessionBusy,
    UnknownGate,
    UnknownMessage,
    UnknownSession,
    UnknownTurn,
)
from everturn.testing.contracts.samples import (
    ALLOW,
    DENY,
    NOON,
    answer_gate,
    gate_opened_events,
    import_messages,
    messages_imported,
    send_message,
    turn_ended_events,
    turn_started_events,
)
from everturn.testing.contracts.store_setup import StoreSetup


class AdmissionContract(StoreSetup):
    """Admission of commands and answers: checked and stored in one transaction, before the sender gets a receipt."""

    async def test_a_command_is_admitted_once_however_often_it_comes(self) -> None:
        store = await self.make()

        first = await store.admit(send_message())
        again = await store.admit(send_message(turn="t2", at=NOON + 60))  # a retry makes new ids, a minute later

        assert (first.is_new, again.is_new) == (True, False)
        assert again.command == first.command == send_message()
        assert await store.inbox("s") == [send_message()]

    async def test_a_command_that_was_acted_on_is_still_the_same_one_when_it_comes_again(self) -> None:
        store = await self.make_waiting()

        assert not (await store.admit(send_message())).is_new
        assert await store.inbox("s") == []

    async def test_the_turn_of_a_command_is_found_by_its_key_before_and_after_it_was_acted_on(self) -> None:
        store = await self.make_waiting()
        await store.admit(send_message("k2", turn="t2"))
        await store.admit(Cancel(key="c", session="s", turn="t"))

        for key, turn in (("k", "t"), ("k2", "t2"), ("c", "t"), ("nobody", "")):
            assert await store.turn_of_command("s", key) == turn
        with pytest.raises(UnknownSession):
            await store.turn_of_command("nowhere", "k")

    async def test_the_same_key_with_another_body_is_refused_and_nothing_is_created(self) -> None:
        store = await self.make()
        await store.admit(send_message())

        with pytest.raises(KeyConflict):
            await store.admit(send_message(text="something else"))
        with pytest.raises(KeyConflict):
            await store.admit(Cancel(key="k", session="s", turn="t"))

        assert await store.inbox("s") == [send_message()]

    async def test_of_the_same_command_twice_at_once_one_is_new(self) -> None:
        store = await self.make()

        receipts = await asyncio.gather(*(store.admit(send_message(turn=f"t{at}")) for at in range(5)))

        assert sorted(receipt.is_new for receipt in receipts) == [False, False, False, False, True]
        assert len({receipt.command for receipt in receipts}) == len(await store.inbox("s")) == 1

    async def test_keys_are_a_sessions_own(self) -> None:
        store = await self.make()

        assert (await store.admit(send_message(session="s"))).is_new
        assert (await store.admit(send_message(session="other", text="something else"))).is_new

    async def test_commands_are_acted_on_in_the_order_in_which_they_came(self) -> None:
        store = await self.make()
        made = [send_message(key=f"k{at}", turn=f"t{at}") for at in range(12)]
        for command in made:
            await store.admit(command)

        assert await store.inbox("s") == made

    async def test_what_is_not_there_is_refused_by_its_kind_and_nothing_is_kept(self) -> None:
        store = await self.make_waiting()
        nowhere = Send(key="n", session="s", turn="n", parts=(), parent="nobody")
        refused: list[tuple[AnyCommand, type[EverturnError]]] = [
            (Cancel(key="n", session="absent", turn="t"), UnknownSession),
            (Cancel(key="n", session="s", turn="nobody"), UnknownTurn),
            (LateResult(key="n", session="s", turn="nobody", call="c", output=Output("")), UnknownTurn),
            (Select(key="n", session="s", message="nobody"), UnknownMessage),
            (Delete(key="n", session="s", message="nobody"), UnknownMessage),
            (nowhere, UnknownMessage),
            (answer_gate(gate="nobody"), UnknownGate),
        ]

        for command, error in refused:
            with pytest.raises(error):
                await store.admit(command)
        for read in (store.inbox, store.events, store.head, store.info, store.open_turns, store.tree):
            with pytest.raises(UnknownSession):
                await read("absent")

        assert await store.inbox("s") == []

    async def test_a_first_message_that_is_refused_creates_no_session(self) -> None:
        store = await self.make()

        with pytest.raises(UnknownMessage):
            await store.admit(Send(key="n", session="s", turn="n", parts=(), parent="nobody"))

        assert await store.sessions() == []

    async def test_an_import_creates_a_session_and_is_admitted_once(self) -> None:
        store = await self.make()

        first = await store.admit(import_messages())
        again = await store.admit(import_messages(at=NOON + 60))
        await store.append("s", 0, [messages_imported(import_messages(), title="Where is it?")])

        assert (first.is_new, again.is_new) == (True, False)
        assert not (await store.admit(import_messages())).is_new
        assert await store.inbox("s") == []
        info = await store.info("s")
        assert (info.title, info.leaf, info.by, info.created) == ("Where is it?", "i-1", "ada", NOON)
        assert [message.id for message in await store.path("s", "i-1")] == ["i-0", "i-1"]
        assert list((await store.tree("s")).messages) == ["i-0", "i-1"]

    async def test_an_import_is_refused_while_a_turn_is_open_where_there_is_nothing_and_for_ids_in_use(self) -> None:
        store = await self.make_waiting()

        with pytest.raises(SessionBusy):
            await store.admit(import_messages())
        await store.append("s", await store.head("s"), turn_ended_events())
        with pytest.raises(UnknownMessage):
            await store.admit(import_messages(parent="nobody"))
        with pytest.raises(UnknownSession):
            await store.admit(replace(import_messages(), tenant="eve"))
        await store.admit(import_messages())
        await store.append("s", await store.head("s"), [messages_imported(import_messages(), "t.out")])
        with pytest.raises(KeyConflict):
            await store.admit(replace(import_messages(), key="other"))
        assert [message.id for message in await store.path("s", "i-1")] == ["t.in", "t.out", "i-0", "i-1"]

    async def test_a_session_of_another_tenant_looks_like_none_at_all(self) -> None:
        store = await self.make_waiting()
        foreign: list[AnyCommand] = [
            Cancel(key="n", session="s", tenant="eve", turn="t"),
            LateResult(key="n", session="s", tenant="eve", turn="t", call="t.call", output=Output("")),
            Select(key="n", session="s", tenant="eve", message="t.in"),
            Delete(key="n", session="s", tenant="eve", message="t.in"),
            ResolveGate(key="n", session="s", tenant="eve", gate="t.gate", hash="t.hash", resolution=ALLOW),
            Cancel(key="k", session="s", tenant="eve", turn="t"),  # a key that is in use
        ]
        with pytest.raises(UnknownSession) as absent:
            await store.admit(Cancel(key="n", session="none", tenant="eve", turn="t"))

        for command in foreign:
            with pytest.raises(UnknownSession) as refused:
                await store.admit(command)
            assert str(refused.value) == str(absent.value).replace("none", "s")

        assert await store.inbox("s") == []
        assert len(await store.gates("s")) == 1

    async def test_a_message_to_a_session_of_another_tenant_does_not_get_there(self) -> None:
        store = await self.make_waiting()
        message = Send(key="n", session="s", tenant="eve", turn="n", parts=(TextPart("hi"),), at_leaf=True)

        with suppress(UnknownSession):
            await store.admit(message)

        assert await store.inbox("s") == []

    # Gates -----------------------------------------------------------------------------------------------------

    async def test_an_answer_counts_for_the_bytes_that_were_shown(self) -> None:
        store = await self.make_waiting()

        with pytest.raises(HashMismatch):
            await store.admit(answer_gate(hash="other"))
        assert [row.gate.id for row in await store.gates("s")] == ["t.gate"]

        assert (await store.admit(answer_gate())).is_new
        assert await store.gates("s") == []

    async def test_the_first_answer_wins_and_the_same_again_changes_nothing(self) -> None:
        store = await self.make_waiting()
        await store.admit(answer_gate("a"))

        assert not (await store.admit(answer_gate("b"))).is_new
        with pytest.raises(GateClosed):
            await store.admit(answer_gate("c", DENY))
        assert await store.inbox("s") == [answer_gate("a")]

        answered = GateResolved(turn="t", at=NOON, gate="t.gate", call="t.call", resolution=ALLOW, command="a")
        await store.append("s", await store.head("s"), [answered])
        assert not (await store.admit(answer_gate("d"))).is_new
        with pytest.raises(GateClosed):
            await store.admit(answer_gate("e", DENY))
        assert await store.inbox("s") == []

    async def test_of_two_answers_at_once_only_one_is_taken(self) -> None:
        store = await self.make_waiting()

        both = await asyncio.gather(
            store.admit(answer_gate("a", ALLOW)), store.admit(answer_gate("b", DENY)), return_exceptions=True
        )

        assert sorted(isinstance(result, GateClosed) for result in both) == [False, True]
        assert len(await store.inbox("s")) == 1

    async def test_a_gate_that_has_expired_takes_no_answer(self) -> None:
        store = await self.make_waiting(expires=NOON + 60)

        with pytest.raises(GateClosed):
            await store.admit(answer_gate("a", at=NOON + 60))
        assert (await store.admit(answer_gate("b", at=NOON + 59))).is_new

    async def test_a_gate_takes_no_answer_once_its_turn_ends_or_is_to_be_cancelled(self) -> None:
        ending, cancelling = await self.make_waiting(), await self.make_waiting()
        await ending.append("s", await ending.head("s"), turn_ended_events()[:1])
        await cancelling.admit(Cancel(key="c", session="s", turn="t"))

        for store in (ending, cancelling):
            with pytest.raises(GateClosed):
                await store.admit(answer_gate())
        assert await ending.gates() == []

    async def test_open_gates_are_listed_by_session_and_over_all(self) -> None:
        store = await self.make_waiting()
        await store.admit(send_message(session="s2", turn="t2"))
        await store.append("s2", 0, [*turn_started_events("t2"), *gate_opened_events("t2")])

        assert [row.gate.id for row in await store.gates("s2")] == ["t2.gate"]
        assert sorted(row.gate.id for row in await store.gates()) == ["t.gate", "t2.gate"]
        assert all((row.opened, row.resolution, row.is_open) == (NOON, None, True) for row in await store.gates())
