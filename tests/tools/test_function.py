"""Functions as tools: the schema is read off the signature, and the function is called as it is."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal, Optional

import pytest
from inline_snapshot import snapshot
from pydantic import BaseModel, Field

from everturn import Chat, Output, Progress, ToolContext, tool
from everturn.core.parts import ToolPart
from everturn.core.ports import Tool
from everturn.errors import BadArguments, ConfigError
from everturn.events import CallProgress
from everturn.testing import ScriptedModel, call, calls, say


async def output(function_tool: Tool, **arguments: object) -> str:
    """Let a model call it, and read what it reads."""
    name = function_tool.spec.name
    async with Chat(ScriptedModel(calls(call(name, **arguments)), say("Done.")), tools=[function_tool]) as chat:
        result = await (await chat.send("please"))
    assert result.message is not None
    [part] = [part for part in result.message.parts if isinstance(part, ToolPart)]
    assert part.output is not None
    assert part.state == "completed", part.output.text
    return part.output.text


# The schema -----------------------------------------------------------------------------------------------------------


class Place(BaseModel):
    """Where."""

    city: str
    title: str = "home"


async def book(
    place: Place,
    nights: Annotated[int, Field(ge=1, description="How many nights.")],
    ctx: ToolContext,
    kind: Literal["room", "suite"] = "room",
    note: Optional[str] = None,  # noqa: UP045 - both ways of writing it are met
    guests: list[str] | None = None,
    untyped="x",  # type: ignore[no-untyped-def]
) -> str:
    """Book a place to stay.

    It is paid for at once.

    Args:
        place: Where to stay: a city will do.
        kind (str): What to book,
            a room or a suite.
        note: Anything else.

    Returns:
        The number of the booking.

    Raises:
        ValueError: it is full.
    """
    return f"{place.city} {nights} {kind} {note} {guests} {untyped} {type(ctx).__name__}"


def test_the_schema_is_the_signature_with_the_words_of_the_docstring() -> None:
    spec = tool(book).spec
    assert spec.name == "book"
    assert spec.description == "Book a place to stay.\n\nIt is paid for at once."
    assert spec.schema == snapshot(
        {
            "$defs": {
                "Place": {
                    "description": "Where.",
                    "properties": {"city": {"type": "string"}, "title": {"default": "home", "type": "string"}},
                    "required": ["city"],
                    "type": "object",
                }
            },
            "additionalProperties": False,
            "properties": {
                "place": {"$ref": "#/$defs/Place", "description": "Where to stay: a city will do."},
                "nights": {"description": "How many nights.", "minimum": 1, "type": "integer"},
                "kind": {
                    "default": "room",
                    "description": "What to book, a room or a suite.",
                    "enum": ["room", "suite"],
                    "type": "string",
                },
                "note": {
                    "anyOf": [{"type": "string"}, {"type": "null"}],
                    "default": None,
                    "description": "Anything else.",
                },
                "guests": {
                    "anyOf": [{"items": {"type": "string"}, "type": "array"}, {"type": "null"}],
                    "default": None,
                },
                "untyped": {"default": "x", "type": "string"},
            },
            "required": ["place", "nights"],
            "type": "object",
        }
    )


def test_a_tool_is_assumed_to_do_harm_when_it_is_repeated() -> None:
    spec = tool(book).spec
    assert (spec.at_most_once, spec.approval, spec.timeout) == (True, "auto", 60.0)


def test_what_is_said_of_a_tool_is_kept() -> None:
    spec = tool(name="reserve", idempotent=True, approval="always", timeout=5)(book).spec
    assert (spec.name, spec.idempotent, spec.approval, spec.timeout) == ("reserve", True, "always", 5)


def test_a_tool_without_parameters_takes_an_empty_object_and_nothing_else() -> None:
    @tool
    def ping() -> str:
        return "pong"

    assert ping.spec.schema == {"properties": {}, "type": "object", "additionalProperties": False}
    ping.validate({})
    with pytest.raises(BadArguments, match="Its parameters are: none"):
        ping.validate({"x": 1})


def test_a_default_keeps_a_title_of_its_own() -> None:
    @tool
    def save(page: dict[str, str] = {"title": "untitled"}) -> None:  # noqa: B006 - nobody changes it
        pass

    assert save.spec.schema["properties"]["page"]["default"] == {"title": "untitled"}


def test_a_remark_inside_a_description_belongs_to_it() -> None:
    @tool
    def read(path: str, size: int = 1) -> None:
        """Read.

        Args:
            path: Which file.
                Note: from the root.
            size: How much.
        """

    words = {name: row.get("description") for name, row in read.spec.schema["properties"].items()}
    assert words == {"path": "Which file. Note: from the root.", "size": "How much."}


@pytest.mark.parametrize("name", ["json", "copy", "schema", "model_config", "model_fields", "dict", "validate", "_x"])
async def test_a_parameter_may_be_called_anything(name: str) -> None:
    space: dict[str, Any] = {}
    exec(f"async def echo({name}: str = 'unset'): return {name}", space)
    echo = tool(space["echo"])
    assert list(echo.spec.schema["properties"]) == [name]
    assert await output(echo, **{name: "said"}) == "said"


@pytest.mark.parametrize("signature", ["*args", "**kwargs", "a, /"])
def test_parameters_that_cannot_be_given_by_name_are_refused(signature: str) -> None:
    space: dict[str, Any] = {}
    exec(f"def odd({signature}): pass", space)
    with pytest.raises(ConfigError, match="must be usable as a keyword argument"):
        tool(space["odd"])


@pytest.mark.parametrize("name", ["two words", "ü", "x" * 65, "1st", "a.b"])
def test_a_name_no_provider_accepts_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="not a name for a tool"):
        tool(name=name)(book)


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="two tools called 'book'"):
        Chat(ScriptedModel(), tools=[tool(book), tool(book)])


# Calling ------------------------------------------------------------------------------------------------------------


async def test_a_tool_is_still_the_function_it_was() -> None:
    add = tool(name="add")(lambda a, b: a + b)
    assert add(1, 2) == 3


async def test_arguments_arrive_as_the_types_of_the_signature() -> None:
    text = await output(tool(book), place={"city": "Rome"}, nights=2, kind="suite", guests=["ada"])
    assert text == "Rome 2 suite None ['ada'] x ToolContext"


async def test_the_context_says_which_call_it_is() -> None:
    seen: list[ToolContext] = []

    @tool
    async def look(about: ToolContext) -> None:
        seen.append(about)

    async with Chat(ScriptedModel(calls(call("look")), say("Done.")), tools=[look], session="s") as chat:
        turn = await chat.send("please")
        await turn
        [called] = (await turn.state()).calls
    assert [(ctx.session, ctx.turn, ctx.call, ctx.key) for ctx in seen] == [("s", turn.id, called, called)]
    assert look.spec.schema["properties"] == {}


async def test_a_plain_function_runs_in_a_thread_with_the_context_of_its_caller() -> None:
    user = contextvars.ContextVar("who", default="nobody")
    user.set("ada")
    caller_thread = threading.get_ident()

    @tool
    def work() -> str:
        assert threading.get_ident() != caller_thread
        return user.get()

    assert await output(work) == "ada"


async def test_plain_functions_of_a_step_run_side_by_side() -> None:
    both = threading.Barrier(2, timeout=5)  # nobody gets past it alone

    @tool
    def meet(n: int) -> int:
        both.wait()
        return n

    async with Chat(ScriptedModel(calls(call("meet", n=1), call("meet", n=2)), say("Met.")), tools=[meet]) as chat:
        turn = await chat.send("please")
        await turn
        assert [called.state for called in (await turn.state()).calls.values()] == ["completed", "completed"]


async def test_an_async_generator_tells_of_its_progress_and_then_its_output() -> None:
    seen = asyncio.Event()
    is_closed = False

    @tool
    async def count(ctx: ToolContext) -> AsyncIterator[Progress | Output]:
        nonlocal is_closed
        try:
            yield Progress("half")
            ctx.progress("more")
            await seen.wait()
            yield Output("all", title="counted")
        finally:
            is_closed = True

    progress: list[str] = []
    async with Chat(ScriptedModel(calls(call("count")), say("Done.")), tools=[count]) as chat:
        turn = await chat.send("please")
        async for event in turn:
            if isinstance(event, CallProgress):
                progress.append(event.text)
                if event.text == "more":
                    seen.set()
        result = await turn
    assert result.message is not None
    assert [part.output for part in result.message.parts if isinstance(part, ToolPart)] == [
        Output("all", title="counted", origin=count.spec.origin)
    ]
    assert (progress, is_closed) == (["half", "more"], True)


async def test_a_generator_that_only_tells_of_progress_is_done() -> None:
    @tool
    async def tick() -> AsyncIterator[Progress]:
        yield Progress("tick")

    assert await output(tick) == "done"


async def test_a_list_of_models_is_data_too() -> None:
    @tool
    async def places() -> list[Place]:
        return [Place(city="Rome"), Place(city="Oslo", title="work")]

    assert await output(places) == '[{"city":"Rome","title":"home"},{"city":"Oslo","title":"work"}]'
