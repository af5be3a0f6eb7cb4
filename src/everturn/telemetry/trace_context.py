"""Trace context: the span of whoever starts a turn, as a W3C `traceparent`, so that it can travel in the log."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from everturn.telemetry.ids import SpanKey, read_traceparent

_CALLER: Final[ContextVar[str]] = ContextVar("everturn_traceparent", default="")


@contextmanager
def caller_trace(traceparent: str) -> Generator[None]:
    """Turns that this block starts belong to this caller, unless OpenTelemetry has a current span."""
    token = _CALLER.set(traceparent if read_traceparent(traceparent) is not None else "")
    try:
        yield
    finally:
        _CALLER.reset(token)


def current_traceparent() -> str:
    """The current span of OpenTelemetry or, without one, that of the caller of this request; "": none."""
    if "opentelemetry.trace" in sys.modules:  # a program that has a current span has imported it; nobody else needs it
        from opentelemetry.trace import get_current_span

        current = get_current_span().get_span_context()
        if current.is_valid:
            return SpanKey(current.trace_id, current.span_id, current.trace_flags.sampled).traceparent
    return _CALLER.get()


def enter_span(key: SpanKey) -> None:
    """Make a span the current one, until the task ends; nothing, if nobody has imported OpenTelemetry."""
    if "opentelemetry.trace" in sys.modules:
        from opentelemetry.context import attach
        from opentelemetry.trace import NonRecordingSpan, set_span_in_context

        from everturn.telemetry.otel_span import span_context

        attach(set_span_in_context(NonRecordingSpan(span_context(key))))
