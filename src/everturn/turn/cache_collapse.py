"""Cache collapse: notices that a request missed the provider's prompt cache, and names the cause from the log.

The sizes are in the messages of the branch, so that a request that read what was expected costs nothing more. Only after a
compaction, and where much was missed, the log of the turns is read.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from everturn.core.context.context_size import compaction_of
from everturn.core.events import Entry, StepFinished
from everturn.core.messages import Message
from everturn.core.parts import CacheCollapse, StepPart
from everturn.core.projections.cache_health import find_collapse, is_collapse
from everturn.errors import EverturnError
from everturn.running.active_turn import ActiveTurn

log = logging.getLogger(__name__)

MAX_TURNS: Final = 4  # turns before this one, in the log and on the branch, whose events are read
END: Final = 2**62  # a position after every other


async def find_cache_collapse(run: ActiveTurn, finished: StepFinished) -> CacheCollapse | None:
    """The collapse of a step, before its end is written; None if it read what was expected, or nothing is known."""
    usage = finished.usage
    if not usage.input or usage.estimated or run.history is None:
        return None
    path = [*run.history, *run.state.messages.values()]
    expected = _expected_tokens(path)
    if expected is not None and not is_collapse(expected, usage.cached):
        return None
    try:
        return find_collapse((entry.event for entry in await _events(run, path)), finished)
    except EverturnError:  # an answer matters more than the reason for its price
        log.warning("turn %s: the cause of a missed prompt cache could not be read", run.turn, exc_info=True)
        return None


def _expected_tokens(path: Sequence[Message]) -> int | None:
    """What the last request of a branch left in the cache; None if a compaction stands in between."""
    for message in reversed(path):
        for part in reversed(message.parts):
            if type(part) is StepPart and part.usage.input:
                return part.usage.cached + part.usage.written
        if compaction_of(message) is not None:
            return None
    return 0


async def _events(run: ActiveTurn, path: Sequence[Message]) -> list[Entry]:
    """The events of this turn, and of those before it, in the order of the log."""
    store, session = run.setup.store, run.session
    turns = {run.turn: None}
    for message in reversed(path):
        if message.turn and len(turns) <= MAX_TURNS:
            turns[message.turn] = None
    for _, turn in await store.turn_starts(session, END, MAX_TURNS):
        turns[turn] = None
    entries = [entry for turn in turns for entry in await store.events(session, turn=turn)]
    return sorted(entries, key=lambda entry: entry.seq)
