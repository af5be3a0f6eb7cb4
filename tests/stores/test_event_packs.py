"""Event packs: what an append writes as one row is read as the events that were appended, at their positions."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.core.commands import Send
from everturn.core.events import CommandDropped, Event, StepStarted, TurnStarted
from everturn.core.options import TurnOptions
from everturn.core.parts import TextPart
from everturn.errors import UnreadableLog
from everturn.stores.backup.log_check import check_logs
from everturn.stores.sql.body_compression import MAX_BYTES, MESSAGE_PREFIX, compress_message, decompress_message
from everturn.stores.sql.event_packs import PACK_EVENTS, PACK_PREFIX, event_at, pack, unpack, unpack_body
from everturn.stores.sql.store import SqlStore
from everturn.wire import dump_event

_bodies = st.builds(lambda text: dump_event(CommandDropped(command="c", reason=text)), st.text(max_size=300))


@given(st.lists(st.tuples(st.sampled_from(["", "a", "b"]), _bodies), max_size=150), st.integers(0, 160))
def test_packed_rows_contain_the_events_at_their_positions(events: list[tuple[str, bytes]], after: int):
    rows = [(seq, turn, body) for seq, (turn, body) in enumerate(events, 1)]
    packed = pack(rows)
    assert list(unpack(((seq, body) for seq, _, body in packed), after)) == [
        (seq, body) for seq, _, body in rows if seq > after
    ]
    turns = {seq: turn for seq, turn, _ in rows}
    last = 0
    for seq, turn, body in packed:
        assert {turns[at] for at in range(last + 1, seq + 1)} == {turn}  # rows of a turn are found by its name
        assert seq - last <= PACK_EVENTS  # the SQL looks no further for an event
        for wanted in range(last + 1, seq + 1):
            assert event_at(wanted, seq, body) == rows[wanted - 1][2]
        last = seq


def test_small_and_very_large_events_that_are_alone_stay_json():
    for body in (b'{"v":1}', b'"' + b"x" * MAX_BYTES + b'"'):
        assert pack([(1, "", body)]) == [(1, "", body)]


def test_events_around_a_very_large_one_are_rows_of_their_own():
    large = b'"' + b"x" * MAX_BYTES + b'"'
    rows = [(1, "t", b"1"), (2, "t", b"2"), (3, "t", large), (4, "t", b"4"), (5, "t", b"5")]
    packed = pack(rows)
    assert [seq for seq, _, _ in packed] == [2, 3, 5]
    assert list(unpack((seq, body) for seq, _, body in packed)) == [(seq, body) for seq, _, body in rows]


def test_the_people_of_a_pack_can_be_searched_for_in_its_bytes():
    quoted = b'{"by":"o\\"neil,and \\\\ others","text":"\\"by\\":\\"text\\""}'
    [(_, _, body)] = pack([(1, "t", quoted), (2, "t", b'{"by":"anna"}' + b" " * 600)])
    assert body.startswith(PACK_PREFIX)
    assert b'"by":"anna"' in body
    assert b'"by":"o\\"neil,' in body
    assert b'"by":"text"' not in body


@pytest.mark.parametrize(
    "damage", [lambda body: body[:-1], lambda body: body + b"x", lambda body: body[:12] + b"\xff" * 9]
)
def test_a_damaged_pack_is_an_error_and_not_a_guess(damage: Callable[[bytes], bytes]):
    [(_, _, body)] = pack([(1, "t", b'{"a":1}'), (2, "t", b'{"a":2}' * 100)])
    with pytest.raises(UnreadableLog, match="damaged"):
        unpack_body(damage(body))


@given(st.binary(max_size=3000), st.integers(1, 40))
def test_a_message_is_read_as_it_was_written(data: bytes, times: int):
    body = b'{"v":1,' + data.hex().encode() * times
    stored = compress_message(body)
    assert decompress_message(stored) == body
    assert len(stored) <= len(body)


def test_a_message_that_is_small_or_very_large_stays_json():
    for body in (b'{"v":1}', b'"' + b"x" * MAX_BYTES + b'"'):
        assert compress_message(body) is body
    long = b'{"v":1,"text":"' + b"x" * 1000 + b'"}'
    assert compress_message(long).startswith(MESSAGE_PREFIX)
    with pytest.raises(UnreadableLog, match="damaged"):
        decompress_message(compress_message(long)[:-1])


def test_an_event_that_is_not_in_its_row_is_an_error():
    [(seq, _, body)] = pack([(8, "t", b'{"a":1}'), (9, "t", b'{"a":2}')])
    for wanted in (7, 10):
        with pytest.raises(UnreadableLog, match="missing"):
            event_at(wanted, seq, body)


def test_a_gap_between_packs_is_found_in_a_backup():
    events: list[Event] = [CommandDropped(command=f"c{at}", reason="none") for at in range(1, 7)]
    rows = [(seq, "", dump_event(event)) for seq, event in enumerate(events, 1)]
    whole = [("s", seq, body) for part in (rows[:2], rows[2:4], rows[4:]) for seq, _, body in pack(part)]
    assert list(check_logs(whole, {"s": 6})) == []
    assert list(check_logs([whole[0], whole[2]], {"s": 6})) == ["session 's': after position 2 comes 5"]
    assert list(check_logs(whole[:2], {"s": 6})) == ["session 's': it ends at position 4, and should at 6"]


async def test_a_log_of_both_kinds_of_rows_is_read_from_any_position(tmp_path: Path):
    path = tmp_path / "a.db"
    store = SqlStore.sqlite(path)
    await store.admit(Send(session="s", key="k", turn="t", message="m", parts=(TextPart("hello"),)))
    start = TurnStarted(at=1.0, turn="t", options=TurnOptions(), command="k")
    steps: list[Event] = [StepStarted(at=2.0, turn="t", step=step) for step in range(1, 5)]
    other: list[Event] = [CommandDropped(at=3.0, command="c", reason="r")]
    events: list[Event] = [start, *steps, *other]
    await store.append("s", 0, events)
    await store.append("s", 6, other)
    await store.aclose()
    with contextlib.closing(sqlite3.connect(path)) as base:
        rows = base.execute("SELECT seq, turn, body FROM events ORDER BY seq").fetchall()
        assert [(seq, turn) for seq, turn, _ in rows] == [(5, "t"), (6, ""), (7, "")]
        # As an older version wrote them.
        base.execute("DELETE FROM events WHERE seq = 5")
        old = [("s", seq, "t", dump_event(event)) for seq, event in enumerate(events[:5], 1)]
        base.executemany("INSERT INTO events (session, seq, turn, body) VALUES (?, ?, ?, ?)", old)
        base.commit()
    again = SqlStore.sqlite(path)
    everything = [*events, *other]
    for after in range(8):
        assert [entry.event for entry in await again.events("s", after)] == everything[after:]
        for most in (1, 2, 3):
            page = await again.event_page("s", after, most)
            assert [entry.seq for entry in page] == list(range(after + 1, 8))[:most]
    assert [entry.seq for entry in await again.events("s", 2, "t")] == [3, 4, 5]
    assert [entry.seq for entry in await again.indexed_events("s", "command", "c")] == [6, 7]
    await again.aclose()


async def test_events_of_a_pack_are_found_by_position_turn_and_key(tmp_path: Path):
    store = SqlStore.sqlite(tmp_path / "a.db")
    await store.admit(Send(session="s", key="k", turn="t", message="m", parts=(TextPart("hello"),)))
    events: list[Event] = [TurnStarted(at=1.0, turn="t", options=TurnOptions(), command="k")]
    events += [StepStarted(at=2.0, turn="t", step=step) for step in range(1, 200)]
    events += [CommandDropped(at=3.0, command=f"c{at}", reason="r") for at in range(100)]
    await store.append("s", 0, events)
    await store.aclose()
    store = SqlStore.sqlite(tmp_path / "a.db")  # without what the first one has cached
    for after in (0, 1, 63, 64, 65, 199, 200, 201, 299):
        assert [entry.event for entry in await store.events("s", after)] == events[after:]
        assert [entry.event for entry in await store.events("s", after, "t")] == events[after:200]
        assert [entry.event for entry in await store.event_page("s", after, 70)] == events[after : after + 70]
    for at in (0, 63, 64, 99):
        found = await store.indexed_events("s", "command", f"c{at}")
        assert [(entry.seq, entry.event) for entry in found] == [(201 + at, events[200 + at])]
    await store.aclose()
