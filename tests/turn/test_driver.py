"""The driver: who waits and who runs, what a tree is when it is written to from several sides, and what a store may do."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from everturn import Chat, RunResult, tool
from everturn.app import App
from everturn.core.commands import Send
from everturn.core.events import CallStarted, CommandDropped, Event, StepRestarted, StepStarted
from everturn.core.parts import TextPart
from everturn.core.session_claims import MAX_QUICK_CLAIMS, RETRY_PAUSES
from everturn.core.tree import MessageTree
from everturn.driver import driver
from everturn.errors import CommandRefused, DriverLost, KeyConflict, UnknownMessage
from everturn.events import Phase, TurnStarted
from everturn.testing import FakeClock, MemoryStore, ScriptedModel, call, calls, say

SOON = 2  # seconds after which something that should have happened is taken to hang


class Doors:
    """A tool that waits at a door until it is opened; `at` says who stands there."""

    def __init__(self) -> None:
        self.doors: dict[str, asyncio.Event] = {}
        self.arrived: asyncio.Queue[str] = asyncio.Queue()

    def tools(self) -> list[Any]:
        @tool(read_only=True)
        async def wait(door: str) -> str:
            self.arrived.put_nowait(door)
            await self.doors.setdefault(door, asyncio.Event()).wait()
            return f"{door} is open"

        return [wait]

    def open(self, door: str) -> None:
        self.doors.setdefault(door, asyncio.Event()).set()


def waits_at(door: str) -> Any:
    return calls(call("wait", door=door))


def by_question(**answers: Any) -> ScriptedModel:
    """A model that answers what was asked last: first with a call if there is one, then with a word."""

    def script(request: Any) -> Any:
        question = [message for message in request.messages if message.role == "user"][-1].text
        is_new = request.messages[-1].role == "user"
        return answers[question] if is_new and question in answers else say(f"re: {question}")

    return ScriptedModel(*[script] * 20)


async def texts(chat: Chat, leaf: str | None = None) -> list[str]:
    return [message.text for message in await chat.messages(leaf)]


def stored(tree: MessageTree) -> dict[str, bytes]:
    return {name: msgspec.json.encode(message) for name, message in tree.messages.items()}


# The queue ----------------------------------------------------------------------------------------------------------


async def test_a_message_sent_while_a_turn_runs_waits_for_it_on_the_same_branch() -> None:
    doors = Doors()
    async with Chat(by_question(one=waits_at("a")), tools=doors.tools()) as chat:
        first, second, third = await chat.send("one"), await chat.send("two"), await chat.send("three")
        await doors.arrived.get()
        started = [e.event for e in await chat.app.store.events(chat.session) if isinstance(e.event, TurnStarted)]
        assert [event.turn for event in started] == [first.id]
        doors.open("a")
        assert [(await turn).text for turn in (third, second, first)] == ["re: three", "re: two", "re: one"]
        assert await texts(chat) == ["one", "re: one", "two", "re: two", "three", "re: three"]


async def test_a_message_sent_to_another_branch_does_not_wait() -> None:
    doors = Doors()
    async with Chat(by_question(two=waits_at("a")), tools=doors.tools()) as chat:
        await (first := await chat.send("one"))
        [_, answer] = (await first.state()).messages
        slow = await chat.send("two")
        await doors.arrived.get()
        assert (await (await chat.insert(answer, "instead"))).text == "re: instead"
        assert (await slow.state()).phase is Phase.TOOL_CALL
        doors.open("a")
        assert (await slow).text == "re: two"


async def test_two_branches_stream_at_once_and_neither_pulls_the_selection() -> None:
    doors = Doors()
    async with Chat(by_question(one=waits_at("a"), other=waits_at("b")), tools=doors.tools()) as chat:
        first = await chat.send("one")
        assert await doors.arrived.get() == "a"
        question = (await first.state()).input
        assert question is not None
        other = await chat.edit(question, "other")
        assert await doors.arrived.get() == "b"  # both are inside their tools now
        doors.open("a")
        assert (await first).text == "re: one"
        assert await texts(chat) == ["other", ""]
        doors.open("b")
        assert (await other).text == "re: other"
        assert await texts(chat) == ["other", "re: other"]


async def test_a_second_answer_to_a_question_runs_beside_the_first() -> None:
    doors = Doors()
    async with Chat(by_question(one=waits_at("a")), tools=doors.tools()) as chat:
        first = await chat.send("one")
        await doors.arrived.get()
        question = (await first.state()).input
        assert question is not None
        again = await chat.rerun(question)
        await doors.arrived.get()
        doors.open("a")
        assert [(await turn).text for turn in (first, again)] == ["re: one", "re: one"]
        assert len((await chat.tree()).children[question]) == 2


async def test_the_same_key_is_the_same_turn_and_another_message_under_it_is_refused() -> None:
    async with Chat(ScriptedModel(say("Hello."))) as chat:
        first, two = await asyncio.gather(chat.send("hi", key="k"), chat.send("hi", key="k"))
        assert (await first).text == (await two).text == "Hello."
        assert (await chat.send("hi", key="k")).id == first.id == two.id
        with pytest.raises(KeyConflict):
            await chat.send("ho", key="k")
        with pytest.raises(KeyConflict):
            await chat.send("hi", key="k", params={"temperature": 1})
        assert await texts(chat) == ["hi", "Hello."]


# The tree -----------------------------------------------------------------------------------------------------------


async def test_rerun_edit_and_insert_make_branches_and_change_nothing_that_is_there() -> None:
    async with Chat(by_question()) as chat:
        await (await chat.send("one"))
        await (await chat.send("two"))
        [first, answer_one, two, answer_two] = [message.id for message in await chat.messages()]
        steps = (
            (lambda: chat.rerun(answer_two), ["one", "re: one", "two", "re: two"]),
            (lambda: chat.rerun(two), ["one", "re: one", "two", "re: two"]),
            (lambda: chat.edit(two, "zwei"), ["one", "re: one", "zwei", "re: zwei"]),
            (lambda: chat.insert(first, "wait"), ["one", "wait", "re: wait"]),
            (lambda: chat.edit(first, "eins"), ["eins", "re: eins"]),
            (lambda: chat.send("drei", after=answer_one), ["one", "re: one", "drei", "re: drei"]),
        )
        for step, branch in steps:
            before = stored(await chat.tree())
            await (await step())
            assert await texts(chat) == branch
            after = stored(await chat.tree())
            assert {name: after[name] for name in before} == before  # I21
        tree = await chat.tree()
        assert tree.versions(answer_two)[:3] == [answer_two, *tree.children[two][1:3]]
        assert [tree.get(name).text for name in tree.versions(two)] == ["two", "zwei", "drei"]


async def test_fork_and_switch_select_where_the_next_message_goes() -> None:
    async with Chat(by_question()) as chat:
        await (await chat.send("one"))
        await (await chat.send("two"))
        [_, answer_one, _, answer_two] = [message.id for message in await chat.messages()]
        await chat.fork(answer_one)
        await (await chat.send("zwei"))
        assert await texts(chat) == ["one", "re: one", "zwei", "re: zwei"]
        await chat.fork(answer_two)
        assert await texts(chat) == ["one", "re: one", "two", "re: two"]
        await chat.fork(None)
        await (await chat.send("anew"))
        assert await texts(chat) == ["anew", "re: anew"]
        with pytest.raises(UnknownMessage):
            await chat.fork("nothing")


async def test_delete_hides_a_message_and_what_is_under_it_and_nothing_beside() -> None:
    async with Chat(by_question()) as chat:
        await (await chat.send("one"))
        await (await chat.send("two"))
        [_, answer_one, two, _] = [message.id for message in await chat.messages()]
        await (await chat.edit(two, "zwei"))
        zwei = (await chat.messages())[2].id
        before = stored(await chat.tree())
        await chat.delete(zwei)
        assert await texts(chat) == ["one", "re: one"]
        assert (await chat.tree()).versions(two) == [two]
        assert stored(await chat.tree()) == before  # hidden, not changed
        with pytest.raises(UnknownMessage):
            await chat.send("where?", after=zwei)
        assert (await (await chat.send("three", after=answer_one))).phase is Phase.COMPLETED


async def test_a_delete_where_a_turn_writes_is_refused() -> None:
    doors = Doors()
    async with Chat(by_question(two=waits_at("a")), tools=doors.tools()) as chat:
        await (await chat.send("one"))
        [question, _] = await chat.messages()
        turn = await chat.send("two")
        await doors.arrived.get()
        for message in (question.id, *(await turn.state()).messages):
            with pytest.raises(CommandRefused, match="a turn is writing there"):
                await chat.delete(message)
        doors.open("a")
        await turn
        await chat.delete(question.id)
        assert await texts(chat) == []


async def test_a_turn_whose_place_was_deleted_before_it_could_begin_never_does() -> None:
    async with Chat(by_question()) as chat:
        await (await chat.send("one"))
        [question, answer] = await chat.messages()
        _, turn = await asyncio.gather(chat.delete(question.id), chat.insert(answer.id, "two"))
        with pytest.raises(CommandRefused, match="was deleted before its turn came"):
            await turn
        assert await texts(chat) == []


# The store ----------------------------------------------------------------------------------------------------------


class Flaky(MemoryStore):
    """A store that fails when these events are to be written, as often as it is told."""

    def __init__(self, kind: type[Event], times: int) -> None:
        super().__init__()
        self._kind, self._times = kind, times

    async def append(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
        if self._times and any(isinstance(event, self._kind) for event in events):
            self._times -= 1
            raise OSError("the line is down")
        return await super().append(session, after, events, epoch)


async def collected(chat: Chat, clock: FakeClock, text: str) -> RunResult:
    """Send, and let time pass until the turn is over."""

    async def result() -> RunResult:
        return await (await chat.send(text))

    waiting = asyncio.ensure_future(result())
    async with asyncio.timeout(SOON):
        while not waiting.done():
            await asyncio.sleep(0)
            clock.advance(0.01)
    return await waiting


@pytest.mark.parametrize("kind", [TurnStarted, StepStarted, CallStarted])
async def test_a_store_that_fails_once_is_asked_again(kind: type[Event]) -> None:
    doors, clock, store = Doors(), FakeClock(), Flaky(kind, times=1)
    doors.open("a")
    model = by_question(one=waits_at("a"))
    async with Chat(model, app=App(model, tools=doors.tools(), store=store, clock=clock)) as chat:
        assert (await collected(chat, clock, "one")).text == "re: one"


@pytest.mark.parametrize("kind", [TurnStarted, StepStarted, CallStarted])
async def test_a_store_that_fails_for_good_is_left_alone_and_the_reader_is_told(
    kind: type[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        driver, "MAX_THIRD_TRY_DELAY", 0.0
    )  # before its last try it waits apart from others, in real time
    doors, clock, store = Doors(), FakeClock(), Flaky(kind, times=99)
    doors.open("a")
    model = by_question(one=waits_at("a"))
    async with Chat(model, app=App(model, tools=doors.tools(), store=store, clock=clock)) as chat:
        with pytest.raises(DriverLost):
            await collected(chat, clock, "one")


async def test_a_session_that_lost_three_drivers_in_a_row_rests_for_seconds_and_goes_on_by_itself() -> None:
    clock, store = FakeClock(), MemoryStore()
    model = by_question()
    turn = Send(key="k", session="s", at=clock.now(), turn="t", message="m", parts=(TextPart("one"),))
    await store.admit(turn)
    for _ in range(MAX_QUICK_CLAIMS):  # processes that died before they wrote anything
        await store.claim("s", clock.now())
    app = App(model, store=store, clock=clock)
    async with Chat(model, app=app, session="s") as chat:
        await app.start()  # finds what is unfinished
        for _ in range(50):
            await asyncio.sleep(0)
        assert await store.events("s") == []  # it rests
        assert clock.waiting == 1

        clock.advance(2 * RETRY_PAUSES[0])

        async with asyncio.timeout(SOON):
            assert (await chat.turn("t")).text == "re: one"


async def test_a_driver_that_was_overtaken_writes_nothing_more() -> None:
    doors, store = Doors(), MemoryStore()
    old = Chat(by_question(one=waits_at("a")), tools=doors.tools(), store=store, session="s")
    turn = await old.send("one")
    await doors.arrived.get()
    async with Chat(by_question(one=waits_at("a")), tools=doors.tools(), store=store, session="s") as new:
        assert await doors.arrived.get() == "a"  # a `read` call is run again by whoever takes over
        await new.fork(None)  # the log has moved on without the old driver
        before = await store.head("s")
        doors.open("a")
        assert (await new.turn(turn.id)).text == "re: one"
        events = [entry.event for entry in await store.events("s")]
    await old.aclose()
    assert before < len(events)
    assert len([event for event in events if isinstance(event, CallStarted)]) == 1
    assert not any(isinstance(event, StepRestarted | CommandDropped) for event in events)
