"""Tracer: turns events into spans as they are written, and exports them. Each turn is one trace, in all its processes.

A process that continues a turn reads its log and knows its spans. Spans that ended shortly before may be lost with the
previous process, so it exports them again: the same spans with the same ids. A collector that gets one twice stores it once.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, Protocol

from everturn.core.events import Entry, StepFinished, StepInterrupted, TurnEvent, TurnStarted
from everturn.core.options import TurnOptions
from everturn.core.store_ports import Store
from everturn.telemetry.ids import SpanKey, is_sampled, read_traceparent, span_id, span_of_turn
from everturn.telemetry.metrics import METRICS
from everturn.telemetry.request_content import RequestRecorder
from everturn.telemetry.span_types import Span
from everturn.telemetry.spans import TurnTrace, spans_of, trace_of

log = logging.getLogger(__name__)

REEXPORT_SECONDS: Final = (
    30.0  # seconds before the last event of another process: spans that ended then may not have been exported
)
MOST_TURNS: Final = 4096  # turns whose traces are in memory; those of others are read again when they get an event


class Exporter(Protocol):
    """Exports spans, asynchronously."""

    def export(self, spans: Sequence[Span]) -> None:
        """Queue spans; does not wait."""
        ...

    def close(self) -> None:
        """Send what is queued, and stop."""
        ...


class Tracer:
    """A store observer that creates spans. A `meter` gets only spans of events written here: each once."""

    def __init__(
        self, exporter: Exporter, *, meter: Exporter | None = None, content: bool = False, ratio: float = 1.0
    ) -> None:
        self._exporter, self._meter, self._content, self._ratio = exporter, meter, content, ratio
        self.recorder = RequestRecorder() if content else None  # a plugin of the App, if content is wanted
        self._traces: OrderedDict[tuple[str, str], TurnTrace] = OrderedDict()
        self._reading: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._wanted: dict[tuple[str, str], int] = {}  # the position up to which the reading task must come

    def appended(self, store: Store, session: str, entries: Sequence[Entry]) -> None:
        """Handle entries that were written here."""
        for entry in entries:
            if not isinstance(entry.event, TurnEvent):
                continue
            key = (session, entry.event.turn)
            if isinstance(entry.event, TurnStarted):
                self._remember(key, TurnTrace(*key, content=self._content))
            if key in self._reading:
                self._wanted[key] = entry.seq  # the task that reads the log will reach it
            elif (trace := self._traces.get(key)) is not None:
                self._export_new(trace, (entry,))
            else:
                self._wanted[key] = entry.seq
                self._reading[key] = asyncio.get_running_loop().create_task(self._read(store, key))

    async def _read(self, store: Store, key: tuple[str, str]) -> None:
        """Take over a turn: earlier entries of its log were written by another process."""
        trace, since = TurnTrace(*key, content=self._content), self._wanted[key]
        try:
            while trace.seq < self._wanted[key]:  # more may be written while it is read
                entries = await store.events(key[0], trace.seq, key[1])
                if not entries:
                    break  # the session was erased meanwhile
                foreign = [entry for entry in entries if entry.seq < since]
                if foreign:
                    recent = foreign[-1].event.at - REEXPORT_SECONDS
                    self._export([span for entry in foreign for span in trace.apply(entry) if span.end >= recent])
                self._export_new(trace, entries[len(foreign) :])
            if not trace.is_over:
                self._remember(key, trace)
        except Exception as error:  # an erased session, a store that is down: the turn continues without its trace
            METRICS.count("spans_lost_total")
            log.warning("the trace of turn %s could not be continued: %s", key[1], error)
        finally:
            del self._reading[key], self._wanted[key]

    def _export_new(self, trace: TurnTrace, entries: Sequence[Entry]) -> None:
        spans = [span for entry in entries for span in self._apply(trace, entry)]
        if trace.is_over:
            self._traces.pop((trace.session, trace.turn), None)
        if self._meter is not None and spans:
            self._meter.export(spans)
        self._export(spans)

    def _apply(self, trace: TurnTrace, entry: Entry) -> list[Span]:
        spans = trace.apply(entry)
        if self.recorder is not None and isinstance(entry.event, StepFinished | StepInterrupted):
            request = self.recorder.take(trace.session, trace.turn, entry.event.step)
            for span in spans:
                span.attributes.update(request)
        return spans

    def _export(self, spans: Sequence[Span]) -> None:
        sampled = [span for span in spans if self._is_in_ratio(span.key.trace, span.caller)]
        if sampled:
            METRICS.count("spans_total", by=len(sampled))
            self._exporter.export(sampled)

    def call_key(self, session: str, turn: str, options: TurnOptions, call: str) -> SpanKey:
        """The span of a call, before there is one."""
        trace, caller = trace_of(session, turn, options)
        decides = getattr(self._exporter, "is_sampled", self._is_in_ratio)
        return SpanKey(trace, span_id(session, turn, "call", call), decides(trace, caller))

    def _is_in_ratio(self, trace: int, caller: SpanKey | None) -> bool:
        """Whether a trace is exported: as its caller's is or, without one that is recorded, by the ratio."""
        return (caller is not None and caller.sampled) or is_sampled(trace, self._ratio)

    def _remember(self, key: tuple[str, str], trace: TurnTrace) -> None:
        self._traces[key] = trace
        self._traces.move_to_end(key)
        while len(self._traces) > MOST_TURNS:
            self._traces.popitem(last=False)

    async def export_again(self, store: Store, session: str) -> int:
        """Export all spans of a session again, from its log. Returns how many."""
        spans = spans_of(session, await store.events(session), self._content)
        self._export(spans)
        return len(spans)

    def export_request(
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
        """Export the span of an HTTP request: in the trace of the caller, with a link to the turn it began.

        `span` is a new random 64-bit number; it is also the trace id if the caller sent none.
        """
        parent = read_traceparent(traceparent)
        place = SpanKey(parent.trace if parent else (span << 64) | span, span)
        self._export(
            [
                Span(
                    name=f"{method} {route}",
                    kind="server",
                    key=place,
                    parent=parent,
                    start=start,
                    end=end,
                    attributes={
                        "http.request.method": method,
                        "http.route": route,
                        "http.response.status_code": status,
                    },
                    links=(span_of_turn(*turn),) if turn else (),
                    failed=str(status) if status >= 500 else "",
                )
            ]
        )

    async def finish_reads(self) -> None:
        """Wait for logs that are being read."""
        await asyncio.gather(*self._reading.values(), return_exceptions=True)

    async def aclose(self) -> None:
        """Wait for running reads, send what is left, and stop."""
        await self.finish_reads()
        exporters = [exporter for exporter in (self._exporter, self._meter) if exporter is not None]
        await asyncio.gather(*(asyncio.to_thread(exporter.close) for exporter in exporters))  # a collector may be down
