"""Events as they are written → spans, given to an exporter: each turn one trace, whoever drives it, and however often.

A process that goes on with a turn reads its log and knows what its spans are. Those that ended shortly before it came
may be lost with the process before it, so it gives them again: the same spans with the same ids. A collector that gets
one twice has it once.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, Protocol

from everturn.core.events import Entry, TurnEvent, TurnStarted
from everturn.core.ports import Store
from everturn.telemetry.ids import Place, is_sampled, place_of_turn, read_traceparent
from everturn.telemetry.metrics import METRICS
from everturn.telemetry.shapes import Span
from everturn.telemetry.spans import TurnTrace, spans_of

log = logging.getLogger(__name__)

AGAIN: Final = 30.0  # seconds before the last event of another process: what ended then may not have been exported
MOST_TURNS: Final = 4096  # whose traces are at hand; those of others are read again when something happens in them


class Exporter(Protocol):
    """Takes spans away, some time."""

    def export(self, spans: Sequence[Span]) -> None:
        """Take these; it does not wait."""
        ...

    def close(self) -> None:
        """Send what is left, and stop."""
        ...


class Tracing:
    """A watcher of the log that makes spans of it. A `meter` is given those only that were written here: each once."""

    def __init__(
        self, exporter: Exporter, *, meter: Exporter | None = None, content: bool = False, ratio: float = 1.0
    ) -> None:
        self._exporter, self._meter, self._content, self._ratio = exporter, meter, content, ratio
        self._traces: OrderedDict[tuple[str, str], TurnTrace] = OrderedDict()
        self._reading: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._wanted: dict[tuple[str, str], int] = {}  # up to where who reads has to come

    def appended(self, store: Store, session: str, entries: Sequence[Entry]) -> None:
        """Watcher: these were written."""
        for entry in entries:
            if not isinstance(entry.event, TurnEvent):
                continue
            key = (session, entry.event.turn)
            if isinstance(entry.event, TurnStarted):
                self._keep(key, TurnTrace(*key, content=self._content))
            if key in self._reading:
                self._wanted[key] = entry.seq  # who reads the log comes to it
            elif (trace := self._traces.get(key)) is not None:
                self._see(trace, (entry,))
            else:
                self._wanted[key] = entry.seq
                self._reading[key] = asyncio.get_running_loop().create_task(self._read(store, key))

    async def _read(self, store: Store, key: tuple[str, str]) -> None:
        """Take a turn over: what is in its log before what was written here was written by another."""
        trace, since = TurnTrace(*key, content=self._content), self._wanted[key]
        try:
            while trace.seq < self._wanted[key]:  # more may be written while it is read
                entries = await store.events(key[0], trace.seq, key[1])
                if not entries:
                    break  # it was erased meanwhile
                theirs = [entry for entry in entries if entry.seq < since]
                if theirs:
                    soon = theirs[-1].event.at - AGAIN
                    self._export([span for entry in theirs for span in trace.see(entry) if span.end >= soon])
                self._see(trace, entries[len(theirs) :])
            if not trace.is_over:
                self._keep(key, trace)
        except Exception as error:  # an erased session, a store that is away: the turn goes on without its trace
            METRICS.count("spans_lost_total")
            log.warning("the trace of turn %s could not be gone on with: %s", key[1], error)
        finally:
            del self._reading[key], self._wanted[key]

    def _see(self, trace: TurnTrace, entries: Sequence[Entry]) -> None:
        spans = [span for entry in entries for span in trace.see(entry)]
        if trace.is_over:
            self._traces.pop((trace.session, trace.turn), None)
        if self._meter is not None and spans:
            self._meter.export(spans)
        self._export(spans)

    def _export(self, spans: Sequence[Span]) -> None:
        kept = [span for span in spans if is_sampled(span.place.trace, self._ratio)]
        if kept:
            METRICS.count("spans_total", by=len(kept))
            self._exporter.export(kept)

    def _keep(self, key: tuple[str, str], trace: TurnTrace) -> None:
        self._traces[key] = trace
        self._traces.move_to_end(key)
        while len(self._traces) > MOST_TURNS:
            self._traces.popitem(last=False)

    async def again(self, store: Store, session: str) -> int:
        """Export all spans of a session once more, from its log; how many."""
        spans = spans_of(session, await store.events(session), self._content)
        self._export(spans)
        return len(spans)

    def request(
        self,
        *,
        method: str,
        route: str,
        status: int,
        start: float,
        end: float,
        span: int,
        traceparent: str = "",
        turn: tuple[str, str] | None = None,
    ) -> None:
        """A request to the server was answered: a span in the trace of who asked, with a link to the turn it began.

        `span` is a fresh random number of 64 bits; it is also the trace where the caller named none.
        """
        parent = read_traceparent(traceparent)
        place = Place(parent.trace if parent else (span << 64) | span, span)
        self._export(
            [
                Span(
                    name=f"{method} {route}",
                    kind="server",
                    place=place,
                    parent=parent,
                    start=start,
                    end=end,
                    attributes={
                        "http.request.method": method,
                        "http.route": route,
                        "http.response.status_code": status,
                    },
                    links=(place_of_turn(*turn),) if turn else (),
                    failed=str(status) if status >= 500 else "",
                )
            ]
        )

    async def aclose(self) -> None:
        """Come to an end: read what is being read, send what is left."""
        await asyncio.gather(*self._reading.values(), return_exceptions=True)
        both = [each for each in (self._exporter, self._meter) if each is not None]
        await asyncio.gather(*(asyncio.to_thread(each.close) for each in both))  # a collector may be away
