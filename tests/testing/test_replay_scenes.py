"""Every kind of turn is recorded as one file, and played again from it: byte for byte, with nothing beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.helpers.conversations import Scenes
from tests.helpers.tools import look

from everturn import App, Chat, ToolContext, Turn, TurnError, TurnOptions, tool
from everturn.core.chunks import FileChunk, FinishChunk
from everturn.core.events import CallStarted, Event, LateResultReceived, StepStarted, TurnSuspended
from everturn.core.hooks import SUSPEND, GateContext, StepContext
from everturn.core.options import Budget, ClientTool
from everturn.core.ports import SubagentRequest
from everturn.events import GateOpened, TextDelta
from everturn.plugins.file_snapshots import FileSnapshots
from everturn.replay import Recording, normalize_recording, replay, replay_offline
from everturn.replay.check import find_all_differences
from everturn.running.drive_setup import TurnSettings
from everturn.stores.memory import MemoryStore
from everturn.testing import CountingIds, FakeClock, ScriptedHang, ScriptedModel, call, calls, say, think
from everturn.tools.files import files, virtual_files

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"at": {"type": "string"}}}


@tool(idempotent=True, approval="always")
async def mail(to: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


@tool(idempotent=True, approval="ask", subjects={"to": "text"})
async def note(to: str) -> str:
    """Write something down."""
    return f"noted for {to}"


async def taken(chat: Chat) -> Recording:
    return await Recording.from_session(chat.app.store, chat.session)


def chatting(*script: Any, tools: Any = (), clock: FakeClock | None = None, **more: Any) -> Chat:
    options = more.pop("options", None)
    app = App(ScriptedModel(*script), tools=list(tools), ids=CountingIds(), clock=clock, **more)
    return Chat("", app=app, options=options)


async def answer_all(chat: Chat, turn: Turn, **answer: Any) -> None:
    """Answer whatever is asked, in sub-agent runs as well."""
    reply: dict[str, Any] = answer or {"allow": "once"}
    async for event in turn:
        if isinstance(event, TurnSuspended | GateOpened):
            for gate in await chat.gates():
                with suppress(Exception):
                    await chat.answer(gate, **reply)


async def written(chat: Chat, kind: type[Event], count: int = 1) -> None:
    store = chat.app.store
    while sum(isinstance(event.event, kind) for event in await store.events(chat.session)) < count:  # noqa: ASYNC110
        await asyncio.sleep(0)


async def wait_for_text(turn: Turn, text: str) -> None:
    async for event in turn.events():
        if isinstance(event, TextDelta) and text in event.text:
            return


# Scenes --------------------------------------------------------------------------------------------------------------


async def thinking_and_asking(tmp: Path) -> Recording:
    tool_calls = calls(call("look", at="hall"), call("mail", to="ada"), call("nothing"))
    async with chatting([think("Hm."), say("I look."), tool_calls], say("Done."), tools=[look, mail]) as chat:
        await answer_all(chat, await chat.send("Go"))
        return await taken(chat)


async def granted_for_others_as_well(tmp: Path) -> Recording:
    tool_calls = calls(*(call("note", to="ada") for _ in range(2)), call("note", to="bob"))
    async with chatting(tool_calls, say("Noted."), tools=[note]) as chat:
        await answer_all(chat, await chat.send("Go"), allow="always")
        return await taken(chat)


async def denied_with_all_others(tmp: Path) -> Recording:
    tool_calls = calls(call("mail", to="ada"), call("mail", to="bob"))
    async with chatting(tool_calls, say("Then not."), tools=[mail]) as chat:
        await answer_all(chat, await chat.send("Go"), deny="no more of this", others=True)
        return await taken(chat)


async def answered_by_a_plugin(tmp: Path) -> Recording:
    class Judge:
        name = "judge"

        def on_gate(self, ctx: GateContext) -> None:
            ctx.allow()

    async with chatting(calls(call("mail", to="ada")), say("Sent."), tools=[mail], plugins=[Judge()]) as chat:
        await (await chat.send("Go"))
        return await taken(chat)


async def cancelled_before_a_word(tmp: Path) -> Recording:
    async with chatting([ScriptedHang()]) as chat:
        turn = await chat.send("Count")
        await written(chat, StepStarted)
        await turn.cancel()
        await turn
        await (await chat.send("Again", model=ScriptedModel(say("Well."), name="another")))
        return await taken(chat)


async def cancelled_while_it_waits(tmp: Path) -> Recording:
    async with chatting(calls(call("mail", to="ada")), say("Well."), tools=[mail]) as chat:
        turn = await chat.send("Go")
        await written(chat, TurnSuspended)
        await turn.cancel()
        await turn
        await (await chat.send("Never mind"))
        return await taken(chat)


async def _cancelled_in_a_tool(hard: bool, late: Any) -> Recording:
    go_on = asyncio.Event()

    @tool()
    async def slow() -> str:
        """Take a while."""
        await go_on.wait()
        return "done after all"

    script = calls(call("slow"), call("look", at="b")), say("I see.")
    async with chatting(*script, tools=[slow, look], options=TurnOptions(late=late)) as chat:
        turn = await chat.send("Go")
        await written(chat, CallStarted, 2)
        await turn.cancel(hard=hard)
        await turn
        go_on.set()
        if late == "inject" and not hard:
            await written(chat, LateResultReceived)
        await (await chat.send("And?"))
        return await taken(chat)


async def cancelled_in_a_tool_that_comes_late(tmp: Path) -> Recording:
    return await _cancelled_in_a_tool(hard=False, late="inject")


async def cancelled_in_a_tool_that_is_stopped(tmp: Path) -> Recording:
    return await _cancelled_in_a_tool(hard=True, late="inject")


async def cancelled_in_a_tool_whose_result_is_discarded(tmp: Path) -> Recording:
    return await _cancelled_in_a_tool(hard=False, late="discard")


async def died_in_a_step(tmp: Path) -> Recording:
    store = MemoryStore()
    async with chatting([say("One two "), ScriptedHang()], store=store) as chat:
        turn = await chat.send("Count")
        await wait_for_text(turn, "two")
    async with Chat(ScriptedModel(say("One two three")), store=store, session=chat.session) as after:
        await after.turn(turn.id)
        return await taken(after)


async def died_in_a_tool(tmp: Path) -> Recording:
    store, never = MemoryStore(), asyncio.Event()

    @tool()
    async def pay() -> str:
        """Pay."""
        await never.wait()
        return "paid"

    async with chatting(calls(call("pay")), say("Nobody knows."), tools=[pay], store=store) as chat:
        turn = await chat.send("Pay")
        await written(chat, CallStarted)
    model = ScriptedModel(calls(call("pay")), say("Nobody knows."))
    async with Chat(model, tools=[pay], store=store, session=chat.session) as after:
        await after.turn(turn.id)
        return await taken(after)


async def too_late_for_an_answer(tmp: Path) -> Recording:
    clock = FakeClock()
    options = TurnOptions(gate_timeout=60)
    async with chatting(
        calls(call("mail", to="ada")), say("Nobody came."), tools=[mail], clock=clock, options=options
    ) as chat:
        turn = await chat.send("Go")
        await written(chat, TurnSuspended)
        clock.advance(61)
        await turn
        return await taken(chat)


async def too_late_for_the_turn(tmp: Path) -> Recording:
    clock = FakeClock()
    async with chatting([say("One "), ScriptedHang()], clock=clock, options=TurnOptions(timeout=30)) as chat:
        turn = await chat.send("Count")
        await wait_for_text(turn, "One")
        clock.advance(31)
        with suppress(TurnError):
            await turn
        return await taken(chat)


async def out_of_time_in_a_tool(tmp: Path) -> Recording:
    clock, go_on = FakeClock(), asyncio.Event()

    @tool(timeout=600)
    async def slow() -> str:
        """Take a while."""
        await go_on.wait()
        return "done after all"

    options = TurnOptions(budget=Budget(seconds=30))
    async with chatting(calls(call("slow")), say("That is all."), tools=[slow], clock=clock, options=options) as chat:
        turn = await chat.send("Go")
        await written(chat, CallStarted)
        clock.advance(31)
        await turn
        go_on.set()
        await written(chat, LateResultReceived)
        return await taken(chat)


async def _limited(**limits: Any) -> Recording:
    script = calls(call("look", at="a")), calls(call("look", at="b")), say("So far.")
    async with chatting(*script, tools=[look], settings=TurnSettings(**limits)) as chat:
        await (await chat.send("Look"))
        await (await chat.send("More"))
        return await taken(chat)


async def out_of_steps_of_the_session(tmp: Path) -> Recording:
    return await _limited(session_budget=Budget(steps=2))


async def out_of_calls_of_the_tenant(tmp: Path) -> Recording:
    return await _limited(tenant_budget=Budget(calls=1))


async def told_more_on_the_way(tmp: Path) -> Recording:
    async with chatting(calls(call("mail", to="ada")), say("Both."), tools=[mail]) as chat:
        turn = await chat.send("Write to Ada")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                await chat.send("and to Bob", steer=True)
                await turn.answer((await chat.gates())[0], allow="once")
        return await taken(chat)


async def done_by_a_client(tmp: Path) -> Recording:
    options = TurnOptions(clients=(ClientTool("ring", "Ring.", SCHEMA),))
    async with chatting(calls(call("ring", at="door")), say("Rang."), say("Yes."), options=options) as chat:
        turn = await chat.send("Ring")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                [gate] = await chat.gates()
                await chat.claim(gate, "page")
                await chat.answer(gate, result="rang", claim="page", by="page")
        await (await chat.send("Did you?"))
        return await taken(chat)


async def done_manual_and_reviewed(tmp: Path) -> Recording:
    options = TurnOptions(review="always", manual=("mail",))
    tool_calls = calls(call("mail", to="ada"), call("look", at="a"))
    async with chatting(tool_calls, say("Done."), tools=[look, mail], options=options) as chat:
        turn = await chat.send("Go")
        async for event in turn:
            if isinstance(event, GateOpened):
                if event.gate.kind == "manual":
                    await turn.answer(event.gate, result="I wrote to her")
                else:
                    await turn.answer(event.gate, allow="once")
        return await taken(chat)


async def turns_below(tmp: Path) -> Recording:
    @tool(idempotent=True)
    async def ask(what: str, context: ToolContext) -> str:
        """Have something done."""
        first = await context.run_subagent(SubagentRequest(what, tools=("mail", "deeper", "look")))
        return first.text

    @tool(idempotent=True)
    async def deeper(context: ToolContext) -> str:
        """Have something done further down."""
        return (await context.run_subagent(SubagentRequest("deep", tools=("look",)))).text

    model = Scenes(
        go=[calls(call("ask", what="below")), calls(call("look", at="a")), say("Done.")],
        below=[calls(call("mail", to="bob"), call("deeper")), say("Mailed.")],
        deep=[calls(call("look", at="z")), say("Seen.")],
    )
    app = App(model, tools=[look, mail, ask, deeper], ids=CountingIds())
    async with Chat("", app=app) as chat:
        await answer_all(chat, await chat.send("go"))
        recording = await taken(chat)
    assert len(recording.below) == 1
    assert len(recording.below[0].below) == 1
    return recording


async def a_file_made_by_a_model(tmp: Path) -> Recording:
    picture = [FileChunk(b"\x89PNG" * 100, "image/png", "cat.png")]
    async with chatting([say("Here: "), picture, [FinishChunk("stop")]], say("A cat.")) as chat:
        await (await chat.send("Draw a cat"))
        await (await chat.send("What is it?"))
        return await taken(chat)


async def plugins_that_have_a_word(tmp: Path) -> Recording:
    class Critic:
        name = "critic"

        async def on_after_request(self, ctx: StepContext) -> Any:
            if ctx.step == 1:
                await ctx.append_message("now")
                await ctx.append_and_request("Be brief.", deferred=True, priority=2)
                return None if await ctx.ask("Is that good?") is not None else SUSPEND
            return None

    class Counter:
        name = "counter"

        async def on_after_request(self, ctx: StepContext) -> None:
            await ctx.append_message(f"step {ctx.step}", deferred=True)

    plugins = [Critic(), Counter()]
    script = calls(call("look", at="a"), call("mail", to="ada")), say("Brief."), say("More.")
    async with chatting(*script, tools=[look, mail], plugins=plugins) as chat:
        await answer_all(chat, await chat.send("Go"))
        return await taken(chat)


async def a_folder_and_its_snapshots(tmp: Path) -> Recording:
    folder = tmp / "work"
    await asyncio.to_thread(folder.mkdir)
    snapshots = FileSnapshots(folder, store_dir=tmp / "kept")
    group = files(folder)
    script = calls(call("write_file", path="a.md", content="one\n")), say("Written."), say("Yes.")
    async with chatting(*script, tools=[group.enabled()], plugins=[snapshots]) as chat:
        turn = await chat.send("Write")
        await answer_all(chat, turn)
        message = (await turn).message
        assert message is not None
        [part] = [part for part in message.parts if type(part).__name__ == "FilesPart"]
        await chat.unrevert(await chat.revert(part))  # pyright: ignore[reportArgumentType]
        await (await chat.send("Is it there?"))
        return await taken(chat)


async def files_of_the_session(tmp: Path) -> Recording:
    script = calls(call("write_file", path="a.md", content="one\n")), say("Written.")
    async with chatting(*script, tools=[virtual_files().enabled()]) as chat:
        turn = await chat.send("Write")
        await answer_all(chat, turn)
        message = (await turn).message
        assert message is not None
        [part] = [part for part in message.parts if type(part).__name__ == "FilesPart"]
        await chat.unrevert(await chat.revert(part))  # pyright: ignore[reportArgumentType]
        return await taken(chat)


async def two_branches_at_once(tmp: Path) -> Recording:
    async with chatting(say("One."), calls(call("mail", to="ada")), say("Two."), tools=[mail]) as chat:
        await (await chat.send("Go"))
        first = (await chat.messages())[-1]
        turns = [await chat.send("On"), await chat.rerun(first)]
        await asyncio.gather(*(answer_all(chat, turn) for turn in turns))
        return await taken(chat)


async def with_tools_and_then_without(tmp: Path) -> Recording:
    store = MemoryStore()
    async with chatting(calls(call("look", at="a")), say("Seen."), tools=[look], store=store) as chat:
        await (await chat.send("Look"))
    async with Chat(ScriptedModel(say("?"), say("?"), say("No tools.")), store=store, session=chat.session) as after:
        await (await after.send("And now?"))
        return await taken(after)


SCENES: list[Callable[[Path], Coroutine[Any, Any, Recording]]] = [
    thinking_and_asking,
    granted_for_others_as_well,
    denied_with_all_others,
    answered_by_a_plugin,
    cancelled_before_a_word,
    cancelled_while_it_waits,
    cancelled_in_a_tool_that_comes_late,
    cancelled_in_a_tool_that_is_stopped,
    cancelled_in_a_tool_whose_result_is_discarded,
    died_in_a_step,
    died_in_a_tool,
    too_late_for_an_answer,
    too_late_for_the_turn,
    out_of_time_in_a_tool,
    out_of_steps_of_the_session,
    out_of_calls_of_the_tenant,
    told_more_on_the_way,
    done_by_a_client,
    done_manual_and_reviewed,
    turns_below,
    a_file_made_by_a_model,
    plugins_that_have_a_word,
    a_folder_and_its_snapshots,
    files_of_the_session,
    two_branches_at_once,
    with_tools_and_then_without,
]


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
async def test_it_is_played_again_byte_for_byte(scene: Callable[[Path], Awaitable[Recording]], tmp_path: Path) -> None:
    (await scene(tmp_path)).write(tmp_path / "it.jsonl")
    recording = Recording.read(tmp_path / "it.jsonl")
    played = await replay_offline(recording)
    assert find_all_differences(recording, played) == []
    assert normalize_recording(played) == normalize_recording(recording)


async def test_every_turn_of_a_session_can_be_had_by_itself() -> None:
    async with chatting(calls(call("mail", to="ada")), say("Sent."), say("Yes."), say("Bye."), tools=[mail]) as chat:
        for text in ("Write", "Sure?", "Thanks"):
            await answer_all(chat, await chat.send(text))
        store, whole = chat.app.store, await taken(chat)
        for number, turn in enumerate(whole.turns, 1):
            recording = Recording.load((await Recording.from_session(store, chat.session, turn)).dump())
            assert recording.turn == turn
            assert len([event for event in recording.events if type(event).__name__ == "TurnStarted"]) == number
            assert await replay(recording) == []
            played = await replay_offline(replace(recording, turn=""))  # all that lay before it as well
            assert normalize_recording(played) == normalize_recording(recording)
