"""What nobody asked for is not made: contexts, second validations, deltas for those who wait for a result."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Annotated, Any, cast

import pytest
from pydantic import AfterValidator

from everturn import Agent, ToolContext, tool
from everturn.bus.memory import MemoryBus
from everturn.calls import execute
from everturn.core.canonical_json import is_same_value
from everturn.core.deltas import Delta, TurnReader
from everturn.core.events import Event
from everturn.core.ports import Progress
from everturn.testing import ScriptedModel, call, calls, say
from everturn.tools.function import FunctionTool
from everturn.tools.rename import rename_tool


@tool(read_only=True)
async def double(number: int) -> int:
    """Double a number."""
    return 2 * number


@tool(read_only=True)
async def name_call(ctx: ToolContext) -> str:
    """Name this call."""
    return ctx.call


@tool(read_only=True)
async def count(to: int) -> AsyncIterator[object]:
    """Count, and report the progress."""
    for number in range(to):
        yield Progress(f"at {number}")
    yield to


async def outputs(function: Any, **arguments: object) -> list[str]:
    """The results of one call of a tool in a turn."""
    model = ScriptedModel(calls(call(function.spec.name, **arguments)), say("Done."))
    result = await Agent(model, tools=[function]).run("go")
    assert result.state is not None
    return [call_state.output.text for call_state in result.state.calls.values() if call_state.output is not None]


@pytest.mark.parametrize("function", [double, rename_tool(double, "twice")])
async def test_no_context_is_made_for_a_tool_that_takes_none(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute, "TurnForTool", None)  # whoever makes one fails
    assert await outputs(function, number=4) == ["8"]


async def test_a_tool_with_a_context_gets_one_also_under_another_name() -> None:
    [own], [other] = await outputs(name_call), await outputs(rename_tool(name_call, "which"))
    assert own.endswith("-1-1")
    assert other.endswith("-1-1")


async def test_a_subclass_that_runs_otherwise_gets_a_context() -> None:
    class Noted(FunctionTool[..., Any]):
        def run(self, arguments: dict[str, Any], context: ToolContext) -> Any:
            context.progress("noted")
            return super().run(arguments, context)

    assert await outputs(Noted(double.function, name="noted"), number=1) == ["2"]


async def test_a_generator_without_a_context_still_reports_its_progress() -> None:
    agent = Agent(ScriptedModel(calls(call("count", to=2)), say("Done.")), tools=[count])
    async with agent.stream("go") as run:
        shown = [
            getattr(item, "text", "") for item in [item async for item in run] if type(item).__name__ == "CallProgress"
        ]
    assert shown == ["at 0", "at 1"]


async def test_arguments_are_validated_once_for_the_rules_and_the_run() -> None:
    seen: list[int] = []

    def note(number: int) -> int:
        seen.append(number)
        return number

    @tool(read_only=True)
    async def checked(number: Annotated[int, AfterValidator(note)]) -> int:
        """Check a number."""
        return number

    assert await outputs(checked, number="7") == ["7"]  # a number for the numeric string
    assert seen == [7]
    await cast("Awaitable[object]", checked.run({"number": 3}, cast("ToolContext", None)))  # alone it validates, too
    assert seen == [7, 3]


async def test_a_tool_without_a_context_is_stopped_at_its_timeout() -> None:
    @tool(read_only=True, timeout=0.01)
    async def hang() -> str:
        """Hang."""
        await asyncio.sleep(60)
        return ""

    [text] = await outputs(hang)
    assert "did not answer within 0.01 s" in text


async def test_who_waits_for_the_result_reads_events_and_no_deltas(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[object] = []
    show_entry, show_delta = TurnReader.entry, TurnReader.delta

    def entry(self: TurnReader, entry: Any) -> Any:
        items = list(show_entry(self, entry))
        shown.extend(items)
        return items

    def delta(self: TurnReader, delta: Delta) -> Delta | None:
        if (item := show_delta(self, delta)) is not None:
            shown.append(item)
        return item

    monkeypatch.setattr(TurnReader, "entry", entry)
    monkeypatch.setattr(TurnReader, "delta", delta)
    result = await Agent(ScriptedModel(say("One two three four.", 3))).run("go")
    assert result.output == "One two three four."
    assert shown
    assert all(isinstance(item, Event) for item in shown)


async def test_a_reader_of_deltas_still_gets_all_of_them() -> None:
    agent = Agent(ScriptedModel(say("One two three four.", 3)))
    async with agent.stream("go") as run:
        items = [item async for item in run]
    assert "".join(item.text for item in items if isinstance(item, Delta)) == "One two three four."


def test_a_signal_before_the_driver_subscribes_is_not_lost() -> None:
    bus, signals = MemoryBus(), list[int]()
    listener = bus.listen("s")
    bus.signal("s")
    listener.on_signal(lambda: signals.append(1))
    assert signals == [1]
    bus.signal("s")
    assert signals == [1, 1]
    listener.close()
    bus.signal("s")
    assert signals == [1, 1]


@pytest.mark.parametrize(
    ("first", "other", "is_same"),
    [
        ('{"a":1,"b":[true]}', '{ "b": [true], "a": 1 }', True),
        ('{"a":1}', '{"a":true}', False),
        ('{"a":0.1}', '{"a":0.10000000000000000001}', False),
        ('{"a":1e2}', '{"a":100}', True),
        ('{"a":1,"a":1}', '{"a":1, "a":1}', False),  # a duplicate key
        ('{"a":1,"a:":1}', '{"a":1,"a":1,"a\\u003a":1}', False),  # the escape makes up for the colon that is dropped
        ('{"a:":1}', '{"a\\u003a":1}', True),
    ],
)
def test_the_quick_comparison_of_arguments_decides_as_the_exact_one(first: str, other: str, is_same: bool) -> None:
    assert is_same_value(first, other) is is_same
    assert is_same_value(other, first) is is_same
