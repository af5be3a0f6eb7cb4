"""The plugin that calls tools: what it offers beside them, and what it says of that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from everturn import Chat, TurnOptions, tool
from everturn.app import App
from everturn.calls.output import OutputLimits
from everturn.calls.private_values import PRIVACY_RULE
from everturn.calls.references import REFERENCES_RULE
from everturn.core.parts import ToolPart
from everturn.core.requests import ModelRequest, RequestResult
from everturn.core.rules.policy import Rule
from everturn.plugins.tool_calling import ToolCalling
from everturn.testing import MemoryStore, ScriptedModel, call, calls, say
from everturn.tools.registry import ToolRegistry

WHOLE = "".join(f"line {number}\n" for number in range(1_000))


@tool(read_only=True, limit=200)
async def look() -> str:
    return WHOLE


@tool(read_only=True, private=("email",))
async def who() -> dict[str, str]:
    return {"name": "Ada", "email": "ada@example.com"}


def offered(model: ScriptedModel) -> list[list[str]]:
    return [[spec.name for spec in request.tools] for request in model.requests]


def read_it(start: int = 1_000) -> Callable[[ModelRequest], Any]:
    """Read a piece of the result the model was shown."""

    def answer(request: ModelRequest) -> Any:
        [shown] = {
            part.call for message in request.messages for part in message.parts if isinstance(part, RequestResult)
        }
        return calls(call("read_result", call=shown, start=start, length=20))

    return answer


def texts(message: Any) -> list[str]:
    return [part.output.text for part in message.parts if isinstance(part, ToolPart) and part.output is not None]


async def test_once_a_result_was_cut_its_whole_can_be_read_and_the_model_knows() -> None:
    model = ScriptedModel(calls(call("look")), read_it(), say("Done."), say("Still."))
    async with Chat(model, tools=[look]) as chat:
        result = await (await chat.send("please"))
        await (await chat.send("and now?"))
    assert offered(model) == [["look"], *[["look", "read_result", "list_results"]] * 3]
    assert [REFERENCES_RULE in request.system for request in model.requests] == [False, True, True, True]
    assert WHOLE[1_000:1_020] in texts(result.message)[1]


async def test_where_nothing_was_cut_there_is_nothing_to_read() -> None:
    model = ScriptedModel(calls(call("who")), calls(call("read_result", call="x")), say("Done."))
    async with Chat(model, tools=[who]) as chat:
        result = await (await chat.send("please"))
    assert offered(model) == [["who"]] * 3
    assert texts(result.message)[1].startswith("there is no tool called 'read_result'; there are: who.")


async def test_a_turn_without_tools_has_none_to_read_with_either() -> None:
    model = ScriptedModel(calls(call("look")), say("Done."), say("Still."))
    async with Chat(model, tools=[look]) as chat:
        await (await chat.send("please"))
        await (await chat.send("and now?", tools=[]))
    assert offered(model)[-1] == []
    assert REFERENCES_RULE not in model.requests[-1].system


async def test_reading_can_be_denied_like_anything_else() -> None:
    model = ScriptedModel(calls(call("look")), read_it(), say("Done."))
    async with Chat(model, tools=[look], rules=[Rule("read_result", "deny")]) as chat:
        result = await (await chat.send("please"))
    assert offered(model) == [["look"]] * 3
    assert texts(result.message)[1].startswith("This call is not allowed")


async def test_a_process_that_takes_a_turn_over_can_read_what_was_cut_long_before() -> None:
    store, rules = MemoryStore(), [Rule("read_result", "ask")]

    def model() -> ScriptedModel:
        return ScriptedModel(calls(call("look")), say("Seen."), read_it(), say("Done."))

    async with Chat(model(), tools=[look], rules=rules, store=store, session="s") as chat:
        await (await chat.send("please"))
        turn = await chat.send("read it")
        async for event in turn.events():
            if type(event).__name__ == "GateOpened":
                break
    async with Chat(model(), tools=[look], rules=rules, store=store, session="s") as chat:
        [gate] = await chat.gates()
        await chat.answer(gate, allow="once")
        result = await chat.turn(turn.id)
    [text] = texts(result.message)
    assert WHOLE[1_000:1_020] in text


async def test_a_model_with_private_tools_is_told_what_placeholders_are() -> None:
    model, other = ScriptedModel(calls(call("who")), say("Done.")), ScriptedModel(say("Done."))
    for scripted, rules in ((model, ()), (other, [Rule("who", "deny")])):
        async with Chat(scripted, tools=[who, look], rules=rules) as chat:
            await (await chat.send("please"))
    assert all(PRIVACY_RULE in request.system for request in model.requests)
    assert not any(PRIVACY_RULE in request.system for request in other.requests)


async def test_it_is_a_plugin_like_any_other() -> None:
    def script() -> Sequence[Any]:
        return calls(call("look")), say("Done.")

    inside, beside = ScriptedModel(*script()), ScriptedModel(*script())
    async with Chat(inside, tools=[look]) as chat:
        await (await chat.send("please"))
    app = App(beside, plugins=[ToolCalling([look], OutputLimits())])
    async with Chat(beside, app=app) as chat:
        await (await chat.send("please"))
    assert offered(inside) == offered(beside)


async def test_what_one_request_does_to_its_tools_is_not_seen_by_the_next() -> None:
    class Shy:
        name = "shy"

        def on_before_request(self, ctx: Any) -> None:
            if ctx.step == 1:
                ctx.body.tools.clear()

    model = ScriptedModel(calls(call("look")), say("Done."))
    async with Chat(model, tools=[look, who], plugins=[Shy()]) as chat:
        await (await chat.send("please"))
    assert offered(model) == [[], ["look", "who", "read_result", "list_results"]]


async def test_two_turns_with_rules_of_their_own_have_tools_of_their_own() -> None:
    model = ScriptedModel(say("Done."))
    app = App(model, tools=[look, who])
    for rules in ((), (Rule("who", "deny"),), (Rule("look", "deny"),), ()):
        await (await Chat(model, app=app, options=TurnOptions(rules=rules)).send("please"))
    await app.aclose()
    assert offered(model) == [["look", "who"], ["look"], ["who"], ["look", "who"]]


async def test_a_turn_with_rules_of_its_own_sees_tools_that_come_and_go() -> None:
    registry = ToolRegistry([who])

    @tool(read_only=True)
    async def leave() -> str:
        registry.replace(who.spec.origin, [])
        return "gone"

    registry.replace(leave.spec.origin, [leave])
    model = ScriptedModel(calls(call("leave")), say("Done."))
    async with Chat(model, tools=registry, options=TurnOptions(rules=(Rule("leave", "allow"),))) as chat:
        await (await chat.send("please"))
    assert offered(model) == [["who", "leave"], ["leave"]]
