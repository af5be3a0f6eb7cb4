"""Event streams of AWS: our decoder and botocore's read the same, however the bytes are cut, and refuse the same damage."""

# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from struct import pack
from typing import Any
from zlib import crc32

import pytest
from botocore.eventstream import EventStreamBuffer, ParserError
from hypothesis import given
from hypothesis import strategies as st

from everturn.testing.provider.render.event_frames import event_frame, exception_frame, frame
from everturn.transport import StreamLimits
from everturn.transport.event_stream import EventStreamReader, read_headers

NAMES = st.text(min_size=1, max_size=60).filter(lambda name: len(name.encode()) < 256)
HEADERS = st.dictionaries(NAMES, st.text(max_size=40), max_size=4)
EVENTS = st.tuples(
    st.sampled_from(["messageStart", "contentBlockDelta", "metadata"]), st.dictionaries(NAMES, st.text())
)
# Values of all types that the format has, as they are on the wire.
VALUES = st.one_of(
    st.sampled_from([b"\x00", b"\x01"]),
    st.binary(min_size=1, max_size=1).map(lambda data: b"\x02" + data),
    st.binary(min_size=2, max_size=2).map(lambda data: b"\x03" + data),
    st.binary(min_size=4, max_size=4).map(lambda data: b"\x04" + data),
    st.binary(min_size=8, max_size=8).map(lambda data: b"\x05" + data),
    st.binary(max_size=40).map(lambda data: b"\x06" + pack(">H", len(data)) + data),
    st.text(max_size=40).map(lambda text: b"\x07" + pack(">H", len(text.encode())) + text.encode()),
    st.integers(0, 2**31).map(lambda stamp: b"\x08" + pack(">q", stamp)),
    st.binary(min_size=16, max_size=16).map(lambda data: b"\x09" + data),
)


def read(pieces: Iterable[bytes], limits: StreamLimits | None = None) -> tuple[list[Any], EventStreamReader]:
    reader = EventStreamReader(limits)
    events = [json.loads(event) for piece in pieces for event in reader.feed(piece)]
    return events + [json.loads(event) for event in reader.end()], reader


def read_by_botocore(data: bytes) -> list[tuple[dict[str, Any], bytes]]:
    buffer = EventStreamBuffer()
    buffer.add_data(data)
    return [(message.headers, message.payload) for message in buffer]


def read_until_damage(buffer: EventStreamBuffer) -> int:
    """How many messages botocore reads before it notices."""
    count = 0
    try:
        while next(buffer, None) is not None:
            count += 1
    except ParserError:
        return count
    pytest.fail("botocore has noticed nothing")


def cut(data: bytes, points: Sequence[int]) -> list[bytes]:
    ends = sorted({point % (len(data) + 1) for point in points})
    return [data[start:end] for start, end in zip([0, *ends], [*ends, len(data)], strict=True)]


@given(st.lists(EVENTS, max_size=6), st.lists(st.integers(0, 10_000), max_size=12))
def test_events_are_read_however_they_are_cut(events: list[tuple[str, Any]], points: list[int]) -> None:
    data = b"".join(event_frame(name, json.dumps(body).encode()) for name, body in events)

    found, reader = read(cut(data, points))

    assert found == [{name: body} for name, body in events]
    assert reader.error is None
    theirs = read_by_botocore(data)
    assert [(headers[":event-type"], json.loads(payload)) for headers, payload in theirs] == events


@given(HEADERS, st.binary(max_size=200))
def test_botocore_reads_the_frames_of_the_test_kit(headers: dict[str, str], payload: bytes) -> None:
    assert read_by_botocore(frame(headers, payload)) == [(headers, payload)]


@given(st.dictionaries(NAMES, VALUES, max_size=5))
def test_headers_of_all_types_are_read_like_botocore_does(values: dict[str, bytes]) -> None:
    named = b"".join(bytes([len(name.encode())]) + name.encode() + value for name, value in values.items())
    lengths = pack(">II", 16 + len(named), len(named))
    message = lengths + pack(">I", crc32(lengths)) + named
    [(theirs, _)] = read_by_botocore(message + pack(">I", crc32(message)))

    assert read_headers(named) == {
        name: theirs[name]
        for name, value in values.items()
        if value[0] == 7  # the texts
    }


@given(st.binary(max_size=80))
def test_any_bytes_as_headers_are_read_or_refused(data: bytes) -> None:
    found = read_headers(data)

    assert found is None or all(isinstance(value, str) for value in found.values())


@given(st.lists(EVENTS, min_size=1, max_size=4), st.data())
def test_a_flipped_bit_is_noticed_where_botocore_notices_it(events: list[tuple[str, Any]], data: st.DataObject) -> None:
    whole = b"".join(event_frame(name, json.dumps(body).encode()) for name, body in events)
    at = data.draw(st.integers(0, len(whole) - 1))
    damaged = bytearray(whole)
    damaged[at] ^= 1 << data.draw(st.integers(0, 7))
    buffer = EventStreamBuffer()
    buffer.add_data(bytes(damaged))
    theirs = read_until_damage(buffer)

    found, reader = read([bytes(damaged)])

    assert len(found) == theirs
    assert (reader.error is not None and reader.error.kind == "truncated") == bool(theirs)


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=5))
def test_any_bytes_end_in_no_event_and_no_crash(data: bytes, points: list[int]) -> None:
    found, reader = read(cut(data, points))

    assert (found, reader.error) == ([], None)  # a checksum does not fit by chance


@given(st.integers(0, 400))
def test_a_stream_that_is_cut_has_its_whole_events(size: int) -> None:
    frames = [event_frame("contentBlockDelta", b'{"delta": {"text": "Hello."}}')] * 3
    data = b"".join(frames)[:size]

    found, reader = read([data])

    assert (len(found), reader.error) == (len(data) // len(frames[0]), None)


def test_an_exception_and_an_error_are_events_of_their_name() -> None:
    headers = {":message-type": "error", ":error-code": "InternalError", ":error-message": 'It "broke".'}
    found, _ = read([exception_frame("throttlingException", b'{"message": "wait"}') + frame(headers, b"")])

    assert found == [
        {"throttlingException": {"message": "wait"}},
        {"error": {"code": "InternalError", "message": 'It "broke".'}},
    ]


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_a_length_is_believed_only_up_to_the_limit(size: int) -> None:
    lengths = pack(">II", 2**31, 0)
    huge = lengths + pack(">I", crc32(lengths)) + bytes(20_000)
    pieces = [huge[at : at + size] for at in range(0, len(huge), size)]

    found, reader = read(pieces)

    assert found == []
    assert reader.error is not None
    assert reader.error.kind == "limit"
    assert len(reader._rest) == 0


def test_a_stream_that_is_too_long_ends_with_its_last_whole_event() -> None:
    event = event_frame("metadata", b"{}")

    found, reader = read([event * 3], StreamLimits(stream=2 * len(event) + 5))

    assert (len(found), reader.error is not None and reader.error.kind) == (2, "limit")


def test_what_is_no_event_stream_is_not_kept() -> None:
    found, reader = read([b"<html><body>Welcome to the router</body></html>"] * 100)

    assert (found, reader.error, len(reader._rest)) == ([], None, 0)
