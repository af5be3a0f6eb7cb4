"""Sub-agent runs that ask, wait, go on, are cancelled and are gone on with: the turn above holds nothing meanwhile."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from everturn import Chat, Turn, tool
from everturn.core.commands import NotifyCall
from everturn.core.events import (
    CallNotified,
    CallResumed,
    CallStarted,
    CallSuspended,
    CommandDropped,
    LateResultReceived,
    SubagentStarted,
    TurnCancelled,
    TurnCompleted,
    TurnStarted,
    TurnSuspended,
)
from everturn.core.options import Budget
from everturn.core.ports import SubagentRequest, ToolContext
from everturn.core.rules.policy import Rule
from everturn.core.store_ports import Store
from everturn.errors import UnknownSession, UnknownTurn
from everturn.testing import MemoryStore, ScriptedModel, call, calls, say
from everturn.tools.subagent import SubagentTool
from tests.helpers.conversations import Scenes, Talk, prompt_of
from tests.helpers.waiting import wait_until


@tool(approval="always", repeatable=True)
def ring(number: int) -> str:
    return f"rang {number}"


def helper(**also: Any) -> SubagentTool:
    return SubagentTool("helper", "Does things.", **also)


class Rings:
    """A model that hands every task on, and a helper that rings as often as its task says."""

    name = "rings"

    def __init__(self, *tasks: str) -> None:
        self._tasks, self.requests = tasks, list[Any]()

    async def stream(self, request: Any) -> AsyncIterator[Any]:
        self.requests.append(request)
        prompt = prompt_of(request)
        if prompt == "go":
            script: list[Any] = [calls(*(call("helper", task=task) for task in self._tasks)), say("Done.")]
        else:
            script = [calls(call("ring", number=int(prompt))), say(f"{prompt} is done")]
        async for batch in ScriptedModel(*script).stream(request):
            yield batch


async def below(talk: Talk) -> list[str]:
    return [event.session for event in await talk.events(SubagentStarted)]


# Many at once --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_fifty_at_once_that_each_ask_are_answered_in_any_order(is_restarted: bool) -> None:
    tasks = [str(n) for n in range(50)]
    talk, chance = Talk(ring, helper()), random.Random(7)
    async with talk.process(model=Rings(*tasks)) as chat:
        turn = await chat.send("go")
        gates = await talk.waiting(chat, 50)
        await talk.until(TurnSuspended)
        await talk.until(CallSuspended, count=50)
        assert not chat.app.tool_tasks.running_calls(turn.id)
        for session in await below(talk):
            [started] = await talk.events(TurnStarted, session=session)
            assert not chat.app.tool_tasks.running_calls(started.turn)
        chance.shuffle(gates)
        for gate in gates[:25] if is_restarted else gates:
            await chat.answer(gate, allow="once")
        if not is_restarted:
            assert (await turn).text == "Done."
    if is_restarted:
        async with talk.process(model=Rings(*tasks)) as chat:
            for gate in gates[25:]:
                await chat.answer(gate, allow="once")
            assert (await chat.turn(turn.id)).text == "Done."
    assert [
        event.output.text for event in sorted(await talk.settled(), key=lambda event: int(event.output.text.split()[0]))
    ] == [f"{n} is done" for n in range(50)]
    started = [event for session in await below(talk) for event in await talk.events(CallStarted, session=session)]
    assert len(started) == 50


async def test_three_levels_deep_nothing_is_held_and_all_go_on_after_a_restart(store: Store) -> None:
    @tool(idempotent=True)
    async def deeper(task: str, ctx: ToolContext) -> str:
        return (await ctx.run_subagent(SubagentRequest(task))).text

    talk = Talk(ring, deeper, store=store)
    scenes = Scenes(
        go=[calls(call("deeper", task="one")), say("0")],
        one=[calls(call("deeper", task="two")), say("1")],
        two=[calls(call("deeper", task="three")), say("2")],
        three=[calls(call("ring", number=1)), say("3")],
    )
    async with talk.process(model=scenes) as chat:
        turn = await chat.send("go")
        [gate] = await talk.waiting(chat)
        for name in ("s", *(name for name in await talk.sessions() if name != "s")):
            await talk.until(TurnSuspended, session=name)
        assert gate.session.count("-") > 3
    async with talk.process(model=scenes) as chat:
        await chat.answer(gate, allow="once")
        assert (await chat.turn(turn.id)).text == "0"
    assert [event.output.text for event in await talk.settled()] == ["1"]
    assert [event.output.text for event in await talk.settled(gate.session)] == ["rang 1"]


# What it may ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("denied", ["rules", "tools"])
async def test_what_the_turn_above_may_not_one_that_is_gone_on_with_may_not_either(denied: str) -> None:
    @tool()
    def burn() -> str:
        return "burnt"

    scenes = Scenes(
        first=[calls(call("helper", task="hello")), say("Hi.")],
        go=[lambda request: calls(call("helper", task="burn it", session=session[0])), say("Done.")],
        hello=[say("Hello."), calls(call("burn")), say("I could not.")],
    )
    session: list[str] = []
    talk = Talk(burn, helper(resumable=True))
    async with talk.process(model=scenes) as chat:
        await (await chat.send("first"))
        session += await below(talk)
    talk.options.update({"rules": (Rule("burn", "deny"),)} if denied == "rules" else {"tools": ("helper",)})
    async with talk.process(model=scenes) as chat:
        await (await _begin(chat, "go"))
    states = [event.state for event in await talk.settled(session[0])]
    assert states in (["denied"], ["failed"])
    assert await talk.events(CallStarted, session=session[0]) == []
    assert len(await talk.events(TurnStarted, session=session[0])) == 2


async def _begin(chat: Chat, text: str) -> Turn:
    """A turn on a branch of its own, so that its script is found by its first message."""
    await chat.fork(None)
    return await chat.send(text)


async def test_one_that_is_gone_on_with_draws_on_the_budget_of_the_turn_that_asks() -> None:
    session: list[str] = []
    scenes = Scenes(
        first=[calls(call("helper", task="hello")), say("Hi.")],
        go=[lambda request: calls(call("helper", task="more", session=session[0])), say("Done.")],
        hello=[say("Hello."), *(calls(call("look", number=n)) for n in range(9)), say("End.")],
    )

    @tool(read_only=True)
    def look(number: int) -> str:
        return f"seen {number}"

    talk = Talk(look, helper(resumable=True))
    async with talk.process(model=scenes) as chat:
        await (await chat.send("first"))
        session += await below(talk)
    talk.options["budget"] = Budget(calls=3)
    async with talk.process(model=scenes) as chat:
        await (await _begin(chat, "go"))
    assert len(await talk.events(CallStarted, session=session[0])) <= 3


# Gone on with -----------------------------------------------------------------------------------------------------------


async def test_a_second_task_goes_on_in_the_same_session_and_knows_what_was_said(store: Store) -> None:
    def again(request: Any) -> Any:
        text = str(request.messages[-1].parts)
        session = text.partition("[session=")[2].partition("]")[0]
        return calls(call("helper", task="and now?", session=session))

    scenes = Scenes(go=[calls(call("helper", task="hello")), again, say("Done.")], hello=[say("One."), say("Two.")])
    talk = Talk(helper(resumable=True), store=store)
    async with talk.process(model=scenes) as chat:
        assert (await (await chat.send("go"))).text == "Done."
    first, second = await below(talk)
    assert first == second
    texts = [event.output.text for event in await talk.settled()]
    assert texts == [f"One.\n\n[session={first}]", f"Two.\n\n[session={first}]"]
    last = [request for request in talk.requests if prompt_of(request) == "hello"][-1]
    assert [message.text for message in last.messages] == ["hello", "One.", "and now?"]


@pytest.mark.parametrize("whose", ["t", "nowhere", "s", "s-nobody", "t-x", ""])
async def test_a_session_that_is_not_of_this_conversation_is_not_gone_on_with(whose: str, store: Store) -> None:
    other = Talk(store=store)
    other.session = "t"
    await other.tell(say("Hello."), text="mine")
    before = await other.events()
    scenes = Scenes(go=[calls(call("helper", task="hello", session=whose)), say("Done.")], hello=[say("One.")])
    talk = Talk(helper(resumable=True), store=store)
    async with talk.process(model=scenes) as chat:
        await (await chat.send("go"))
    [came] = await talk.settled()
    if whose:
        assert (came.state, await below(talk)) == ("failed", [])
        assert "could be continued" in came.output.text
    else:
        assert came.state == "completed"
    assert await other.events() == before


async def test_one_that_is_still_under_way_is_not_gone_on_with() -> None:
    session: list[str] = []
    scenes = Scenes(
        go=[calls(call("helper", task="hello")), say("Done.")],
        other=[lambda request: calls(call("helper", task="more", session=session[0])), say("Refused.")],
        hello=[calls(call("ring", number=1)), say("One.")],
    )
    talk = Talk(ring, helper(resumable=True))
    async with talk.process(model=scenes) as chat:
        turn = await chat.send("go")
        [gate] = await talk.waiting(chat)
        await talk.until(TurnSuspended)
        session += await below(talk)
        assert (await (await _begin(chat, "other"))).text == "Refused."
        [came] = await talk.settled()
        assert (came.state, came.output.text) == (
            "failed",
            "that sub-agent run is still running; wait for its answer first",
        )
        await chat.answer(gate, allow="once")
        assert (await turn).text == "Done."
    assert len(await talk.events(TurnStarted, session=session[0])) == 1


# Cancelled ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("is_detached", [False, True])
async def test_a_turn_below_that_asks_is_cancelled_with_the_one_above_unless_it_is_detached(
    is_detached: bool, hard: bool
) -> None:
    scenes = Scenes(
        go=[calls(call("helper", task="hello")), say("Never.")], hello=[calls(call("ring", number=1)), say("One.")]
    )
    talk = Talk(ring, helper(detached=is_detached))
    async with talk.process(model=scenes) as chat:
        turn = await chat.send("go")
        [gate] = await talk.waiting(chat)
        await talk.until(TurnSuspended)
        await turn.cancel(hard=hard)
        await turn
        [session] = await below(talk)
        if is_detached:
            beside = Chat(scenes, app=chat.app, session=session)
            [still] = await beside.gates()
            assert still == gate
            await beside.answer(still, allow="once")
            await talk.until(TurnCompleted, session=session)
        else:
            await talk.until(TurnCancelled, session=session)
            assert await chat.app.store.gates() == []
    started = await talk.events(CallStarted, session=session)
    assert len(started) == is_detached
    assert [event.state for event in await talk.settled()] == ["cancelled"]


@pytest.mark.parametrize("is_detached", [False, True])
async def test_a_turn_below_that_runs_is_cancelled_with_the_one_above_unless_it_is_detached(is_detached: bool) -> None:
    running, go_on = asyncio.Event(), asyncio.Event()

    @tool(read_only=True)
    async def work() -> str:
        running.set()
        await go_on.wait()
        return "worked"

    scenes = Scenes(go=[calls(call("helper", task="hello")), say("Never.")], hello=[calls(call("work")), say("One.")])
    talk = Talk(work, helper(detached=is_detached))
    async with talk.process(model=scenes) as chat:
        turn = await chat.send("go")
        await running.wait()
        await turn.cancel()
        await turn
        go_on.set()
        [session] = await below(talk)
        await talk.until(TurnCompleted if is_detached else TurnCancelled, session=session)
        if is_detached:  # and what came of it comes late
            late = await talk.until(LateResultReceived)
            assert late.output.text == "One."


async def test_when_a_person_cancels_the_turn_below_the_one_above_goes_on_with_an_error(store: Store) -> None:
    scenes = Scenes(
        go=[calls(call("helper", task="hello")), say("Well.")], hello=[calls(call("ring", number=1)), say("One.")]
    )
    talk = Talk(ring, helper(), store=store)
    async with talk.process(model=scenes) as chat:
        turn = await chat.send("go")
        await talk.waiting(chat)
        await talk.until(TurnSuspended)
        [subagent] = await talk.events(SubagentStarted)
        await Turn(chat.app, subagent.session, subagent.child).cancel()
        assert (await turn).text == "Well."
    [came] = await talk.settled()
    assert (came.state, came.output.text) == ("failed", "the sub-agent run ended as cancelled")


# Seen and told --------------------------------------------------------------------------------------------------------------


async def test_who_follows_the_turn_above_sees_the_one_below_and_can_follow_it(store: Store) -> None:
    scenes = Scenes(
        go=[calls(call("helper", task="hello")), say("Done.")], hello=[calls(call("ring", number=1)), say("One.")]
    )
    talk = Talk(ring, helper(), store=store)
    seen: list[str] = []
    async with talk.process(model=scenes) as chat:
        turn = await chat.send("go")

        async def follow(begun: SubagentStarted) -> None:
            async for shown in await turn.children(begun):
                seen.append(type(shown).__name__)

        following: list[asyncio.Task[None]] = []
        async for shown in turn:
            if isinstance(shown, SubagentStarted):
                following.append(asyncio.get_running_loop().create_task(follow(shown)))
            if isinstance(shown, TurnSuspended):
                [gate] = await talk.waiting(chat)
                await chat.answer(gate, allow="once")
        await asyncio.gather(*following)
    assert len(following) == 1
    for kind in ("GateOpened", "CallStarted", "CallFinished", "TurnCompleted"):
        assert seen.count(kind) == 1
    assert any(kind.endswith("Delta") for kind in seen)  # as it happened


async def test_a_sub_turn_that_was_never_begun_cannot_be_followed() -> None:
    scenes = Scenes(go=[calls(call("helper", task="hello")), say("Done.")], hello=[say("One.")])
    talk = Talk(helper())
    async with talk.process(model=scenes) as chat:
        turn = await chat.send("go")
        await turn
        [subagent] = await talk.events(SubagentStarted)
        assert (await (await turn.children(subagent))).text == "One."
        with pytest.raises(UnknownTurn):
            await turn.children(replace(subagent, child="nobody"))
        with pytest.raises(UnknownTurn):
            await turn.children(replace(subagent, session="nowhere"))


async def test_being_told_twice_or_too_early_that_the_turn_below_is_over_does_no_harm(store: Store) -> None:
    scenes = Scenes(
        go=[calls(call("helper", task="hello")), say("Done.")], hello=[calls(call("ring", number=1)), say("One.")]
    )
    talk = Talk(ring, helper(), store=store)
    async with talk.process(model=scenes) as chat:
        turn = await chat.send("go")
        [gate] = await talk.waiting(chat)
        await talk.until(TurnSuspended)
        [subagent] = await talk.events(SubagentStarted)
        for at in range(3):
            early = NotifyCall(key=f"early{at}", session="s", turn=turn.id, call=subagent.call)
            await chat.app.command(early)
            await talk.until(CallSuspended, count=at + 2)  # it looks, and is suspended again
            await talk.until(TurnSuspended, count=at + 2)
        await chat.app.command(NotifyCall(key="wrong", session="s", turn=turn.id, call="nobody"))
        await talk.until(CommandDropped)
        await chat.answer(gate, allow="once")
        assert (await turn).text == "Done."
        await chat.app.command(NotifyCall(key="late", session="s", turn=turn.id, call=subagent.call))
        await talk.until(CommandDropped, count=2)
    assert len(await talk.events(CallNotified)) == 4
    assert len(await talk.events(CallResumed)) == 4
    assert [event.output.text for event in await talk.settled()] == ["One."]
    assert len(await talk.events(CallStarted, session=subagent.session)) == 1


class Deaf(MemoryStore):
    """A store that loses what a turn below tells the one above."""

    async def admit(self, command: Any) -> Any:
        if isinstance(command, NotifyCall):
            raise UnknownSession("nobody hears")
        return await super().admit(command)


async def test_a_turn_whose_word_from_below_was_lost_can_still_be_cancelled() -> None:
    scenes = Scenes(
        go=[calls(call("helper", task="hello")), say("Done.")], hello=[calls(call("ring", number=1)), say("One.")]
    )
    talk = Talk(ring, helper(), store=Deaf())
    async with talk.process(model=scenes) as chat:
        turn = await chat.send("go")
        [gate] = await talk.waiting(chat)
        await talk.until(TurnSuspended)
        await chat.answer(gate, allow="once")
        await talk.until(TurnCompleted, session=gate.session)
        await wait_until(lambda: not chat.app.tool_tasks.running_calls(turn.id))
        state = await turn.state()
        assert state.calls[(await talk.events(SubagentStarted))[0].call].state == "waiting"
        await turn.cancel()
        assert str((await turn).phase) == "cancelled"
