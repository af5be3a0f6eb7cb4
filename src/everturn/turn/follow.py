"""The log, then the live edge: how a reader sees a turn, from any position, every character once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence

from everturn.core.commands import Send
from everturn.core.deltas import CallProgress, Delta, DriverGone, Frame, LogMoved, Reader, Shown
from everturn.core.events import TurnCancelled, TurnCompleted, TurnFailed
from everturn.core.ports import Bus, Store, Tail
from everturn.errors import DriverLost

AGAIN = 0.5  # seconds before a bus that says a turn is over, when the log does not, is asked again

LOOK: Sequence[Frame] = (LogMoved(2**63 - 1),)
"""As if the log had moved, however far it is."""

NUDGE: Sequence[Frame] = (DriverGone(""),)
"""For the readers of this process only: they are given an empty batch, and look at the log and at who drives."""


async def follow(  # noqa: C901 - a reader, frame by frame
    store: Store, bus: Bus, session: str, reader: Reader, gone: Callable[[], str] = str
) -> AsyncGenerator[Shown, None]:
    """Show a turn from where the reader is until its terminal event (or until it was dropped before it began).

    `gone` says why nobody drives it any more, or nothing.

    Raises:
        DriverLost: nobody drives it any more in this process.
    """
    tail = bus.tail(reader.turn)  # before the log is read, so that nothing falls between the two
    # After that the log is read again whenever it moved, and deltas fill the time between.
    frames: Sequence[Frame] = LOOK
    try:
        is_over, is_first = await is_turn_over(store, session, reader.turn), True
        while True:
            for frame in frames:
                if isinstance(frame, Delta):  # first, for nearly all of them are
                    if (piece := reader.delta(frame)) is not None:
                        yield piece
                elif isinstance(frame, LogMoved):
                    is_news = frame.seq > reader.seq
                    entries = await store.events(session, reader.seq, reader.turn) if is_news else []
                    if (
                        is_news and not entries and not is_first
                    ):  # told to look: it may have been dropped, or ended long ago
                        is_over = await is_turn_over(store, session, reader.turn)
                    for entry in entries:
                        for shown in reader.entry(entry):
                            yield shown
                        if isinstance(entry.event, TurnCompleted | TurnFailed | TurnCancelled):
                            return
                elif isinstance(frame, CallProgress):
                    yield frame
                else:
                    raise DriverLost(frame.text)
            is_first = False
            if is_over:
                return
            frames = await _next(tail, gone)
            if frames is LOOK:  # the bus says that it is over; only the log knows
                await tail.aclose()
                tail = bus.tail(reader.turn)
                is_over = await is_turn_over(store, session, reader.turn)
                if not is_over:  # without a pause, a bus that says so again and again would have the log read each time
                    await asyncio.sleep(AGAIN)
    finally:
        await tail.aclose()


async def _next(tail: Tail, gone: Callable[[], str]) -> Sequence[Frame]:
    """The next frames; an empty batch is a nudge, and has the reader look at the log unless nobody drives any more."""
    if why := gone():
        raise DriverLost(why)
    try:
        frames = await anext(tail)
    except StopAsyncIteration:
        return LOOK
    return frames if frames or gone() else (LogMoved(2**63 - 1),)


async def is_turn_over(store: Store, session: str, turn: str) -> bool:
    """Whether nothing more can come: nobody asks for this turn any more, and it is not under way.

    In this order: a turn that begins between the two looks is then seen by one of them.
    """
    if any(isinstance(command, Send) and command.turn == turn for command in await store.inbox(session)):
        return False
    return turn not in await store.open_turns(session)
