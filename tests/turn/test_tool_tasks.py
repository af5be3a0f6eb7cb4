"""Tools that outlive things: a failed append, a driver, a turn. What they came to is not lost by any of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from everturn import App, Chat, Output, ToolContext, Turn, tool
from everturn.core.events import CallFinished, Event
from everturn.core.parts import FilePart
from everturn.events import GateOpened, LateResultReceived, Phase, TurnSuspended
from everturn.testing import MemoryStore, ScriptedHang, ScriptedModel, call, calls, say
from everturn.wire import dump_event, load_event

SOON = 5


async def parked(turn: Turn) -> None:
    """Wait until a turn waits for somebody."""
    reading = turn.events()
    async for event in reading:
        if isinstance(event, TurnSuspended):
            break
    await reading.aclose()


class FailsOnce(MemoryStore):
    """A store whose first append of some kind fails."""

    def __init__(self, kind: type[Event]) -> None:
        super().__init__()
        self._kind: type[Event] | None = kind

    async def append(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
        if self._kind is not None and any(isinstance(event, self._kind) for event in events):
            self._kind = None
            raise OSError("the disk hiccupped")
        return await super().append(session, after, events, epoch)


async def test_a_failed_append_loses_no_result_and_runs_no_tool_again() -> None:
    ran: list[str] = []
    release = asyncio.Event()

    @tool()
    async def quick() -> str:
        ran.append("quick")
        return "quick"

    @tool()
    async def slow() -> str:
        ran.append("slow")
        await release.wait()
        return "slow"

    model = ScriptedModel(calls(call("quick"), call("slow")), say("Done."))
    async with Chat(model, tools=[quick, slow], store=FailsOnce(CallFinished)) as chat:
        turn = await chat.send("go")
        async for event in turn:
            if isinstance(event, CallFinished):  # written at the second try, by another drive
                release.set()
        assert (await turn).phase is Phase.COMPLETED
        state = await turn.state()
    assert [c.state for c in state.calls.values()] == ["completed", "completed"]
    assert ran == ["quick", "slow"]


async def test_an_output_that_cannot_be_kept_fails_its_call_and_the_turn_goes_on() -> None:
    class Full(MemoryStore):
        async def put_blob(self, data: bytes) -> str:
            raise OSError("disk full")

    @tool
    def long() -> str:
        return "x" * 100_000

    async with Chat(ScriptedModel(calls(call("long")), say("Oh.")), tools=[long], store=Full()) as chat:
        turn = await chat.send("go")
        assert (await asyncio.wait_for(turn, SOON)).text == "Oh."
        assert [c.state for c in (await turn.state()).calls.values()] == ["failed"]


async def test_whatever_a_tool_puts_into_its_output_the_log_can_be_read_again() -> None:
    odd: list[Any] = [
        Output("x", metadata=[1]),  # type: ignore[arg-type]
        Output("x", code=5),  # type: ignore[arg-type]
        Output("x", attachments=(FilePart("b", "text/plain", 1, "\udcff.txt"),)),
        Output("x", code="\ud800"),
    ]

    @tool
    async def give(at: int) -> Any:
        return odd[at]

    model = ScriptedModel(calls(*(call("give", at=at) for at in range(len(odd)))), say("Oh."))
    async with Chat(model, tools=[give]) as chat:
        await (await chat.send("go"))
        for entry in await chat.app.store.events(chat.session):
            assert load_event(dump_event(entry.event)) == entry.event


async def test_a_result_that_comes_as_the_turn_is_cancelled_is_late_and_not_lost() -> None:
    entered, go_on, release = asyncio.Event(), asyncio.Event(), asyncio.Event()

    class Slow(MemoryStore):
        async def append(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
            if any(isinstance(event, CallFinished) and event.output.text == "other" for event in events):
                entered.set()
                await go_on.wait()  # meanwhile the ledger is locked
            return await super().append(session, after, events, epoch)

    @tool
    async def other() -> str:
        return "other"

    @tool
    async def wait() -> str:
        await release.wait()
        return "waited"

    async with Chat(ScriptedModel(calls(call("wait"), call("other"))), tools=[wait, other], store=Slow()) as chat:
        turn = await chat.send("go")
        await entered.wait()
        release.set()
        await turn.cancel()
        for _ in range(20):
            await asyncio.sleep(0)
        go_on.set()
        await asyncio.wait_for(turn, SOON)
        await chat.app.tool_tasks.wait_idle()
        calls_ = (await turn.state()).calls.values()
        log = [entry.event for entry in await chat.app.store.events(chat.session)]
    late = [event.output.text for event in log if isinstance(event, LateResultReceived)]
    settled = [event.output.text for event in log if isinstance(event, CallFinished)]
    assert "waited" in [*late, *settled]
    assert all(c.is_finished for c in calls_)


async def test_a_hard_cancel_after_a_soft_one_stops_the_tool() -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    @tool
    async def dig() -> None:
        started.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            stopped.set()

    async with Chat(ScriptedModel(calls(call("dig"))), tools=[dig]) as chat:
        turn = await chat.send("go")
        await started.wait()
        await turn.cancel()
        await turn.cancel(hard=True)
        await turn
        await asyncio.wait_for(stopped.wait(), SOON)


async def test_a_plain_tool_may_tell_its_progress_from_its_thread() -> None:
    @tool
    def work(ctx: ToolContext) -> str:
        ctx.progress("half")
        return "done"

    async with Chat(ScriptedModel(calls(call("work")), say("Ok.")), tools=[work]) as chat:
        shown = [type(event).__name__ async for event in await chat.send("go")]
    assert "CallProgress" in shown


@pytest.mark.parametrize(("name", "approval"), [("read_file", "deny"), ("ReadFile", "auto")])
async def test_a_tool_that_is_denied_or_another_by_now_does_not_run_on_an_old_answer(name: str, approval: str) -> None:
    ran: list[str] = []

    def make_tool(name: str, approval: Any) -> Any:
        return tool(name=name, approval=approval)(lambda: ran.append(f"{name} {approval}"))

    store = MemoryStore()
    model = ScriptedModel(calls(call("ReadFile")), say("Ok."))
    async with Chat(model, tools=[make_tool("read_file", "always")], store=store, session="s") as chat:
        turn = await chat.send("go")
        await parked(turn)
        [gate] = await chat.gates()
    assert gate.tool == "read_file"
    app = App(model, tools=[make_tool(name, approval)], store=store)
    async with Chat(model, app=app, session="s") as other:
        await other.answer(gate, allow="once")
        result = await other.turn(turn.id)
    assert (ran, result.text) == ([], "Ok.")


async def test_a_message_that_waits_is_sent_when_the_selection_moves_away_from_the_busy_branch() -> None:
    @tool(approval="always")
    def pay() -> None: ...

    model = ScriptedModel(say("Hi."), calls(call("pay")), say("Done."))
    async with Chat(model, tools=[pay]) as chat:
        await (await chat.send("one"))
        [_, first] = await chat.messages()
        await parked(await chat.send("pay"))
        waiting = await chat.send("and?")
        engine: Any = chat.app.engine
        await asyncio.gather(*engine._driving.values())  # it was looked at, and has to wait
        await chat.fork(first)
        async for event in waiting:
            if isinstance(event, GateOpened):
                break
        await waiting.cancel()
        await asyncio.wait_for(waiting, SOON)


async def test_what_is_deleted_meanwhile_cannot_be_selected() -> None:
    async with Chat(ScriptedModel(say("Hi."), say("Ho."))) as chat:
        await (await chat.send("one"))
        [question, _] = await chat.messages()
        results = await asyncio.gather(chat.delete(question), chat.fork(question), return_exceptions=True)
        assert [type(result).__name__ for result in results] == ["NoneType", "CommandRefused"]
        assert await chat.messages() == []
        assert (await (await chat.send("two"))).text == "Hi."


async def test_nothing_is_left_of_turns_that_are_over_or_parked() -> None:
    @tool(approval="always")
    def pay() -> None: ...

    def parks(request: Any) -> Any:
        return calls(call("pay")) if request.messages[-1].text == "pay" else say("Hi.")

    async with Chat(ScriptedModel(*[parks] * 9), tools=[pay]) as chat:
        for _ in range(3):
            await (await chat.send("hi"))
            await chat.fork(None)
        await parked(await chat.send("pay"))
        engine: Any = chat.app.engine
        await asyncio.gather(*engine._driving.values())
        bus: Any = chat.app.bus
        supervisor = chat.app.tool_tasks
        registries: list[Any] = [bus.channels, chat.app._readers._followed, supervisor._turns, supervisor._done]
        assert [len(registry) for registry in (*registries, supervisor._watchers)] == [0, 0, 0, 0, 0]


async def test_a_fork_says_when_nobody_can_drive() -> None:
    class Down(MemoryStore):
        is_down = False

        async def append(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
            if self.is_down:
                raise OSError("down")
            return await super().append(session, after, events, epoch)

    store = Down()
    async with Chat(ScriptedModel(say("Hi."), [ScriptedHang()]), store=store) as chat:
        await (await chat.send("one"))
        store.is_down = True
        forking = asyncio.ensure_future(chat.fork(None))
        done, _ = await asyncio.wait({forking}, timeout=SOON)
        assert done
        assert type(forking.exception()).__name__ == "DriverLost"
        store.is_down = False
        await chat.fork(None)  # it has another chance
