"""Spans in the types of OpenTelemetry's API: kinds, contexts and times."""

from __future__ import annotations

from typing import Final

from opentelemetry.trace import SpanContext, SpanKind, TraceFlags

from everturn.telemetry.ids import SpanKey

SPAN_KINDS: Final = {"internal": SpanKind.INTERNAL, "client": SpanKind.CLIENT, "server": SpanKind.SERVER}


def span_context(key: SpanKey, is_remote: bool = False) -> SpanContext:
    """The context of a span."""
    flags = TraceFlags.SAMPLED if key.sampled else TraceFlags.DEFAULT
    return SpanContext(key.trace, key.span, is_remote, TraceFlags(flags))


def nanoseconds(seconds: float) -> int:
    """A time in nanoseconds, to the microsecond, which is as exact as a float of today's time is."""
    return round(seconds * 1e6) * 1000
