"""Ports: the Protocols for model, engine, bus, clock and ids. Stores are in `core.store_ports`, tools in `core.tool`.

Each adapter of a port passes the contract suite of the same name in `everturn.testing`; the in-memory adapters are the
reference.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final, Protocol

from everturn.core.chunks import Chunk
from everturn.core.deltas import Frame
from everturn.core.parts import Output
from everturn.core.requests import ModelRequest
from everturn.core.tool import (
    BlobStorage,
    FileStorage,
    ParentCall,
    Preview,
    Progress,
    Question,
    RunContext,
    SubagentRequest,
    SubagentResult,
    Tool,
    ToolContext,
    ToolSource,
    TurnInfo,
)


class Model(Protocol):
    """Answers a request with a stream of chunks, in the batches in which they arrive.

    Closing the iterator ends the request. A stream without a `FinishChunk` was cut off. A model that is not for chat
    has an attribute `modality`; see `core.modality` for what its request holds.

    Raises:
        ModelError: the request failed, or the stream broke.
    """

    @property
    def name(self) -> str:
        """The display name of the model."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Send the request and stream the answer; each item holds the chunks of one read from the network."""
        ...


class Engine(Protocol):
    """Schedules drivers: a woken session is driven by one driver at a time, and again if that one dies."""

    is_durable: bool
    """Whether wakes outlive this process. If not, the process wakes unfinished sessions at its start."""

    async def wake(self, session: str, at: float | None = None, *, is_reminder: bool = False) -> None:
        """Request that a session is driven, at once or at a time. Wakes are idempotent.

        A reminder, for a session that may be queued already, is dropped if the queue has one for it.
        """
        ...

    async def serve(self, drive: Callable[[str], Awaitable[None]]) -> None:
        """Start the engine with the function that drives a session; returns once sessions can be woken."""
        ...

    async def stop_accepting(self) -> None:
        """Start no new drives here; running drives continue until `aclose`."""
        ...

    async def aclose(self) -> None:
        """Stop driving. Unfinished turns stay in the log and continue on another node."""
        ...


class SignalListener(Protocol):
    """A driver's subscription to the signals of its session.

    One that also has `on_signal(callback)` calls back at once, also for a signal before that: no task waits then.
    """

    async def wait(self) -> None:
        """Return once the session was signalled since the last time."""
        ...

    def close(self) -> None:
        """Stop listening."""
        ...


class LiveTail(Protocol):
    """A reader's subscription to the live frames of a turn."""

    def __aiter__(self) -> AsyncIterator[Sequence[Frame]]: ...

    async def __anext__(self) -> Sequence[Frame]: ...

    async def aclose(self) -> None:
        """Stop reading."""
        ...


ANNOUNCEMENT_LIMIT: Final = 4096  # bytes of an announcement


class Bus(Protocol):
    """Publishes live frames and session signals. It may lose frames: every reader can recover them from the log."""

    def publish(self, turn: str, frames: Sequence[Frame]) -> None:
        """Publish frames of a turn to its subscribers."""
        ...

    def tail(self, turn: str) -> LiveTail:
        """Subscribe to a turn: the retained frames of the present step, then new ones, until it is closed."""
        ...

    def close(self, turn: str) -> None:
        """End the stream of a finished turn; its subscribers have got the last frame."""
        ...

    def signal(self, session: str) -> None:
        """Tell the driver of a session that its inbox has a command."""
        ...

    def listen(self, session: str) -> SignalListener:
        """Subscribe to the signals of a session."""
        ...

    def announce(self, topic: str, message: bytes) -> None:
        """Send a short message (UTF-8, at most `ANNOUNCEMENT_LIMIT` bytes) to those who hear a topic now; nothing is kept for later."""
        ...

    def hear(self, topic: str, on_message: Callable[[bytes], None]) -> Callable[[], None]:
        """Call a function with every announcement of a topic, its own process's among them; what is returned stops that."""
        ...


class Timer(Protocol):
    """A scheduled callback."""

    def cancel(self) -> None:
        """Cancel the callback."""
        ...


class Clock(Protocol):
    """Time, as a port, so that a test can control it."""

    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Call back after `delay` seconds."""
        ...


class IdSource(Protocol):
    """Unique ids, as a port, so that a test can predict them."""

    def new(self, kind: str) -> str:
        """A new unique id."""
        ...


__all__ = [
    "BlobStorage",
    "Bus",
    "Clock",
    "Engine",
    "FileStorage",
    "IdSource",
    "LiveTail",
    "Model",
    "Output",
    "ParentCall",
    "Preview",
    "Progress",
    "Question",
    "RunContext",
    "SignalListener",
    "SubagentRequest",
    "SubagentResult",
    "Timer",
    "Tool",
    "ToolContext",
    "ToolSource",
    "TurnInfo",
]
