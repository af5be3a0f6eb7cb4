"""Answers that the output limit of a model cuts: the turn continues them, and what is shown is one text."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from msgspec.structs import replace
from pydantic import BaseModel

from everturn import Agent, App, Chat, TurnOptions, get_model, tool
from everturn.core.chunks import CallChunk, Chunk, FinishChunk, ReasoningChunk, TextChunk, UsageChunk
from everturn.core.continuation import CONTINUE_REQUEST, MIN_ECHO, EchoFilter, join_continued
from everturn.core.deltas import TextDelta
from everturn.core.events import StepFinished, StepStarted, TurnCompleted
from everturn.core.hooks import OutputContext, Plugin, StepContext
from everturn.core.parts import ReasoningPart, StepPart, TextPart, ToolPart, Usage
from everturn.core.requests import ModelRequest
from everturn.core.rules.policy import Rule
from everturn.models import PromptedModel
from everturn.models.prices import ModelFacts
from everturn.testing.provider import Call, Finish, Provider, Say, Think
from tests.helpers.crash_harness import Story, World, check, entries_in, plain, tell
from tests.helpers.window_model import events_of, rendered

WHOLE = "The quick brown fox jumps over the lazy dog, and then it goes home; \n\n- one\n- two"
CUTS = (WHOLE[:16], WHOLE[16:44], WHOLE[44:])  # within a word, and after a blank
VENDORS = {
    "chat": ("openai-chat:m", "/v1"),
    "mistral": ("mistral:mistral-m", "/v1"),
    "messages": ("anthropic:claude-opus-5", "/v1"),
    "responses": ("openai:gpt-5.2", "/v1"),
    "gemini": ("gemini:gemini-3-pro", "/v1beta"),
    "ollama": ("ollama:m", ""),
}


class CutModel:
    """Writes texts one after another, each but the last cut at its output limit. A request is checked in every format."""

    def __init__(self, *answers: str | list[Chunk], finish: str = "stop", echo: int = 0) -> None:
        self.name, self._answers, self._finish, self._echo = "cut", answers, finish, echo
        self.requests: list[ModelRequest] = []
        self.window: int | None = None

    async def facts(self) -> ModelFacts:
        return ModelFacts(None, self.window)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        rendered(replace(request, params={}))
        number = sum(message == CONTINUE_REQUEST for message in request.messages[-1:])
        partial_text = request.messages[-2].text if number else ""
        texts = [answer if isinstance(answer, str) else "" for answer in self._answers]
        at = next((at for at in range(len(texts)) if number and "".join(texts[: at + 1]) == partial_text), -1) + 1
        self.requests.append(request)
        answer = self._answers[at]
        chunks: list[Chunk] = [TextChunk(answer)] if isinstance(answer, str) else list(answer)
        if self._echo and number:
            chunks.insert(0, TextChunk(partial_text[-self._echo :]))
        for chunk in chunks:
            yield [chunk]
        is_last = at == len(self._answers) - 1
        yield [UsageChunk(Usage(100, 10)), FinishChunk(self._finish if is_last else "length")]  # type: ignore[arg-type]


@tool(read_only=True)
def look(n: int) -> str:
    """Look at something."""
    return f"result {n}"


async def run(chat: Chat, text: str = "Tell me.", **how: Any) -> Any:
    return await (await chat.send(text, **how)).result()


async def test_a_cut_answer_is_continued_and_is_one_text_everywhere() -> None:
    model = CutModel(*CUTS)
    app = App(model, tools=[look])
    chat = app.chat("s")
    turn = await chat.send("Tell me.")
    streamed = [item.text async for item in turn if isinstance(item, TextDelta)]
    result: Any = await turn.result()
    assert "".join(streamed) == result.text == result.message.text == WHOLE
    assert result.status == "completed"
    assert result.warnings == ()
    log = await app.store.events("s")
    finished = events_of(log, StepFinished)
    assert [(event.finish, event.continues) for event in finished] == [
        ("length", True),
        ("length", True),
        ("stop", False),
    ]
    assert result.usage.input == 300
    assert [len(request.messages) for request in model.requests] == [1, 3, 3]
    assert model.requests[2].messages[1].text == CUTS[0] + CUTS[1]
    assert all(request.messages[-1] == CONTINUE_REQUEST for request in model.requests[1:])
    shown, into = join_continued(result.message.parts)
    assert [part.text for part in shown if isinstance(part, TextPart)] == [WHOLE]
    assert into == -1
    await run(chat, "And?")  # the next turn reads one answer, and nothing of how it was written
    assert [message.text for message in model.requests[3].messages] == ["Tell me.", WHOLE, "And?"]


async def test_after_two_continuations_the_turn_ends_with_a_warning() -> None:
    model = CutModel(*CUTS, " and more", finish="length")
    result = await run(App(model).chat("s"))
    assert result.text == WHOLE
    assert result.status == "completed"
    assert [part.finish for part in result.message.parts if isinstance(part, StepPart)] == ["length"] * 3
    assert result.warnings == ("the answer was cut off at the model's output limit, after 2 continuations",)
    assert len(model.requests) == 3


async def test_an_answer_that_fills_the_window_is_not_continued() -> None:
    """What a compaction keeps does not fit beside its continuation: the turn ends with what there is."""
    text = "".join(f"{number} and on, " for number in range(600))
    model = CutModel(text, "the end.")
    model.window = 2_048
    result = await run(App(model).chat("s"))
    assert (result.status, result.text) == ("completed", text)
    [warning] = result.warnings
    assert warning.endswith("it fills the context window of the model")
    larger = CutModel(text, "the end.")
    larger.window = 16_384
    assert (await run(App(larger).chat("s"))).text == f"{text}the end."


@pytest.mark.parametrize("params", [{"max_tokens": 16}, {"options": {"num_predict": 16}}])
async def test_a_limit_that_the_caller_set_is_kept(params: dict[str, Any]) -> None:
    model = CutModel(*CUTS)
    result = await run(App(model).chat("s"), params=params)
    assert result.text == CUTS[0]
    assert len(model.requests) == 1
    assert result.warnings == ()


async def test_a_cut_call_is_not_run_and_the_model_is_told() -> None:
    ran: list[int] = []

    @tool
    def act(n: int) -> str:
        """Act."""
        ran.append(n)
        return "acted"

    class Told(CutModel):
        async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
            if request.messages[-1].role == "tool":
                self.requests.append(request)
                yield [TextChunk("so"), FinishChunk("stop")]
                return
            async for batch in super().stream(request):
                yield batch

    model = Told([TextChunk("I act"), CallChunk(0, '{"n": 1', "act", "c")], "unused")
    result = await run(App(model, tools=[act]).chat("s"))
    assert ran == []
    assert "cut off" in str(model.requests[-1].messages[-1].parts)
    assert CONTINUE_REQUEST not in model.requests[-1].messages
    assert [part.state for part in result.message.parts if isinstance(part, ToolPart)] == ["failed"]
    assert result.text == "so"


async def test_reasoning_without_text_is_not_continued() -> None:
    model = CutModel([ReasoningChunk("hm")], "unused")
    result = await run(App(model).chat("s"))
    assert result.text == ""
    assert len(model.requests) == 1
    assert "its reasoning used all of it" in result.warnings[0]


async def test_a_continuation_may_think_again_and_the_text_stays_one() -> None:
    model = CutModel(CUTS[0], [ReasoningChunk("where was I"), TextChunk(WHOLE[16:])])
    result = await run(App(model).chat("s"))
    assert result.text == WHOLE
    shown, _ = join_continued(result.message.parts)
    assert [type(part) for part in shown if part is not None] == [TextPart, ReasoningPart, StepPart]


async def test_a_plugin_that_checks_the_output_of_each_step_keeps_an_answer_from_being_continued() -> None:
    class Guard(Plugin):
        def on_output(self, ctx: OutputContext, text: str) -> None:
            pass

    model = CutModel(*CUTS)
    result = await run(App(model, plugins=[Guard()]).chat("s"))
    assert result.text == CUTS[0]
    assert "plugins check" in result.warnings[0]


class Answer(BaseModel):
    value: int


async def test_a_typed_output_that_was_cut_is_asked_for_again_as_a_whole() -> None:
    class Typed(CutModel):
        async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
            self.requests.append(request)
            is_first = len(self.requests) == 1
            yield [TextChunk('{"val' if is_first else '{"value": 7}'), FinishChunk("length" if is_first else "stop")]

    model = Typed()
    result = await Agent(model, output_type=Answer).run("Go")
    assert result.output == Answer(value=7)
    assert "cut off at the output limit" in str(model.requests[-1].messages[-1].parts)


async def test_a_person_who_speaks_in_between_gets_an_answer_and_no_continuation() -> None:
    model = CutModel(*CUTS)
    app = App(model, tools=[look])
    chat = app.chat("s")
    turn = await chat.send("Tell me.")
    await chat.send("Stop, say something else.", steer=True)
    await turn.result()
    texts = [[message.text for message in request.messages] for request in model.requests]
    at = next(at for at, request in enumerate(texts) if request[-1] == "Stop, say something else.")
    assert CONTINUE_REQUEST.text not in texts[at]
    assert texts[at][:2] in (["Tell me.", CUTS[0]], ["Tell me.", "Stop, say something else."])


async def test_without_a_step_left_nothing_is_continued() -> None:
    model = CutModel(*CUTS)
    result = await run(App(model).chat("s"), max_steps=1)
    assert result.text == CUTS[0]
    assert "max_steps=1" in result.warnings[0]
    assert len(model.requests) == 1


# Wire formats --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format_name", VENDORS)
async def test_every_wire_format_continues_a_cut_answer(format_name: str) -> None:
    name, path = VENDORS[format_name]
    async with Provider() as provider:
        model_name = name.partition(":")[2]
        steps = [
            [Think("Well."), Say(CUTS[0], 3), Finish("length")],
            [Say(CUTS[1], 3), Finish("length")],
            [Say(CUTS[2])],
        ]
        provider.script(model_name, [*steps, [Say("Bye.")]], sequence=True)
        app = App(get_model(name, base_url=f"{provider.url}{path}", key="k"), tools=[look])
        chat = app.chat("s")
        result = await run(chat)
        assert result.text == WHOLE
        await run(chat, "And?")
        assert provider.refused == 0
        bodies = [json.dumps(seen.body) for seen in provider.seen]
    asks = [CONTINUE_REQUEST.text[:40] in body for body in bodies]
    assert asks == [False, *[format_name not in ("mistral", "ollama")] * 2, False]
    if format_name in ("mistral", "ollama"):
        last = [seen.body["messages"][-1] for seen in provider.seen]
        assert [message["role"] for message in last] == ["user", "assistant", "assistant", "user"]
        assert [message["content"] for message in last[1:3]] == [CUTS[0], CUTS[0] + CUTS[1]]
        assert [message.get("prefix", False) for message in last] == [False, *[format_name == "mistral"] * 2, False]


@pytest.mark.parametrize("tool_format", ["json", "xml", "blocks"])
async def test_every_prompted_tool_format_continues_a_cut_answer(tool_format: str) -> None:
    model = CutModel(*CUTS)
    result = await run(App(PromptedModel(model, tool_format), tools=[look]).chat("s"))
    assert result.text == WHOLE
    assert len(model.requests) == 3


@pytest.mark.parametrize(
    ("tool_format", "written"),
    [
        ("json", '{"tool_calls": [{"name": "look", "arguments": {"n": 1}}]}\n'),
        ("xml", '<tool_code>{"name": "look", "arguments": {"n": 1}}</tool_code>\n'),
    ],
)
async def test_an_example_in_a_code_fence_that_was_cut_is_no_call(tool_format: str, written: str) -> None:
    texts = ("So it looks:\n\n```\n", written + "```\n\nThat is all.")
    model = CutModel(*texts)
    result = await run(App(PromptedModel(model, tool_format), tools=[look]).chat("s"))
    assert result.text == "".join(texts)
    assert not any(isinstance(part, ToolPart) for part in result.message.parts)


@pytest.mark.parametrize("format_name", ["chat", "messages", "responses"])
async def test_a_cut_call_is_told_in_every_format_that_sends_them_in_pieces(format_name: str) -> None:
    name, path = VENDORS[format_name]
    async with Provider() as provider:
        steps = [[Say("I look"), Call("look", '{"n": 1'), Finish("length")], [Say("So.")]]
        provider.script(name.partition(":")[2], steps, sequence=True)
        app = App(get_model(name, base_url=f"{provider.url}{path}", key="k"), tools=[look])
        result = await run(app.chat("s"))
        assert result.text == "So."
        assert [part.state for part in result.message.parts if isinstance(part, ToolPart)] == ["failed"]
        assert provider.refused == 0


# Crashes -------------------------------------------------------------------------------------------------------------


class CountedModel(CutModel):
    def __init__(self, world: World) -> None:
        super().__init__(*CUTS)
        self._world = world

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        self._world.done[request.messages[-2].text if len(request.messages) > 1 else "first"] += 1
        self._world.effects.update(dict.fromkeys(self._world.done, "read"))
        async for batch in super().stream(request):
            yield batch


@pytest.mark.parametrize("before_next", [False, True], ids=["after", "before"])
async def test_stopped_at_any_event_the_text_is_the_same_and_no_finished_step_is_repeated(before_next: bool) -> None:
    async def play(chat: Chat, world: World) -> None:
        await (await chat.send("Tell me.", key="first")).result()

    scenario = Story("cut", CountedModel, play, options=TurnOptions(max_steps=5))
    whole = await tell(scenario)
    await check(whole)
    entries = await entries_in(whole)
    assert len(events_of(entries, StepFinished)) == 3
    for stop in range(1, len(entries)):
        world = await tell(scenario, lives=stop, before_next=before_next)
        await check(world)
        again = await entries_in(world)
        assert plain(again) == plain(entries), f"stopped at {stop}"
        assert sum(world.done.values()) <= 4, f"stopped at {stop}: {world.done}"
        assert len(events_of(again, TurnCompleted)) == 1
        assert [event.step for event in events_of(again, StepStarted)] == [1, 2, 3]


# Repetitions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("echo", [MIN_ECHO, 30, 44])
async def test_a_model_that_repeats_the_end_of_its_text_is_not_shown_twice(echo: int, size: int) -> None:
    text = WHOLE[:44]
    continuation = text[-echo:] + WHOLE[44:]
    echo_filter = EchoFilter(text)
    pieces = [continuation[at : at + size] for at in range(0, len(continuation), size)]
    assert text + "".join([*(echo_filter.feed(piece) for piece in pieces), echo_filter.end()]) == WHOLE


@pytest.mark.parametrize("size", [1, 4, 1000])
@pytest.mark.parametrize(
    ("text", "continuation"),
    [
        ("The quick brown fox hel", "lo there"),  # a letter twice is meant
        ("| a | b |\n" * 9, "| a | b |\n" * 3),  # so is a line that occurs before
        ("-" * 60, "-" * 40),
        ("ha", "ha ha"),
        (WHOLE, WHOLE[:30]),
        (WHOLE, " " + WHOLE[-30:]),
        (WHOLE, ""),
    ],
)
def test_what_may_be_meant_is_not_taken_for_a_repetition(text: str, continuation: str, size: int) -> None:
    echo = EchoFilter(text)
    pieces = [continuation[at : at + size] for at in range(0, len(continuation), size)]
    assert "".join([*(echo.feed(piece) for piece in pieces), echo.end()]) == continuation


async def test_a_server_that_returns_the_whole_text_again_is_not_shown_twice() -> None:
    model = CutModel(WHOLE[:60], WHOLE[60:], echo=1000)
    result = await run(App(model).chat("s"))
    assert result.text == WHOLE


# Repeated texts ------------------------------------------------------------------------------------------------------


class Critic(Plugin):
    """Asks for another answer, without end."""

    def __init__(self) -> None:
        self.asked = 0

    async def on_after_request(self, ctx: StepContext) -> None:
        self.asked += 1
        await ctx.append_and_request(f"Try again, number {self.asked}.")


@pytest.mark.parametrize(
    ("texts", "steps"),
    [
        (["I am done."], 3),
        (["I am\ndone. ", "I am done."], 3),
        (["Yes.", "No."], 6),
        ([f"Attempt {number}." for number in range(99)], 10),
    ],
)
async def test_the_same_text_three_times_in_a_turn_is_a_loop(texts: list[str], steps: int) -> None:
    class Repeating(CutModel):
        async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
            yield [TextChunk(texts[len(self.requests) % len(texts)]), FinishChunk("stop")]
            self.requests.append(request)

    model = Repeating()
    app = App(model, plugins=[Critic()])
    result = await run(app.chat("s"), max_steps=9)
    assert len(model.requests) == steps  # the last of ten has no step after it
    assert ("the same text for the third time" in "".join(result.warnings)) == (steps < 10)
    assert result.status == "completed"


async def test_a_rule_that_allows_loops_allows_texts_that_repeat() -> None:
    model = CutModel("Again.")
    app = App(model, plugins=[Critic()], rules=[Rule("doom_loop", "allow")])
    await run(app.chat("s"), max_steps=5)
    assert len(model.requests) == 6
