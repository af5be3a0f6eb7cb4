"""Reader of one turn: reads the log from any position, then follows live deltas, and shows every character once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractContextManager

from everturn.core.commands import Send
from everturn.core.deltas import CallProgress, Delta, DriverGone, Frame, LogAdvanced, TurnItem, TurnReader
from everturn.core.events import TurnCancelled, TurnCompleted, TurnFailed
from everturn.core.ports import Bus, LiveTail
from everturn.core.store_ports import Store
from everturn.errors import DriverLost

RESUBSCRIBE_PAUSE = 0.5  # seconds before subscribing again, if the bus says that a turn is over and the log does not

_TERMINAL = frozenset((TurnCompleted, TurnFailed, TurnCancelled))

READ_LOG_FRAMES: Sequence[Frame] = (LogAdvanced(2**63 - 1),)
"""A frame that makes the reader read the log."""

NUDGE_FRAMES: Sequence[Frame] = (DriverGone(""),)
"""For readers in this process only: they get an empty batch, and check the log and the driver."""


async def follow_turn(  # noqa: C901 - a reader, frame by frame
    store: Store,
    bus: Bus,
    session: str,
    reader: TurnReader,
    end_reason: Callable[[], str] = str,
    within: AbstractContextManager[object] | None = None,
) -> AsyncGenerator[TurnItem, None]:
    """Show a turn from the reader's position until its terminal event (or until it was dropped before its start).

    `end_reason` returns why the turn has no driver any more, or ""; `within` is entered while it is followed.

    Raises:
        DriverLost: this process no longer drives the turn.
    """
    tail = bus.tail(reader.turn)  # before the log is read, so that no event is lost between the two
    if within is not None:
        within.__enter__()
    # After that the log is read again whenever it has grown, and deltas are shown in between.
    frames: Sequence[Frame] = READ_LOG_FRAMES
    try:
        is_over, is_first, unread = await is_turn_over(store, session, reader.turn), True, 0
        while True:
            for frame in frames:
                if isinstance(frame, Delta):  # first, as it is the common case
                    if (delta := reader.delta(frame)) is not None:
                        yield delta
                        continue
                    if frame.seq <= max(reader.seq, unread):
                        continue
                    # Text of a step whose beginning was not read yet: its LogAdvanced was sent before this process listened.
                    # Dropped, everything up to the end of the step would come after a gap. One read for each such step.
                    unread = frame.seq
                if isinstance(frame, LogAdvanced | Delta):
                    has_grown = frame.seq > reader.seq
                    entries = await store.events(session, reader.seq, reader.turn) if has_grown else []
                    # Nothing new in the log: the turn may have been dropped, or it ended long ago.
                    if has_grown and not entries and not is_first:
                        is_over = await is_turn_over(store, session, reader.turn)
                    for entry in entries:
                        for shown in reader.entry(entry):
                            yield shown
                        if type(entry.event) in _TERMINAL:
                            return
                    if isinstance(frame, Delta) and (delta := reader.delta(frame)) is not None:
                        yield delta
                elif isinstance(frame, CallProgress):
                    yield frame
                else:
                    raise DriverLost(frame.text)
            is_first = False
            if is_over:
                return
            frames = await _next_frames(tail, end_reason)
            if frames is READ_LOG_FRAMES:  # the bus says that the turn is over; only the log decides
                await tail.aclose()
                tail = bus.tail(reader.turn)
                is_over = await is_turn_over(store, session, reader.turn)
                if not is_over:  # without a pause, a bus that repeats this would cause a read of the log each time
                    await asyncio.sleep(RESUBSCRIBE_PAUSE)
    finally:
        if within is not None:
            within.__exit__(None, None, None)
        await tail.aclose()


async def _next_frames(tail: LiveTail, end_reason: Callable[[], str]) -> Sequence[Frame]:
    """The next frames. An empty batch is a nudge: the reader checks the log, unless the driver is gone."""
    if reason := end_reason():
        raise DriverLost(reason)
    try:
        frames = await anext(tail)
    except StopAsyncIteration:
        return READ_LOG_FRAMES
    return frames if frames or end_reason() else (LogAdvanced(2**63 - 1),)


async def is_turn_over(store: Store, session: str, turn: str) -> bool:
    """Whether no more events can come: the turn is neither queued nor open.

    The inbox is read first, so that a turn that starts between the two reads is seen by one of them.
    """
    if any(isinstance(command, Send) and turn in command.turns for command in await store.inbox(session)):
        return False
    return turn not in await store.open_turns(session)
