"""Replay transport: returns recorded responses without a network, for tests and recorded turns."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct

from everturn.errors import ModelError
from everturn.transport import HttpRequest


class RecordedResponse(Struct, frozen=True):
    """A recorded response: its body in chunks, and whether the connection broke after the last."""

    pieces: Sequence[bytes]
    status: int = 200
    headers: Mapping[str, str] = {}
    is_cut: bool = False

    @classmethod
    def of(cls, path: Path, size: int = 0) -> RecordedResponse:
        """The body in a file, whole or in chunks of `size` bytes."""
        data = path.read_bytes()
        return cls([data[at : at + size] for at in range(0, len(data), size)] if size else [data])

    async def read(self) -> AsyncIterator[bytes]:
        """The body."""
        for piece in self.pieces:
            yield piece
        if self.is_cut:
            raise ModelError("the connection broke", kind="network", retryable=True)

    async def finish(self) -> None:
        """Nothing is left open."""


class ReplayTransport:
    """A transport that returns recorded responses in order; `posts` has the requests."""

    def __init__(self, answers: Iterable[RecordedResponse]) -> None:
        self._answers = list(answers)
        self.posts: list[HttpRequest] = []

    @asynccontextmanager
    async def post(self, post: HttpRequest) -> AsyncGenerator[RecordedResponse]:
        """Return the next response."""
        self.posts.append(post)
        if len(self.posts) > len(self._answers):
            text = f"{len(self._answers)} answers were kept, and this is request number {len(self.posts)}"
            raise ModelError(text, kind="script")
        yield self._answers[len(self.posts) - 1]
