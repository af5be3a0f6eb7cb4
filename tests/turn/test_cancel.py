"""A cancel ends the turn, not the tool: at once, with a valid history, and what comes late is told later."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from everturn import Chat, TurnOptions, tool
from everturn.core.events import CallStarted, CommandDropped, LateResultReceived
from everturn.core.hooks import StepContext, TurnContext
from everturn.core.options import LatePolicy
from everturn.core.parts import NoticePart, ToolPart
from everturn.core.ports import Tool
from everturn.errors import GateClosed, TurnClosed
from everturn.events import GateOpened, Phase, TextDelta
from everturn.testing import MemoryStore, ScriptedHang, ScriptedModel, call, calls, say
from tests.helpers.crash_harness import validate

SOON = 2  # seconds after which something that should have happened is taken to hang


class Slow:
    """A tool that works until it is released; what became of it is seen here."""

    def __init__(self) -> None:
        self.started, self.release, self.stopped = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @property
    def tool(self) -> Tool:
        @tool
        async def dig(depth: int = 1) -> str:
            self.started.set()
            try:
                await self.release.wait()
            finally:
                self.stopped.set()
            return f"gold at {depth}"

        return dig


def entries_in(chat: Chat) -> Any:
    return chat.app.store.events(chat.session)


async def cancelled_while_digging(chat: Chat, slow: Slow, **how: Any) -> ToolPart:
    """Send, cancel as soon as the tool runs, and see the turn end; its one call."""
    turn = await chat.send("dig")
    await slow.started.wait()
    await turn.cancel(**how)
    async with asyncio.timeout(SOON):
        result = await turn
    assert result.phase is Phase.CANCELLED
    assert result.message is not None
    [part] = [part for part in result.message.parts if isinstance(part, ToolPart)]
    return part


# The end ------------------------------------------------------------------------------------------------------------


async def test_a_turn_ends_though_its_tool_goes_on_for_ever() -> None:
    slow, model = Slow(), ScriptedModel(calls(call("dig")), say("Done."))
    async with Chat(model, tools=[slow.tool]) as chat:
        part = await cancelled_while_digging(chat, slow)
        assert not slow.stopped.is_set()
        assert (part.state, part.late) == ("cancelled", None)
        assert part.output is not None
        assert part.output.code == "cancelled"


async def test_the_history_is_valid_at_once_and_the_next_turn_runs() -> None:
    slow = Slow()
    model = ScriptedModel(calls(call("dig"), call("dig", depth=2), call("nope")), say("Fine."))
    async with Chat(model, tools=[slow.tool]) as chat:
        turn = await chat.send("dig")
        await slow.started.wait()
        await turn.cancel()
        await turn
        assert (await (await chat.send("and now?"))).text == "Fine."
    validate(model.requests[-1].messages)
    assert [message.role for message in model.requests[-1].messages] == ["user", "assistant", "tool", "user"]


async def test_a_hard_cancel_stops_the_tool_and_nothing_comes_late() -> None:
    slow = Slow()
    async with Chat(ScriptedModel(calls(call("dig"))), tools=[slow.tool]) as chat:
        await cancelled_while_digging(chat, slow, hard=True)
        async with asyncio.timeout(SOON):
            await slow.stopped.wait()
            await chat.app.tool_tasks.wait_idle()
        assert not any(isinstance(entry.event, LateResultReceived) for entry in await entries_in(chat))


async def test_what_had_been_said_is_kept() -> None:
    broken: Any = [say("as far as here"), [ScriptedHang()]]
    async with Chat(ScriptedModel(broken)) as chat:
        turn = await chat.send("go")
        async for event in turn:
            if isinstance(event, TextDelta) and event.text == "here":
                await turn.cancel()
        assert (await turn).text == "as far as here"


async def test_a_second_cancel_and_one_after_the_end_change_nothing() -> None:
    slow = Slow()
    async with Chat(ScriptedModel(calls(call("dig"))), tools=[slow.tool]) as chat:
        turn = await chat.send("dig")
        await slow.started.wait()
        await asyncio.gather(turn.cancel(), turn.cancel(), turn.cancel(key="mine"), turn.cancel(key="mine"))
        assert (await turn).phase is Phase.CANCELLED
        before = await chat.app.store.events(chat.session, turn=turn.id)
        await turn.cancel()
        assert (await turn).phase is Phase.CANCELLED
        await settled_inbox(chat)
        assert await chat.app.store.events(chat.session, turn=turn.id) == before
        dropped = [entry.event for entry in await entries_in(chat) if isinstance(entry.event, CommandDropped)]
    assert len(dropped) == 3


async def settled_inbox(chat: Chat) -> None:
    """Wait until every command was acted on."""
    async with asyncio.timeout(SOON):
        while await chat.app.store.inbox(chat.session):  # noqa: ASYNC110 - acting on a command rings no bell
            await asyncio.sleep(0)


async def test_a_turn_that_has_not_begun_never_does() -> None:
    slow, model = Slow(), ScriptedModel(calls(call("dig")), say("Done."), say("Never."))
    async with Chat(model, tools=[slow.tool]) as chat:
        first, second = await chat.send("dig"), await chat.send("and then?")
        await slow.started.wait()
        await second.cancel()
        async with asyncio.timeout(SOON):
            result = await second
        assert (result.phase, result.messages) == (Phase.CANCELLED, ())
        slow.release.set()
        assert (await first).text == "Done."
        assert [message.text for message in await chat.messages()] == ["dig", "Done."]


async def test_a_cancel_that_comes_with_the_message_ends_it_before_the_model_is_asked() -> None:
    model = ScriptedModel(say("Never."))
    async with Chat(model) as chat:
        turn = await chat.send("go")
        await turn.cancel()
        assert (await turn).phase is Phase.CANCELLED
    assert model.requests == []


async def test_an_answer_after_the_cancel_is_refused() -> None:
    mail = tool(name="mail", approval="always")(lambda: "sent")
    async with Chat(ScriptedModel(calls(call("mail"))), tools=[mail]) as chat:
        turn = await chat.send("go")
        async for event in turn:
            if isinstance(event, GateOpened):
                await turn.cancel()
                with pytest.raises(GateClosed):
                    await turn.answer(event.gate, allow="once")
        [gate] = [entry.event.gate for entry in await entries_in(chat) if isinstance(entry.event, GateOpened)]
        with pytest.raises(GateClosed):
            await turn.answer(gate, allow="once")
        assert not any(isinstance(entry.event, CallStarted) for entry in await entries_in(chat))


async def test_a_reader_that_leaves_does_not_cancel() -> None:
    slow = Slow()
    async with Chat(ScriptedModel(calls(call("dig")), say("Done.")), tools=[slow.tool]) as chat:
        turn = await chat.send("dig")
        async for _ in turn:
            break
        await slow.started.wait()
        slow.release.set()
        assert (await turn).text == "Done."


# Plugins ------------------------------------------------------------------------------------------------------------


class Stubborn:
    """Does not care about cancellation, and tries to write when its turn is over."""

    def __init__(self) -> None:
        self.started, self.release, self.wrote = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.error: BaseException | None = None

    async def on_after_request(self, ctx: StepContext) -> None:
        self.started.set()
        while not self.release.is_set():
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                pass
        try:
            await ctx.append_message("I am still here")
        except Exception as error:
            self.error = error
        self.wrote.set()


async def test_a_hook_that_swallows_its_cancellation_is_left_behind_and_cannot_write() -> None:
    plugin = Stubborn()
    async with Chat(ScriptedModel(say("Hm.")), plugins=[plugin]) as chat:
        turn = await chat.send("go")
        await plugin.started.wait()
        await turn.cancel()
        async with asyncio.timeout(SOON):
            assert (await turn).phase is Phase.CANCELLED
        plugin.release.set()
        await plugin.wrote.wait()
        assert isinstance(plugin.error, TurnClosed)
        assert [message.text for message in await chat.messages()] == ["go", "Hm."]


async def test_a_hook_left_behind_that_writes_while_its_turn_ends_does_no_harm() -> None:
    plugin = Stubborn()

    class Patient:
        async def on_turn_end(self, ctx: TurnContext) -> None:
            plugin.release.set()
            await plugin.wrote.wait()

    async with Chat(ScriptedModel(say("Hm.")), plugins=[plugin, Patient()]) as chat:
        turn = await chat.send("go")
        await plugin.started.wait()
        await turn.cancel()
        async with asyncio.timeout(SOON):
            assert (await turn).phase is Phase.CANCELLED
        assert plugin.error is not None


async def test_an_error_raised_because_of_the_cancel_is_the_cancel() -> None:
    started = asyncio.Event()

    class Clumsy:
        async def on_after_request(self, ctx: StepContext) -> None:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                assert ctx.is_cancelled
                raise RuntimeError("I was not done")

    async with Chat(ScriptedModel(say("Hm.")), plugins=[Clumsy()]) as chat:
        turn = await chat.send("go")
        await started.wait()
        await turn.cancel()
        assert (await turn).phase is Phase.CANCELLED


async def test_a_cancel_never_interrupts_an_append(caplog: pytest.LogCaptureFixture) -> None:
    """A store is far away: a cancel may come while an append is under way, and must not tear it."""

    class Far(MemoryStore):
        appending, go_on = asyncio.Event(), asyncio.Event()

        async def append(self, session: str, after: int, events: Sequence[Any], epoch: int | None = None) -> int:
            if any(isinstance(event, CallStarted) for event in events):
                self.appending.set()
                await self.go_on.wait()
            return await super().append(session, after, events, epoch)

    slow, store = Slow(), Far()
    async with Chat(ScriptedModel(calls(call("dig"))), tools=[slow.tool], store=store) as chat:
        turn = await chat.send("dig")
        await store.appending.wait()
        await turn.cancel()
        await until_idle()
        store.go_on.set()
        async with asyncio.timeout(SOON):
            assert (await turn).phase is Phase.CANCELLED
        # Interrupted, nobody would know whether it was written: the drive would fail, and begin again from the log.
        assert not [record for record in caplog.records if record.name == "everturn.engine.inline"]


async def until_idle() -> None:
    """Let everything that can go on go on."""
    for _ in range(20):
        await asyncio.sleep(0)


# Late results -------------------------------------------------------------------------------------------------------


def notices(messages: Sequence[Any]) -> list[str]:
    return [part.text for message in messages for part in message.parts if isinstance(part, NoticePart)]


async def late_by(policy: LatePolicy) -> tuple[ScriptedModel, Chat, Callable[[str], Any]]:
    """A cancelled turn whose tool has come to its end since."""
    slow = Slow()
    model = ScriptedModel(calls(call("dig")), *(say(f"{n}.") for n in range(5)))
    chat = Chat(model, tools=[slow.tool], options=TurnOptions(late=policy))
    await cancelled_while_digging(chat, slow)
    slow.release.set()
    await chat.app.tool_tasks.wait_idle()
    await settled_inbox(chat)

    async def say_again(text: str) -> list[str]:
        await (await chat.send(text))
        return notices(model.requests[-1].messages)

    return model, chat, say_again


async def test_a_late_result_is_attached_and_told_once_without_rewriting_what_was_sent() -> None:
    model, chat, say_again = await late_by("inject")
    [call_] = [e.event for e in await entries_in(chat) if isinstance(e.event, LateResultReceived)]
    assert call_.output.text == "gold at 1"
    [notice] = await say_again("and?")
    assert msgspec.json.decode(notice)["late_tool_result"] == {
        "tool_call_id": call_.call,
        "tool": "dig",
        "result": "gold at 1",
    }
    assert await say_again("and now?") == [notice]  # it stands in the history, and is not told again
    first, second, third = ([msgspec.json.encode(m) for m in request.messages] for request in model.requests)
    assert second[: len(first)] == first
    assert third[: len(second)] == second
    for request in model.requests:
        validate(request.messages)
    await chat.aclose()


async def test_what_was_sent_before_a_late_result_came_is_sent_again_unchanged() -> None:
    slow = Slow()
    model = ScriptedModel(calls(call("dig")), *(say(f"{n}.") for n in range(5)))
    async with Chat(model, tools=[slow.tool]) as chat:
        await cancelled_while_digging(chat, slow)
        await (await chat.send("well?"))
        slow.release.set()
        await chat.app.tool_tasks.wait_idle()
        await settled_inbox(chat)
        await (await chat.send("and now?"))
    before, after = ([msgspec.json.encode(m) for m in request.messages] for request in model.requests[1:])
    assert after[: len(before)] == before
    assert len(notices(model.requests[-1].messages)) == 1


async def test_a_held_late_result_is_attached_and_not_told() -> None:
    _, chat, say_again = await late_by("keep")
    assert [e.event.output.text for e in await entries_in(chat) if isinstance(e.event, LateResultReceived)] == [
        "gold at 1"
    ]
    assert await say_again("and?") == []
    await chat.aclose()


async def test_a_discarded_late_result_leaves_nothing() -> None:
    _, chat, say_again = await late_by("discard")
    assert not any(isinstance(entry.event, LateResultReceived) for entry in await entries_in(chat))
    assert await say_again("and?") == []
    await chat.aclose()


async def test_a_result_that_comes_while_the_next_turn_runs_is_told_before_its_next_request() -> None:
    old, new = Slow(), Slow()
    wait = tool(name="wait")(new.tool.function)  # type: ignore[attr-defined]
    model = ScriptedModel(calls(call("dig")), calls(call("wait")), say("Done."))
    async with Chat(model, tools=[old.tool, wait]) as chat:
        await cancelled_while_digging(chat, old)
        turn = await chat.send("and now?")
        await new.started.wait()
        old.release.set()
        await old.stopped.wait()
        await until_idle()
        new.release.set()
        assert (await turn).text == "Done."
    assert notices(model.requests[1].messages) == []
    assert len(notices(model.requests[2].messages)) == 1
    validate(model.requests[2].messages)
