"""At the end of every test: whatever was started in it had been judged, once, and whatever ran had been started.

The logs are those of every store a driver wrote to. A log that ends between a record and its start was cut there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import everturn.calls.pipeline as pipeline
from everturn.core.events import CallStarted, Event, PermissionDecided
from everturn.running.ledger import Ledger
from everturn.stores.memory import MemoryStore
from everturn.stores.sql.store import SqlStore

_memory: list[MemoryStore] = []
_written: dict[str, list[Event]] = defaultdict(list)  # session -> what was written to a database
_ran: list[tuple[str, str]] = []  # (session, call)


def install() -> None:
    """Look at every driver, every append and every tool from now on."""
    begin, append, run = Ledger.__init__, SqlStore.append, pipeline.run_call

    def began(self: Ledger, session: str, claim: Any, store: Any, *more: Any) -> None:
        begin(self, session, claim, store, *more)
        store = getattr(store, "inner", store)  # behind one that dies
        if isinstance(store, MemoryStore) and store not in _memory:
            _memory.append(store)

    async def appended(
        self: SqlStore, session: str, after: int, events: Sequence[Event], epoch: int | None = None
    ) -> int:
        head = await append(self, session, after, events, epoch)
        _written[session] += events
        return head

    def started(ctx: Any, start: Any, *rest: Any) -> Any:
        _ran.append((ctx.session, start.call.id))
        return run(ctx, start, *rest)

    Ledger.__init__, SqlStore.append = began, appended  # pyright: ignore[reportAttributeAccessIssue]
    pipeline.run_call = started


def forget() -> None:
    """Begin anew."""
    for each in (_memory, _written, _ran):
        each.clear()


def check() -> None:
    """Raise what is wrong, if anything is."""
    logs = [(name, [entry.event for entry in row.log]) for store in _memory for name, row in store._sessions.items()]
    logs += list(_written.items())
    started: set[tuple[str, str]] = set()
    wrong: list[str] = []
    for session, events in logs:
        wrong += check_log(events)
        started |= {(session, event.call) for event in events if isinstance(event, CallStarted)}
    seen = {session for session, _ in logs}
    wrong += [
        f"{call} ran and was never started"
        for session, call in _ran
        if session in seen and (session, call) not in started
    ]
    assert not wrong, wrong


def check_log(events: Sequence[Event]) -> Iterable[str]:
    """Records and starts, one for one."""
    judged: dict[str, PermissionDecided] = {}
    for event in events:
        if isinstance(event, PermissionDecided):
            if event.call in judged:
                yield f"{event.call} was judged twice"
            judged[event.call] = event
        elif isinstance(event, CallStarted):
            record = judged.pop(event.call, None)
            if record is None or not record.allowed or (record.tool, record.hash) != (event.tool, event.hash):
                yield f"{event.call} was started, and the record says {record}"
    last = events[-1] if events else None
    yield from (
        f"{call} was allowed and never started"
        for call, decision in judged.items()
        if decision.allowed and decision is not last
    )
