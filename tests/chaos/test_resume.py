"""Readers that drop and come back see what is stored; and whoever says so would notice if they did not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from everturn import Chat
from everturn.core.deltas import TextDelta, TurnItem
from everturn.core.events import StepFinished, StepRestarted, StepStarted, TurnCompleted
from tools.chaos import ScenarioModel, ask
from tools.chaos.resume import ResumeSizes, TurnScreen, compare_with_stored, resuming

Seen = list[TurnItem]


@pytest.fixture
async def transcript() -> tuple[Seen, str]:
    """What a reader of a real turn was shown, and the text that is stored."""
    async with Chat(ScenarioModel(), session="s") as chat:
        turn = await chat.send(ask("long_text", "s", deltas=40, seed=7))
        seen = [shown async for shown in turn]
        return seen, (await chat.messages())[-1].text


def judged(seen: Seen, stored: str) -> list[str]:
    face = TurnScreen()
    for shown in seen:
        face.show(shown)
    return compare_with_stored(face, stored)


def deltas_in(seen: Seen) -> list[int]:
    return [at for at, shown in enumerate(seen) if isinstance(shown, TextDelta)]


def test_a_reader_that_was_shown_everything_once_is_believed(transcript: tuple[Seen, str]) -> None:
    seen, stored = transcript
    assert len(deltas_in(seen)) > 10
    assert judged(seen, stored) == []


def skip(seen: Seen, at: int) -> Seen:
    return [*seen[:at], *seen[at + 1 :]]


def double(seen: Seen, at: int) -> Seen:
    return [*seen[: at + 1], *seen[at:]]


def change(seen: Seen, at: int) -> Seen:
    delta = seen[at]
    assert isinstance(delta, TextDelta)
    return [*seen[:at], replace(delta, text="?" * len(delta.text)), *seen[at + 1 :]]


def renumber(seen: Seen, at: int) -> Seen:
    """A delta of an attempt that is void, and that happens to fit."""
    delta = seen[at]
    assert isinstance(delta, TextDelta)
    return [*seen[:at], replace(delta, seq=delta.seq + 1), *seen[at + 1 :]]


@pytest.mark.parametrize("bug", [skip, double, change, renumber])
def test_one_wrong_delta_anywhere_is_noticed(transcript: tuple[Seen, str], bug: Callable[[Seen, int], Seen]) -> None:
    seen, stored = transcript
    for at in deltas_in(seen):
        assert judged(bug(seen, at), stored), f"{bug.__name__} at {at}"


def test_a_skipped_delta_that_no_offset_betrays_is_noticed_in_the_text(transcript: tuple[Seen, str]) -> None:
    seen, stored = transcript
    gone = deltas_in(seen)[5]
    lost = seen[gone]
    assert isinstance(lost, TextDelta)
    closed_up: Seen = [
        replace(shown, offset=shown.offset - len(lost.text)) if isinstance(shown, TextDelta) and at > gone else shown
        for at, shown in enumerate(seen)
        if at != gone
    ]
    without_the_end = [shown for shown in closed_up if not isinstance(shown, StepFinished)]
    (found,) = judged(without_the_end, stored)
    before = "".join(shown.text for shown in seen[:gone] if isinstance(shown, TextDelta))
    assert found.endswith("are stored, and differs from byte " + str(len(before.encode())) + " on")


def test_a_reader_that_never_saw_the_end_is_noticed(transcript: tuple[Seen, str]) -> None:
    seen, stored = transcript
    assert judged([shown for shown in seen if not isinstance(shown, TurnCompleted)], stored) == [
        "it was never told that the turn is over"
    ]


def test_what_was_seen_of_a_step_is_void_when_it_starts_again(transcript: tuple[Seen, str]) -> None:
    seen, stored = transcript
    begun = next(at for at, shown in enumerate(seen) if isinstance(shown, StepStarted))
    half = seen[: deltas_in(seen)[20]]
    again = [replace(shown, seq=9) if isinstance(shown, TextDelta) else shown for shown in seen[begun + 1 :]]
    assert judged([*half, StepRestarted(turn="t", step=1), *again], stored) == []
    assert judged([*half, *again], stored), "nobody said that it started again"


def test_only_what_came_before_the_last_delta_counts_as_streamed(transcript: tuple[Seen, str]) -> None:
    seen, stored = transcript
    face, late = TurnScreen(), TurnScreen()
    for shown in seen:
        face.show(shown)
    last = seen[deltas_in(seen)[-1]]
    assert isinstance(last, TextDelta)
    assert face.live == len(stored) - len(last.text)
    for shown in seen:
        if not isinstance(shown, TextDelta):
            if isinstance(shown, StepFinished):
                late.show(TextDelta("t", 3, 0, 0, stored))  # as a reader is given it out of the log
            late.show(shown)
    assert (late.live, compare_with_stored(late, stored)) == (0, [])


@pytest.mark.live
@pytest.mark.timeout(180)
async def test_readers_that_drop_and_come_back_anywhere_see_what_is_stored() -> None:
    report = await resuming(ResumeSizes(deltas=1_500, readers=12, stay=0.4))
    assert report.violations == []
    killed, cancelled = report.runs
    assert (killed.ended, cancelled.ended) == ("TurnCompleted", "TurnCancelled")
    assert killed.restarts == 1
    assert cancelled.stored < killed.stored
    assert killed.visits > killed.readers
    assert killed.moves > 0
