"""Cursors of steps with many parts: never cut, never longer than what can be sent back, and nothing is said twice."""

from __future__ import annotations

from typing import Any

import pytest

from everturn.core.deltas import CURSOR_LIMIT, PARTS_LIMIT, Cursor, TextDelta, TurnReader
from everturn.core.events import Entry, StepFinished, StepStarted
from everturn.core.parts import TextPart, Usage
from everturn.core.projections.session_reader import TEXT_LIMIT, SessionCursor, SessionReader


def begun() -> Entry:
    return Entry(7, StepStarted(turn="t", at=0.0, step=1))


def ended(parts: int) -> Entry:
    texts = tuple(TextPart(f"part {at}") for at in range(parts))
    return Entry(8, StepFinished(turn="t", at=0.0, step=1, parts=texts, usage=Usage(), finish="stop"))


def test_a_cursor_of_many_parts_is_read_as_it_was_written() -> None:
    seen = tuple(1000 + at for at in range(PARTS_LIMIT))
    turn, session = Cursor(120, seen), SessionCursor(120, ((118, seen), (119, seen)))
    assert len(str(turn)) > 1000
    assert Cursor.parse(str(turn)) == turn
    assert SessionCursor.parse(str(session)) == session


def test_a_cursor_that_is_too_long_is_the_beginning_and_never_what_is_left_of_it() -> None:
    assert Cursor.parse("1:" + "5," * CURSOR_LIMIT + "5") == Cursor()
    assert Cursor.parse("1:" + ",".join(["5"] * (PARTS_LIMIT + 1))) == Cursor()
    assert Cursor.parse("1:" + "9" * 5000) == Cursor()
    assert SessionCursor.parse("9:5=" + "5," * TEXT_LIMIT + "5") == SessionCursor()


@pytest.mark.parametrize("parts", [1, PARTS_LIMIT, PARTS_LIMIT + 1, 3 * PARTS_LIMIT])
@pytest.mark.parametrize("make", [lambda: TurnReader("t"), SessionReader])
def test_of_a_step_with_too_many_parts_each_is_shown_once_and_the_cursor_stays_short(make: Any, parts: int) -> None:
    reader = make()
    shown = list(reader.entry(begun()))
    for at in range(parts):
        if (piece := reader.delta(TextDelta("t", 7, at, 0, "part "))) is not None:
            shown.append(piece)
        assert len(str(reader.cursor)) < 10 * PARTS_LIMIT
        assert type(reader.cursor).parse(str(reader.cursor)) == reader.cursor
    shown += list(reader.entry(ended(parts)))
    texts: dict[int, str] = {}
    for item in shown:
        if isinstance(item, TextDelta):
            assert item.offset == len(texts.get(item.part, ""))
            texts[item.part] = texts.get(item.part, "") + item.text
    assert texts == {at: f"part {at}" for at in range(parts)}
