"""Ways that were found to lose a sub-agent run, to begin one that nobody wants, or to reach beyond the turn above; each is closed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from everturn import Chat, ToolGroup, tool
from everturn.app import App
from everturn.core.chunks import Chunk
from everturn.core.commands import AnyCommand, Send
from everturn.core.events import CallFinished, Event, SubagentStarted, TurnCancelled, TurnSuspended
from everturn.core.options import ClientTool
from everturn.core.ports import Question, SubagentRequest, ToolContext
from everturn.core.requests import ModelRequest
from everturn.core.store_ports import Receipt
from everturn.engine import inline
from everturn.errors import StoreUnavailable, ToolError
from everturn.testing import MemoryStore, ScriptedModel, call, calls, say
from everturn.tools import client_tool
from everturn.tools.subagent import SubagentTool
from tests.helpers.conversations import Scenes, Talk, once, prompt_of
from tests.helpers.waiting import wait_until

NOTHING: dict[str, Any] = {"type": "object", "properties": {}}


@tool(approval="always")
async def ring() -> str:
    """Ring."""
    return "rang"


def scenes() -> Scenes:
    return Scenes(go=[calls(call("helper", task="below")), say("Done.")], below=[calls(call("ring")), say("It rang.")])


# Whose it is -----------------------------------------------------------------------------------------------------------


async def test_a_conversation_whose_name_begins_alike_is_not_gone_on_with() -> None:
    private, talk = Talk(), Talk(SubagentTool("helper", "Help.", resumable=True))
    private.store, private.session = talk.store, "s-private"
    await private.tell(say("Noted."), text="the plan is 42")
    before = await private.events()
    await talk.tell(calls(call("helper", task="what was said?", session="s-private")), say("Done."))
    [came] = await talk.settled()
    assert (came.state, "could be continued" in came.output.text) == ("failed", True)
    assert (await private.events(), sorted(await talk.sessions())) == (before, ["s", "s-private"])


async def test_what_another_tool_began_is_not_gone_on_with() -> None:
    first, second = (SubagentTool(name, "Help.", resumable=True) for name in ("helper", "stranger"))
    talk = Talk(first, second)
    session = "s-turn_s1x2-1-1"
    model = Scenes(
        go=[calls(call("helper", task="below")), calls(call("stranger", task="more", session=session)), say("Done.")],
        below=[say("42"), say("never")],
    )
    await talk.tell(model=model)
    assert [outcome.state for outcome in await talk.settled()] == ["completed", "failed"]
    assert [event.session for event in await talk.events(SubagentStarted)] == [session]


async def test_a_sub_turn_has_no_tool_of_a_face_that_the_turn_above_was_told_not_to_have() -> None:
    wipe = ClientTool("wipe", "Wipe.", NOTHING)
    bell = client_tool("bell", "Ring.", NOTHING)
    house: list[Any] = [ToolGroup("house", [bell])]
    talk = Talk(SubagentTool("helper", "Help."), *house, tools=("@house", "helper"), clients=(wipe,))
    model = Scenes(go=[calls(call("helper", task="below")), say("Done.")], below=[calls(call("wipe")), say("No.")])
    await talk.tell(model=model)
    assert (talk.asked, [outcome.output.text for outcome in await talk.settled()]) == ([], ["No."])
    [came] = await talk.settled("s-turn_s1x2-1-1")
    assert "there is no tool called 'wipe'" in came.output.text


# When it begins, and when it ends ----------------------------------------------------------------------------------------


class Slow(MemoryStore):
    """Lets a message to a sub-agent run be on its way until it is let through."""

    def __init__(self) -> None:
        super().__init__()
        self.is_on_its_way, self.through = asyncio.Event(), asyncio.Event()

    async def admit(self, command: AnyCommand) -> Receipt:
        """Admit it, some of them later."""
        if isinstance(command, Send) and command.session != "s":
            self.is_on_its_way.set()
            await self.through.wait()
        return await super().admit(command)


@pytest.mark.parametrize("hard", [False, True])
async def test_a_sub_turn_that_was_on_its_way_when_its_turn_was_cancelled_asks_no_model_and_no_person(
    hard: bool,
) -> None:
    store, model = Slow(), scenes()
    talk = Talk(SubagentTool("helper", "Help."), ring, store=store)
    async with talk.process(model=model) as chat:
        turn = await chat.send("go")
        await store.is_on_its_way.wait()
        await turn.cancel(hard=hard)
        await talk.until(TurnCancelled)
        store.through.set()
        await wait_until(lambda: not chat.app.tool_tasks.has_undelivered(turn.id))
        for name in await talk.sessions():
            for _ in range(100):
                await asyncio.sleep(0)
            assert (await store.open_turns(name), await store.inbox(name), await store.gates(name)) == ([], [], [])
    assert [prompt_of(request) for request in model.requests] == ["go"]


class Looking(MemoryStore):
    """Does not say, the first time that it is asked by a tool, whether a session is free."""

    is_slow = False

    async def open_turns(self, session: str) -> list[str]:
        """Say it, or not yet."""
        if self.is_slow and session != "s":
            self.is_slow = False
            await asyncio.Event().wait()
        return await super().open_turns(session)


async def test_of_two_sub_turns_at_once_each_has_its_own_answer_though_the_second_was_the_first_to_begin() -> None:
    store = Looking()
    begun: list[str] = []

    @tool(idempotent=True)
    async def both(session: str, ctx: ToolContext) -> object:
        if not session:
            return (await ctx.run_subagent(SubagentRequest("zero"))).session
        store.is_slow = not begun
        begun.append(session)
        wanted = (SubagentRequest("one", session=session), SubagentRequest("two"))
        return [answer.text for answer in await asyncio.gather(*map(ctx.run_subagent, wanted))]

    class Answers:
        name = "answers"

        async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
            last = [message.text for message in request.messages if message.role == "user"][-1]
            if last in ("one", "two") and request.messages[-1].role == "user":
                reply = calls(call("ring"))
            elif last == "go" and not begun:
                session = "s-turn_s1x2-1-1" if len(request.messages) > 1 else ""
                reply = calls(call("both", session=session))
            else:
                reply = say(f"answer to {last}")
            async for batch in ScriptedModel(*[reply] * len(request.messages) * 2).stream(request):
                yield batch

    talk = Talk(both, ring, store=store)
    async with talk.process(model=Answers()) as chat:
        turn = await chat.send("go")
        await talk.until(TurnSuspended)
        await talk.play(chat, turn, once)
    assert [outcome.output.text for outcome in await talk.settled()][1:] == ['["answer to one","answer to two"]']
    assert [event.number for event in await talk.events(SubagentStarted)] == [1, 2, 1]


class Held(MemoryStore):
    """Is slow to write what a call has come to, once."""

    def __init__(self) -> None:
        super().__init__()
        self.is_writing, self.goes_on = asyncio.Event(), asyncio.Event()

    async def append(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
        """Write it, or write it later."""
        if session == "s" and any(isinstance(event, CallFinished) for event in events):
            self.is_writing.set()
            await self.goes_on.wait()
        return await super().append(session, after, events, epoch)


class Endless:
    """A model that has begun to say something in a sub-agent run, and does not go on."""

    name = "scenes"

    def __init__(self) -> None:
        self.inner, self.is_asked = scenes(), asyncio.Event()

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Answer, or wait."""
        if prompt_of(request) == "below":
            self.is_asked.set()
            await asyncio.Event().wait()
        elif len(request.messages) == 1:
            async for batch in ScriptedModel(calls(call("helper", task="below"), call("look"))).stream(request):
                yield batch


async def test_a_process_that_closes_settles_no_call_whose_sub_turn_goes_on_elsewhere() -> None:
    model, store = Endless(), Held()

    @tool(read_only=True)
    async def look() -> str:
        await model.is_asked.wait()
        return "seen"

    talk = Talk(SubagentTool("helper", "Help."), ring, look, store=store)
    async with talk.process(model=model) as chat:
        turn = await chat.send("go")
        await store.is_writing.wait()
        closing = asyncio.ensure_future(chat.aclose())
        for _ in range(50):
            await asyncio.sleep(0)
        store.goes_on.set()
        await closing
    assert [outcome.output.text for outcome in await talk.settled()] in ([], ["seen"])
    async with talk.process(model=scenes()) as chat:
        result = await talk.play(chat, chat.turn(turn.id), once)
    assert (result.text, {outcome.output.text for outcome in await talk.settled()}) == ("Done.", {"seen", "It rang."})


async def test_what_a_detached_sub_turn_asks_is_shown_and_answered_after_its_turn_was_cancelled() -> None:
    talk = Talk(SubagentTool("helper", "Help.", detached=True), ring)
    async with talk.process(model=scenes()) as chat:
        turn = await chat.send("go")
        [gate] = await talk.waiting(chat)
        await talk.until(TurnSuspended)
        await turn.cancel()
        await talk.until(TurnCancelled)
        assert [gate.id for gate in await chat.gates()] == [gate.id]
        await chat.answer(gate, allow="once")
        assert (await Chat.turn(Chat(scenes(), app=chat.app, session=gate.session), gate.turn)).text == "It rang."
        assert await chat.gates() == []


class Mute(MemoryStore):
    """Writes what has become of the calls of a turn that ends, and does not get to say so."""

    is_mute = True

    async def append(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
        """Write it."""
        head = await super().append(session, after, events, epoch)
        if self.is_mute and session == "s" and any(isinstance(event, CallFinished) for event in events):
            self.is_mute = False
            raise StoreUnavailable("nobody knows")
        return head


async def test_a_sub_turn_is_cancelled_though_its_turn_got_no_further_than_to_write_down_that_it_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Noticed:
        """So that how it ends is written before anything is done about it."""

        name = "noticed"

        def on_turn_end(self, ctx: Any) -> None:
            pass

    monkeypatch.setattr(inline, "BACKOFF", 0.001)
    store, model = Mute(), scenes()
    talk = Talk(store=store)
    app = App(model, tools=[SubagentTool("helper", "Help."), ring], plugins=[Noticed()], store=store)
    async with Chat(model, app=app, session="s") as chat:
        turn = await chat.send("go")
        [gate] = await talk.waiting(chat)
        await talk.until(TurnSuspended)
        await turn.cancel()
        await talk.until(TurnCancelled)
        await talk.until(TurnCancelled, gate.session)
    assert not store.is_mute


# What nobody wants any more ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("waits", ["client", "form", "review"])
async def test_a_call_that_waits_for_somebody_is_settled_when_the_tool_that_made_it_has_ended(waits: str) -> None:
    @tool(idempotent=True)
    async def form(ctx: ToolContext) -> str:
        return (await ctx.ask(Question("Well?"))).result or ""

    @tool(review="always")
    async def review() -> str:
        return "read me"

    @tool  # held while it waits
    async def impatient(ctx: ToolContext) -> str:
        asking = asyncio.ensure_future(ctx.run_tool(waits, {}))
        await is_asked.wait()
        asking.cancel()
        return "going on without"

    is_asked = asyncio.Event()
    talk = Talk(impatient, form, review, client_tool("client", "Ring.", NOTHING))
    async with talk.process(calls(call("impatient")), say("Done.")) as chat:
        turn = await chat.send("go")
        await talk.waiting(chat)
        is_asked.set()
        assert (await talk.play(chat, turn, lambda gate: None)).text == "Done."
        assert await chat.gates() == []
    assert {outcome.state for outcome in await talk.settled()} == {"completed", "cancelled"}


async def test_a_tool_that_is_held_for_a_call_of_its_own_hears_that_its_turn_was_cancelled() -> None:
    errors: list[str] = []

    @tool
    async def held(ctx: ToolContext) -> str:
        try:
            return (await ctx.run_tool("client", {})).text
        except ToolError as error:
            errors.append(str(error))
            raise

    talk = Talk(held, client_tool("client", "Ring.", NOTHING))
    async with talk.process(calls(call("held")), say("Never.")) as chat:
        turn = await chat.send("go")
        await talk.waiting(chat)
        await turn.cancel()
        await talk.until(TurnCancelled)
        await wait_until(lambda: not chat.app.tool_tasks.has_undelivered(turn.id))
    assert errors == ["the turn that would need it is over"]
