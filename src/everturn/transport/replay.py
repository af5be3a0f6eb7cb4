"""An answer that was kept → the same answer again, without a network: for tests, and for recorded turns."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct

from everturn.errors import ModelError
from everturn.transport import Post


class Kept(Struct, frozen=True):
    """An answer: its body in the pieces in which it came, and whether the connection broke after the last."""

    pieces: Sequence[bytes]
    status: int = 200
    headers: Mapping[str, str] = {}
    is_cut: bool = False

    @classmethod
    def of(cls, path: Path, size: int = 0) -> Kept:
        """The body kept in a file, whole or in pieces of `size` bytes."""
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


class Replay:
    """A transport that gives kept answers, in order; `posts` keeps what was asked."""

    def __init__(self, answers: Iterable[Kept]) -> None:
        self._answers = list(answers)
        self.posts: list[Post] = []

    @asynccontextmanager
    async def post(self, post: Post) -> AsyncGenerator[Kept]:
        """Give the next answer."""
        self.posts.append(post)
        if len(self.posts) > len(self._answers):
            text = f"{len(self._answers)} answers were kept, and this is request number {len(self.posts)}"
            raise ModelError(text, kind="script")
        yield self._answers[len(self.posts) - 1]
