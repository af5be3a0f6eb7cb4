"""The request: a pure function of the log. What stands in it, in which order, and what never does."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from inline_snapshot import snapshot

from everturn import Chat, Prompt, TurnOptions, TurnSettings, tool
from everturn.app import App
from everturn.core.events import TurnSuspended
from everturn.core.options import ToolHistory
from everturn.core.parts import NoticePart, ReasoningPart, TextPart
from everturn.core.requests import ModelRequest, RequestCall, RequestMessage, RequestResult
from everturn.events import TextDelta
from everturn.testing import CountingIds, FakeClock, MemoryStore, ScriptedHang, ScriptedModel, call, calls, say, think
from tests.helpers.crash_harness import validate

DAY = 86_400
NOON = 1_699_963_200.0  # 2023-11-14 12:00 UTC


@tool(read_only=True)
async def look(path: str) -> str:
    """Look at a file."""
    return f"content of {path}"


mail = tool(name="mail", approval="always")(lambda: "sent")


def render_messages(messages: Sequence[RequestMessage]) -> list[str]:
    """Messages as lines, to be read at a glance."""

    def line(part: object) -> str:
        match part:
            case TextPart(text=text):
                return text
            case ReasoningPart(text=text):
                return f"({text})"
            case NoticePart(kind=kind, text=text):
                return f"<{kind}: {text}>"
            case RequestCall(name=name, arguments=arguments):
                return f"{name}{arguments}"
            case RequestResult(text=text, is_error=is_error):
                return f"-> {'! ' if is_error else ''}{text}"
            case _:
                return repr(part)

    return [f"{message.role}: {' | '.join(map(line, message.parts))}" for message in messages]


def in_order(*script: Any) -> ScriptedModel:
    """A model that gives its answers one after the other, however many of them a request shows."""
    answers = iter(script)
    return ScriptedModel(*[lambda _: next(answers)] * 10)


def encoded(request: ModelRequest) -> bytes:
    return msgspec.json.encode(request)


# The system prompt and the parameters -------------------------------------------------------------------------------


async def request_for(settings: TurnSettings, clock: FakeClock | None = None, **how: Any) -> ModelRequest:
    model = ScriptedModel(say("Hello."))
    app = App(model, settings=settings, clock=clock or FakeClock(NOON))
    async with Chat(model, app=app, options=TurnOptions(**how.pop("options", {}))) as chat:
        await (await chat.send("hi", **how))
    return model.requests[0]


async def test_the_system_prompt_stands_in_its_order_and_the_date_has_no_time() -> None:
    prompt = Prompt(header="H", agent="A", workspace="W", custom="C", privacy="P", timezone="UTC")
    request = await request_for(TurnSettings(prompt), options={"system": "U"})
    assert request.system.split("\n\n") == ["H", "A", "W", "C", "U", "Today is 2023-11-14 (UTC).", "P"]


async def test_what_is_empty_leaves_no_gap_in_the_system_prompt() -> None:
    assert (await request_for(TurnSettings(Prompt(agent="A")))).system == "A"
    assert (
        await request_for(TurnSettings(Prompt(agent="A", timezone="UTC")))
    ).system == "A\n\nToday is 2023-11-14 (UTC)."


async def test_the_date_is_that_of_the_persons_time_zone() -> None:
    late = FakeClock(NOON + 11.5 * 3600)
    request = await request_for(TurnSettings(Prompt(timezone="Europe/Berlin")), late)
    assert request.system == "Today is 2023-11-15 (Europe/Berlin)."


async def test_options_are_merged_in_layers_and_null_takes_one_back() -> None:
    layers = (
        {"temperature": 1, "top_p": 0.9, "reasoning": {"effort": "low", "summary": "auto"}},
        {"temperature": 0.5, "stop": ["x"]},
        {"reasoning": {"effort": "high"}, "stop": None},
    )
    request = await request_for(
        TurnSettings(layers=layers), params={"top_p": None, "reasoning": {"summary": None}, "seed": 7, "zero": 0}
    )
    assert request.params == {"temperature": 0.5, "reasoning": {"effort": "high"}, "seed": 7, "zero": 0}
    assert layers[0]["reasoning"] == {"effort": "low", "summary": "auto"}  # nobody's layer was changed


async def test_the_tools_are_offered_in_their_order() -> None:
    model = ScriptedModel(say("Hello."))
    async with Chat(model, tools=[mail, look]) as chat:
        await (await chat.send("hi"))
    assert [(spec.name, spec.description) for spec in model.requests[0].tools] == [
        ("mail", ""),
        ("look", "Look at a file."),
    ]


# The same again -----------------------------------------------------------------------------------------------------


async def test_a_request_built_again_on_another_day_is_the_same_to_the_byte() -> None:
    store, session = MemoryStore(), "s"
    script: list[Any] = [
        [think("let me see"), calls(call("look", path="a"))],
        [say("I was about to"), [ScriptedHang()]],
    ]
    first, second = ScriptedModel(*script), ScriptedModel(script[0], say("Done."))
    settings = TurnSettings(Prompt(header="H", timezone="UTC"), layers=({"seed": 7},))
    chat = Chat(
        first,
        session=session,
        app=App(first, tools=[look], store=store, clock=FakeClock(NOON), settings=settings),
    )
    turn = await chat.send("hi")
    async for event in turn:
        if isinstance(event, TextDelta) and event.text == "to":
            break
    await chat.aclose()

    clock = FakeClock(NOON + 30 * DAY)
    app = App(second, tools=[look], store=store, clock=clock, settings=settings)
    async with Chat(second, session=session, app=app) as other:
        assert (await other.turn(turn.id)).text == "Done."
    assert [encoded(request) for request in second.requests] == [encoded(first.requests[1])]
    assert b"2023-11-14" in encoded(second.requests[0])


async def test_every_request_of_a_turn_begins_with_the_one_before() -> None:
    model = ScriptedModel(*(calls(call("look", path=str(n))) for n in range(4)), say("Done."), say("Again."))
    async with Chat(model, tools=[look]) as chat:
        await (await chat.send("hi"))
        await (await chat.send("and?"))
    sent = [[msgspec.json.encode(message) for message in request.messages] for request in model.requests]
    assert all(later[: len(earlier)] == earlier for earlier, later in itertools.pairwise(sent))


# What never stands in it ----------------------------------------------------------------------------------------------


async def test_a_placeholder_never_stands_in_a_request() -> None:
    model = in_order(calls(call("look", path="a")), say("Done."), [[]], say("Yes?"))
    async with Chat(model, tools=[look]) as chat:
        for text in ("hi", "say nothing", "hello?"):
            await (await chat.send(text))
    for request in model.requests:
        validate(request.messages)
        assert request.messages[-1].role != "assistant"


async def test_the_closing_request_has_no_tools_and_says_so() -> None:
    ran: list[str] = []

    @tool
    async def step(n: int) -> int:
        ran.append(str(n))
        return n

    model = ScriptedModel(*(calls(call("step", n=n)) for n in range(2)), say("That is all."))
    async with Chat(model, tools=[step]) as chat:
        result = await (await chat.send("go", max_steps=2))
    assert (result.text, ran) == ("That is all.", ["0"])
    assert [len(request.tools) for request in model.requests] == [1, 1, 0]
    assert [line.split(":")[0] for line in render_messages(model.requests[-1].messages)][-2:] == ["tool", "user"]
    assert (
        render_messages(model.requests[-1].messages)[-2]
        == 'tool: -> ! {"status":"incomplete","reason":"max_steps_reached"}'
    )
    assert "no more tools can be called" in render_messages(model.requests[-1].messages)[-1]
    validate(model.requests[-1].messages)


async def test_a_call_the_model_makes_in_the_closing_answer_does_not_run() -> None:
    ran: list[str] = []
    more = tool(name="more")(lambda: ran.append("more"))
    model = ScriptedModel(*[calls(call("more"))] * 3)
    async with Chat(model, tools=[more]) as chat:
        turn = await chat.send("go", max_steps=1)
        await turn
        assert [called.state for called in (await turn.state()).calls.values()] == ["failed", "failed"]
    assert (len(model.requests), ran) == (2, [])


# History ------------------------------------------------------------------------------------------------------------


async def history_by(policy: ToolHistory) -> ModelRequest:
    """What the second turn sends of the first, in which one tool ran, one was denied and one does not exist."""
    tool_calls = calls(call("look", path="a"), call("mail"), call("nope", x=1))
    model = in_order([think("hm"), say("I look."), tool_calls], say("It says so."), say("As I said."))
    app = App(model, tools=[look, mail], ids=CountingIds(), clock=FakeClock(NOON))
    async with Chat(model, app=app, options=TurnOptions(tool_history=policy)) as chat:
        turn = await chat.send("read a")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                await turn.answer((await chat.gates())[0], deny="no")
        await (await chat.send("sure?"))
    validate(model.requests[-1].messages)
    return model.requests[-1]


async def test_full_history_has_every_step_with_its_calls_and_results() -> None:
    assert render_messages((await history_by("full")).messages) == snapshot(
        [
            "user: read a",
            'assistant: (hm) | I look. | look{"path":"a"} | mail{} | nope{"x":1}',
            "tool: -> content of a | -> ! The person did not allow this call and said why: no. | -> ! there is no tool called 'nope'; there are: look, mail. Nothing was run.",
            "assistant: It says so.",
            "user: sure?",
        ]
    )


async def test_results_history_keeps_what_tools_said_and_drops_the_calls() -> None:
    assert render_messages((await history_by("results")).messages) == snapshot(
        [
            "user: read a",
            """\
user: <tool_results: Results of tools used:
look: content of a
mail: The person did not allow this call and said why: no.
nope: there is no tool called 'nope'; there are: look, mail. Nothing was run.>\
""",
            """\
assistant: I look.

It says so.\
""",
            "user: sure?",
        ]
    )


async def test_digest_history_folds_the_tools_into_a_hint_whose_size_is_reported() -> None:
    request = await history_by("digest")
    assert render_messages(request.messages) == snapshot(
        [
            "user: read a",
            """\
assistant: [A log of tools that were used, for reference only; writing such lines calls nothing.
look {"path":"a"} -> completed: content of a
mail {} -> denied: The person did not allow this call and said why: no.
nope {"x":1} -> failed: there is no tool called 'nope'; there are: look, mail. Nothing was run.]

I look.

It says so.\
""",
            "user: sure?",
        ]
    )
    answer = request.messages[1]
    assert answer.text[answer.hint_size :] == "I look.\n\nIt says so."


async def test_no_history_of_tools_leaves_what_was_said() -> None:
    assert render_messages((await history_by("none")).messages) == snapshot(
        [
            "user: read a",
            """\
assistant: I look.

It says so.\
""",
            "user: sure?",
        ]
    )


@pytest.mark.parametrize("policy", ["full", "results", "digest", "none"])
async def test_a_turn_always_sees_its_own_calls_in_full(policy: ToolHistory) -> None:
    model = ScriptedModel(calls(call("look", path="a")), say("Done."))
    async with Chat(model, tools=[look], options=TurnOptions(tool_history=policy)) as chat:
        await (await chat.send("hi"))
    assert render_messages(model.requests[1].messages) == [
        "user: hi",
        'assistant: look{"path":"a"}',
        "tool: -> content of a",
    ]


async def test_a_branch_sees_its_own_ancestors_only() -> None:
    model = ScriptedModel(say("One."), say("Two."), say("Three."))
    async with Chat(model) as chat:
        await (await chat.send("one"))
        [_, answer] = await chat.messages()
        await (await chat.send("two"))
        await (await chat.insert(answer.id, "zwei"))
    assert render_messages(model.requests[-1].messages) == ["user: one", "assistant: One.", "user: zwei"]
