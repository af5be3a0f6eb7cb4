"""Paced answers: turns the events of a stream into bytes and pauses; an `Answer` is made once and reused.

This module knows HTTP and timing, and no format. Every event is an HTTP chunk of its own, as a provider that flushes
sends it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Literal, TypeAlias

from msgspec import Struct

from everturn.testing.provider.script import Cut, Hang, Pause


class StreamChunk(Struct, frozen=True):
    """Bytes of a stream. A beat is an event that a paced stream waits for; the others are sent with the next beat."""

    data: bytes
    is_beat: bool = True


Part: TypeAlias = StreamChunk | Pause | Cut | Hang
End = Literal["next", "close", "hang"]


class Answer(Struct, frozen=True):
    """Bytes to write and seconds to wait, in order, and what happens to the connection at the end."""

    status: int
    moves: tuple[bytes | float, ...]
    end: End = "next"


def http_head(status: int, headers: Mapping[str, str]) -> bytes:
    """The status line and the headers."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Unknown"
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} {phrase}\r\n{lines}\r\n".encode("latin-1")


def make_answer(
    status: int, body: bytes, headers: Mapping[str, str] | None = None, pauses: Iterable[float] = ()
) -> Answer:
    """An answer that is not a stream."""
    all_headers = {name.lower(): value for name, value in (headers or {}).items()}
    head = {"content-type": "application/json", "content-length": str(len(body)), **all_headers}
    return Answer(status, (*pauses, http_head(status, head) + body))


def make_streamed_answer(parts: Iterable[Part], content_type: str, pace: float, cut_at: int | None = None) -> Answer:
    """An answer in HTTP chunks: all in one write, or one beat after another at a pace."""
    kept = list(parts if cut_at is None else _cut(parts, cut_at))
    if kept and isinstance(kept[0], Cut):
        return Answer(200, (), "close")
    headers = {"content-type": content_type, "cache-control": "no-cache", "transfer-encoding": "chunked"}
    waiting, moves, end = [http_head(200, headers)], list[bytes | float](), "next"
    is_begun = False
    for part in kept:
        if isinstance(part, StreamChunk):
            if part.data:  # an empty chunk would end the body
                waiting.append(b"%x\r\n%s\r\n" % (len(part.data), part.data))
            if pace and part.is_beat:
                moves += [pace] * is_begun
                moves.append(b"".join(waiting))
                waiting.clear()
                is_begun = True
        elif isinstance(part, Pause):
            moves += [b"".join(waiting), part.seconds]
            waiting.clear()
        else:
            end = "close" if isinstance(part, Cut) else "hang"
            break
    if end == "next":
        waiting.append(b"0\r\n\r\n")
    moves.append(b"".join(waiting))
    return Answer(200, tuple(_joined(moves)), end)


def _cut(parts: Iterable[Part], size: int) -> Iterator[Part]:
    """The first `size` bytes of a stream, and then the end of the connection."""
    for part in parts:
        if isinstance(part, StreamChunk):
            if len(part.data) >= size:
                yield StreamChunk(part.data[:size], part.is_beat)
                break
            size -= len(part.data)
        yield part
    yield Cut()


def _joined(moves: Iterable[bytes | float]) -> Iterator[bytes | float]:
    """Merge neighbouring bytes into one write."""
    bytes_before = b""
    for move in moves:
        if isinstance(move, bytes):
            bytes_before += move
            continue
        if bytes_before:
            yield bytes_before
            bytes_before = b""
        yield move
    if bytes_before:
        yield bytes_before
