"""Sessions are begun, gone on with and branched in the name of somebody; agents are chosen among, and never widened."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from everturn import Agent, App, api
from everturn.access.access import Access
from everturn.access.context.agents import Agents, AgentSpec, TenantLimits
from everturn.access.context.server_context import ServerContext
from everturn.access.conversations.turn_options import PARAMS
from everturn.core.events import AgentSelected, AnswerStarted, StepFinished, TurnStarted
from everturn.core.messages import Message
from everturn.core.options import Budget, TurnOptions
from everturn.core.parts import CacheCause, CacheCollapse
from everturn.errors import (
    CommandRefused,
    ConfigError,
    Forbidden,
    KeyConflict,
    SessionBusy,
    TooMuch,
    UnknownAgent,
    UnknownFile,
    UnknownMessage,
    UnknownSession,
)
from everturn.models.scripted import ScriptedModel, say
from everturn.stores.memory import MemoryStore
from everturn.testing import FakeClock
from everturn.testing.contracts.directory import send_to_agent
from everturn.testing.contracts.samples import NOON, turn_started_events
from tests.helpers.tenants import AGENTS, BELL, a_house, over, settle, somebody, start_session
from tests.helpers.waiting import wait_until


async def started(house: ServerContext, sent: api.MessageReceipt) -> TurnOptions:
    """The options that a turn began with."""

    async def look() -> TurnOptions | None:
        log = await house.app.store.events(sent.session, turn=sent.turn)
        return next((entry.event.options for entry in log if isinstance(entry.event, TurnStarted)), None)

    return await wait_until(look)


async def test_a_turn_knows_its_agent_its_user_and_its_tenant() -> None:
    async with a_house() as house:
        access = Access(house, somebody())
        sent = await start_session(access, "hello", agent="reader")
        options = await started(house, sent)
        assert (options.agent, options.by, options.tools, options.max_steps) == ("reader", "member-ada", ("look",), 3)
        await over(access, sent)
        view = await access.sessions.get(sent.session)
        assert (view.agent, view.by) == ("reader", "member-ada")
        assert (await house.app.store.info(sent.session)).tenant == "ada"
        # It goes on with the agent that it began with.
        again = await access.sessions.send(sent.session, api.NewMessage(text="and now?"))
        assert (await started(house, again)).agent == "reader"


async def test_the_same_key_begins_the_same_session_and_another_body_none() -> None:
    async with a_house() as house:
        access = Access(house, somebody())
        sent = [await access.sessions.start(api.NewSession(text="hello"), "k1") for _ in range(3)]
        assert [receipt.is_new for receipt in sent] == [True, False, False]
        assert len({(receipt.session, receipt.turn, receipt.message) for receipt in sent}) == 1
        with pytest.raises(KeyConflict):
            await access.sessions.start(api.NewSession(text="other"), "k1")
        assert len((await access.sessions.list()).sessions) == 1
        # A key is somebody's own.
        other = await Access(house, somebody(user="else")).sessions.start(api.NewSession(text="other"), "k1")
        foreign = await Access(house, somebody("bob", user="member-ada")).sessions.start(
            api.NewSession(text="other"), "k1"
        )
        assert len({sent[0].session, other.session, foreign.session}) == 3


async def test_fifty_who_begin_at_once_with_one_key_begin_one_session() -> None:
    async with a_house() as house:
        access = Access(house, somebody())
        sent = await asyncio.gather(*(access.sessions.start(api.NewSession(text="hello"), "k") for _ in range(50)))
        assert len({receipt.turn for receipt in sent}) == 1
        assert sum(receipt.is_new for receipt in sent) == 1


async def test_names_of_sessions_cannot_be_guessed() -> None:
    async with a_house() as house:
        access = Access(house, somebody())
        names = {(await start_session(access, "hello")).session for _ in range(20)}
        assert len(names) == 20
        assert all(len(name) == len("session_") + 32 for name in names)
        async with a_house() as other_house:  # the same key, and another secret
            first = await access.sessions.start(api.NewSession(text="x"), "k")
            second = await Access(other_house, somebody()).sessions.start(api.NewSession(text="x"), "k")
            assert first.session != second.session


async def test_the_same_key_sends_once() -> None:
    async with a_house() as house:
        access = Access(house, somebody())
        begun = await start_session(access, "hello")
        await over(access, begun)
        sent = [await access.sessions.send(begun.session, api.NewMessage(text="more"), "k") for _ in range(2)]
        assert sent[0].turn == sent[1].turn
        assert [receipt.is_new for receipt in sent] == [True, False]
        with pytest.raises(KeyConflict):
            await access.sessions.send(begun.session, api.NewMessage(text="less"), "k")
        await over(access, sent[0])
        rerun = [
            await access.sessions.rerun(begun.session, begun.message, api.RegenerateAnswer(), "r") for _ in range(2)
        ]
        assert rerun[0].turn == rerun[1].turn
        assert rerun[0].message == ""
        await over(access, rerun[0])
        edited = [
            await access.sessions.edit_message(begun.session, begun.message, api.EditMessage(text="hey"), "e")
            for _ in range(2)
        ]
        assert edited[0].turn == edited[1].turn
        assert edited[0].message == edited[1].message != ""
        await over(access, edited[0])
        tree = await access.sessions.tree(begun.session)
        roots = [message.text for message in tree.messages if message.parent is None]
        assert roots == ["hello", "hey"]


async def test_a_key_is_somebodys_own_in_a_session_too() -> None:
    async with a_house() as house:
        mine, other = Access(house, somebody()), Access(house, somebody(user="else"))
        begun = await start_session(mine, "hello")
        sent = [
            await access.sessions.send(begun.session, api.NewMessage(text="more"), "k")
            for access in (mine, other, mine)
        ]
        assert [receipt.is_new for receipt in sent] == [True, True, False]
        assert sent[0].turn == sent[2].turn != sent[1].turn


async def test_while_a_turn_runs_a_message_waits_is_refused_or_begins_a_branch() -> None:
    async with a_house() as house:
        access = Access(house, somebody())
        running = await start_session(access, "hang")
        await started(house, running)
        with pytest.raises(SessionBusy):
            await access.sessions.send(running.session, api.NewMessage(text="look", busy="reject"))
        queued = await access.sessions.send(running.session, api.NewMessage(text="look"))
        assert (await access.sessions.turn(running.session, queued.turn)).phase.value == "idle"
        forked = await access.sessions.send(running.session, api.NewMessage(text="hello", busy="fork"), "f")
        assert (await over(access, forked)).phase.value == "completed"
        roots = [
            message.text for message in (await access.sessions.tree(running.session)).messages if message.parent is None
        ]
        assert roots == ["hang", "hello"]
        # The same again is the same, though nothing runs any more beside which it could begin.
        await access.sessions.cancel_turn(running.session, running.turn, api.CancelTurn())
        await over(access, running)
        await over(access, queued)
        again = await access.sessions.send(running.session, api.NewMessage(text="hello", busy="fork"), "f")
        assert (again.turn, again.is_new) == (forked.turn, False)
        with pytest.raises(KeyConflict):
            await access.sessions.send(running.session, api.NewMessage(text="hullo", busy="fork"), "f")


async def test_a_message_that_steers_joins_the_turn_that_waits_and_the_queue_says_so() -> None:
    async with a_house() as house:
        access = Access(house, somebody())
        running = await start_session(access, "pay")
        [view] = await wait_until(lambda: gates_of(access))
        sent = [
            await access.sessions.send(running.session, api.NewMessage(text="look", busy="steer"), "k")
            for _ in range(2)
        ]
        assert [(receipt.turn, receipt.is_new) for receipt in sent] == [(running.turn, True), (running.turn, False)]
        [queued] = (await access.log.queue(running.session)).queued
        assert (queued.steers, queued.text, queued.message) == (running.turn, "look", sent[0].message)
        assert (queued.by, queued.turn != running.turn) == ("member-ada", True)
        approver, gate = Access(house, somebody(role="approver")), view.gate
        await approver.gates.resolve(running.session, gate.id, api.AnswerGate(hash=gate.hash, allow="once"))
        await over(access, running)
        texts = [
            (message.text, message.by)
            for message in (await access.sessions.messages(running.session)).messages
            if message.role == "user"
        ]
        assert texts == [("pay", ""), ("look", "member-ada")]
        assert not (await access.log.queue(running.session)).queued


async def test_a_message_may_start_its_turn_later() -> None:
    clock = FakeClock()
    async with a_house(clock=clock) as house:
        access = Access(house, somebody())
        later = await start_session(access, "hello", at=clock.now() + 3600)
        now = await start_session(access, "hello")
        await over(access, now)
        assert await house.app.store.events(later.session, turn=later.turn) == []
        clock.advance(3601)
        await started(house, later)


async def test_a_message_that_waits_is_taken_by_the_agent_that_has_the_session_then() -> None:
    clock, store = FakeClock(), MemoryStore()
    front, billing = (Agent(ScriptedModel(say(name), say(name), name=name), name=name) for name in ("front", "billing"))
    async with App(agents=[front, billing], store=store, clock=clock) as app:
        specs = [
            AgentSpec(agent.name, agent.options(agent.name, TurnOptions()), definition=agent)
            for agent in (front, billing)
        ]
        house = ServerContext(app, store.accounts, Agents(specs, default_limits=TenantLimits(requests=0)))
        await settle(house.accounts)
        access = Access(house, somebody())
        first = await start_session(access, "hello", agent="front")
        await over(access, first)
        later = api.NewMessage(text="and then?", at=clock.now() + 3600)
        waiting = await access.sessions.send(first.session, later, "k")
        await access.sessions.switch_agent(first.session, api.SwitchAgent(agent="billing"))
        assert (await access.sessions.send(first.session, later, "k")).turn == waiting.turn  # the same message
        clock.advance(3601)
        options = await started(house, waiting)
        assert (options.agent, options.by) == ("billing", "member-ada")
        assert (await access.sessions.get(first.session)).agent == "billing"


async def test_a_turn_with_tools_of_a_client_is_steered_by_whoever_began_it() -> None:
    async with a_house() as house:
        access, other = Access(house, somebody()), Access(house, somebody(user="else"))
        running = await start_session(access, "pay", clients=[BELL])
        await wait_until(lambda: gates_of(access))
        with pytest.raises(CommandRefused, match="send this as the next message"):
            await other.sessions.send(running.session, api.NewMessage(text="bell", busy="steer"))
        assert not (await access.log.queue(running.session)).queued
        sent = await access.sessions.send(running.session, api.NewMessage(text="look", busy="steer"))
        assert sent.turn == running.turn


async def gates_of(access: Access) -> list[api.GateView]:
    return (await access.gates.page()).gates


async def test_a_fork_in_a_longer_talk_begins_where_the_running_turn_began() -> None:
    async with a_house() as house:
        access = Access(house, somebody())
        first = await start_session(access, "hello")
        await over(access, first)
        running = await access.sessions.send(first.session, api.NewMessage(text="hang"))
        await started(house, running)
        forked = await access.sessions.send(first.session, api.NewMessage(text="hello", busy="fork"))
        await over(access, forked)
        parents = {m.text: m.parent for m in (await access.sessions.tree(first.session)).messages if m.role == "user"}
        assert parents["hello"] == parents["hang"] is not None


REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "a model that is none of the agent's": ({"model": "openai:gpt-9"}, Forbidden, "its models: scripted, other"),
    "a model of a vendor with an address": ({"model": "ollama:x@http://127.0.0.1"}, Forbidden, "its models"),
    "a tool that the agent has not": ({"agent": "reader", "tools": ["pay"]}, ConfigError, "it has: look"),
    "a group that is not there": ({"tools": ["@files"]}, ConfigError, "has no tool '@files'"),
    "a parameter that says where to": ({"params": {"base_url": "http://x"}}, ConfigError, "base_url cannot be set"),
    "headers": ({"params": {"extra_headers": {}, "temperature": 1}}, ConfigError, "extra_headers"),
    "messages of its own": ({"params": {"messages": []}}, ConfigError, "messages"),
    "too many parameters": ({"params": {"stop": ["x" * 300_000]}}, ConfigError, "262,144"),
    "more steps than the agent takes": ({"agent": "reader", "max_steps": 4}, ConfigError, "at most 3"),
    "a tool of a client with the name of ours": (
        {"clients": [replace(BELL, name="pay")]},
        ConfigError,
        "the name 'pay' is already used",
    ),
    "a tool of a client that waits for years": ({"clients": [replace(BELL, timeout=1e9)]}, ConfigError, "timeout"),
    "a huge tool of a client": ({"clients": [replace(BELL, description="x" * 300_000)]}, ConfigError, "262,144"),
    "an agent that is none": ({"agent": "root"}, UnknownAgent, "there are helper, reader"),
    "a file by its hash": ({"files": ["0" * 64]}, UnknownFile, "no such file"),
    "nothing at all": ({"text": ""}, ConfigError, "empty"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_a_client_cannot_choose(name: str) -> None:
    chosen, error, text = REFUSED[name]
    fields: dict[str, Any] = {"text": "hello", **chosen}
    async with a_house() as house:
        access = Access(house, somebody())
        with pytest.raises(error, match=text):
            await access.sessions.start(api.NewSession(**fields))
        assert not (await access.sessions.list()).sessions


async def test_a_client_chooses_among_what_there_is() -> None:
    async with a_house() as house:
        access = Access(house, somebody())
        sent = await start_session(
            access,
            "hello",
            model="other",
            tools=["l*", "pay"],
            params={"temperature": 0.5},
            tool_history="none",
            max_steps=2,
            clients=[BELL],
        )
        options = await started(house, sent)
        assert (options.model, options.tools, options.params) == ("other", ("look", "pay"), {"temperature": 0.5})
        assert (options.tool_history, options.max_steps, options.clients) == ("none", 2, (BELL,))
        await over(access, sent)
        assert not {"model", "messages", "tools", "stream", "base_url", "api_key", "metadata", "user"} & PARAMS


async def test_a_session_is_compacted_once_for_a_key_with_the_focus_that_was_named() -> None:
    async with a_house() as house:
        access = Access(house, somebody())
        begun = await start_session(access, "hello " * 400)
        await over(access, begun)
        request = api.CompactSession(focus="the dates")
        compacted = [await access.sessions.compact(begun.session, request, "c") for _ in range(2)]
        assert compacted[0].turn == compacted[1].turn
        assert (await started(house, compacted[0])).compact == "the dates"
        with pytest.raises(KeyConflict):
            await access.sessions.compact(begun.session, api.CompactSession(focus="other"), "c")


async def test_the_context_is_that_of_the_agents_next_turn_and_of_a_model_that_it_may_use() -> None:
    async with a_house() as house:
        access = Access(house, somebody())
        begun = await start_session(access, "hello " * 400)
        await over(access, begun)
        viewer = Access(house, somebody(role="viewer"))
        report = await viewer.sessions.context(begun.session)
        assert report.model == house.app.model_for(AGENTS[0].options.model).name
        assert sum(part.tokens for part in report.parts) == report.used > 0
        assert (report.share is None) == (report.window == 0)
        assert report.cost == (await house.app.store.spent(session=begun.session)).usage.cost
        first = (await access.sessions.messages(begun.session)).messages[0]
        above = await viewer.sessions.context(begun.session, first.id)
        assert above.estimated
        assert "answers" not in {part.kind for part in above.parts}
        assert "answers" in {part.kind for part in report.parts}
        assert (await viewer.sessions.context(begun.session, model="other")).model == "other"
        with pytest.raises(Forbidden):
            await viewer.sessions.context(begun.session, model="nobodys")
        with pytest.raises(UnknownMessage):
            await viewer.sessions.context(begun.session, "msg_unknown")


async def test_an_answer_is_forked_by_those_who_may_write_and_only_after_a_finished_step() -> None:
    async with a_house() as house:
        access = Access(house, somebody())
        sent = await start_session(access, "look")
        await over(access, sent)
        answer = (await access.sessions.messages(sent.session)).messages[-1]
        forked = [
            await access.sessions.fork_answer(sent.session, answer.id, api.ForkAnswer(step=1), "k") for _ in range(2)
        ]
        assert forked[0] == forked[1]
        page = await access.sessions.messages(sent.session)
        assert [message.id for message in page.messages][-1] == forked[0].message
        again = await access.sessions.rerun(sent.session, answer.id, api.RegenerateAnswer(after_step=1), "r")
        assert again.message  # the copy that the new answer follows
        await over(access, again)
        with pytest.raises(KeyConflict):
            await access.sessions.fork_answer(sent.session, answer.id, api.ForkAnswer(step=2), "k")
        with pytest.raises(CommandRefused, match="its finished steps are"):
            await access.sessions.fork_answer(sent.session, answer.id, api.ForkAnswer(step=9))
        with pytest.raises(UnknownSession):
            await Access(house, somebody("eve")).sessions.fork_answer(sent.session, answer.id, api.ForkAnswer(step=1))


async def test_a_rerun_is_never_answered_by_a_model_that_only_the_log_names() -> None:
    async with a_house() as house:
        access = Access(house, somebody())
        sent = await start_session(access, "hello", model="other")
        await over(access, sent)
        answer = (await access.sessions.messages(sent.session)).messages[-1]
        assert answer.by == "other"
        house.agents.replace([replace(AGENTS[0], models=())], {}, TenantLimits(requests=0))
        again = await access.sessions.rerun(sent.session, answer.id, api.RegenerateAnswer())
        assert (await started(house, again)).model == "scripted"
        for request in (api.RegenerateAnswer(model="other"), api.RegenerateAnswer(params={"api_key": "x"})):
            with pytest.raises((Forbidden, ConfigError)):
                await access.sessions.rerun(sent.session, answer.id, request)
        with pytest.raises(Forbidden):
            await access.sessions.edit_message(sent.session, sent.message, api.EditMessage(text="x", model="other"))


async def test_pages_of_sessions_lead_to_all_of_them_once() -> None:
    clock = FakeClock()
    async with a_house(clock=clock) as house:
        access = Access(house, somebody())
        created: list[str] = []
        for _ in range(7):
            created.append((await start_session(access, "hello")).session)
            clock.advance(1)
        found: list[str] = []
        page = await access.sessions.list(limit=3)
        while True:
            found += [session.id for session in page.sessions]
            if not page.next:
                break
            page = await access.sessions.list(limit=3, before=page.next)
        assert sorted(found) == sorted(created)
        for before in ("x", "nan~s", "1e999~s", "1~", "~", "1;DROP~\0"):
            with pytest.raises(ConfigError, match="before"):
                await access.sessions.list(before=before)


async def test_a_branch_is_selected_and_a_message_deleted() -> None:
    async with a_house() as house:
        access = Access(house, somebody())
        sent = await start_session(access, "hello")
        await over(access, sent)
        await access.sessions.select_message(sent.session, api.SelectBranch())
        assert (await access.sessions.get(sent.session)).leaf is None
        await access.sessions.select_message(sent.session, api.SelectBranch(message=sent.message))
        assert [message.text for message in (await access.sessions.messages(sent.session)).messages] == ["hello"]
        await access.sessions.delete_message(sent.session, sent.message)
        assert not (await access.sessions.tree(sent.session)).messages


async def test_a_session_is_erased_only_at_rest_and_that_is_written_down() -> None:
    async with a_house() as house:
        owner = Access(house, somebody(role="owner"))
        sent = await start_session(owner, "hang")
        await started(house, sent)
        with pytest.raises(SessionBusy):
            await owner.sessions.erase(sent.session)
        await owner.sessions.cancel_turn(sent.session, sent.turn, api.CancelTurn(hard=True), "c")
        await over(owner, sent)
        await owner.sessions.erase(sent.session)
        assert not (await owner.sessions.list()).sessions
        last = (await owner.accounts.audit()).records[-1]
        assert (last.did, last.on, last.by) == ("session.erase", sent.session, "owner-ada")


# Limits -------------------------------------------------------------------------------------------------------------


async def test_requests_are_counted_for_a_tenant_and_come_back_with_time() -> None:
    clock = FakeClock()
    async with a_house(clock=clock, limits=TenantLimits(requests=10)) as house:
        for _ in range(20):
            house.count("ada")
        with pytest.raises(TooMuch) as refused:
            house.count("ada")
        assert 0 < refused.value.retry_after <= 0.1
        house.count("bob")
        clock.advance(refused.value.retry_after + 1e-6)
        house.count("ada")
        with pytest.raises(TooMuch):
            house.count("ada")
        clock.advance(-3600)  # a clock that is set back gives nothing away
        with pytest.raises(TooMuch):
            house.count("ada")
        clock.advance(7200)
        for _ in range(20):
            house.count("ada")
        with pytest.raises(TooMuch):
            house.count("ada")


async def test_so_many_turns_are_under_way_and_no_more() -> None:
    clock = FakeClock()
    async with a_house(clock=clock, limits=TenantLimits(requests=0, turns=2)) as house:
        access = Access(house, somebody())
        running = [await start_session(access, "hang") for _ in range(2)]
        await started(house, running[0])
        with pytest.raises(TooMuch, match="2 turns") as refused:
            await start_session(access, "hello")
        assert refused.value.retry_after > 0
        assert (await start_session(Access(house, somebody("bob")), "hello")).is_new
        clock.advance(2)
        for again in (
            lambda: access.sessions.send(running[0].session, api.NewMessage(text="x")),
            lambda: access.sessions.rerun(running[0].session, running[0].message, api.RegenerateAnswer()),
            lambda: access.sessions.edit_message(running[0].session, running[0].message, api.EditMessage(text="x")),
        ):
            with pytest.raises(TooMuch):
                await again()
        await access.sessions.cancel_turn(running[0].session, running[0].turn, api.CancelTurn())
        await over(access, running[0])
        clock.advance(2)
        assert (await start_session(access, "hello")).is_new


async def test_a_budget_that_is_used_up_stops_a_tenant_until_its_period_is_over() -> None:
    clock = FakeClock()
    limits = TenantLimits(requests=0, budget=Budget(steps=2), period=3600)
    async with a_house(clock=clock, limits=limits) as house:
        access = Access(house, somebody())
        await over(access, await start_session(access, "look"))
        clock.advance(2)
        with pytest.raises(TooMuch, match="2 of 2 steps") as refused:
            await start_session(access, "hello")
        assert refused.value.retry_after == 360
        assert (await start_session(Access(house, somebody("bob")), "hello")).is_new
        clock.advance(3700)
        assert (await start_session(access, "hello")).is_new


async def test_what_was_used_is_reported_by_day_and_agent() -> None:
    async with a_house() as house:
        access = Access(house, somebody())
        await over(access, await start_session(access, "look"))
        await over(access, await start_session(access, "hello", agent="reader"))
        usage = await access.accounts.usage()
        assert {day.agent: day.spent.steps for day in usage.days} == {"helper": 2, "reader": 1}
        assert usage.total.steps == 3
        assert usage.total.calls == 1
        for since in (-1.0, float("nan"), 1e300):
            with pytest.raises(ConfigError):
                await access.accounts.usage(since)


async def test_requests_that_missed_the_prompt_cache_are_summed_by_cause_and_model() -> None:
    causes: dict[str, list[CacheCause]] = {"ada": ["expired", "unexpected", "unexpected"], "bob": ["tools changed"]}
    async with a_house() as house:
        access, store = Access(house, somebody()), house.app.store
        missed = {(name, n): CacheCollapse(cause, 3_000 + n) for name in causes for n, cause in enumerate(causes[name])}
        for (tenant, number), collapse in missed.items():
            session = f"{tenant}-{number}"
            await store.admit(send_to_agent(session, "t", tenant))
            answer = AnswerStarted(turn="t", message=Message("t.out", "t.in", "assistant", by="vendor:large"))
            step = StepFinished(turn="t", step=1, at=NOON - number, parts=(), finish="stop", cache=collapse)
            await store.append(session, 0, [*turn_started_events(command="t.k")[:1], answer, step])
        usage = await access.accounts.cache_usage()
        assert [(row.cause, row.model, row.requests, row.missed) for row in usage.collapses] == [
            ("unexpected", "vendor:large", 2, 6_003),
            ("expired", "vendor:large", 1, 3_000),
        ]
        assert (usage.sessions, usage.is_partial) == (3, False)
        assert (await access.accounts.cache_usage(NOON)).sessions == 1
        for since in (-1.0, float("nan"), 1e300):
            with pytest.raises(ConfigError):
                await access.accounts.cache_usage(since)


async def test_agents_and_tools_are_told_without_what_they_are_told() -> None:
    agents = [AgentSpec("secret", TurnOptions(model="scripted", system="PROMPT-CANARY", tools=("look",)))]
    async with a_house(agents=agents) as house:
        access: Access = Access(house, somebody(role="viewer"))
        views = await access.agents(), await access.tools(), await access.me()
        assert "PROMPT-CANARY" not in repr(views)
        assert [tool.name for tool in views[1].tools] == ["look"]
        assert views[0].agents[0].is_default
        assert views[2].csrf == ""


async def test_a_session_is_handed_to_another_agent_which_takes_the_next_turns() -> None:
    async with a_house() as house:
        access = Access(house, somebody())
        sent = await start_session(access, "hello")
        await over(access, sent)
        assert (await access.sessions.get(sent.session)).agent == "helper"
        view = await access.sessions.switch_agent(sent.session, api.SwitchAgent(agent="reader"), "k")
        assert (view.agent, (await access.sessions.get(sent.session)).agent) == ("reader", "reader")
        await access.sessions.switch_agent(sent.session, api.SwitchAgent(agent="reader"), "k")
        again = await access.sessions.send(sent.session, api.NewMessage(text="hello"), "m")
        await over(access, again)
        log = [entry.event for entry in await house.app.store.events(sent.session)]
        assert [event.options.agent for event in log if isinstance(event, TurnStarted)] == ["helper", "reader"]
        assert [event.by for event in log if isinstance(event, AgentSelected)] == ["member-ada"]
        with pytest.raises(UnknownAgent):
            await access.sessions.switch_agent(sent.session, api.SwitchAgent(agent="root"))
        with pytest.raises(ConfigError, match="agent: the name"):
            await access.sessions.switch_agent(sent.session, api.SwitchAgent(agent=""))
        with pytest.raises(KeyConflict):
            await access.sessions.switch_agent(sent.session, api.SwitchAgent(agent="helper"), "k")
        hanging = await access.sessions.send(sent.session, api.NewMessage(text="hang"), "h")
        await started(house, hanging)
        with pytest.raises(SessionBusy):
            await access.sessions.switch_agent(sent.session, api.SwitchAgent(agent="helper"))
        await access.sessions.cancel_turn(sent.session, hanging.turn, api.CancelTurn(hard=True), "c")
        await over(access, hanging)
