"""The log, then the live edge: how a reader sees a turn, from any position, every character once."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence

from everturn.core.commands import Send
from everturn.core.deltas import CallProgress, Delta, Frame, LogMoved, Reader, Shown
from everturn.core.events import TurnCancelled, TurnCompleted, TurnFailed
from everturn.core.ports import Bus, Store, Tail
from everturn.errors import DriverLost


async def follow(
    store: Store, bus: Bus, session: str, reader: Reader, gone: Callable[[], str] = str
) -> AsyncGenerator[Shown, None]:
    """Show a turn from where the reader is until its terminal event (or until it was dropped before it began).

    `gone` says why nobody drives it any more, or nothing.

    Raises:
        DriverLost: nobody drives it any more in this process.
    """
    tail = bus.tail(reader.turn)  # before the log is read, so that nothing falls between the two
    # After that the log is read again whenever it moved, and deltas fill the time between.
    frames: Sequence[Frame] | None = (LogMoved(reader.seq + 1),)
    try:
        is_over = await _is_over(store, session, reader.turn)
        while frames is not None:
            for frame in frames:
                if isinstance(frame, Delta):  # first, for nearly all of them are
                    if (piece := reader.delta(frame)) is not None:
                        yield piece
                elif isinstance(frame, LogMoved):
                    if frame.seq <= reader.seq:
                        continue
                    for entry in await store.events(session, reader.seq, reader.turn):
                        for shown in reader.entry(entry):
                            yield shown
                        if isinstance(entry.event, TurnCompleted | TurnFailed | TurnCancelled):
                            return
                elif isinstance(frame, CallProgress):
                    yield frame
                else:
                    raise DriverLost(frame.text)
            frames = None if is_over else await _next(tail, gone())
    finally:
        await tail.aclose()


async def _next(tail: Tail, gone: str) -> Sequence[Frame] | None:
    if gone:
        raise DriverLost(gone)
    return await anext(tail, None)


async def _is_over(store: Store, session: str, turn: str) -> bool:
    """Whether nothing more can come: nobody asks for this turn any more, and it is not under way.

    In this order: a turn that begins between the two looks is then seen by one of them.
    """
    if any(isinstance(command, Send) and command.turn == turn for command in await store.inbox(session)):
        return False
    return turn not in await store.open_turns(session)
