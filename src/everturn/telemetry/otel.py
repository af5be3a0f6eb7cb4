"""OpenTelemetry export: sends spans and metrics to a collector through the SDK, by OTLP over HTTP."""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from typing import Final

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event as SdkEvent
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, Status, StatusCode

from everturn.telemetry.metrics import METRICS, Metrics
from everturn.telemetry.otel_meter import SpanMeter
from everturn.telemetry.otel_span import SPAN_KINDS, nanoseconds, span_context
from everturn.telemetry.span_types import Span

DELAY: Final = 1.0  # seconds after which spans are sent; `REEXPORT_SECONDS` of `tracer` is much longer
MOST_WAITING: Final = 8192  # spans; while a collector is down, further ones are dropped
TIMEOUT: Final = 3.0  # seconds in which a collector must answer
_SCOPE: Final = InstrumentationScope("everturn")


def resource_of(service: str, version: str, instance: str) -> Resource:
    """The resource of this process. OTEL_RESOURCE_ATTRIBUTES are added."""
    return Resource.create({"service.name": service, "service.version": version, "service.instance.id": instance})


class OtelSpans:
    """Exports spans in batches of the SDK."""

    def __init__(self, resource: Resource, exporter: SpanExporter) -> None:
        self._resource = resource
        self._batches = BatchSpanProcessor(
            exporter,
            max_queue_size=MOST_WAITING,
            schedule_delay_millis=DELAY * 1000,
            export_timeout_millis=TIMEOUT * 1000,
        )
        atexit.register(self.close)  # for a process that exits without closing: the spans of the last second are queued

    def export(self, spans: Sequence[Span]) -> None:
        """Queue spans."""
        for span in spans:
            self._batches.on_end(sdk_span(span, self._resource))

    def close(self) -> None:
        """Send the queued spans, and stop."""
        atexit.unregister(self.close)
        self._batches.shutdown()


def sdk_span(span: Span, resource: Resource) -> ReadableSpan:
    """A finished span, as the SDK represents it."""
    return ReadableSpan(
        name=span.name,
        context=span_context(span.key),
        parent=span_context(span.parent, is_remote=True) if span.parent else None,
        resource=resource,
        attributes=span.attributes,
        events=[SdkEvent(moment.name, timestamp=nanoseconds(moment.at)) for moment in span.events],
        links=[Link(span_context(link)) for link in span.links],
        kind=SPAN_KINDS[span.kind],
        status=Status(StatusCode.ERROR, span.failed) if span.failed else Status(StatusCode.UNSET),
        start_time=nanoseconds(span.start),
        end_time=max(nanoseconds(span.end), nanoseconds(span.start)),  # the clocks of two machines may differ
        instrumentation_scope=_SCOPE,
    )


class OtelMetrics(SpanMeter):
    """Exports metrics with a meter provider of its own."""

    def __init__(self, resource: Resource, reader: PeriodicExportingMetricReader, metrics: Metrics = METRICS) -> None:
        self._provider = MeterProvider([reader], resource, shutdown_on_exit=False)
        super().__init__(self._provider.get_meter("everturn"), metrics)

    def close(self) -> None:
        """Send the current metrics, and stop."""
        self._provider.shutdown(timeout_millis=TIMEOUT * 1000)


def span_exporter(endpoint: str, headers: dict[str, str]) -> SpanExporter:
    """An exporter to the collector at this address (without `/v1/traces`)."""
    return OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces", headers=headers, timeout=TIMEOUT)


def metric_reader(endpoint: str, headers: dict[str, str], seconds: float) -> PeriodicExportingMetricReader:
    """A reader that exports to the same collector every `seconds`."""
    exporter = OTLPMetricExporter(f"{endpoint.rstrip('/')}/v1/metrics", headers=headers, timeout=TIMEOUT)
    return PeriodicExportingMetricReader(exporter, seconds * 1000, TIMEOUT * 1000)
