"""For tests of what becomes of results: tools that declare more of themselves, and looks at what was kept and asked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from everturn import Chat, tool
from everturn.app import App
from everturn.core.canonical_json import JsonObject
from everturn.core.parts import Output, ToolPart
from everturn.core.ports import Tool, ToolContext
from everturn.core.requests import ModelRequest, RequestCall, RequestResult, ToolSpec
from everturn.models.scripted import Answer, ScriptedCall, call, calls, say
from everturn.running.active_turn import ActiveTurn
from everturn.running.hook_contexts import RequestHookContext
from everturn.testing import ScriptedModel
from everturn.tools.read_result import ReadResultTool
from everturn.wire import dump_log


class Declared:
    """A tool that says more of itself."""

    def __init__(self, tool: Tool, **more: Any) -> None:
        self._tool, self._spec = tool, replace(tool.spec, **more)

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    def validate(self, arguments: JsonObject) -> None:
        self._tool.validate(arguments)

    def run(self, arguments: JsonObject, context: ToolContext) -> Awaitable[object] | AsyncIterator[object]:
        return self._tool.run(arguments, context)


def returns(value: object, name: str = "look", **more: Any) -> Tool:
    """A tool that takes nothing and returns this, or raises it."""

    async def function() -> object:
        if isinstance(value, BaseException):
            raise value
        return value

    return Declared(tool(name=name, read_only=True)(function), **more)


class Given:
    """Tools that remember what they were given, and do as little as they can with it."""

    def __init__(self) -> None:
        self.values: list[Any] = []

    def text(self, **more: Any) -> Tool:
        async def use(text: str) -> str:
            self.values.append(text)
            return "used"

        return Declared(tool(read_only=True)(use), **more)

    def rows(self) -> Tool:
        async def put(rows: list[dict[str, int]], note: str | int = "", count: int | None = None) -> str:
            self.values.append((rows, note, count))
            return "put"

        return tool(read_only=True)(put)

    def echo(self, raises: bool = False) -> Tool:
        async def echo(text: str) -> str:
            self.values.append(text)
            if raises:
                raise ValueError(f"cannot do anything with {text!r}")
            return f"you said {text}"

        return tool(read_only=True)(echo)


class Peek:
    """A plugin that lays hands on the run."""

    name = "peek"
    run: ActiveTurn

    def on_before_request(self, ctx: RequestHookContext) -> None:
        self.run = ctx.run


READ = Declared(ReadResultTool(), name="read_back")  # whoever else offers the tool, this one is offered here


def call_ids(request: ModelRequest) -> list[str]:
    """The calls a model made before."""
    return [part.call for message in request.messages for part in message.parts if isinstance(part, RequestCall)]


def then(name: str, **arguments: Any) -> Callable[[ModelRequest], Answer]:
    """A call that is made once there is a result: `CALL` in its arguments is the first call of the conversation."""

    def answer(request: ModelRequest) -> Answer:
        text = call(name, **arguments).arguments.replace("CALL", call_ids(request)[0])
        return calls(ScriptedCall(name, text))

    return answer


def talk(*then: Any) -> ScriptedModel:
    """A model that calls `look`, then does as it is told, and is done."""
    return ScriptedModel(calls(call("look")), *then, say("Done."))


def results_of(model: ScriptedModel) -> list[str]:
    """The results the model was shown in the end."""
    messages = model.requests[-1].messages
    return [part.text for message in messages for part in message.parts if isinstance(part, RequestResult)]


async def outputs(chat: Chat) -> list[Output]:
    """The results on the branch."""
    parts = [part for message in await chat.messages() for part in message.parts if isinstance(part, ToolPart)]
    return [part.output for part in parts if part.output is not None]


async def run_through(model: ScriptedModel, tools: Sequence[Tool], **more: Any) -> tuple[list[Output], str]:
    """Talk to the end; the results, and everything that was written down or sent to the model."""
    async with Chat(model, app=App(model, tools=tools, **more)) as chat:
        result = await (await chat.send("please"))
        assert result.text == "Done."
        return await outputs(chat), await everything(chat, model)


async def everything(chat: Chat, model: ScriptedModel) -> str:
    """All that was written down, asked of people or sent to the model."""
    store = chat.app.store
    written = dump_log(await store.events(chat.session))
    state = msgspec.json.encode([await store.gates(), model.requests, await chat.messages()])
    return written.decode() + state.decode()
