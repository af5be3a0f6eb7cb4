"""Models that fail: asked again, or another one asked, but only until somebody has begun to read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest

from everturn import Chat, TurnError
from everturn.core.chunks import Chunk, FinishChunk, TextChunk
from everturn.core.ports import Model
from everturn.core.requests import ModelRequest
from everturn.errors import ConfigError, ModelError
from everturn.models.retry import FallbackModel, RetryModel, RetryPolicy
from everturn.testing import ScriptedFailure, ScriptedHang, ScriptedModel, say

REQUEST = ModelRequest("m", "", [], [], {})
AT_ONCE = RetryPolicy(initial_delay=0.0)
BUSY = ModelError("busy", kind="server", retryable=True)
WRONG = ModelError("wrong", kind="request")
Batch = Sequence[Chunk]


class Failing:
    """Gives the next answer of its script at every try, and counts how often it was asked and let go."""

    def __init__(self, *script: Sequence[Batch | ModelError], name: str = "failing") -> None:
        self._script, self.name = script, name
        self.asked = self.closed = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[Batch]:
        self.asked += 1
        try:
            for batch in self._script[self.asked - 1]:
                if isinstance(batch, ModelError):
                    raise batch
                yield batch
        finally:
            self.closed += 1


TEXT: list[Batch] = [[TextChunk("hi")], [FinishChunk("stop")]]


async def outcome_of(model: Model) -> str:
    """What it said, and the kind of the error it ended with."""
    text = ""
    try:
        async for batch in model.stream(REQUEST):
            text += "".join(chunk.text for chunk in batch if isinstance(chunk, TextChunk))
    except ModelError as error:
        return f"{text}{error.kind}!"
    return text


# Retry policy -------------------------------------------------------------------------------------------------------------


def failed(after: float | None = None, retryable: bool = True) -> ModelError:
    return ModelError("oh", "rate", retryable, after)


@pytest.mark.parametrize(
    ("tried", "error", "chance", "pause"),
    [
        (1, failed(), 1.0, 0.5),
        (1, failed(), 0.0, 0.25),
        (2, failed(), 1.0, 1.0),
        (4, failed(), 1.0, 4.0),
        (5, failed(), 1.0, 8.0),
        (9, failed(), 1.0, 8.0),  # never more than `most`
        (9, failed(), 0.0, 4.0),
        (10, failed(), 1.0, None),  # that was the last try
        (1, failed(retryable=False), 1.0, None),
        (1, failed(7.0), 0.5, 7.0),  # what was asked for, to the second
        (1, failed(0.0), 0.5, 0.0),
        (1, failed(60.0), 0.5, 60.0),
        (1, failed(60.1), 0.5, None),  # nobody waits so long
        (1, failed(float("inf")), 0.5, None),
        (10, failed(1.0), 0.5, 1.0),  # a server that says when is asked again, up to a minute in all
        (10, failed(61.0), 0.5, None),
        (1, failed(1.0, retryable=False), 0.5, None),
    ],
)
def test_how_long_is_waited(tried: int, error: ModelError, chance: float, pause: float | None) -> None:
    assert RetryPolicy(attempts=10).delay(tried, error, chance) == pause


def test_without_words_three_tries_are_made() -> None:
    assert [RetryPolicy().delay(tried, failed(), 1.0) for tried in (1, 2, 3)] == [0.5, 1.0, None]
    assert RetryPolicy(attempts=1).delay(1, failed(), 1.0) is None


# Again ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "outcome", "attempts"),
    [
        ([TEXT], "hi", 1),
        ([[BUSY], TEXT], "hi", 2),
        ([[[], [], BUSY], [BUSY], TEXT], "hi", 3),  # an empty batch is not a word
        ([[BUSY], [BUSY], [BUSY], TEXT], "server!", 3),
        ([[WRONG], TEXT], "request!", 1),
        ([[BUSY], [WRONG], TEXT], "request!", 2),
        ([[[TextChunk("h")], BUSY], TEXT], "hserver!", 1),  # what was read is not taken back
        ([[BUSY], [[TextChunk("h")], BUSY], TEXT], "hserver!", 2),
        ([[failed(after=99.0)], TEXT], "rate!", 1),
        ([[failed(after=0.0)], TEXT], "hi", 2),
    ],
)
async def test_a_model_is_asked_again_until_it_has_spoken(
    script: list[list[Batch | ModelError]], outcome: str, attempts: int
) -> None:
    model = Failing(*script)

    assert await outcome_of(RetryModel(model, AT_ONCE)) == outcome
    assert (model.asked, model.closed) == (attempts, attempts)  # every try was let go before the next


async def test_who_stops_listening_lets_the_model_go() -> None:
    model = Failing([[TextChunk("h")], [TextChunk("i")]])
    stream = RetryModel(model, AT_ONCE).stream(REQUEST)
    async for _ in stream:
        break
    await stream.aclose()  # type: ignore[attr-defined]

    assert model.closed == 1


async def test_a_model_that_says_nothing_is_asked_again() -> None:
    answers = iter([[ScriptedHang()], [[], ScriptedHang()], say("hi")])
    retry = RetryPolicy(initial_delay=0.0, first_chunk_timeout=0.02)

    assert await outcome_of(RetryModel(ScriptedModel(lambda _: next(answers)), retry)) == "hi"
    assert await outcome_of(RetryModel(ScriptedModel([ScriptedHang()]), retry)) == "stalled!"


async def test_the_wait_is_drawn_by_chance() -> None:
    drawn: list[float] = []

    def chance() -> float:
        drawn.append(0.0)
        return 0.0

    await outcome_of(RetryModel(Failing([BUSY], [BUSY], TEXT), AT_ONCE, chance))
    assert len(drawn) == 2


async def test_a_turn_does_not_notice_that_its_model_was_asked_twice() -> None:
    answers = iter([[ScriptedFailure(BUSY)], say("hi")])
    model = RetryModel(ScriptedModel(lambda _: next(answers)), AT_ONCE)
    async with Chat(model) as chat:
        assert (await (await chat.send("hello"))).text == "hi"
    assert model.name == "scripted"


async def test_a_turn_fails_with_the_last_error() -> None:
    async with Chat(RetryModel(ScriptedModel([ScriptedFailure(BUSY)]), AT_ONCE)) as chat:
        with pytest.raises(TurnError, match="busy") as caught:
            await (await chat.send("hello"))
    assert caught.value.kind == "server"


# Another --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "outcome", "attempts"),
    [
        (TEXT, TEXT, "hi", (1, 0)),
        ([BUSY], TEXT, "hi", (1, 1)),
        ([WRONG], TEXT, "hi", (1, 1)),  # what one refuses another may take
        ([[], BUSY], TEXT, "hi", (1, 1)),
        ([[TextChunk("h")], BUSY], TEXT, "hserver!", (1, 0)),
        ([BUSY], [WRONG], "request!", (1, 1)),
    ],
)
async def test_another_model_is_asked_when_one_fails_without_a_word(
    first: list[Batch | ModelError], second: list[Batch | ModelError], outcome: str, attempts: tuple[int, int]
) -> None:
    models = Failing(first, name="one"), Failing(second, name="other")
    model = FallbackModel(*models)

    assert await outcome_of(model) == outcome
    assert tuple(each.asked for each in models) == tuple(each.closed for each in models) == attempts
    assert model.name == "one"


async def test_one_may_be_asked_again_before_the_other() -> None:
    first, other = Failing([BUSY], [BUSY], [BUSY]), Failing(TEXT)

    assert await outcome_of(FallbackModel(RetryModel(first, AT_ONCE), other)) == "hi"
    assert (first.asked, other.asked) == (3, 1)


def test_there_must_be_one_to_ask() -> None:
    with pytest.raises(ConfigError, match="Fallback needs models: "):
        FallbackModel()


async def test_the_same_model_twice_is_asked_twice() -> None:
    model = Failing([BUSY], TEXT)
    assert await outcome_of(FallbackModel(model, model)) == "hi"


def test_a_server_that_says_when_is_asked_for_a_minute_in_all() -> None:
    policy, waited, tries = RetryPolicy(), 0.0, 0
    while (pause := policy.delay(tries + 1, failed(2.0), 1.0, waited)) is not None:
        waited, tries = waited + pause, tries + 1
    assert (waited, tries) == (60.0, 30)
