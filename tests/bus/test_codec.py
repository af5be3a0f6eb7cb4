"""Frames as messages between nodes, without any."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.bus.remote.codec import READ_LOG, DuplicateFilter, age_of, merge_for_send, pack, subject_token, unpack
from everturn.core.deltas import (
    CallDelta,
    CallProgress,
    DriverGone,
    Frame,
    LogAdvanced,
    ReasoningDelta,
    TextDelta,
    merge_frames,
)
from everturn.errors import UnreadableLog

ids = st.text(st.characters(exclude_categories=[]), max_size=300)


@given(ids)
def test_any_id_is_one_plain_token(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_=-]{1,300}", subject_token(name))


@given(ids, ids)
def test_no_two_ids_are_one_token(first: str, other: str) -> None:
    assert (subject_token(first) == subject_token(other)) == (first == other)


@pytest.mark.parametrize("name", ["a.b", "a=2e=b", "=a=2e=b", "*", ">", "", "=", "a b", "a\r\nb", "é"])
def test_an_odd_id_is_nobody_elses_token(name: str) -> None:
    odd = ["a.b", "a=2e=b", "=a=2e=b", "*", ">", "", "=", "a b", "a\r\nb", "é", "ab"]

    assert [other for other in odd if subject_token(other) == subject_token(name)] == [name]


def delta(text: str, offset: int = 0, seq: int = 1, part: int = 0) -> TextDelta:
    return TextDelta("t", seq, part, offset, text)


@given(st.text(max_size=400), st.integers(200, 400))
def test_a_long_text_is_cut_into_messages_that_a_server_takes(text: str, limit: int) -> None:
    messages = pack([LogAdvanced(1), delta(text)], 0, limit)

    assert all(len(data) <= limit for data in messages)
    assert age_of(messages[0]) == 0
    frames = [frame for data in messages for frame in unpack(data)]
    assert merge_frames(frames) == [LogAdvanced(1), delta(text)]


def test_what_cannot_be_cut_small_enough_is_left_to_the_log() -> None:
    assert pack([CallProgress("t", "c", "x" * 500)], 0, 100) == []


pieces = st.lists(
    st.one_of(
        st.builds(delta, st.text(max_size=3), st.integers(0, 6), st.integers(1, 2), st.integers(0, 1)),
        st.builds(lambda text: ReasoningDelta("t", 1, 0, 0, text), st.text(max_size=3)),
        st.builds(lambda text: CallDelta("t", 1, 0, 0, text, "c", "n"), st.text(max_size=3)),
        st.builds(LogAdvanced, st.integers(0, 3)),
    ),
    min_size=1,
    max_size=8,
)


@given(pieces)
def test_frames_are_merged_as_the_core_merges_them(frames: list[Frame]) -> None:
    assert merge_for_send(frames) == merge_frames(frames)


def test_what_a_tool_said_keeps_its_place_and_that_nobody_drives_stays_at_home() -> None:
    progress = CallProgress("t", "c", "half")

    assert merge_for_send([delta("a"), delta("b", 1), progress, delta("c", 2), DriverGone("")]) == [
        delta("ab"),
        progress,
        delta("c", 2),
    ]


def test_a_sieve_lets_through_what_is_new_and_what_fills_a_gap() -> None:
    sieve = DuplicateFilter()

    assert sieve.fresh([LogAdvanced(1), delta("abc")]) == [LogAdvanced(1), delta("abc")]
    assert sieve.fresh([LogAdvanced(1), delta("abc"), delta("bcd", 1)]) == [delta("d", 3)]
    assert sieve.fresh([delta("gh", 6)]) == [delta("gh", 6)]
    assert sieve.fresh([READ_LOG, delta("abcdefgh")]) == [READ_LOG, delta("efgh", 4)]
    assert sieve.fresh([delta("x", seq=2), delta("old", 8), LogAdvanced(2)]) == [delta("x", seq=2)]


@pytest.mark.parametrize("data", [b"", b"[]", b"x[]", b"-1[]", b"12", b"\xff"])
def test_the_age_of_what_is_not_ours_is_an_error(data: bytes) -> None:
    with pytest.raises(UnreadableLog):
        age_of(data)
