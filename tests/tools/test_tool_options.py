"""What may be said of a tool, and that a slip of the hand is noticed."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from everturn import Chat, Output, Progress, tool
from everturn.core.hooks import CallContext
from everturn.core.parts import ToolPart
from everturn.core.ports import Tool
from everturn.errors import ConfigError
from everturn.events import CallProgress
from everturn.testing import ScriptedModel, call, calls, say
from everturn.tools.rename import rename_tool


async def fetch(url: str, note: str = "") -> object:
    """Fetch a page."""
    return {"url": url, "note": note}


async def came(function_tool: Tool, **arguments: object) -> ToolPart:
    """Let a model call it, and see what came of that."""
    async with Chat(
        ScriptedModel(calls(call(function_tool.spec.name, **arguments)), say("Done.")), tools=[function_tool]
    ) as chat:
        result = await (await chat.send("please"))
    assert result.message is not None
    [part] = [part for part in result.message.parts if isinstance(part, ToolPart)]
    return part


async def text(function_tool: Tool, **arguments: object) -> str:
    part = await came(function_tool, **arguments)
    assert part.output is not None
    return part.output.text


def test_every_choice_is_in_the_spec() -> None:
    chosen: dict[str, Any] = {
        "read_only": True,
        "approval": "ask",
        "timeout": 5,
        "review": "on_error",
        "subjects": {"url": "url"},
        "repeatable": True,
        "egress": True,
        "untrusted": True,
        "private": ("email",),
        "limit": 100,
    }
    spec = tool(**chosen)(fetch).spec
    assert {name: getattr(spec, name) for name in chosen} == chosen
    assert tool(private=["email"])(fetch).spec.private == ("email",)


def test_a_description_replaces_the_docstring() -> None:
    async def look(path: str) -> str:
        """Look."""
        return path

    assert tool(description="Look at a file.")(look).spec.description == "Look at a file."
    assert tool()(look).spec.description == tool(look).spec.description == "Look."
    wrong: Any = 3
    with pytest.raises(ConfigError, match="description=3; it must be a text"):
        tool(description=wrong)(look)


def test_a_function_says_where_it_comes_from() -> None:
    class Thing:
        def act(self) -> None: ...

    assert tool(fetch).spec.origin == f"function:{__name__}.fetch"
    assert tool(Thing().act).spec.origin.endswith("test_a_function_says_where_it_comes_from.<locals>.Thing.act")


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"approval": "Ask"}, "there are: auto, ask, always, deny"),
        ({"approval": True}, "there are: auto, ask, always, deny"),
        ({"approval": ["ask"]}, "there are: auto"),
        ({"read_only": "none"}, "it is True or False"),
        ({"review": "sometimes"}, "there are: never, on_error, always"),
        ({"timeout": 0}, "more than 0"),
        ({"timeout": True}, "more than 0"),
        ({"timeout": float("nan")}, "more than 0"),
        ({"timeout": "60"}, "more than 0"),
        ({"repeatable": "no"}, "True or False"),
        ({"egress": 0}, "True or False"),
        ({"untrusted": None}, "True or False"),
        ({"private": "email"}, "list of names"),
        ({"private": ("email", 3)}, "list of names"),
        ({"limit": -1}, "number of characters"),
        ({"limit": True}, "number of characters"),
        ({"subjects": ("url",)}, "what kind of thing"),
        ({"subjects": {"uri": "url"}}, "no parameter 'uri'; there are: url, note"),
        ({"subjects": {"url": "uri"}}, "no kind 'uri'; there are: text, path, url, command"),
        ({"subjects": {"url": ["url"]}}, "no kind"),
        ({"before": "check"}, "it is a function"),
        ({"after": 1}, "it is a function"),
        ({"to_model": "str"}, "it is a function"),
        ({"to_model": fetch}, "a plain function"),
    ],
)
def test_a_choice_that_makes_no_sense_is_refused(choice: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as refused:
        tool(**choice)(fetch)
    assert "tool 'fetch': " in str(refused.value)


def test_a_choice_nobody_knows_is_refused() -> None:
    with pytest.raises(
        TypeError, match="tool 'fetch': there is no option excute; there are: name, description, read_only, idempotent"
    ):
        tool(excute="ask")(fetch)  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("readonly", "did you mean read_only?"),
        ("descripton", "did you mean description?"),
        ("requires_approval", 'write approval="ask": a person approves each call'),
        ("needs_approval", 'write approval="ask": a person approves each call'),
    ],
)
def test_an_option_of_another_library_is_refused_with_the_one_to_use(option: str, hint: str) -> None:
    with pytest.raises(TypeError) as refused:
        tool(**{option: True})(fetch)  # pyright: ignore[reportArgumentType]
    assert str(refused.value) == f"tool 'fetch': there is no option {option}; {hint}"


def test_approval_true_says_which_word_asks_a_person() -> None:
    with pytest.raises(
        ConfigError, match='approval=True; there are: auto, ask, always, deny; "ask" means that a person'
    ):
        tool(approval=True)(fetch)  # pyright: ignore[reportArgumentType]


class Connection:
    """No model can write one as JSON."""


@pytest.mark.parametrize("hint", [Connection, list[Connection], Connection | None, Callable[[int], int]])
def test_a_parameter_that_no_model_can_fill_in_is_named_with_its_type(hint: Any) -> None:
    def search(words: str, connection: Any) -> str:
        """Search."""
        return words

    search.__annotations__["connection"] = hint
    with pytest.raises(ConfigError) as refused:
        tool(search)
    message = str(refused.value)
    assert message.startswith("tool 'search': parameter 'connection' has the type ")
    assert (
        "Connection, which" in message
        or "Connection]" in message
        or "Connection | None" in message
        or "Callable[" in message
    )
    assert "ctx: ToolContext, in its ctx.deps" in message
    assert "arbitrary_types_allowed" not in message


def test_a_tool_that_runs_commands_needs_what_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_shell(command: str) -> None: ...

    assert tool(subjects={"command": "command"})(run_shell).spec.subjects == {"command": "command"}
    monkeypatch.setitem(sys.modules, "tree_sitter_bash", None)
    with pytest.raises(ConfigError, match=r"install everturn\[shell\]"):
        tool(subjects={"command": "command"})(run_shell)


# Around a call --------------------------------------------------------------------------------------------------------


async def test_before_changes_the_arguments_and_after_the_output() -> None:
    def before(ctx: CallContext) -> None:
        ctx.arguments = {**ctx.arguments, "note": "noted"}

    async def after(ctx: CallContext) -> None:
        await asyncio.sleep(0)
        ctx.output = replace(ctx.output, text=f"{ctx.output.text}, seen by {ctx.tool.name}")

    fetch_tool = tool(before=before, after=after)(fetch)
    assert await text(fetch_tool, url="u") == '{"url":"u","note":"noted"}, seen by fetch'
    assert await text(rename_tool(fetch_tool, "get"), url="u") == '{"url":"u","note":"noted"}, seen by get'


async def test_arguments_that_before_has_spoiled_are_refused() -> None:
    def before(ctx: CallContext) -> None:
        ctx.arguments = {"link": "u"}

    part = await came(tool(before=before)(fetch), url="u")
    assert part.state == "failed"


@pytest.mark.parametrize("when", ["before", "after"])
async def test_one_that_fails_fails_the_call(when: str) -> None:
    def broken(ctx: CallContext) -> None:
        raise RuntimeError("no")

    choices: dict[str, Any] = {when: broken}
    part = await came(tool(**choices)(fetch), url="u")
    assert part.state == "failed"
    assert part.output is not None
    assert f"fetch.{when} failed" in part.output.text


# What the model reads -------------------------------------------------------------------------------------------------


def shortly(value: dict[str, str]) -> str:
    return f"page {value['url']}"


async def test_to_model_says_what_the_model_reads_of_an_async_function() -> None:
    assert await text(tool(to_model=shortly)(fetch), url="u") == "page u"


async def test_to_model_of_a_plain_function_runs_in_its_thread() -> None:
    threads: list[threading.Thread] = []

    def get(url: str) -> dict[str, str]:
        threads.append(threading.current_thread())
        return {"url": url}

    def to_output(value: dict[str, str]) -> Output:
        threads.append(threading.current_thread())
        return Output(shortly(value), title="a page")

    part = await came(tool(to_model=to_output)(get), url="u")
    assert part.output is not None
    assert (part.output.text, part.output.title) == ("page u", "a page")
    assert threads[0] is threads[1]
    assert threads[0] is not threading.main_thread()


async def test_to_model_of_a_generator_sees_its_output_and_not_its_progress() -> None:
    closed: list[bool] = []

    async def get(url: str) -> AsyncIterator[object]:
        try:
            yield Progress("half")
            yield {"url": "first"}
            yield Progress("more")
            yield {"url": url}
        finally:
            closed.append(True)

    get_tool = tool(to_model=shortly)(get)
    async with Chat(ScriptedModel(calls(call("get", url="u")), say("Done.")), tools=[get_tool]) as chat:
        turn = await chat.send("please")
        progress = [event.text async for event in turn.events() if isinstance(event, CallProgress)]
        result = await turn
    assert result.message is not None
    outputs = [part.output.text for part in result.message.parts if isinstance(part, ToolPart) and part.output]
    assert (progress, outputs, closed) == (["half", "more"], ["page u"], [True])


async def test_to_model_that_fails_fails_the_call() -> None:
    part = await came(tool(to_model=lambda value: value["nope"])(fetch), url="u")
    assert part.state == "failed"


async def test_the_function_itself_is_as_it_was() -> None:
    assert await tool(to_model=shortly)(fetch)("u") == {"url": "u", "note": ""}
