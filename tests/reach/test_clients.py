"""Tools that clients run: each call is claimed by one of them, done by it, and answered once (I46)."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from typing import Any

import pytest

from everturn import Chat, Gate, tool
from everturn.chat.tool_client import ToolClient
from everturn.core.events import (
    CallClaimed,
    CallFinished,
    CallResumed,
    CallStarted,
    CallSuspended,
    GateOpened,
    GateResolved,
    TurnSuspended,
)
from everturn.core.options import ClientTool
from everturn.core.ports import SubagentRequest, ToolContext
from everturn.core.rules.policy import Rule
from everturn.core.store_ports import Store
from everturn.errors import AnswerUnfit, ClaimedOtherwise, ConfigError, NotClaimed
from everturn.testing import call, calls, say
from everturn.tools.client import ClientRunTool, client_tool
from tests.helpers.conversations import Scenes, Talk

TIMES: dict[str, Any] = {"type": "object", "properties": {"times": {"type": "integer"}}, "required": ["times"]}
RUNG: dict[str, Any] = {"type": "object", "properties": {"rung": {"type": "integer"}}, "required": ["rung"]}


def bell(repeat: str = "read_only", **also: Any) -> ClientRunTool:
    """A bell that some client rings."""
    return client_tool(
        "bell",
        "Ring the bell.",
        TIMES,
        answer=RUNG,
        read_only=repeat == "read_only",
        idempotent=repeat == "idempotent",
        **also,
    )


def ringing(*times: int) -> list[Any]:
    return [calls(*(call("bell", times=n) for n in times)), say("It rang.")]


@asynccontextmanager
async def serving(*clients: ToolClient):
    """Clients that do what there is to do."""
    tasks = [asyncio.get_running_loop().create_task(client.serve()) for client in clients]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def parked(talk: Talk, chat: Chat) -> Gate:
    """The one gate for a client, once the turn waits for it."""
    [gate] = await talk.waiting(chat)
    await talk.until(TurnSuspended)
    return gate


# Who does it ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("repeat", ["read_only", "at_most_once"])
async def test_two_clients_that_race_for_two_hundred_calls_do_each_of_them_once(repeat: str, store: Store) -> None:
    if repeat == "at_most_once" and type(store).__name__ != "MemoryStore":
        pytest.skip("once is enough")
    done: Counter[int] = Counter()

    async def ring(times: int) -> dict[str, int]:
        await asyncio.sleep(0)
        done[times] += 1
        return {"rung": times}

    talk = Talk(bell(repeat), store=store)
    script = [calls(*(call("bell", times=n) for n in half)) for half in (range(100), range(100, 200))]
    async with talk.process(*script, say("Done.")) as chat:
        turn = await chat.send("go")
        async with serving(*(ToolClient(chat, {"bell": ring}, name=name) for name in ("one", "two"))):
            assert (await turn).text == "Done."
    assert done == Counter(range(200))
    settled = await talk.settled()
    assert sorted(event.output.text for event in settled) == sorted(f'{{"rung":{n}}}' for n in range(200))
    answered_by = {answered.gate: answered.resolution.claim for answered in await talk.events(GateResolved)}
    claimed_by = {claimed.gate: claimed.claim.by for claimed in await talk.events(CallClaimed)}
    assert answered_by == claimed_by
    assert len(answered_by) == 200


async def test_a_call_for_a_client_parks_the_turn_and_is_answered_by_whoever_claimed_it(store: Store) -> None:
    talk = Talk(bell(), store=store)
    async with talk.process(*ringing(3)) as chat:
        turn = await chat.send("go")
        gate = await parked(talk, chat)
        assert (gate.kind, gate.tool, gate.arguments, gate.lease) == ("client", "bell", '{"times":3}', 60.0)
        assert not chat.app.tool_tasks.running_calls(turn.id)
        await chat.claim(gate, "page")
        await chat.answer(gate, result='{"rung":3}', claim="page", by="page")
        assert (await turn).text == "It rang."
    [came] = await talk.settled()
    assert (came.state, came.output.text, came.output.origin) == ("completed", '{"rung":3}', "client")
    kinds = [type(e) for e in await talk.events(CallStarted, CallSuspended, CallClaimed, CallResumed, CallFinished)]
    assert kinds == [CallStarted, CallSuspended, CallClaimed, CallResumed, CallFinished]


async def test_a_face_declares_its_tools_when_it_sends_and_only_that_turn_has_them(store: Store) -> None:
    talk = Talk(bell(), store=store)
    declared = ClientTool("tab", "Open a tab.", TIMES)
    async with talk.process(calls(call("tab", times=1)), say("Opened."), calls(call("tab", times=2)), say("?")) as chat:
        turn = await chat.send("go", clients=[declared])
        async with serving(ToolClient(chat, {"tab": lambda times: f"tab {times}"})):
            assert (await turn).text == "Opened."
        await (await chat.send("again"))
    offered = [[spec.name for spec in request.tools] for request in talk.requests]
    assert offered == [["bell", "tab"], ["bell", "tab"], ["bell"], ["bell"]]
    first, second = await talk.settled()
    assert (first.output.text, second.state) == ("tab 1", "failed")


async def test_a_face_may_bring_the_only_tool_there_is() -> None:
    talk = Talk()
    async with talk.process(calls(call("tab", times=1)), say("Opened.")) as chat:
        turn = await chat.send("go", clients=[ClientTool("tab", "Open a tab.", TIMES)])
        async with serving(ToolClient(chat, {"tab": lambda times: f"tab {times}"})):
            await turn
    assert [event.output.text for event in await talk.settled()] == ["tab 1"]


@pytest.mark.parametrize("repeat", ["read_only", "idempotent"])
async def test_when_the_time_of_a_client_is_over_another_may_do_it(repeat: str, store: Store) -> None:
    talk = Talk(bell(repeat, lease=10.0), store=store)
    async with talk.process(*ringing(1)) as chat:
        turn = await chat.send("go")
        gate = await parked(talk, chat)
        await chat.claim(gate, "one", 10.0)
        with pytest.raises(ClaimedOtherwise):
            await chat.claim(gate, "two", 10.0)
        talk.clock.advance(11.0)
        await chat.claim(gate, "two", 10.0)
        with pytest.raises(NotClaimed):  # it comes too late, and another has it
            await chat.answer(gate, result='{"rung":1}', claim="one", by="one")
        await chat.answer(gate, result='{"rung":2}', claim="two", by="two")
        await turn
    assert [event.output.text for event in await talk.settled()] == ['{"rung":2}']


async def test_what_a_client_has_begun_once_no_other_begins_and_the_model_is_told_that_nobody_knows(
    store: Store,
) -> None:
    talk = Talk(bell("once", lease=10.0), store=store)
    async with talk.process(*ringing(1)) as chat:
        turn = await chat.send("go")
        gate = await parked(talk, chat)
        await chat.claim(gate, "one", 10.0)
        talk.clock.advance(9.0)
        await chat.claim(gate, "one", 10.0)  # it has more time
        talk.clock.advance(9.0)
        with pytest.raises(ClaimedOtherwise):
            await chat.claim(gate, "two", 10.0)
        assert len(await chat.gates()) == 1
        talk.clock.advance(2.0)
        await turn
        assert await chat.gates() == []
    [came] = await talk.settled()
    assert came.state == "outcome_unknown"
    assert "not known" in came.output.text
    assert "did not answer in time" in str(talk.requests[-1].messages[-1].parts)


async def test_one_whose_time_was_over_while_no_process_ran_is_not_done_again(store: Store) -> None:
    talk = Talk(bell("once", lease=10.0), store=store)
    async with talk.process(*ringing(1)) as chat:
        turn = await chat.send("go")
        await chat.claim(await parked(talk, chat), "one", 10.0)
        await talk.until(CallClaimed)
    talk.clock.advance(11.0)
    async with talk.process(*ringing(1)) as chat:
        await chat.turn(turn.id)
    assert [event.state for event in await talk.settled()] == ["outcome_unknown"]


async def test_nobody_has_longer_than_the_tool_has(store: Store) -> None:
    talk = Talk(bell(timeout=30.0), store=store)
    async with talk.process(*ringing(1)) as chat:
        turn = await chat.send("go")
        gate = await parked(talk, chat)
        claimed = await chat.claim(gate, "one", 100.0)
        assert claimed.until == gate.expires == talk.clock.now() + 30.0
        talk.clock.advance(31.0)
        await turn
    [came] = await talk.settled()
    assert (came.state, came.output.text) == ("failed", "no client ran this: nobody answered in time")


@pytest.mark.parametrize("at", ["claimed", "asked"])
async def test_a_process_that_ends_before_the_answer_is_not_missed(at: str, store: Store) -> None:
    talk = Talk(bell("once"), store=store)
    async with talk.process(*ringing(1)) as chat:
        turn = await chat.send("go")
        gate = await parked(talk, chat)
        if at == "claimed":
            await chat.claim(gate, "page")
    async with talk.process(*ringing(1)) as chat:
        [same] = await chat.gates()
        assert same == gate
        if at == "claimed":
            with pytest.raises(ClaimedOtherwise):
                await chat.claim(gate, "other")
        else:
            await chat.claim(gate, "page")
        await chat.answer(gate, result='{"rung":1}', claim="page", by="page")
        assert (await chat.turn(turn.id)).text == "It rang."
    assert [event.state for event in await talk.settled()] == ["completed"]
    assert len(await talk.events(GateOpened)) == len(await talk.events(CallStarted)) == 1


# What it answers -----------------------------------------------------------------------------------------------------


async def test_a_result_that_does_not_fit_is_refused_on_arrival_and_the_client_may_try_again(store: Store) -> None:
    talk = Talk(bell(), store=store)
    async with talk.process(*ringing(1)) as chat:
        turn = await chat.send("go")
        gate = await parked(talk, chat)
        await chat.claim(gate, "page")
        await talk.until(CallClaimed)
        before = await talk.events()
        for wrong in ("", "rang", "{}", "[]", '{"rung":"1"}', '{"rung":1.5}', '{"rung":1', "null"):
            with pytest.raises(AnswerUnfit):
                await chat.answer(gate, result=wrong, claim="page", by="page")
        with pytest.raises(AnswerUnfit):  # there is nothing to be allowed here
            await chat.answer(gate, allow="once", claim="page")
        assert await talk.events() == before
        await chat.answer(gate, result='{"rung":1}', claim="page", by="page")
        await turn
    assert [event.output.text for event in await talk.settled()] == ['{"rung":1}']


async def test_what_a_client_returns_that_does_not_fit_is_an_error_that_the_model_is_told() -> None:
    talk = Talk(bell())
    async with talk.process(*ringing(1)) as chat:
        turn = await chat.send("go")
        async with serving(ToolClient(chat, {"bell": lambda times: "many"})):
            await turn
    [came] = await talk.settled()
    assert came.state == "failed"
    assert "does not match the schema" in came.output.text


async def test_the_error_of_a_client_is_told_to_the_model() -> None:
    def ring(times: int) -> None:
        raise ValueError("the bell is cracked")

    talk = Talk(bell())
    async with talk.process(*ringing(1)) as chat:
        turn = await chat.send("go")
        async with serving(ToolClient(chat, {"bell": ring})):
            await turn
    [came] = await talk.settled()
    assert (came.state, came.output.text) == ("failed", "ValueError: the bell is cracked")


async def test_arguments_that_do_not_fit_reach_no_client() -> None:
    talk = Talk(bell())
    await talk.tell(calls(call("bell", times="many")), say("Well."))
    assert talk.asked == []
    assert [event.state for event in await talk.settled()] == ["failed"]


async def test_a_person_may_refuse_for_the_client(store: Store) -> None:
    talk = Talk(bell(), store=store)
    async with talk.process(*ringing(1)) as chat:
        turn = await chat.send("go")
        gate = await parked(talk, chat)
        await chat.answer(gate, deny="it is night")
        await turn
    [came] = await talk.settled()
    assert (came.state, came.output.text) == ("failed", "no client ran this: it is night")


# Where it stands -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["look", "Look", "LOOK"])
async def test_a_tool_of_a_face_that_is_named_like_one_that_is_here_is_refused(name: str) -> None:
    @tool(read_only=True)
    def look() -> str:
        return "seen"

    talk = Talk(look)
    async with talk.process(say("?")) as chat:
        with pytest.raises(ConfigError, match="is already used"):
            await chat.send("go", clients=[ClientTool(name, "Look.", TIMES)])
        with pytest.raises(ConfigError, match="is already used"):
            await chat.send("go", clients=[ClientTool("a", "A.", TIMES), ClientTool("a", "A.", TIMES)])
        assert await chat.messages() == []


@pytest.mark.parametrize("where", ["runtime", "turn"])
async def test_a_rule_denies_a_client_tool_like_any(where: str) -> None:
    rule = Rule("tab", "deny")
    talk = Talk(bell(), rules=[rule] if where == "runtime" else [])
    talk.options["rules"] = (rule,) if where == "turn" else ()
    async with talk.process(calls(call("tab", times=1)), say("Well.")) as chat:
        await (await chat.send("go", clients=[ClientTool("tab", "Open a tab.", TIMES)]))
    assert await talk.events(GateOpened, CallStarted) == []
    assert [event.state for event in await talk.settled()] == ["denied"]
    assert [[spec.name for spec in request.tools] for request in talk.requests] == [["bell"], ["bell"]]


async def test_a_person_is_asked_first_where_it_says_so_and_then_a_client() -> None:
    talk = Talk(bell(approval="always"))
    async with talk.process(*ringing(1)) as chat:
        turn = await chat.send("go")
        [first] = await talk.waiting(chat)
        assert first.kind == "call"
        with pytest.raises(AnswerUnfit):
            await chat.claim(first, "page")
        async with serving(ToolClient(chat, {"bell": lambda times: {"rung": times}}, name="page")):
            await talk.until(TurnSuspended)
            assert await talk.events(CallClaimed) == []
            await chat.answer(first, allow="once")
            await turn
    assert [event.output.text for event in await talk.settled()] == ['{"rung":1}']


async def test_a_client_does_what_a_sub_turn_calls(store: Store) -> None:
    @tool(idempotent=True)
    async def hand_on(ctx: ToolContext) -> str:
        return (await ctx.run_subagent(SubagentRequest("below"))).text

    talk = Talk(hand_on, store=store)
    scenes = Scenes(go=[calls(call("hand_on")), say("Done.")], below=[calls(call("tab", times=1)), say("A tab.")])
    async with talk.process(model=scenes) as chat:
        turn = await chat.send("go", clients=[ClientTool("tab", "Open a tab.", TIMES)])
        [gate] = await talk.waiting(chat)
        assert gate.session != chat.session
        async with serving(ToolClient(chat, {"tab": lambda times: "opened"})):
            assert (await turn).text == "Done."
    assert [event.output.text for event in await talk.settled()] == ["A tab."]
    assert [event.output.text for event in await talk.settled(gate.session)] == ["opened"]


async def test_a_client_tool_that_those_above_were_denied_is_denied_below() -> None:
    @tool(idempotent=True)
    async def hand_on(ctx: ToolContext) -> str:
        return (await ctx.run_subagent(SubagentRequest("below"))).text

    talk = Talk(hand_on, rules=[], tools=("hand_on",))
    scenes = Scenes(go=[calls(call("hand_on")), say("Done.")], below=[calls(call("tab", times=1)), say("No tab.")])
    async with talk.process(model=scenes) as chat:
        turn = await chat.send("go", clients=[ClientTool("tab", "Open a tab.", TIMES)])
        await talk.play(chat, turn)
    assert talk.asked == []
    below = next(name for name in await talk.sessions() if name != "s")
    assert [event.state for event in await talk.settled(below)] in (["denied"], ["failed"])
    assert await talk.events(CallStarted, session=below) == []
