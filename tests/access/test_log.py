"""What a face draws a session from: the log in pages that add up to it, and what waits."""

from __future__ import annotations

from everturn import api
from everturn.access.access import Access
from everturn.core.projections.session_reader import SessionCursor
from tests.helpers.tenants import a_house, gate_in, over, somebody, start_session


async def test_pages_of_the_log_add_up_to_the_log() -> None:
    async with a_house() as house:
        access = Access(house, somebody())
        sent = await start_session(access, "hello")
        await over(access, sent)
        stored = await house.app.store.events(sent.session)
        found: list[api.LogItem] = []
        pages = 0
        while True:
            page = await access.log.page(sent.session, found[-1].seq if found else 0, 2)
            found, pages = found + page.entries, pages + 1
            if page.is_whole:
                break
        assert [(item.seq, item.event) for item in found] == [(entry.seq, entry.event) for entry in stored]
        assert pages == len(stored) // 2 + 1  # a page that is full may be the last, and only the next one says so
        assert (await access.log.page(sent.session)).is_whole
        assert not (await access.log.page(sent.session, found[-1].seq)).entries
        # And what is behind it is where a stream goes on.
        assert SessionCursor.parse(str(found[-1].seq)).seq == await house.app.store.head(sent.session)


async def test_what_is_under_review_is_redacted_in_the_log_as_well() -> None:
    async with a_house() as house:
        sent = await start_session(Access(house, somebody()), "peek")
        gate = await gate_in(Access(house, somebody(role="approver")), sent.session)
        assert gate.gate.kind == "result"
        assert gate.gate.output is not None
        secret = gate.gate.output.text
        logs = {
            role: await Access(house, somebody(role=role)).log.page(sent.session) for role in ("viewer", "approver")
        }
        assert secret not in str(logs["viewer"])
        assert secret in str(logs["approver"])
        assert len(logs["viewer"].entries) == len(logs["approver"].entries)


async def test_what_waits_is_seen_in_its_order_and_can_be_taken_back() -> None:
    async with a_house() as house:
        access = Access(house, somebody(role="approver"))
        sent = await start_session(access, "pay 1")
        gate = await gate_in(access, sent.session)
        waiting = [
            await access.sessions.send(sent.session, api.NewMessage(text=text)) for text in ("one", "two", "three")
        ]
        queue = (await access.log.queue(sent.session)).queued
        assert [(queued.turn, queued.message, queued.text) for queued in queue] == [
            (receipt.turn, receipt.message, text)
            for receipt, text in zip(waiting, ("one", "two", "three"), strict=True)
        ]
        assert {queued.by for queued in queue} == {access.principal.user}
        await access.sessions.cancel_turn(sent.session, waiting[1].turn, api.CancelTurn())
        await access.gates.resolve(sent.session, gate.gate.id, api.AnswerGate(hash=gate.gate.hash, deny=True))
        await over(access, waiting[2])
        assert not (await access.log.queue(sent.session)).queued
        texts = [
            message.text
            for message in (await access.sessions.messages(sent.session)).messages
            if message.role == "user"
        ]
        assert texts == ["pay 1", "one", "three"]


async def test_agents_name_their_models() -> None:
    async with a_house() as house:
        agents = await Access(house, somebody(role="viewer")).agents()
        named = {agent.model for agent in agents.agents} | {name for agent in agents.agents for name in agent.models}
        assert {model.name for model in agents.models} >= named
        assert all(model.badge for model in agents.models if model.name == "scripted")
