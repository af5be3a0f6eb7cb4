"""Output contract of a model: text, reasoning, finish reasons, usage and cost."""

from __future__ import annotations

import pytest

from everturn.core.chunks import Chunk, TextChunk
from everturn.core.deltas import ReasoningDelta, TextDelta
from everturn.core.hooks import PartialAnswer, TurnContext
from everturn.core.parts import StepPart, TextPart, Usage
from everturn.core.phases import Phase
from everturn.models.prices import Price
from everturn.testing.contracts.model.bench import (
    ModelBench,
    ModelTestBench,
    RecordingTool,
    answer_of,
    calls_of,
    finish_of,
    send_and_wait,
    thoughts_of,
)
from everturn.testing.provider import Call, Finish, Item, Raw, Redacted, Refuse, Say, ScriptedUsage, Think

TEXTS = {
    "emoji": "👩‍👩‍👧‍👦 and 🏳️‍🌈, and a flag: 🇺🇳",
    "line separators": "one\u2028two\u2029three\u0085four\rfive\r\nsix",
    "scripts": "שלום, здравствуйте, 你好, مرحبا, Ångström, e\u0301",
    "control characters": "a\x00b\x1b[31mc\x7f",
    "what looks like a stream": 'data: [DONE]\n\ndata: {"error": "no"}\n\nevent: error\n: comment',
    "what looks like a thought": "The tag <think> opens, and </think> closes.",
    "a byte order mark": "\ufeffbegins",
    "blanks around it": "  \n two lines\n\n and a tab\t.",
    "a long word": "x" * 20_000,
}
SIZE = 10  # characters


class ChunkRecorder:
    """A plugin that records the pieces of a text."""

    name = "listens"

    def __init__(self, pieces: list[str]) -> None:
        self._pieces = pieces

    def on_stream_chunk(self, ctx: TurnContext, chunk: Chunk, message: PartialAnswer) -> None:
        """Record the piece."""
        if isinstance(chunk, TextChunk):
            self._pieces.append(chunk.text)


class OutputContract(ModelBench):
    """An answer is exactly the output of the model."""

    async def test_an_answer_is_what_the_model_said(self, bench: ModelTestBench) -> None:
        chat = bench.chat([Say("Hello there, dear world.")])

        result = await send_and_wait(chat)

        assert (result.phase, result.text) == (Phase.COMPLETED, "Hello there, dear world.")
        assert finish_of(result.message) == "stop"

    async def test_an_answer_has_the_badge_of_its_model(self, bench: ModelTestBench) -> None:
        model = bench.model([Say("Hello.")])

        result = await send_and_wait(bench.open(model))

        assert result.message is not None
        assert result.message.by == model.name

    async def test_an_answer_without_a_word_is_an_answer_and_no_obstacle(self, bench: ModelTestBench) -> None:
        chat = bench.chat([], [Say("Here I am.")])

        assert (await send_and_wait(chat, "Are you there?")).text == ""
        assert (await send_and_wait(chat, "And now?")).text == "Here I am."

        user_text = "\n".join(text for role, text in bench.wire_request().texts_by_role if role == "user")
        assert user_text.index("Are you there?") < user_text.index("And now?")

    async def test_the_pieces_of_an_answer_add_up(self, bench: ModelTestBench) -> None:
        text = "".join(f"{number} " for number in range(1_000))
        pieces: list[str] = []
        chat = bench.chat([Say(text, pieces=-(-len(text) // SIZE))], plugins=[ChunkRecorder(pieces)])

        turn = await chat.send("Count.")
        shown = [event.text async for event in turn if isinstance(event, TextDelta)]

        assert "".join(shown) == text == (await turn).text
        assert pieces == [text[at : at + SIZE] for at in range(0, len(text), SIZE)]

    async def test_a_message_and_an_answer_may_be_blank(self, bench: ModelTestBench) -> None:
        chat = bench.chat([Say(" \n")], [Say("Hello.")])

        assert (await send_and_wait(chat, "  ")).text == " \n"
        assert (await send_and_wait(chat, "\n")).text == "Hello."

    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
    async def test_every_character_arrives_in_both_directions(self, bench: ModelTestBench, text: str) -> None:
        chat = bench.chat([Say("I say: " + text, pieces=7)])

        result = await send_and_wait(chat, "You say: " + text)

        assert result.text == "I say: " + text
        assert bench.wire_request().texts_by_role[-1] == ("user", "You say: " + text)

    async def test_reasoning_is_shown_and_is_not_part_of_the_text(self, bench: ModelTestBench) -> None:
        if not self.has_reasoning:
            pytest.skip("it has no reasoning")
        chat = bench.chat([Think("Two and two, hm."), Say("It is four.")])

        turn = await chat.send("2 + 2?", params=self.thinking)
        shown = [event async for event in turn if isinstance(event, TextDelta | ReasoningDelta)]
        result = await turn

        assert "".join(event.text for event in shown if isinstance(event, ReasoningDelta)) == "Two and two, hm."
        assert isinstance(shown[0], ReasoningDelta)
        assert [part.text for part in thoughts_of(result.message)] == ["Two and two, hm."]
        assert result.text == "It is four."

    async def test_thoughts_and_texts_keep_their_order(self, bench: ModelTestBench) -> None:
        if not self.has_reasoning:
            pytest.skip("it has no reasoning")
        chat = bench.chat([Think("First."), Say("One. "), Think("Second."), Say("Two.")])

        await send_and_wait(chat, params=self.thinking)
        await send_and_wait(chat, params=self.thinking)

        parts = [part for part in (await answer_of(chat)).parts if not isinstance(part, StepPart)]
        assert [(type(part) is TextPart, getattr(part, "text", "")) for part in parts] == [
            (False, "First."),
            (True, "One. "),
            (False, "Second."),
            (True, "Two."),
        ]

    @pytest.mark.parametrize(
        "thoughts",
        [[Think("Hm.")], [Say("So."), Think("Hm.")], [Think("Hm."), Redacted()]],
        ids=["alone", "after a text", "hidden"],
    )
    async def test_an_answer_may_end_with_a_thought(self, bench: ModelTestBench, thoughts: list[Item]) -> None:
        chat = bench.chat(thoughts, [Say("Fine.")])

        await send_and_wait(chat, params=self.thinking)

        assert (await send_and_wait(chat, params=self.thinking)).text == "Fine."

    async def test_reasoning_that_is_not_shown_is_kept_and_goes_back(self, bench: ModelTestBench) -> None:
        if not self.has_seals:
            pytest.skip("it has no sealed reasoning")
        chat = bench.chat([Redacted(), Say("I may not say why.")])

        result = await send_and_wait(chat, params=self.thinking)
        await send_and_wait(chat, params=self.thinking)

        assert result.text == "I may not say why."
        assert [part.text for part in thoughts_of(result.message)] == [""]
        assert len(bench.wire_request().seals) == 1

    @pytest.mark.parametrize("reason", ["stop", "length", "content_filter", "refusal"])
    async def test_a_step_says_why_it_ended(self, bench: ModelTestBench, reason: str) -> None:
        ends = [Refuse("I would rather")] if reason == "refusal" else [Say("I would"), Finish(reason)]  # pyright: ignore[reportArgumentType]
        is_cut = self.finishes[reason] == "length"
        chat = bench.chat(ends, *([[Say(" rather not.")]] if is_cut else []), [Say("Fine.")])

        result = await send_and_wait(chat)

        assert finish_of(result.message, 0) == self.finishes[reason]
        assert not is_cut or result.text == "I would rather not."
        assert (await send_and_wait(chat)).text == "Fine."

    async def test_the_words_of_a_refusal_are_its_text(self, bench: ModelTestBench) -> None:
        chat = bench.chat([Refuse("I cannot help with that.")])

        assert (await send_and_wait(chat)).text == "I cannot help with that."

    # Cost ---------------------------------------------------------------------------------------------------------

    async def test_tokens_are_counted_with_the_cache_as_a_part_of_the_input(self, bench: ModelTestBench) -> None:
        reported = {"cached": 300, "written": 100, "reasoning": 20}
        chat = bench.chat([Say("Hello."), ScriptedUsage(input=1_000, output=50, **reported)])

        usage = (await send_and_wait(chat)).usage

        cached, written, reasoning = (count if name in self.counts else 0 for name, count in reported.items())
        assert usage == Usage(1_000, 50, cached, reasoning, written)

    async def test_the_tokens_of_all_steps_are_added_up(self, bench: ModelTestBench) -> None:
        first, second = ScriptedUsage(input=100, output=10), ScriptedUsage(input=200, output=20)
        chat = bench.chat([Call("look"), first], [Say("Done."), second], tools=[RecordingTool()])

        result = await send_and_wait(chat)

        assert (result.usage.input, result.usage.output) == (300, 30)
        assert len(calls_of(result.message)) == 1

    async def test_an_answer_that_counts_nothing_is_an_answer(self, bench: ModelTestBench) -> None:
        if not self.uncounted:
            pytest.skip("it always counts")
        chat = bench.open(bench.model([Raw(self.uncounted)], price=Price(1.0, 1.0)))

        result = await send_and_wait(chat)

        assert (result.text, result.usage) == ("Hello.", Usage())

    async def test_an_answer_whose_last_line_nobody_ended_is_an_answer(self, bench: ModelTestBench) -> None:
        if not self.uncounted:
            pytest.skip("there is no stream to shorten")
        chat = bench.chat([Raw(self.uncounted.rstrip(b"\n"))])

        assert (await send_and_wait(chat)).text == "Hello."
        assert len(bench.seen) == 1

    async def test_a_price_makes_a_cost(self, bench: ModelTestBench) -> None:
        price = Price(input=2.0, output=10.0)
        chat = bench.open(bench.model([Say("Hello."), ScriptedUsage(input=1_000_000, output=500_000)], price=price))

        assert (await send_and_wait(chat)).usage.cost == pytest.approx(7.0)

    async def test_what_comes_from_a_cache_has_its_own_price(self, bench: ModelTestBench) -> None:
        if "cached" not in self.counts:
            pytest.skip("it has no cache")
        price = Price(input=2.0, output=10.0, cached=0.5)
        counted = ScriptedUsage(input=1_000_000, output=500_000, cached=400_000)
        chat = bench.open(bench.model([Say("Hello."), counted], price=price))

        assert (await send_and_wait(chat)).usage.cost == pytest.approx(6.4)

    async def test_without_a_price_there_is_no_cost(self, bench: ModelTestBench) -> None:
        chat = bench.chat([Say("Hello.")])

        assert (await send_and_wait(chat)).usage.cost is None
