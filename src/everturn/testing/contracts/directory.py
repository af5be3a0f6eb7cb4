"""Directory contract of a store: lists of sessions, usage and blobs of a tenant, and isolation between tenants."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from everturn.core.commands import Cancel, SelectAgent, Send
from everturn.core.events import (
    AgentSelected,
    AgentSwitched,
    CommandDropped,
    Event,
    MessageDeleted,
    StepStarted,
)
from everturn.core.options import Lineage, Spent, TurnOptions
from everturn.core.parts import FilePart, TextPart, Usage
from everturn.core.store_ports import SessionInfo
from everturn.errors import KeyConflict, SessionBusy, UnknownSession
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

DAY = 86_400.0
WRITER = TurnOptions(agent="writer", by="ada")


def send_to_agent(
    session: str, turn: str = "t", tenant: str = "local", at: float = NOON, options: TurnOptions = WRITER
) -> Send:
    """A message of a user to an agent."""
    return replace(send_message(f"{turn}.k", session, turn, at=at), tenant=tenant, options=options)


def subagent_session_options(session: str, by: str = "") -> TurnOptions:
    """Options of a sub-agent run in a top-level session, requested by a session below it."""
    return TurnOptions(lineage=Lineage(session, "t", by=(by, "t", "t.call") if by else ("", "", "")), by="ada")


def session_ids(page: list[SessionInfo]) -> list[str]:
    """The ids of the sessions of a page."""
    return [info.id for info in page]


class DirectoryContract(StoreSetup):
    """Lists of sessions, and the other queries over a tenant."""

    # Session info ------------------------------------------------------------------------------------------------

    async def test_a_session_knows_who_began_it(self) -> None:
        store = await self.make()
        await store.admit(send_to_agent("s", at=NOON))
        await store.admit(send_to_agent("s", "t2", at=NOON + 5, options=TurnOptions(agent="critic", by="bob")))
        await store.admit(Cancel(key="c", session="s", turn="t2", at=NOON + 7))

        info = await store.info("s")
        assert (info.agent, info.by, info.parent) == ("writer", "ada", "")
        assert (info.created, info.touched) == (NOON, NOON + 7)
        assert [info] == await store.sessions() == await store.session_page("local")
        claim = await store.claim("s", NOON + 9)
        assert claim is not None
        assert claim.info == info  # a claim is not visible

    async def test_the_agent_of_a_session_is_what_its_log_says(self) -> None:
        store = await self.make()
        critic, plain = TurnOptions(agent="critic"), TurnOptions()
        seen: list[str] = []

        async def append(*events: Event) -> None:
            await store.append("s", await store.head("s"), list(events))
            info = await store.info("s")
            assert [info] == await store.session_page("local") == list((await store.infos(["s"])).values())
            seen.append(info.agent)

        await store.admit(send_to_agent("s"))
        await append(*turn_started_events(command="t.k", options=WRITER))
        await append(AgentSwitched(turn="t", at=NOON, agent="editor", options=replace(WRITER, agent="editor")))
        await append(*turn_ended_events())
        await store.admit(send_to_agent("s", "t2", options=critic))
        seen.append((await store.info("s")).agent)  # it was only asked for
        await append(*turn_started_events("t2", "t.in", command="t2.k", options=critic), *turn_ended_events("t2"))
        await append(AgentSelected(at=NOON, agent="writer", by="ada"))
        await append(*turn_started_events("t3", "t2.in", options=plain), *turn_ended_events("t3"))  # without an agent
        await append(MessageDeleted(at=NOON, message="t3.in"), AgentSelected(at=NOON, agent="last"))
        assert seen == ["writer", "editor", "editor", "editor", "critic", "writer", "writer", "last"]

        events = [entry.event for entry in await store.events("s")]
        await store.restore("copy", "local", events)
        assert ((await store.info("copy")).agent, (await store.info("copy")).by) == ("last", "ada")

    async def test_an_agent_is_selected_only_while_no_turn_is_open(self) -> None:
        store = await self.make()
        selected = SelectAgent(key="a", session="s", at=NOON, agent="critic", by="ada")
        with pytest.raises(UnknownSession):
            await store.admit(selected)
        await store.admit(send_to_agent("s"))
        await store.append("s", 0, turn_started_events(command="t.k", options=WRITER))
        with pytest.raises(SessionBusy, match="select the agent"):
            await store.admit(selected)
        await store.append("s", await store.head("s"), turn_ended_events())
        await store.admit(send_to_agent("s", "t2"))  # a message that waits goes to the agent that is selected
        assert (await store.admit(selected)).is_new
        assert not (await store.admit(replace(selected, at=NOON + 1))).is_new
        with pytest.raises(KeyConflict):
            await store.admit(replace(selected, agent="writer"))
        with pytest.raises(UnknownSession):
            await store.admit(replace(selected, key="b", tenant="eve"))
        assert [command.key for command in await store.inbox("s")] == ["t2.k", "a"]
        chosen = AgentSelected(at=NOON, agent="critic", by="ada", command="a")
        await store.append("s", await store.head("s"), [chosen])
        assert [command.key for command in await store.inbox("s")] == ["t2.k"]

    async def test_a_list_shows_turns_that_begin_ask_and_end_and_not_each_of_their_steps(self) -> None:
        store = await self.make()
        await store.admit(send_to_agent("s"))

        def later(events: list[object], by: float) -> list[object]:
            return [replace(event, at=NOON + by) for event in events]  # type: ignore[type-var]

        seen: list[float] = []
        head = 0
        for by, events in enumerate(
            (
                [*turn_started_events(command="t.k")],
                [*call_requested_events()],
                [*gate_opened_events()[2:]],
                [*call_started_events()],
                [*turn_ended_events()],
            ),
            1,
        ):
            head = await store.append("s", head, later(list(events), by))  # type: ignore[arg-type]
            seen.append((await store.info("s")).touched - NOON)
        assert seen == [1, 1, 3, 3, 5]

    async def test_a_session_of_a_sub_turn_knows_whose_it_is_and_is_in_no_list(self) -> None:
        store = await self.make()
        await store.admit(send_to_agent("s"))
        await store.admit(send_to_agent("s-a", options=subagent_session_options("s", "s")))
        await store.admit(send_to_agent("s-a-b", options=subagent_session_options("s", "s-a")))
        await store.admit(send_to_agent("s-c", options=subagent_session_options("s")))

        above = {info.id: info.parent for info in await store.sessions()}
        assert above == {"s": "", "s-a": "s", "s-a-b": "s-a", "s-c": "s"}
        assert session_ids(await store.session_page("local")) == ["s"]

    async def test_a_restored_session_is_what_its_log_says_but_never_anybodys_sub_turn(self) -> None:
        store = await self.make()
        first = turn_started_events("t", options=replace(subagent_session_options("top"), agent="a", by="ada"))
        last = [*turn_started_events("t2", "t.out", options=TurnOptions(agent="b", by="bob")), *turn_ended_events("t2")]
        log = [*first, *turn_ended_events(), *(replace(event, at=NOON + 8) for event in last)]
        await store.restore("s", "local", log)

        info = await store.info("s")
        assert (info.agent, info.by, info.parent) == ("b", "ada", "")
        assert (info.created, info.touched) == (NOON, NOON + 8)
        assert session_ids(await store.session_page("local")) == ["s"]

    # Pages -------------------------------------------------------------------------------------------------------

    async def test_pages_go_from_the_one_touched_last_to_the_first_and_leave_none_out(self) -> None:
        store = await self.make()
        order = ["s1", "S2", "s10", "é", "s-", "s_"]
        for name in order:
            await store.admit(send_to_agent(name, at=NOON))  # all at the same time: then by name
        await store.admit(send_to_agent("new", at=NOON + 1))
        await store.admit(send_to_agent("old", at=NOON - 1))
        whole = ["new", *sorted(order, reverse=True), "old"]

        assert session_ids(await store.session_page("local")) == whole
        for size in (1, 2, 3, 7, 8):
            found: list[str] = []
            before = None
            while page := await store.session_page("local", limit=size, before=before):
                assert len(page) <= size
                found += session_ids(page)
                before = (page[-1].touched, page[-1].id)
            assert found == whole
        assert await store.session_page("local", limit=0) == []

    async def test_a_list_can_begin_at_a_time_and_erased_sessions_are_in_none(self) -> None:
        store = await self.make()
        for n in range(4):
            await store.admit(send_to_agent(f"s{n}", at=NOON + n))
        await store.append("s3", 0, [CommandDropped(at=NOON, command="t.k", reason="")])
        await store.erase("s3")

        assert session_ids(await store.session_page("local", since=NOON + 1)) == ["s2", "s1"]
        assert await store.session_page("local", since=NOON + 2.5) == []
        assert session_ids(await store.session_page("local")) == ["s2", "s1", "s0"]

    # Exclusive sends ---------------------------------------------------------------------------------------------

    async def test_what_is_sent_alone_is_refused_while_a_turn_is_open_or_asked_for(self) -> None:
        store = await self.make()
        alone = replace(send_to_agent("s"), alone=True)
        assert (await store.admit(alone)).is_new
        again = await store.admit(replace(alone, turn="x", message="x.in", at=NOON + 9))
        assert (again.command, again.is_new) == (alone, False)

        with pytest.raises(SessionBusy, match="'s'"):
            await store.admit(replace(send_to_agent("s", "t2"), alone=True))
        await store.append("s", 0, [*turn_started_events(command="t.k"), StepStarted(turn="t", at=NOON, step=1)])
        with pytest.raises(SessionBusy):
            await store.admit(replace(send_to_agent("s", "t2"), alone=True))
        assert not (await store.admit(alone)).is_new  # a repeat is accepted also now
        with pytest.raises(KeyConflict):
            await store.admit(replace(send_to_agent("s", "t2"), key=alone.key, alone=True, parts=(TextPart("else"),)))
        assert [command.key for command in await store.inbox("s")] == []

        await store.append("s", 3, turn_ended_events())
        assert (await store.admit(replace(send_to_agent("s", "t2"), alone=True))).is_new
        assert (await store.admit(send_to_agent("s", "t3"))).is_new  # and a message without the option queues behind it

    async def test_of_many_that_are_sent_alone_at_once_one_is_admitted(self) -> None:
        store = await self.make()
        for session in ("new", "old"):
            if session == "old":
                await store.admit(send_to_agent(session, "t"))
                await store.append(session, 0, [*turn_started_events(command="t.k"), *turn_ended_events()])
            sends = [store.admit(replace(send_to_agent(session, f"t{n}"), alone=True)) for n in range(20)]
            results = await asyncio.gather(*sends, return_exceptions=True)
            assert sum(isinstance(result, SessionBusy) for result in results) == 19, results
            assert len(await store.inbox(session)) == 1

    # Gates, usage, blobs -----------------------------------------------------------------------------------------

    async def test_a_tenants_gates_are_those_of_its_sessions(self) -> None:
        store = await self.make()
        for tenant in ("a", "b"):
            for n in range(2):
                turn = f"{tenant}{n}"
                await store.admit(send_to_agent(f"s{turn}", turn, tenant))
                await store.append(
                    f"s{turn}", 0, [*turn_started_events(turn, command=f"{turn}.k"), *gate_opened_events(turn)]
                )
        await store.append("sa1", 6, [gate_resolved_with_grant("sa1", "a1", command="")])

        async def of(session: str | None = None, tenant: str | None = None) -> list[str]:
            return sorted(row.gate.id for row in await store.gates(session, tenant=tenant))

        assert await of() == ["a0.gate", "b0.gate", "b1.gate"]
        assert (await of(tenant="a"), await of(tenant="b")) == (["a0.gate"], ["b0.gate", "b1.gate"])
        assert await of(tenant="c") == await of("sa0", tenant="b") == []
        assert await of("sa0", tenant="a") == ["a0.gate"]

    async def test_what_was_used_is_added_up_by_day_and_agent(self) -> None:
        store = await self.make()
        midnight = NOON // DAY * DAY
        for n, (agent, at) in enumerate(
            [("w", midnight + DAY - 1), ("w", midnight), ("", midnight), ("w", midnight + DAY)]
        ):
            options = TurnOptions(agent=agent)
            await store.admit(send_to_agent(f"s{n}", f"t{n}", options=options))
            events = [
                *turn_started_events(f"t{n}", command=f"t{n}.k", options=options),
                *call_requested_events(f"t{n}", Usage(10, 1, cost=0.5), at),
            ]
            await store.append(f"s{n}", 0, events)
        await store.admit(send_to_agent("s9", "t9"))
        await store.append("s9", 0, turn_started_events("t9", command="t9.k", options=WRITER))  # which used nothing yet

        day, one_step = int(midnight // DAY), Spent(1, 0, Usage(10, 1, cost=0.5))
        assert await store.usage_by_day("local") == [
            (day, "", one_step),
            (day, "w", one_step + one_step),
            (day + 1, "w", one_step),
        ]
        assert await store.usage_by_day("local", midnight + 1) == [(day, "w", one_step), (day + 1, "w", one_step)]
        assert await store.usage_by_day("local", midnight + DAY + 1) == await store.usage_by_day("other") == []

    async def test_a_session_mentions_the_blobs_it_and_its_sub_turns_speak_of(self) -> None:
        store = await self.make()
        asked_with = {name: await store.put_blob(name.encode()) for name in ("mine", "sub", "deep", "theirs", "unsaid")}

        async def says(session: str, name: str, tenant: str, options: TurnOptions) -> None:
            part = FilePart(asked_with[name], "text/plain", len(name))
            await store.admit(replace(send_to_agent(session, tenant=tenant, options=options), parts=(part,)))

        await says("s", "mine", "local", WRITER)
        await says("s-a", "sub", "local", subagent_session_options("s", "s"))
        await says("s-a-b", "deep", "local", subagent_session_options("s", "s-a"))
        await says("s-x", "theirs", "other", subagent_session_options("s", "s"))  # as if a client could forge that

        async def mentioned(session: str) -> set[str]:
            return {name for name, blob in asked_with.items() if await store.refers_to_blob(session, blob)}

        assert await mentioned("s") == {"mine", "sub", "deep"}
        assert (await mentioned("s-a"), await mentioned("s-a-b")) == ({"sub", "deep"}, {"deep"})
        for name in ("s", "s-a", "s-a-b"):
            await store.append(name, 0, [CommandDropped(at=NOON, command="t.k", reason="")])
        assert await mentioned("s") == {"mine", "sub", "deep"}
        assert not await store.refers_to_blob("s", "no blob at all")
        await store.erase("s-a-b")
        assert await mentioned("s") == {"mine", "sub"}
        for name in ("nobody", "s-a-b"):
            with pytest.raises(UnknownSession):
                await store.refers_to_blob(name, asked_with["deep"])

    async def test_an_event_mentions_blobs_too_and_so_does_a_restored_log(self) -> None:
        store = await self.make()
        blob = await store.put_blob(b"in an answer")
        answered = [
            replace(event, parts=(FilePart(blob, "image/png", 12),)) if hasattr(event, "parts") else event
            for event in call_requested_events()
        ]
        await store.admit(send_to_agent("s"))
        await store.append("s", 0, [*turn_started_events(command="t.k"), *answered])
        await store.restore("r", "local", [entry.event for entry in await store.events("s")] + turn_ended_events())

        assert await store.refers_to_blob("s", blob)
        assert await store.refers_to_blob("r", blob)

    async def test_reading_within_a_tenant_sees_what_is_its_own(self) -> None:
        store = await self.make()
        await store.admit(send_to_agent("s", tenant="a"))
        await store.append("s", 0, [*turn_started_events(command="t.k", text="hello there"), *gate_opened_events()])

        with store.restrict_to_tenant("a"):
            assert session_ids(await store.session_page("a")) == ["s"]
            assert len(await store.events("s")) == 6
            assert [session for session, _ in await store.search("hello", "a")] == ["s"]
            assert (await store.info("s")).tenant == "a"
            assert len(await store.gates(tenant="a")) == len(await store.gates("s")) == 1
            assert (await store.spent(tenant="a")).steps == (await store.spent(session="s")).steps == 1
            assert len(await store.path("s", "t.out")) == 2
            assert await store.blob(await store.put_blob(b"x")) == b"x"
            assert (await store.admit(send_to_agent("s", "t2", tenant="a"))).is_new  # writes are checked at admission
        assert len(await store.sessions()) == 1

    # Running turns -----------------------------------------------------------------------------------------------

    async def test_turns_that_run_or_are_asked_for_are_counted_and_those_that_wait_are_not(self) -> None:
        store = await self.make()
        assert await store.count_active_turns("local") == await store.count_active_turns("nobody") == 0
        for turn in ("t", "t2", "t3"):
            await store.admit(send_to_agent("s", turn))
            assert await store.has_turn_command("s", turn)
        await store.admit(send_to_agent("other", "t4", tenant="ada"))
        await store.admit(Cancel(key="c", session="s", turn="t3", at=NOON))
        assert await store.count_active_turns("local") == 3
        assert await store.count_active_turns("ada") == 1
        assert not await store.has_turn_command("s", "t4")
        with pytest.raises(UnknownSession):
            await store.has_turn_command("nobody", "t")
        # Two beside each other in one session, and one below them.
        await store.append("s", 0, [*turn_started_events(command="t.k"), *turn_started_events("t2", command="t2.k")])
        assert await store.count_active_turns("local") == 3
        await store.admit(send_to_agent("s-t.call", "t5", options=subagent_session_options("s", "s")))
        assert await store.count_active_turns("local") == 4
        await store.append("s", await store.head("s"), gate_opened_events())
        assert await store.count_active_turns("local") == 3
        await store.append("s", await store.head("s"), turn_ended_events("t2"))
        assert await store.count_active_turns("local") == 2
        await store.append("s", await store.head("s"), [CommandDropped(at=NOON, command="t3.k", reason="gone")])
        assert await store.count_active_turns("local") == 1
        assert await store.has_turn_command("s", "t3")
