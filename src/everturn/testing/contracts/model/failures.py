"""Failures contract of a model: streams that fail, end too early or stall, and turns that are cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from everturn.chat import Turn
from everturn.core.deltas import CallDelta, TextDelta
from everturn.core.phases import Phase
from everturn.errors import TurnError
from everturn.models.retry import RetryPolicy
from everturn.running.drive_setup import TurnSettings
from everturn.testing.contracts.model.bench import (
    AwaitedStep,
    ModelBench,
    ModelTestBench,
    RecordingTool,
    answer_of,
    calls_of,
    finish_of,
    send_and_wait,
    send_expecting_error,
)
from everturn.testing.provider import Call, Cut, CutAt, Hang, InBandError, Item, Pause, Raw, Say, Think

DEFAULT = TurnSettings()
SILENT = [Raw(b""), Hang()]  # an answer of which only the head arrives
PATH = '{"path": "a.txt"}'
STRIDE = 67  # bytes between the offsets at which an answer is cut; prime, so that they fall anywhere

IN_BAND = {
    "server": InBandError(),
    "rate": InBandError("Rate limit reached for requests", "rate_limit_exceeded", "rate_limit_error"),
    "context": InBandError("prompt is too long", "context_length_exceeded", "invalid_request_error"),
}


async def until(turn: Turn, seen: Callable[[Any], bool]) -> None:
    """Read a turn up to an event."""
    async for event in turn:
        if seen(event):
            return


class FailuresContract(ModelBench):
    """Partial answers are kept, none of their calls runs, nothing is requested twice, and the next turn is accepted."""

    @pytest.mark.parametrize("kind", IN_BAND)
    async def test_an_error_in_the_stream_ends_the_turn_with_its_kind(self, bench: ModelTestBench, kind: str) -> None:
        chat = bench.chat([Say("As far as here"), IN_BAND[kind]], [Say("Again.")])

        assert (await send_expecting_error(chat)).kind == kind

        answer = await answer_of(chat)
        assert (answer.text, finish_of(answer)) == ("As far as here", "error")
        assert len(bench.seen) == 1
        assert (await send_and_wait(chat)).text == "Again."

    async def test_an_answer_that_is_cut_off_is_kept_as_far_as_it_came_and_not_asked_for_again(
        self, bench: ModelTestBench
    ) -> None:
        chat = bench.chat([Say("As far as here"), Cut()], [Say("And on.")])

        assert (await send_expecting_error(chat)).kind in ("truncated", "network")

        assert (await answer_of(chat)).text == "As far as here"
        assert len(bench.seen) == 1
        assert (await send_and_wait(chat, "Go on.")).text == "And on."
        assert ("assistant", "As far as here") in bench.wire_request().texts_by_role

    async def test_an_answer_that_is_cut_off_is_called_truncated(self, bench: ModelTestBench) -> None:
        assert (await send_expecting_error(bench.chat([Say("As far as here"), Cut()]))).kind == "truncated"

    async def test_an_answer_that_ends_without_saying_so_is_cut_off(self, bench: ModelTestBench) -> None:
        if not self.uncounted:
            pytest.skip("there is no stream to shorten")
        before, _, after = self.uncounted.partition(b"Hello.")
        opening = before[: before.rindex(b"\n\n") + 2]
        partial = before + b"Hello." + after[: after.index(b"\n\n") + 2]
        chat = bench.chat([Raw(opening)], [Say("Now.")], [Raw(partial)], [Say("And now.")])

        assert (await send_and_wait(chat)).text == "Now."  # nothing had been streamed yet
        assert (await send_expecting_error(chat)).kind == "truncated"
        assert (await answer_of(chat)).text == "Hello."
        assert (await send_and_wait(chat)).text == "And now."

    async def test_an_answer_of_which_only_comments_came_is_asked_for_again(self, bench: ModelTestBench) -> None:
        chat = bench.chat([Raw(b": PROCESSING\n\n: PROCESSING\n\n")], [Say("Now.")])

        assert (await send_and_wait(chat)).text == "Now."

    @pytest.mark.parametrize(
        "cut", [[Cut()], [Raw(b""), Cut()], [CutAt(1)]], ids=["at once", "after the head", "after a byte"]
    )
    async def test_an_answer_that_is_cut_off_before_its_first_word_is_asked_for_again(
        self, bench: ModelTestBench, cut: list[Item]
    ) -> None:
        steps = [*cut, Say("Never.")] if isinstance(cut[0], CutAt) else cut
        chat = bench.chat(steps, [Say("Now.")])

        assert (await send_and_wait(chat)).text == "Now."
        assert len(bench.seen) == 2

    @pytest.mark.parametrize("arguments", ['{"path": "a', PATH], ids=["half of it", "all of it"])
    async def test_a_call_that_is_cut_off_never_runs(self, bench: ModelTestBench, arguments: str) -> None:
        look = RecordingTool()
        chat = bench.chat([Say("I look."), Call("look", arguments), Cut()], [Say("Again?")], tools=[look])

        await send_expecting_error(chat)

        assert [part.state for part in calls_of(await answer_of(chat))] == ["cancelled"]
        assert (await send_and_wait(chat, "What happened?")).text == "Again?"
        assert look.ran == []
        assert len(bench.wire_request().calls) == len(bench.wire_request().results) == 1

    async def test_wherever_an_answer_is_cut_off_no_call_runs_and_the_next_turn_is_accepted(
        self, bench: ModelTestBench
    ) -> None:
        items: list[Item] = [Think("A file."), Say("I look at it."), Call("look", PATH), Call("look", PATH)]
        ends: set[str] = set()
        for at in range(1, 100_000, STRIDE):
            look = RecordingTool()
            chat = bench.open(bench.model([*items, CutAt(at)], [Say("Again.")], name=f"cut-{at}"), tools=[look])
            try:
                result = await send_and_wait(chat, params=self.thinking)
                ends.add(result.text)
            except TurnError as error:
                ends.add(error.kind)
                assert look.ran == []
                assert (await send_and_wait(chat, "Again, please.", params=self.thinking)).text == "Again."
            if look.ran:
                break
        assert "Again." in ends
        assert ends & {"truncated", "network"}

    # Timeouts -----------------------------------------------------------------------------------------------------

    async def test_a_model_that_falls_silent_is_given_up(self, bench: ModelTestBench) -> None:
        chat, clock = bench.open_with_clock(bench.model([Say("As far as here"), Hang()], [Say("Again.")]))
        turn = await chat.send("Hi.")
        await until(turn, lambda event: isinstance(event, TextDelta))

        clock.advance(DEFAULT.idle_timeout + 1)

        with pytest.raises(TurnError) as caught:
            await turn
        assert caught.value.kind == "stalled"
        await bench.provider.wait_idle()
        assert bench.seen[0].is_closed_early
        assert (await answer_of(chat)).text == "As far as here"
        assert (await send_and_wait(chat)).text == "Again."

    async def test_a_model_that_never_begins_is_given_up(self, bench: ModelTestBench) -> None:
        step = AwaitedStep(SILENT)
        chat, clock = bench.open_with_clock(bench.model(step))
        turn = await chat.send("Hi.")
        await step.wait()

        clock.advance(DEFAULT.first_chunk_timeout + 1)

        with pytest.raises(TurnError) as caught:
            await turn
        assert caught.value.kind == "stalled"
        await bench.provider.wait_idle()
        assert bench.seen[0].is_closed_early

    async def test_a_model_that_never_ends_is_ended(self, bench: ModelTestBench) -> None:
        chat, clock = bench.open_with_clock(bench.model([Say("and on " * 200)], pace=0.005))
        end = clock.now() + DEFAULT.step_timeout
        turn = await chat.send("Hi.")
        async for event in turn:
            if isinstance(event, TextDelta) and clock.now() < end:
                clock.advance(DEFAULT.idle_timeout - 1)  # it is never silent

        with pytest.raises(TurnError) as caught:
            await turn
        assert caught.value.kind == "stalled"
        assert (await answer_of(chat)).text.startswith("and on ")
        await bench.provider.wait_idle()
        assert bench.seen[0].is_closed_early

    async def test_a_slow_model_is_waited_for(self, bench: ModelTestBench) -> None:
        slow = [Say("One "), Pause(0.02), Say("two "), Pause(0.02), Say("three.")]
        chat, clock = bench.open_with_clock(bench.model(slow))
        turn = await chat.send("Hi.")
        async for event in turn:
            if isinstance(event, TextDelta):
                clock.advance(DEFAULT.idle_timeout - 1)

        assert (await turn).text == "One two three."

    @pytest.mark.parametrize("silence", [SILENT, [Hang()]], ids=["after the head", "after the beginning"])
    async def test_a_model_that_does_not_begin_in_time_is_asked_again(
        self, bench: ModelTestBench, silence: list[Item]
    ) -> None:
        retry = RetryPolicy(initial_delay=0.001, first_chunk_timeout=1.0)
        chat = bench.open(bench.model(silence, [Say("Now.")], retry=retry))

        assert (await send_and_wait(chat)).text == "Now."
        await bench.provider.wait_idle()
        assert bench.seen[0].is_closed_early

    # Cancel -------------------------------------------------------------------------------------------------------

    async def cancel(self, bench: ModelTestBench, turn: Turn) -> None:
        """Cancel a turn, and check that the socket is closed soon: by the provider's own clock."""
        before = asyncio.get_running_loop().time()
        await turn.cancel()
        async with asyncio.timeout(10 * self.closes_within):
            await bench.provider.wait_idle()
        seen = bench.seen[-1]
        assert seen.is_closed_early
        assert seen.closed is not None
        assert seen.closed - before < self.closes_within
        assert (await turn).phase == Phase.CANCELLED

    async def test_a_cancel_in_the_middle_of_an_answer_closes_its_socket(self, bench: ModelTestBench) -> None:
        chat = bench.chat([Say("As far as here"), Hang()], [Say("Fine.")])
        turn = await chat.send("Hi.")
        await until(turn, lambda event: isinstance(event, TextDelta) and event.text.endswith("here"))

        await self.cancel(bench, turn)

        answer = await answer_of(chat)
        assert (answer.text, finish_of(answer)) == ("As far as here", "cancelled")
        assert (await send_and_wait(chat, "Never mind.")).text == "Fine."

    async def test_a_cancel_of_an_answer_that_keeps_coming_closes_its_socket(self, bench: ModelTestBench) -> None:
        chat = bench.open(bench.model([Say("and on " * 500)], pace=0.01))
        turn = await chat.send("Hi.")
        await until(turn, lambda event: isinstance(event, TextDelta))

        await self.cancel(bench, turn)

    @pytest.mark.parametrize("silence", [SILENT, [Hang()]], ids=["after the head", "after the beginning"])
    async def test_a_cancel_before_the_first_word_closes_its_socket(
        self, bench: ModelTestBench, silence: list[Item]
    ) -> None:
        step = AwaitedStep(silence)
        chat = bench.chat(step, [Say("Fine.")])
        turn = await chat.send("Hi.")
        await step.wait()

        await self.cancel(bench, turn)

        assert (await send_and_wait(chat, "Never mind.")).text == "Fine."

    async def test_a_cancel_in_the_middle_of_a_call_leaves_nothing_open(self, bench: ModelTestBench) -> None:
        look = RecordingTool()
        chat = bench.chat([Say("I look."), Call("look", '{"path": "a'), Hang()], [Say("Fine.")], tools=[look])
        turn = await chat.send("Hi.")
        await until(turn, lambda event: isinstance(event, CallDelta) and bool(event.text))

        await self.cancel(bench, turn)

        assert (await send_and_wait(chat, "Never mind.")).text == "Fine."
        assert look.ran == []
        assert len(bench.wire_request().results) == 1

    async def test_a_thought_without_its_seal_is_not_sent_back(self, bench: ModelTestBench) -> None:
        chat = bench.chat([Think("It must be that"), Cut()], [Say("Fine.")])

        await send_expecting_error(chat, params=self.thinking)

        assert (await send_and_wait(chat, "Never mind.", params=self.thinking)).text == "Fine."
        assert bench.wire_request().seals == []

    async def test_closing_a_chat_closes_its_sockets(self, bench: ModelTestBench) -> None:
        chat = bench.chat([Say("As far as here"), Hang()])
        turn = await chat.send("Hi.")
        await until(turn, lambda event: isinstance(event, TextDelta))

        await chat.aclose()

        await bench.provider.wait_idle()
        assert bench.seen[0].is_closed_early
