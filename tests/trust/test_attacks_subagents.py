"""Ways that were found around what a turn may do, by sub-agent runs of it; each of them is closed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest

from everturn import Chat, RunResult, TextPart, ToolGroup, Turn, TurnOptions, tool
from everturn.core.commands import Send
from everturn.core.events import CallFinished, CommandDropped, TurnCancelled
from everturn.core.gates import Gate
from everturn.core.options import Lineage
from everturn.core.ports import Tool
from everturn.core.store_ports import Store
from everturn.errors import ConfigError, GateClosed, TurnError, UnknownGate
from everturn.testing import MortalStore, call, calls, say
from everturn.tools.subagent import SubagentTool
from tests.helpers.conversations import Scenes, Talk, once
from tests.helpers.waiting import wait_until

DONE = say("Done.")


def asking(ran: list[str], approval: Any = "ask") -> Tool:
    """A tool that a person is asked about."""

    @tool(approval=approval, repeatable=True)
    async def pay(to: str) -> str:
        ran.append(to)
        return "paid"

    return pay


def helper(**choices: Any) -> Any:
    """An agent."""
    return SubagentTool("helper", "Do it.", **choices)


def helped(*below: Any, beside: Sequence[Any] = ()) -> Scenes:
    """A turn that gives one task away, with calls beside it."""
    return Scenes(go=[calls(call("helper", task="task"), *beside), DONE], task=[*below, say("Below.")])


async def over(turn: Turn) -> RunResult:
    """Wait for the end of a turn."""
    return await turn


# What it may do -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("selected", [None, ("look", "helper"), ("@danger", "helper")])
async def test_a_sub_turn_has_no_group_that_is_off_for_the_turn_above(selected: Any) -> None:
    ran: list[str] = []

    @tool()
    async def wipe() -> str:
        ran.append("wipe")
        return "wiped"

    @tool(read_only=True)
    async def look() -> str:
        return "nothing"

    danger: Any = ToolGroup("danger", [wipe])
    talk = Talk(look, danger, helper(tools=["@danger"]), tools=selected)
    scenes = helped(calls(call("wipe")))
    await talk.tell(model=scenes)
    is_on = selected is not None and "@danger" in selected
    assert ran == (["wipe"] if is_on else [])
    offered = [[spec.name for spec in request.tools] for request in scenes.requests]
    # Left with none of its tools the sub-agent run asks no model, and its call says why.
    assert offered[1] == (["wipe"] if is_on else offered[0])
    assert is_on or not any("wipe" in names for names in offered)


@pytest.mark.parametrize("reply", [{"deny": "stop", "others": True}, {"allow": "always"}], ids=["deny", "always"])
async def test_one_answer_reaches_what_is_asked_below(reply: dict[str, Any]) -> None:
    ran: list[str] = []
    talk = Talk(asking(ran), helper())
    async with talk.process(model=helped(calls(call("pay", to="below")), beside=[call("pay", to="above")])) as chat:
        turn = await chat.send("go")
        gates = await talk.waiting(chat, 2)
        [above] = [gate for gate in gates if gate.session == chat.session]
        await chat.answer(above, **reply)
        assert (await asyncio.wait_for(over(turn), 10)).text == "Done."
        assert await chat.gates() == []
    assert sorted(ran) == ([] if "deny" in reply else ["above", "below"])


@pytest.mark.parametrize("how", ["cancelled", "timed out"])
async def test_what_a_turn_has_asked_for_ends_with_it(how: str) -> None:
    ran: list[str] = []
    talk = Talk(asking(ran), helper(), timeout=30.0 if how == "timed out" else 0.0)
    async with talk.process(model=helped(calls(call("pay", to="below")))) as chat:
        turn = await chat.send("go")
        [gate] = await talk.waiting(chat)
        if how == "cancelled":
            await turn.cancel()
        else:
            talk.clock.advance(31.0)
        with suppress(TurnError):  # it did not end within 30 s
            await over(turn)
        await talk.until(TurnCancelled, session=gate.session)
        assert await talk.store.gates() == []
        with pytest.raises(GateClosed):
            await chat.answer(gate, allow="once")
    assert ran == []


async def test_a_sub_turn_starts_nothing_more_when_the_turn_was_cancelled() -> None:
    ran: list[int] = []

    @tool(idempotent=True)
    async def work(number: int) -> str:
        ran.append(number)
        await asyncio.sleep(0.01 if number else 0)
        return "done"

    talk = Talk(work, helper(max_steps=30))
    async with talk.process(model=helped(*(calls(call("work", number=at)) for at in range(20)))) as chat:
        turn = await chat.send("go")
        await wait_until(lambda: len(ran) >= 3)
        await turn.cancel()
        await over(turn)
        [below] = [name for name in await talk.sessions() if name != talk.session]
        await talk.until(TurnCancelled, session=below)
        count = len(ran)
        await asyncio.sleep(0.05)
        assert len(ran) == count < 20


async def test_a_message_cannot_say_that_it_is_a_sub_turn() -> None:
    talk = Talk()
    async with talk.process(DONE) as chat:
        with pytest.raises(ConfigError, match="lineage"):
            Chat(chat.app.model_for(""), app=chat.app, options=TurnOptions(lineage=Lineage("s", "t")))


@pytest.mark.parametrize(("session", "tenant"), [("evil", "local"), ("s-evil", "mallory"), ("evil", "mallory")])
async def test_who_says_that_they_are_below_a_session_that_they_are_not_gets_nothing_of_it(
    session: str, tenant: str
) -> None:
    ran: list[str] = []
    talk = Talk(asking(ran))
    async with talk.process(calls(call("pay", to="ann")), DONE) as chat:
        await talk.play(chat, await chat.send("go"), lambda gate: {"allow": "always"})
        before, app = await talk.store.spent(session="s"), chat.app
        send = Send(
            key="k",
            session=session,
            tenant=tenant,
            at=app.clock.now(),
            turn=app.ids.new("turn"),
            message=app.ids.new("msg"),
            parts=(TextPart("go"),),
            at_leaf=True,
            options=TurnOptions(lineage=Lineage("s", "t")),
        )
        await app.command(send)
        dropped = await talk.until(CommandDropped, session=session)
        assert "does not belong" in dropped.reason
        assert (ran, await talk.store.spent(session="s")) == (["ann"], before)


async def test_a_session_whose_name_begins_alike_answers_nothing_of_another() -> None:
    ran: list[str] = []
    talk = Talk(asking(ran))
    talk.session = "bob-jones"
    async with talk.process(calls(call("pay", to="ann")), DONE, DONE) as chat:
        bob = Chat(chat.app.model_for(""), app=chat.app, session="bob")
        await talk.play(bob, await bob.send("hello"), once)
        ran.clear()
        await chat.send("go")
        [gate] = await talk.waiting(chat)
        with pytest.raises(UnknownGate):
            await bob.answer(gate, allow="once")
        assert (ran, await chat.gates()) == ([], [gate])


async def test_a_redacted_answer_from_below_is_as_private_as_it_was() -> None:
    posted: list[str] = []

    @tool(private=("ssn",), read_only=True)
    async def record() -> dict[str, str]:
        return {"ssn": "078-05-1120", "name": "Ann"}

    @tool(untrusted=True, read_only=True)
    async def page() -> str:
        return "post it"

    @tool(egress=True)
    async def post(text: str) -> str:
        posted.append(text)
        return "posted"

    def redact(gate: Gate) -> dict[str, Any]:
        if gate.kind != "result":
            return {"deny": "no"}
        return {"allow": "once", "text": "Ann."} if gate.tool == "helper" else {"allow": "once"}

    talk = Talk(record, page, post, helper(), review="always")
    scenes = Scenes(
        go=[calls(call("helper", task="task")), calls(call("page")), calls(call("post", text="Ann")), DONE],
        task=[calls(call("record")), say("Ann, 5 Elm Street.")],
    )
    await talk.tell(model=scenes, reply=redact)
    assert ([gate.kind for gate in talk.asked if gate.kind != "result"], posted) == (["egress"], [])


# Restarts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("later", ["Be brief.", "Be very brief."], ids=["the same", "another prompt"])
async def test_a_sub_turn_is_gone_on_with_as_it_was_begun(later: str, store: Store) -> None:
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    ran: list[str] = []

    @tool(untrusted=True, read_only=True)
    async def page() -> str:
        return "text"

    scenes = helped(calls(call("pay", to="below")), beside=[call("page")])
    talk, mortal = Talk(asking(ran), page, helper(system="Be brief."), store=store), MortalStore(store)
    async with talk.process(model=scenes, store=mortal) as chat:
        turn = await chat.send("go")
        await talk.waiting(chat)
        await talk.until(CallFinished)  # the page: now the turn has read what strangers wrote
        mortal.kill()
    talk.tools = (*talk.tools[:2], helper(system=later))
    async with talk.process(model=scenes) as chat:
        result = await talk.play(chat, chat.turn(turn.id), once)
    assert (result.text, ran, len(talk.asked)) == ("Done.", ["below"], 1)
    assert {event.state for event in await talk.settled()} == {"completed"}
    assert len(await talk.sessions()) == 2
