"""Run: a turn that is shown while it runs, with its text or its output alone if that is all one wants."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, Generic

from everturn.chat.result import RunResult
from everturn.chat.turn import EventStream, Turn
from everturn.core.deltas import TextDelta, TurnItem
from everturn.core.events import StepFinished, StepInterrupted, StepRestarted, StepStarted
from everturn.core.parts import join_text
from everturn.errors import ConfigError

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    OutputT = TypeVar("OutputT", covariant=True, default=Any)
else:  # `typing` has no defaults before Python 3.13, and only type checkers need one
    from typing import TypeVar

    OutputT = TypeVar("OutputT", covariant=True)


NOT_ENTERED = "nothing was sent yet: write `async with agent.stream(…) as run`, and in it `async for event in run`"


class Run(Generic[OutputT]):
    """A turn as it happens: `async with agent.stream("…") as run`, then `async for event in run`."""

    def __init__(self, send: Callable[[], Awaitable[Turn]], parse_partial: Callable[[str], Any] | None = None) -> None:
        self._send, self._parse_partial = send, parse_partial
        self._turn: Turn | None = None
        self._stream: EventStream | None = None

    async def __aenter__(self) -> Run[OutputT]:
        """Send the message."""
        self._turn = await self._send()
        self._stream = self._turn.events()
        return self

    async def __aexit__(self, *error: object) -> None:
        """Stop reading; the turn continues."""
        if self._stream is not None:
            await self._stream.aclose()

    @property
    def turn(self) -> Turn:
        """The handle of the turn."""
        if self._turn is None:
            raise ConfigError(NOT_ENTERED)
        return self._turn

    def __aiter__(self) -> AsyncIterator[TurnItem]:
        """Everything that happens: log events, and deltas between them."""
        if self._stream is None:
            raise ConfigError(NOT_ENTERED)
        return self._stream

    async def text_stream(self) -> AsyncGenerator[str, None]:
        """The text alone, piece by piece."""
        async for shown in self:
            if isinstance(shown, TextDelta) and shown.text:
                yield shown.text

    async def stream_output(self) -> AsyncGenerator[Any, None]:
        """The output as far as it has arrived, each time that it has grown: partial objects of the output type."""
        texts: dict[int, str] = {}  # part -> its text
        last: Any = None
        async for shown in self:
            if isinstance(shown, StepStarted | StepRestarted | StepInterrupted):
                texts.clear()
            elif isinstance(shown, TextDelta):
                texts[shown.part] = texts.get(shown.part, "")[: shown.offset] + shown.text
            elif isinstance(shown, StepFinished):
                texts = {0: join_text(shown.parts)}
            else:
                continue
            text = "".join(texts.values())
            partial = text if self._parse_partial is None else self._parse_partial(text) if text else None
            if partial is not None and partial != "" and partial != last:
                last = partial
                yield partial

    async def result(self) -> RunResult[OutputT]:
        """Wait until the turn has ended or is suspended."""
        return await self.turn.result()
