"""Tools that a person runs: the model calls, somebody does it, and what they say came of it is the result."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from everturn import ToolContext, manual, tool
from everturn.core.commands import ResolveGate
from everturn.core.events import CallFinished, CallStarted, GateOpened, GateResolved, PermissionDecided
from everturn.core.gates import GateResolution
from everturn.core.options import Budget
from everturn.core.ports import SubagentRequest, Tool
from everturn.core.requests import RequestResult
from everturn.core.rules.policy import Rule
from everturn.core.store_ports import Store
from everturn.errors import AnsweredOtherwise
from everturn.testing import call, calls, say
from tests.helpers.conversations import Scenes, Talk, never, once

HOW = ["a tool", "a session"]


class Shop:
    """A tool that counts, and others beside it."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def pay(self) -> Tool:
        @tool()
        async def pay(to: str) -> str:
            self.ran.append(to)
            return f"paid {to}"

        return pay

    def look(self) -> Tool:
        @tool(read_only=True)
        async def look(path: str) -> str:
            self.ran.append(path)
            return f"seen {path}"

        return look

    def talk(self, how: str, **more: Any) -> Talk:
        """A conversation in which `pay` is run by hand, for one of the two reasons."""
        if how == "a tool":
            return Talk(manual(self.pay()), self.look(), **more)
        return Talk(self.pay(), self.look(), manual=("pay",), **more)


PAY = calls(call("pay", to="ada"))


@pytest.fixture
def shop() -> Shop:
    return Shop()


def last_result(talk: Talk) -> RequestResult:
    """What the model was told last."""
    [part] = [part for part in talk.requests[-1].messages[-1].parts if isinstance(part, RequestResult)]
    return part


@pytest.mark.parametrize("how", HOW)
async def test_a_result_is_taken_and_nothing_runs(how: str, shop: Shop) -> None:
    talk = shop.talk(how)
    result = await talk.tell(PAY, say("Done."), reply=lambda gate: {"result": "paid in cash"})
    [gate] = talk.asked
    assert (gate.kind, gate.tool, gate.arguments, gate.offers) == ("manual", "pay", '{"to":"ada"}', ())
    assert (shop.ran, await talk.events(CallStarted)) == ([], [])
    assert (last_result(talk).text, last_result(talk).is_error, result.text) == ("paid in cash", False, "Done.")
    [came] = await talk.settled()
    assert (came.state, came.output.title) == ("completed", "done by hand")


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("result", ["", " ", "ä\n日本", "x" * 200_000, '{"status":"ok"}'])
async def test_whatever_they_say_is_the_result(how: str, result: str, shop: Shop) -> None:
    talk = shop.talk(how)
    await talk.tell(PAY, say("Done."), reply=lambda gate: {"result": result})
    [came] = await talk.settled()
    assert came.state == "completed"
    assert came.output.text == result or (len(result) > 100_000 and came.output.blob)
    assert (shop.ran, await talk.events(CallStarted)) == ([], [])


@pytest.mark.parametrize("how", HOW)
async def test_what_did_not_work_is_reported_as_a_failure(how: str, shop: Shop) -> None:
    talk = shop.talk(how)
    async with talk.process(PAY, say("Then not.")) as chat:
        turn = await chat.send("go")
        [gate] = await talk.waiting(chat)
        resolution = GateResolution(True, by="person", result="no cash", failed=True)
        await chat.app.command(ResolveGate(key="a", session="s", gate=gate.id, hash=gate.hash, resolution=resolution))
        await turn
    [came] = await talk.settled()
    assert (came.state, came.output.text, last_result(talk).is_error) == ("failed", "no cash", True)
    assert (shop.ran, await talk.events(CallStarted)) == ([], [])


async def test_in_a_session_it_may_be_run_after_all(shop: Shop) -> None:
    talk = shop.talk("a session")
    await talk.tell(PAY, say("Done."), reply=once)
    assert (shop.ran, last_result(talk).text) == (["ada"], "paid ada")
    assert await talk.check() == 1
    [judged] = await talk.events(PermissionDecided)
    assert judged.gate == talk.asked[0].id


async def test_in_a_session_it_may_be_run_with_other_arguments(shop: Shop) -> None:
    talk = shop.talk("a session")
    await talk.tell(PAY, say("Done."), reply=lambda gate: {"allow": "once", "arguments": {"to": "bob"}})
    assert shop.ran == ["bob"]
    assert await talk.check() == 1


async def test_a_tool_that_is_run_manual_is_never_run_by_us(shop: Shop) -> None:
    talk = shop.talk("a tool")
    await talk.tell(PAY, say("Done."), reply=once)
    assert (shop.ran, last_result(talk).is_error) == ([], True)
    assert "run by a person" in last_result(talk).text


@pytest.mark.parametrize("how", HOW)
async def test_a_denial_is_reported_with_its_reason(how: str, shop: Shop) -> None:
    talk = shop.talk(how)
    await talk.tell(PAY, say("Then not."), reply=lambda gate: {"deny": "I will not"})
    assert (shop.ran, await talk.events(CallStarted)) == ([], [])
    assert "I will not" in last_result(talk).text
    assert [event.state for event in await talk.settled()] == ["denied"]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("when", ["before the answer", "after the answer"])
async def test_it_waits_through_a_restart(how: str, when: str, shop: Shop, store: Store) -> None:
    talk = shop.talk(how, store=store)
    async with talk.process(PAY, say("Done.")) as chat:
        turn = await chat.send("go")
        [gate] = await talk.waiting(chat)
        if when == "after the answer":
            await chat.answer(gate, result="paid in cash")
    talk.clock.advance(86_400.0)
    async with talk.process(PAY, say("Done.")) as chat:
        if when == "before the answer":
            assert [gate.id for gate in await chat.gates()] == [gate.id]
            await chat.answer(gate, result="paid in cash")
        await chat.turn(turn.id)
        assert await chat.gates() == []
        await chat.answer(gate, result="paid in cash")  # the same again is the same
        with pytest.raises(AnsweredOtherwise):
            await chat.answer(gate, result="paid by card")
    assert (shop.ran, await talk.events(CallStarted)) == ([], [])
    assert [event.output.text for event in await talk.settled()] == ["paid in cash"]
    assert (len(await talk.events(GateOpened)), len(await talk.events(GateResolved))) == (1, 1)


@pytest.mark.parametrize("patterns", [("*",), ("p*", "l*"), ("pay", "look")])
async def test_a_session_by_patterns(patterns: tuple[str, ...], shop: Shop) -> None:
    talk = Talk(shop.pay(), shop.look(), manual=patterns)
    both = calls(call("pay", to="ada"), call("look", path="a"))
    await talk.tell(both, say("Done."), reply=lambda gate: {"result": f"did {gate.tool}"})
    assert shop.ran == []
    assert sorted(event.output.text for event in await talk.settled()) == ["did look", "did pay"]


async def test_only_what_is_meant_is_run_manual(shop: Shop) -> None:
    talk = shop.talk("a session")
    both = calls(call("pay", to="ada"), call("look", path="a"))
    await talk.tell(both, say("Done."), reply=lambda gate: {"result": "paid"})
    assert (shop.ran, [gate.tool for gate in talk.asked]) == (["a"], ["pay"])


@pytest.mark.parametrize("how", HOW)
async def test_nobody_is_asked_to_do_what_is_denied_or_makes_no_sense(how: str, shop: Shop) -> None:
    talk = shop.talk(how, rules=[Rule("pay", "deny", {"to": "eve"})])
    tool_calls = calls(call("pay", to="eve"), call("pay", wrong=1), call("pay", to="ada"))
    await talk.tell(tool_calls, say("Done."), reply=lambda gate: {"result": "paid"})
    assert [gate.arguments for gate in talk.asked] == ['{"to":"ada"}']
    assert [event.state for event in sorted(await talk.settled(), key=lambda event: event.call)] == [
        "denied",
        "failed",
        "completed",
    ]


async def test_a_rule_that_allows_it_does_not_run_it(shop: Shop) -> None:
    talk = shop.talk("a session", rules=[Rule("pay", "allow")])
    await talk.tell(PAY, say("Done."), reply=never)
    assert (shop.ran, [gate.kind for gate in talk.asked]) == ([], ["manual"])


async def test_what_is_run_manual_above_is_run_manual_below(shop: Shop) -> None:
    @tool(idempotent=True)
    async def delegate(task: str, ctx: ToolContext) -> str:
        return (await ctx.run_subagent(SubagentRequest(task))).text

    talk = Talk(shop.pay(), delegate, manual=("pay",))
    scenes = Scenes(go=[calls(call("delegate", task="sub")), say("Done.")], sub=[PAY, say("It is paid.")])
    await talk.tell(model=scenes, reply=lambda gate: {"result": "paid in cash"})
    assert (shop.ran, [gate.kind for gate in talk.asked]) == ([], ["manual"])
    assert talk.asked[0].session != talk.session
    assert [event.output.text for event in await talk.settled()] == ["It is paid."]


@pytest.mark.parametrize("how", HOW)
async def test_a_limit_of_time_ends_it_without_anybody(how: str, shop: Shop) -> None:
    talk = shop.talk(how, budget=Budget(seconds=60))
    async with talk.process(PAY, say("Closed.")) as chat:
        turn = await chat.send("go")
        await talk.waiting(chat)
        talk.clock.advance(61.0)
        result = await asyncio.wait_for(_collect(turn), 10)
    assert (result.text, shop.ran, await talk.events(CallStarted)) == ("Closed.", [], [])
    assert [event.state for event in await talk.events(CallFinished)] == ["failed"]


async def _collect(turn: Any) -> Any:
    return await turn
