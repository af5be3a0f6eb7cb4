"""The short form of `fuzz.py`: what it finds in a few seconds."""

import asyncio
import functools
from collections import Counter

import pytest
from msgspec.structs import replace
from tests.models.fuzz import OWN_CALLS, PROFILES, Finding, case, check, fuzz, play, tell
from tests.models.fuzz_seeds import MEDIA, SEEDS, TOLD

from everturn.core.chunks import CallChunk, Chunk, FileChunk, FinishChunk, OpaqueChunk, TextChunk
from everturn.core.parts import Opaque
from everturn.errors import ModelError
from everturn.transport.replay import RecordedResponse

COUNT = 3_000


@functools.cache
def found() -> tuple[dict[Finding, list[int]], Counter[str]]:
    return asyncio.run(fuzz(COUNT))


def test_nothing_but_a_model_error_escapes() -> None:
    assert found()[0] == {}


async def test_however_an_input_is_split_it_comes_to_the_same() -> None:
    for number in range(300):
        format, recording = case(5, number)
        whole = replace(recording, pieces=[b"".join(recording.pieces)])
        assert await tell(format, recording) == await tell(format, whole), number


def test_the_inputs_are_broken_in_many_ways_and_not_all_beyond_repair() -> None:
    outcomes = found()[1]

    assert outcomes["answer"] > COUNT / 10
    assert {"response", "truncated", "request", "server", "rate", "network"} <= set(outcomes)


def test_every_format_every_kind_of_file_and_every_paradigm_is_among_them() -> None:
    assert {case(0, number)[0] for number in range(COUNT)} == {*PROFILES, *MEDIA, *TOLD}


async def test_before_they_are_broken_there_is_something_of_everything_in_them() -> None:
    seen: Counter[tuple[str, str]] = Counter()
    for seed in SEEDS:
        recording = RecordedResponse(seed.events, seed.status, {"content-type": seed.content_type}, seed.is_cut)
        for chunk in (await play(seed.format, recording))[0]:
            seen[seed.format, type(chunk).__name__] += 1

    for format in ("chat", "messages", "responses", "gemini", "ollama", *TOLD):
        assert seen[format, "CallChunk"], format
        assert seen[format, "TextChunk"], format
    for format in ("gemini", "ollama", "images", "speech"):
        assert seen[format, "FileChunk"], format
    for format in ("messages", "responses", "gemini"):
        assert seen[format, "OpaqueChunk"], format
    assert seen["transcript", "TextChunk"]


def test_the_same_number_is_the_same_input() -> None:
    assert case(7, 42) == case(7, 42) != case(7, 43)


# The checker is believed because it notices these.
TEXT, FINISH, CALL = TextChunk("x"), FinishChunk("stop"), CallChunk(0, "{}", "f")


@pytest.mark.parametrize(
    ("chunks", "error"),
    [
        ([TEXT], None),
        ([FINISH, TEXT], None),
        ([FINISH, FINISH], None),
        ([TEXT, FINISH], ModelError("oh")),
        ([CallChunk(1, "{}"), FINISH], None),
        ([CALL, CallChunk(2), FINISH], None),
        ([OpaqueChunk(Opaque("i", "d"), "call", 0), CALL, FINISH], None),
        ([TEXT], ModelError("\ud800")),
        ([FileChunk(b"", "image/png"), FINISH], None),
        ([FileChunk(b"x", ""), FINISH], None),
        ([CallChunk(OWN_CALLS + 1, "{}"), FINISH], None),
        ([CALL, OpaqueChunk(Opaque("i", "d"), "call", OWN_CALLS), FINISH], None),
    ],
)
def test_the_checker_notices(chunks: list[Chunk], error: ModelError | None) -> None:
    with pytest.raises(Exception, match=r"slot|seal|finish|stored|wrong type"):
        check(chunks, error)


async def test_a_stream_that_is_in_order_passes() -> None:
    whole = b'data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'

    assert await play("chat", RecordedResponse([whole])) == ([TEXT, FinishChunk("stop", "stop")], None)
