"""Lines of JSON: whatever the bytes and however they are split, the same lines come out, and the same error."""

import itertools
import re
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from everturn.transport.limits import MIB, StreamLimits
from everturn.transport.ndjson import NdjsonReader
from everturn.transport.sse import SseReader

Outcome = tuple[list[bytes], str]  # the lines, and what was too long

# Mostly what means something to the reader: pure noise would hardly ever make a line.
WORDS = [
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"{}",
    b'{"a":1}',
    b"x",
    b" ",
    b"\t",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xa8",
    b"\x85",
]
STREAMS = st.lists(st.sampled_from([*WORDS, b"\xff\x00"])).map(b"".join)
CUTS = st.lists(st.integers(0, 80), max_size=8)
LIMITS = st.tuples(*[st.integers(1, 24)] * 3).map(lambda sizes: StreamLimits(*sizes))


def read(pieces: list[bytes], limits: StreamLimits | None = None) -> Outcome:
    reader, found = NdjsonReader(limits), list[bytes]()
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
    """The lines that say something, from the first that looks like an object on."""
    lines = [line.strip(b" \t\r") for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
    return [line for line in itertools.dropwhile(lambda line: not line.startswith(b"{"), lines) if line]


@given(STREAMS | st.binary())
@example(b'{"a":1}\n{"b":2}')
@example(b"\n\r\n{}\r\n\n")
def test_the_reader_gives_every_line_that_says_something(data: bytes) -> None:
    assert read([data]) == (reference(data), "")


@given(STREAMS | st.binary(), CUTS)
def test_however_a_stream_is_split_its_lines_are_the_same(data: bytes, cuts: list[int]) -> None:
    whole = read([data])

    assert read(cut(data, cuts)) == whole
    assert read(singly(data)) == whole


@given(STREAMS, CUTS, LIMITS)
def test_however_a_stream_is_split_the_same_thing_is_too_long_at_the_same_place(
    data: bytes, cuts: list[int], limits: StreamLimits
) -> None:
    assert read(cut(data, cuts), limits) == read(singly(data), limits) == read([data], limits)


@given(STREAMS, LIMITS, STREAMS)
def test_after_an_error_nothing_more_is_read(data: bytes, limits: StreamLimits, more: bytes) -> None:
    reader = NdjsonReader(limits)
    reader.feed(data)
    if (error := reader.error) is not None:
        assert reader.feed(more) == reader.end() == []
        assert reader.error is error
        assert not reader._rest


# Lines ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stream", "lines"),
    [
        (b'{"a":1}\n', [b'{"a":1}']),
        (b'{"a":1}\r\n{"b":2}\r\n', [b'{"a":1}', b'{"b":2}']),
        (b'\n\n{"a":1}\n\r\n \n{"b":2}\n\n', [b'{"a":1}', b'{"b":2}']),
        (b'{"a":1}\n{"b":2}', [b'{"a":1}', b'{"b":2}']),
        (b'{"a":1}\r', [b'{"a":1}']),
        (b'\xef\xbb\xbf{"a":1}\n', [b'{"a":1}']),
        (b"\xef\xbb\xbf\n{}\n", [b"{}"]),
        (b"{}\n\xef\xbb\xbf{}\n", [b"{}", b"\xef\xbb\xbf{}"]),  # a mark stands at the beginning, or is none
        (b"{a\rb\n", [b"{a\rb"]),  # a CR alone ends nothing
        (b"<html>\n: hm\n\n[1]\n{}\n<html>\n", [b"{}", b"<html>"]),  # nothing is a stream before an object comes
        (b"<html>", []),
        (b"\n\r\n \t\n", []),
        (b"", []),
    ],
)
def test_a_line_is_what_stands_between_two_line_ends(stream: bytes, lines: list[bytes]) -> None:
    assert read([stream]) == read(singly(stream)) == (lines, "")


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\0"])
def test_nothing_else_ends_a_line(mark: str) -> None:
    line = f'{{"a{mark}{mark}b"'.encode()

    assert read([line + b"\n"]) == read(singly(line + b"\n")) == ([line], "")


# Limits ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("split", [singly, lambda data: [data]])
@pytest.mark.parametrize(
    ("limits", "fits", "over", "exceeded"),
    [
        (StreamLimits(9, 99, 99), b"{23456789\n", b"{23456789A\n", "line"),
        (StreamLimits(9, 99, 99), b"{23456789", b"{23456789A", "line"),
        (StreamLimits(99, 9, 99), b"{23456789\n", b"{23456789A\n", "event"),
        (StreamLimits(9, 9, 99), b"{2345678\r\n", b"{23456789\r\n", "line"),
        (StreamLimits(20, 40, 20), b"{23456789\n{23456789\n", b"{23456789\n{23456789\nA", "stream"),
        (StreamLimits(9, 40, 20), b"{23456789\n{23456789\n", b"{23456789\n{23456789A", "line"),
    ],
)
def test_a_limit_is_exact(
    split: Callable[[bytes], list[bytes]], limits: StreamLimits, fits: bytes, over: bytes, exceeded: str
) -> None:
    assert read(split(fits), limits) == (reference(fits), "")
    assert read(split(over), limits)[1] == exceeded


def test_the_limits_of_a_model_are_what_they_say() -> None:
    line = b"{".ljust(MIB, b"x")

    assert read([line, b"\n"]) == ([line], "")
    assert read([line, b"x"]) == ([], "line")
    assert read([line, b"\n"] * 32) == ([line] * 31, "stream")


def test_a_line_that_does_not_end_is_given_up_at_its_limit() -> None:
    reader = NdjsonReader(StreamLimits(line=100, event=1_000))
    assert reader.feed(b"x" * 100) == []
    assert reader.error is None
    assert reader.feed(b"x") == []
    assert reader.error is not None


def test_what_came_before_an_error_is_good() -> None:
    stream = b"{a\n{b\n" + b"c" * 20 + b"\n{d\n"

    assert (
        read([stream], StreamLimits(line=10)) == read(singly(stream), StreamLimits(line=10)) == ([b"{a", b"{b"], "line")
    )


@pytest.mark.parametrize("limits", [StreamLimits(line=10), StreamLimits(event=10), StreamLimits(stream=10)])
def test_an_error_has_the_words_that_other_streams_have(limits: StreamLimits) -> None:
    ours, other = NdjsonReader(limits), SseReader(limits)
    ours.feed(b"data: 789ABCD")
    other.feed(b"data: 789ABCD")

    assert str(ours.error) == str(other.error)


# Cost -----------------------------------------------------------------------------------------------------------------


class Counted(bytearray):
    """Counts the bytes that are copied."""

    work = 0

    def __iadd__(self, other: object) -> "Counted":
        assert isinstance(other, bytes)
        self.work += len(other)
        self.extend(other)
        return self

    def __bytes__(self) -> bytes:
        self.work += len(self)
        return bytes(memoryview(self))


@pytest.mark.parametrize("line", [1, 9, 2**17])
def test_tiny_reads_cost_as_much_as_they_are_many(line: int) -> None:
    stream = (b"{" * line + b"\n") * (2**17 // line)
    reader = NdjsonReader()
    reader._rest = rest = Counted()
    found = sum(len(reader.feed(piece)) for piece in singly(stream))

    assert found == 2**17 // line
    assert rest.work < 3 * len(stream)
