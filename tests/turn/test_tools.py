"""Calls: whatever a model asks for and whatever a tool does is a result, and the turn goes on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from pydantic import BaseModel

from everturn import Chat, Output, ToolContext, ToolError, tool
from everturn.app import App
from everturn.calls.execute import TOOL_CANCEL_GRACE
from everturn.calls.output import OutputLimits
from everturn.core.canonical_json import encode_canonical
from everturn.core.events import CallStarted
from everturn.core.hooks import CallContext
from everturn.core.parts import Finish, ToolPart
from everturn.core.ports import Tool
from everturn.core.requests import RequestResult
from everturn.errors import ConfigError, ModelError
from everturn.events import StepFinished
from everturn.models.scripted import ScriptedCall
from everturn.testing import FakeClock, ScriptedFailure, ScriptedModel, call, calls, say
from everturn.wire import dump_log, load_log
from tests.helpers.waiting import wait_until

SOON = 2  # seconds after which something that should have happened is taken to hang


async def settled(
    tools: Sequence[Tool], *scripted_calls: ScriptedCall, finish: Finish = "tool_calls", plugins: Sequence[object] = ()
) -> list[ToolPart]:
    """Make these calls in one step, see the turn complete all the same, and hand over the calls as they ended."""
    async with Chat(
        ScriptedModel(calls(*scripted_calls, finish=finish), say("Done.")), tools=tools, plugins=plugins
    ) as chat:
        async with asyncio.timeout(SOON):
            result = await (await chat.send("please"))
        assert result.text == "Done."
        entries = await chat.app.store.events(chat.session)
        assert load_log(dump_log(entries)) == entries  # whatever it was, it can be written down
        assert result.message is not None
        return [part for part in result.message.parts if isinstance(part, ToolPart)]


def ends(parts: Sequence[ToolPart]) -> list[tuple[str, str]]:
    return [(part.state, part.output.text) for part in parts if part.output is not None]


def chat_on(model: ScriptedModel, tools: Sequence[Tool], **ports: Any) -> Chat:
    return Chat(model, app=App(model, tools=tools, **ports))


# When and how many ------------------------------------------------------------------------------------------------


async def test_calls_of_a_step_run_at_once_and_never_more_than_the_cap() -> None:
    inside, release = 0, asyncio.Event()

    @tool
    async def work(n: int) -> int:
        nonlocal inside
        inside += 1
        await release.wait()
        return n

    model = ScriptedModel(calls(*(call("work", n=n) for n in range(7))), say("Done."))
    async with chat_on(model, [work], limits=OutputLimits(parallel=3)) as chat:
        turn = await chat.send("please")
        await wait_until(lambda: inside >= 3)  # three are inside together
        for _ in range(20):
            await asyncio.sleep(0)
        assert inside == 3
        release.set()
        async with asyncio.timeout(SOON):
            await turn
    assert [part.text for part in model.requests[1].messages[-1].parts if isinstance(part, RequestResult)] == list(
        "0123456"
    )


async def test_calls_start_only_after_their_stream_has_ended() -> None:
    async with Chat(ScriptedModel(calls(call("look")), say("Done.")), tools=[quiet("look")]) as chat:
        await (turn := await chat.send("please"))
        events = [entry.event for entry in await chat.app.store.events(chat.session, turn=turn.id)]
    ended = next(at for at, event in enumerate(events) if isinstance(event, StepFinished))
    assert all(at > ended for at, event in enumerate(events) if isinstance(event, CallStarted))


async def test_a_call_of_a_stream_that_broke_never_runs() -> None:
    ran: list[str] = []
    broken: Any = [*calls(call("look"))[:-1], ScriptedFailure(ModelError("gone"))]
    async with Chat(ScriptedModel(broken), tools=[quiet("look", ran)]) as chat:
        turn = await chat.send("please")
        with pytest.raises(Exception, match="gone"):
            await turn
        [called] = (await turn.state()).calls.values()
    assert (called.state, ran) == ("cancelled", [])


@pytest.mark.parametrize("finish", ["length", "content_filter", "refusal"])
async def test_a_call_after_which_the_output_was_cut_never_runs(finish: Finish) -> None:
    ran: list[str] = []
    [part] = await settled([quiet("look", ran)], call("look"), finish=finish)
    assert (part.state, ran) == ("failed", [])


async def test_results_stand_in_the_order_of_the_calls_whoever_was_first() -> None:
    second_is_done = asyncio.Event()

    @tool
    async def first() -> str:
        await second_is_done.wait()
        return "one"

    @tool
    async def second() -> str:
        second_is_done.set()
        return "two"

    model = ScriptedModel(calls(call("first"), call("second")), say("Done."))
    async with Chat(model, tools=[first, second]) as chat:
        await (await chat.send("please"))
    results = [part for part in model.requests[1].messages[-1].parts if isinstance(part, RequestResult)]
    assert [result.text for result in results] == ["one", "two"]


def quiet(name: str, ran: list[str] | None = None, **how: Any) -> Tool:
    """A tool that takes nothing and says nothing; `ran` tells whether it ran."""

    async def function() -> str:
        if ran is not None:
            ran.append(name)
        return "ran"

    return tool(name=name, **how)(function)


# What a model may get wrong -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["read_file", "ReadFile", "READ-FILE", "readfile", "read-file"])
async def test_a_name_is_found_whatever_its_case_and_dashes(name: str) -> None:
    assert ends(await settled([quiet("read_file")], call(name))) == [("completed", "ran")]


async def test_an_unknown_tool_fails_its_call_and_says_which_there_are() -> None:
    parts = await settled([quiet("read_file"), quiet("write_file")], call("ReadFil"), call("read_file"))
    assert ends(parts) == [
        ("failed", "there is no tool called 'ReadFil'; there are: read_file, write_file. Nothing was run."),
        ("completed", "ran"),
    ]


def test_two_tools_whose_names_a_model_could_take_for_one_another_are_refused() -> None:
    with pytest.raises(ConfigError, match="'read_file' and 'readfile'"):
        Chat(ScriptedModel(), tools=[quiet("read_file"), quiet("readfile")])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("{}", "path: missing, expected a string"),
        ("", "path: missing, expected a string"),  # none at all are an empty object
        ('{"path": "a", "mode": "r"}', "mode: there is no such parameter"),
        ('{"path": 1}', "path: given 1 (an integer), expected a string"),
        ("please read a.txt", "not one complete JSON object"),
        ('{"path": "a', "not one complete JSON object"),
        ('["a"]', "not one complete JSON object"),
        ('{"path": "a"} {"path": "b"}', "not one complete JSON object"),
        ('{"path": NaN}', "not one complete JSON object"),
        ('{"path": "\\ud800"}', "not one complete JSON object"),
        ("[" * 20_000, "not one complete JSON object"),
        ('{"path": "a\ud800', "not one complete JSON object"),
    ],
)
async def test_bad_arguments_fail_the_call_and_say_what_is_wrong(arguments: str, says: str) -> None:
    ran: list[str] = []

    @tool
    async def read(path: str) -> str:
        ran.append(path)
        return path

    [part] = await settled([read], ScriptedCall("read", arguments))
    assert part.output is not None
    assert (part.state, part.output.code, ran) == ("failed", "bad_arguments", [])
    assert says in part.output.text


async def test_a_denied_tool_is_not_offered_and_is_refused_when_it_is_called() -> None:
    ran: list[str] = []
    model = ScriptedModel(calls(call("drop")), say("Done."))
    async with Chat(model, tools=[quiet("drop", ran, approval="deny"), quiet("look")]) as chat:
        await (await chat.send("please"))
    assert [spec.name for spec in model.requests[0].tools] == ["look"]
    [result] = [part for part in model.requests[1].messages[-1].parts if isinstance(part, RequestResult)]
    assert (result.text, result.is_error, ran) == ("This call is not allowed: drop may not be used.", True, [])


# What a tool may do -------------------------------------------------------------------------------------------------


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


class UnspeakableToo(ToolError):
    def __str__(self) -> str:
        raise ValueError("no words")


class Stop(KeyboardInterrupt):
    pass


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (ValueError("it fell"), "ValueError: it fell"),
        (ToolError("no such file; there is: a.txt"), "no such file; there is: a.txt"),
        (SystemExit(3), "SystemExit: 3"),
        (Stop("now"), "Stop: now"),
        (GeneratorExit(), "GeneratorExit: "),
        (asyncio.CancelledError(), "the tool was cancelled from within"),
        (ExceptionGroup("two", [ValueError("a"), ValueError("b")]), "ExceptionGroup: two (2 sub-exceptions)"),
        (Unspeakable(), "Unspeakable"),
        (UnspeakableToo(), "UnspeakableToo"),
        (ValueError("\ud800 and \x00"), "ValueError: ? and \x00"),
        (ValueError("x" * 60_000), "x" * 100),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_a_tool_that_raises_fails_its_call(error: BaseException, says: str, kind: str) -> None:
    async def fall() -> None:
        raise error

    def fall_in_a_thread() -> None:
        raise error

    [part] = await settled([tool(name="fall")(fall if kind == "async" else fall_in_a_thread)], call("fall"))
    assert part.output is not None
    assert part.state == "failed"
    assert says in part.output.text


async def test_a_plain_function_that_raises_stop_iteration_fails_its_call() -> None:
    @tool
    def first_of(n: int) -> int:
        return next(iter(range(n)))

    [part] = await settled([first_of], call("first_of", n=0))
    assert part.state == "failed"


async def test_a_tool_that_cancels_itself_fails_its_call() -> None:
    @tool
    async def give_up() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.Event().wait()

    [part] = await settled([give_up], call("give_up"))
    assert part.state == "failed"


class Point(BaseModel):
    x: int
    y: int = 2


def circle() -> list[Any]:
    knot: list[Any] = []
    knot.append(knot)
    return knot


@pytest.mark.parametrize(
    ("value", "state", "says"),
    [
        ("hello", "completed", "hello"),
        (None, "completed", "done"),
        ({"b": 1, "a": [True]}, "completed", '{"b":1,"a":[true]}'),
        (Point(x=1), "completed", '{"x":1,"y":2}'),
        (Output("short", title="a title"), "completed", "short"),
        ("\ud800 and \x00", "completed", "? and \x00"),
        (Output("\ud800"), "completed", "?"),
        (Output("x", title="\ud800", metadata={"a": "\ud800"}), "completed", "x"),
        (Output("x", metadata={"a": object()}), "failed", "cannot be stored"),
        (object(), "failed", "the tool returned a object that cannot be written as JSON"),
        (circle(), "failed", "the tool returned a list that cannot be written as JSON"),
        (Point, "failed", "cannot be written as JSON"),
        (Output(7), "failed", ""),  # type: ignore[arg-type]
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
async def test_whatever_a_tool_returns_is_a_result(value: object, state: str, says: str) -> None:
    async def give() -> object:
        return value

    [part] = await settled([tool(give)], call("give"))
    assert part.output is not None
    assert part.state == state
    assert says in part.output.text


async def test_of_a_huge_output_the_model_reads_head_and_tail_and_the_whole_is_kept() -> None:
    whole = "a" * 40_000 + "middle" + "z" * 40_000

    @tool
    async def dump() -> str:
        return whole

    model = ScriptedModel(calls(call("dump")), say("Done."))
    async with Chat(model, tools=[dump]) as chat:
        result = await (await chat.send("please"))
        assert result.message is not None
        [part] = [part for part in result.message.parts if isinstance(part, ToolPart)]
        assert part.output is not None
        assert (await chat.app.store.blob(part.output.blob)).decode() == whole
    [read] = [part for part in model.requests[1].messages[-1].parts if isinstance(part, RequestResult)]
    head, note, tail = read.text.split("\n")
    assert (head, tail) == ("a" * 33_334, "z" * 16_666)  # two thirds and one
    assert note.startswith(f"[… 30006 characters left out. The whole is $ref{{{part.call}}}: ")


LATE = ("the tool did not answer within 7 s; whether it took effect is unknown", "timeout")


@pytest.mark.parametrize("kind", ["async", "thread", "stubborn"])
async def test_a_tool_that_hangs_is_given_up_after_its_time(kind: str) -> None:
    clock, started, release = FakeClock(), threading.Event(), threading.Event()

    async def hang() -> None:
        started.set()
        await asyncio.Event().wait()

    def hang_in_a_thread() -> None:
        started.set()
        release.wait()

    async def hang_on() -> None:
        started.set()
        while not release.is_set():
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                clock.advance(TOOL_CANCEL_GRACE)  # it does not care, and its grace passes

    functions: dict[str, Callable[..., Any]] = {"async": hang, "thread": hang_in_a_thread, "stubborn": hang_on}
    hanging = tool(name="hang", timeout=7)(functions[kind])
    async with chat_on(ScriptedModel(calls(call("hang")), say("Done.")), [hanging], clock=clock) as chat:
        turn = await chat.send("please")
        await wait_until(started.is_set)
        clock.advance(7)
        async with asyncio.timeout(SOON):
            result = await turn
        release.set()
    assert result.message is not None
    [part] = [part for part in result.message.parts if isinstance(part, ToolPart)]
    assert part.output is not None
    assert (part.state, part.output.text, part.output.code, result.text) == ("failed", *LATE, "Done.")


async def test_a_tool_that_ends_with_its_grace_has_a_result() -> None:
    clock, started = FakeClock(), asyncio.Event()

    @tool(timeout=7)
    async def hang() -> None:
        started.set()
        task = asyncio.current_task()
        assert task is not None
        task.add_done_callback(lambda _: clock.advance(TOOL_CANCEL_GRACE))
        await asyncio.Event().wait()

    async with chat_on(ScriptedModel(calls(call("hang")), say("Done.")), [hang], clock=clock) as chat:
        turn = await chat.send("please")
        await started.wait()
        clock.advance(7)
        result = await turn
    assert result.message is not None
    [part] = [part for part in result.message.parts if isinstance(part, ToolPart)]
    assert part.output is not None
    assert (part.state, part.output.text, part.output.code) == ("failed", *LATE)


# What is written down is what runs ------------------------------------------------------------------------------------


async def test_what_runs_are_the_very_bytes_that_were_written_down() -> None:
    seen: list[tuple[str, str]] = []

    @tool
    async def put(path: str, lines: list[int], ctx: ToolContext) -> None:
        seen.append((ctx.call, encode_canonical({"path": path, "lines": lines})))
        lines.append(99)  # a tool may do as it likes with what it was given

    class Absolute:
        def on_call_start(self, ctx: CallContext) -> None:
            ctx.arguments = {**ctx.arguments, "path": "/" + ctx.arguments["path"]}

    model = ScriptedModel(calls(ScriptedCall("put", '{ "path":"a",  "lines":[1,2] }')), say("Done."))
    async with Chat(model, tools=[put], plugins=[Absolute()]) as chat:
        await (await chat.send("please"))
        events = [entry.event for entry in await chat.app.store.events(chat.session)]
    assert [(event.call, event.arguments) for event in events if isinstance(event, CallStarted)] == seen
    assert seen[0][1] == '{"lines":[1,2],"path":"/a"}'


async def test_arguments_that_cannot_be_written_down_are_not_run() -> None:
    ran: list[str] = []

    class Word(str):
        """Fits a signature that wants text, and is no JSON."""

    class Clever:
        def on_call_start(self, ctx: CallContext) -> None:
            ctx.arguments = {"to": Word("ada")}

    @tool
    async def mail(to: str) -> None:
        ran.append(to)

    [part] = await settled([mail], call("mail", to="bob"), plugins=[Clever()])
    assert (part.state, ran) == ("failed", [])
