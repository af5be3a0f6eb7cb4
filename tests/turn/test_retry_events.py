"""Retries of a model request, as the turn tells them: an event for each, the wait that a stream may take, and who wrote the answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from everturn import App, Chat, TurnError, TurnSettings
from everturn.core.chunks import Chunk, FinishChunk, RetryChunk, TextChunk
from everturn.core.events import Event, Problem, RequestRetried, StepFinished, StepInterrupted, StepStarted
from everturn.core.parts import StepPart
from everturn.core.ports import Model
from everturn.core.requests import ModelRequest
from everturn.errors import ModelError
from everturn.events import TextDelta
from everturn.models import FallbackModel, RetryPolicy
from everturn.models.retry import RetryModel
from everturn.testing import FakeClock, ScriptedFailure, ScriptedModel, say

BUSY = ModelError("busy", kind="rate", retryable=True)
AT_ONCE = RetryPolicy(attempts=3, initial_delay=0.0)


def flaky(*script: Any, name: str = "first") -> Model:
    """Fails as often as the script says, then answers."""
    answers = iter(script)
    return RetryModel(ScriptedModel(lambda _: next(answers), name=name), AT_ONCE)


def failing(name: str) -> Model:
    return ScriptedModel([ScriptedFailure(BUSY)], name=name)


async def seen(chat: Chat, text: str = "go") -> list[Any]:
    return [item async for item in await chat.send(text)]


def of(items: Sequence[Any], kind: type[Event]) -> list[Any]:
    return [item for item in items if isinstance(item, kind)]


async def test_every_retry_is_an_event_before_its_wait() -> None:
    failed = [ScriptedFailure(BUSY)]
    async with Chat(flaky(failed, failed, say("hello"))) as chat:
        items = await seen(chat)
    retries = of(items, RequestRetried)
    assert [(event.step, event.attempt, event.attempts, event.seconds, event.model) for event in retries] == [
        (1, 2, 3, 0.0, ""),
        (1, 3, 3, 0.0, ""),
    ]
    assert {event.problem for event in retries} == {Problem("rate", "busy")}
    # Deltas come after it, at its position: the reader of a turn that retried misses none of them.
    assert "".join(item.text for item in items if isinstance(item, TextDelta)) == "hello"
    assert items.index(of(items, StepStarted)[0]) < items.index(retries[0]) < items.index(of(items, StepFinished)[0])


async def test_a_retry_is_written_while_the_model_still_waits() -> None:
    patient = RetryPolicy(attempts=2, initial_delay=3600.0, max_delay=3600.0)
    async with Chat(RetryModel(ScriptedModel([ScriptedFailure(BUSY)]), patient, chance=lambda: 1.0)) as chat:
        turn = await chat.send("go")
        async for item in turn:
            if isinstance(item, RequestRetried):
                assert item.seconds == 3600.0
                await turn.cancel()
        log = [entry.event for entry in await chat.app.store.events(chat.session)]
    assert len(of(log, RequestRetried)) == 1
    assert not of(log, StepFinished)


async def test_a_reader_that_comes_back_after_a_retry_sees_every_character_once() -> None:
    async with Chat(flaky([ScriptedFailure(BUSY)], say("one two three", size=3))) as chat:
        turn = await chat.send("go")
        reading = turn.events()
        first = ""
        async for item in reading:
            if isinstance(item, TextDelta):
                first = item.text
                break
        cursor = reading.cursor
        rest = [item.text async for item in chat.turn(turn.id).events(cursor) if isinstance(item, TextDelta)]
    assert first + "".join(rest) == "one two three"


class Waiting:
    """Says that it waits, and answers when it is released."""

    name = "waiting"

    def __init__(self, *batches: Sequence[Chunk]) -> None:
        self.batches, self.release = batches, asyncio.Event()

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        for batch in self.batches:
            yield batch
        await self.release.wait()
        yield [TextChunk("late"), FinishChunk("stop")]


RETRY = RetryChunk(2, 3, 1_000.0, "rate", "busy")
SETTINGS = TurnSettings(first_chunk_timeout=10.0, idle_timeout=5.0, step_timeout=20.0)


@pytest.mark.parametrize(("passed", "is_alive"), [(1_009.0, True), (1_011.0, False)])
async def test_the_watchdog_lets_a_stream_wait_as_long_as_it_said_and_then_for_a_first_chunk(
    passed: float, is_alive: bool
) -> None:
    clock, model = FakeClock(), Waiting([RETRY])
    async with Chat(model, app=App(model, clock=clock, settings=SETTINGS)) as chat:
        turn = await chat.send("go")
        async for item in turn:
            if isinstance(item, RequestRetried):
                for _ in range(20):
                    await asyncio.sleep(0)
                clock.advance(passed)
                for _ in range(20):
                    await asyncio.sleep(0)
                model.release.set()
        if is_alive:
            assert (await turn).text == "late"
        else:
            with pytest.raises(TurnError, match="fell silent"):
                await turn


async def test_text_after_a_retry_is_shown_as_it_arrives() -> None:
    model = Waiting([RETRY], [TextChunk("early ")])
    async with Chat(model) as chat, asyncio.timeout(5):
        async for item in await chat.send("go"):
            if isinstance(item, TextDelta) and item.text == "early ":
                model.release.set()  # not before: the log has the text only at the end of the step


async def test_a_retry_and_text_in_one_batch_are_both_seen() -> None:
    model = Waiting([RetryChunk(2, 3, 0.0, "rate", "busy"), TextChunk("early ")])
    model.release.set()
    async with Chat(model) as chat:
        items = await seen(chat)
    assert "".join(item.text for item in items if isinstance(item, TextDelta)) == "early late"
    texts = [item for item in items if isinstance(item, TextDelta)]
    assert {text.seq for text in texts} == {4 + 1}  # TurnStarted, TitleSet, AnswerStarted, StepStarted, RequestRetried


async def test_a_model_that_retries_after_it_has_spoken_is_told_that_it_may_not() -> None:
    model = Waiting([TextChunk("early "), RETRY])
    async with Chat(model) as chat:
        with pytest.raises(TurnError, match="only before its first content"):
            await (await chat.send("go"))


async def test_an_answer_names_the_model_that_wrote_it() -> None:
    model = FallbackModel(failing("first"), flaky([ScriptedFailure(BUSY)], say("hello"), name="second"))
    async with Chat(model) as chat:
        items = await seen(chat)
        [_, answer] = await chat.messages()
    assert [(event.attempt, event.attempts, event.model) for event in of(items, RequestRetried)] == [
        (2, 2, "second"),
        (2, 3, ""),  # the second one's own retry
    ]
    assert of(items, StepFinished)[0].model == "second"
    assert answer.by == "first"  # who was asked, as the placeholder said
    assert answer.models == ("second",)
    assert [part.model for part in answer.parts if isinstance(part, StepPart)] == ["second"]


async def test_an_answer_of_the_model_that_was_asked_has_its_name_alone() -> None:
    async with Chat(FallbackModel(ScriptedModel(say("hello"), name="first"), failing("second"))) as chat:
        items = await seen(chat)
        [question, answer] = await chat.messages()
    assert of(items, StepFinished)[0].model == ""
    assert answer.models == ("first",)
    assert question.models == ()


async def test_a_step_that_breaks_off_names_the_model_too() -> None:
    broken = ScriptedModel([say("half"), ScriptedFailure(ModelError("gone", kind="network"))], name="second")
    async with Chat(FallbackModel(failing("first"), broken)) as chat:
        with pytest.raises(TurnError, match="gone"):
            await (await chat.send("go"))
        log = [entry.event for entry in await chat.app.store.events(chat.session)]
    assert of(log, StepInterrupted)[0].model == "second"
