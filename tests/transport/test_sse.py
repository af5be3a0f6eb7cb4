"""Server-sent events: whatever the bytes and however they are split, the same events come out, and the same error."""

import itertools
import re
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from everturn.transport.limits import MIB, StreamLimits
from everturn.transport.sse import SseReader

Outcome = tuple[list[bytes], str]  # the data of the events, and what was too long

# Mostly what means something to the reader: pure noise would hardly ever make an event.
WORDS = [b"data: ", b"data:", b"data", b": hm", b"event: x", b"id", b"\n", b"\r", b"\r\n", b"\n\n", b"x", b" ", b":"]
STREAMS = st.lists(st.sampled_from([*WORDS, b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\x85", b"\xff\x00"])).map(b"".join)
CUTS = st.lists(st.integers(0, 80), max_size=8)
GROUND = 24
LIMITS = st.tuples(*[st.integers(1, GROUND)] * 3).map(lambda sizes: StreamLimits(*sorted(sizes)))


def read(pieces: list[bytes], limits: StreamLimits | None = None) -> Outcome:
    reader, found = SseReader(limits), list[bytes]()
    for piece in pieces:
        found += reader.feed(piece)
    found += reader.end()
    if reader.error is None:
        return found, ""
    assert (reader.error.kind, reader.error.retryable) == ("limit", False)
    match = re.search(r"a (line|event|stream) of more than ([\d,]+) bytes; raise `Limits\.(\w+)`", str(reader.error))
    assert match is not None
    assert match[1] == match[3]
    return found, match[1]


def cut(data: bytes, at: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(min(edge, len(data)) for edge in at)})
    return [data[start:end] for start, end in itertools.pairwise(edges)]


def singly(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


def reference(data: bytes) -> list[bytes]:
    """The specification, read aloud; an event without data is left out, and one that nobody ended is not."""
    found: list[bytes] = []
    buffer: list[bytes] = []
    for line in [*re.split(rb"\r\n|\r|\n", data.removeprefix(b"\xef\xbb\xbf")), b""]:
        if not line:
            found += [b"\n".join(buffer)] if any(buffer) or len(buffer) > 1 else []
            buffer = []
            continue
        field, _, value = line.partition(b":")
        if field == b"data":
            buffer.append(value.removeprefix(b" "))
    return found


@given(STREAMS | st.binary())
@example(b"data: a\n\ndata: b")
@example(b"data\r\rdata\ndata:\r\n\r\n")
def test_the_reader_does_what_the_specification_says(data: bytes) -> None:
    assert read([data]) == (reference(data), "")


@given(STREAMS | st.binary(), CUTS)
def test_however_a_stream_is_split_its_events_are_the_same(data: bytes, cuts: list[int]) -> None:
    whole = read([data])

    assert read(cut(data, cuts)) == whole
    assert read(singly(data)) == whole


@given(STREAMS, CUTS, LIMITS)
def test_however_a_stream_is_split_it_becomes_too_long_at_the_same_place(
    data: bytes, cuts: list[int], limits: StreamLimits
) -> None:
    found, error = read(singly(data), limits)
    whole, its_error = read([data], limits)

    assert read(cut(data, cuts), limits)[0] == found == whole
    assert bool(read(cut(data, cuts), limits)[1]) == bool(error) == bool(its_error)


@pytest.mark.parametrize(
    ("stream", "limits"),
    [(b"data: x\n", StreamLimits(line=6, event=6)), (b"data: x\n\n", StreamLimits(line=6, stream=8))],
)
def test_however_a_stream_is_split_the_same_thing_is_too_long(stream: bytes, limits: StreamLimits) -> None:
    assert read([stream], limits) == read(singly(stream), limits) == ([], "line")


@given(STREAMS, LIMITS, STREAMS)
def test_after_an_error_nothing_more_is_read(data: bytes, limits: StreamLimits, more: bytes) -> None:
    reader = SseReader(limits)
    reader.feed(data)
    if (error := reader.error) is not None:
        assert reader.feed(more) == reader.end() == []
        assert reader.error is error
        assert not reader._rest


# Lines ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_three_things_end_a_line(end: bytes) -> None:
    data = end.join([b"data: one", b"data: two", b"", b": nothing", b"data: three", b"", b""])

    assert read([data]) == read(singly(data)) == ([b"one\ntwo", b"three"], "")


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\0"])
def test_nothing_else_ends_a_line(mark: str) -> None:
    data = f"data: a{mark}{mark}b\n\n".encode()

    assert read([data]) == read(singly(data)) == ([f"a{mark}{mark}b".encode()], "")


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: x\n\n", [b"x"]),
        (b"data:x\n\n", [b"x"]),
        (b"data:  x \n\n", [b" x "]),  # one blank belongs to the colon, no more
        (b"data: a\ndata\ndata:b\n\n", [b"a\n\nb"]),
        (b"data\n\n", []),
        (b"data:\n\n", []),
        (b"data\ndata\n\n", [b"\n"]),
        (b"Data: x\n\n data: x\n\ndatax: x\n\n", []),
        (b"event: e\nid: 7\nretry: 1\ndata: x\n\n", [b"x"]),
        (b": data: x\n\n:\n\n", []),
        (b"\xef\xbb\xbfdata: x\n\n\xef\xbb\xbfdata: y\n\n", [b"x"]),  # the second is no mark, and its field no data
        (b"\n\n\n\ndata: x\n\n\n\n", [b"x"]),
        (b"data: x", [b"x"]),
        (b"", []),
    ],
)
def test_a_line_is_read_as_the_specification_says(stream: bytes, events: list[bytes]) -> None:
    assert read([stream]) == read(singly(stream)) == (events, "")
    assert reference(stream) == events


# Limits ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("split", [singly, lambda data: [data]])
@pytest.mark.parametrize(
    ("limits", "fits", "over", "exceeded"),
    [
        (StreamLimits(9, 99, 99), b"data: 789\n\n", b"data: 789A\n\n", "line"),
        (StreamLimits(9, 99, 99), b": 3456789\ndata: x\n\n", b": 3456789A\ndata: x\n\n", "line"),
        (
            StreamLimits(9, 19, 99),
            b"data: 789\ndata: 789\n\n",
            b"data: 789\ndata: 78\n\n\ndata: 789\ndata: 78\n:\n\n",
            "event",
        ),
        (StreamLimits(20, 40, 20), b"data: 789\n\ndata: 89\n", b"data: 789\n\ndata: 89\n\n", "stream"),
        (StreamLimits(9, 20, 40), b"data: 789\r\ndata: 789\r\n\r\n", b"data: 789\r\ndata: 789A\r\n\r\n", "line"),
    ],
)
def test_a_limit_is_exact(
    split: Callable[[bytes], list[bytes]], limits: StreamLimits, fits: bytes, over: bytes, exceeded: str
) -> None:
    assert read(split(fits), limits) == (reference(fits), "")
    assert read(split(over), limits)[1] == exceeded


def test_the_limits_of_a_model_are_what_they_say() -> None:
    line = b"data: ".ljust(MIB, b"x")

    assert read([line, b"\n\n"]) == ([line[6:]], "")
    assert read([line, b"x"]) == ([], "line")
    assert read([line[:-1], b"\n"] * 5) == ([], "event")
    assert read([line, b"\n\n"] * 32) == ([line[6:]] * 31, "stream")


def test_a_line_that_does_not_end_is_given_up_at_its_limit() -> None:
    reader = SseReader(StreamLimits(line=100, event=1_000))
    assert reader.feed(b"x" * 100) == []
    assert reader.error is None
    assert reader.feed(b"x") == []
    assert reader.error is not None


def test_an_event_may_be_shorter_than_a_line() -> None:
    stream, limits = b"data: 789\n\n", StreamLimits(line=99, event=5)

    assert read(singly(stream), limits) == read([stream], limits) == ([], "event")


def test_what_came_before_an_error_is_good() -> None:
    stream = b"data: a\n\ndata: b\n\ndata: " + b"c" * 20

    assert (
        read([stream], StreamLimits(line=10)) == read(singly(stream), StreamLimits(line=10)) == ([b"a", b"b"], "line")
    )


# Cost -----------------------------------------------------------------------------------------------------------------


class Counted(bytearray):
    """Counts the bytes that are looked at or copied."""

    work = 0

    def find(self, sub: object, start: object = 0, end: object = None, /) -> int:
        assert isinstance(sub, bytes)
        assert isinstance(start, int)
        self.work += len(self) - start
        return super().find(sub, start)

    def __iadd__(self, other: object) -> "Counted":
        assert isinstance(other, bytes)
        self.work += len(other)
        self.extend(other)
        return self

    def __bytes__(self) -> bytes:
        self.work += len(self)
        return bytes(memoryview(self))


SHAPES = {
    "a line without end": lambda size: b"data: ".ljust(size, b"x"),
    "an event without end": lambda size: b"data: xx\n" * (size // 9),
    "many events": lambda size: b"data: x\n\n" * (size // 9),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", [2**17, pytest.param(2 * MIB, marks=[pytest.mark.long, pytest.mark.timeout(200)])])
def test_tiny_reads_cost_as_much_as_they_are_many(shape: str, size: int) -> None:
    stream = SHAPES[shape](size)
    reader = SseReader(StreamLimits(line=4 * MIB))
    reader._rest = rest = Counted()
    found = sum(len(reader.feed(piece)) for piece in singly(stream)) + len(reader.feed(b"\n\n"))

    assert found == max(1, stream.count(b"\n\n"))
    assert rest.work < 6 * size
