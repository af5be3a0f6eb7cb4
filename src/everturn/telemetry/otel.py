"""OpenTelemetry export: sends spans and metrics through the SDK, by OTLP over HTTP. The only file that uses the SDK."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event as SdkEvent
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from everturn.telemetry.ids import SpanKey
from everturn.telemetry.metric_families import ALL, MODEL_SECONDS, MetricFamily
from everturn.telemetry.metrics import METRICS, Metrics
from everturn.telemetry.span_types import Span

DELAY: Final = 1.0  # seconds after which spans are sent; `REEXPORT_SECONDS` of `tracer` is much longer
MOST_WAITING: Final = 8192  # spans; while a collector is down, further ones are dropped
TIMEOUT: Final = 3.0  # seconds in which a collector must answer
TOKENS: Final = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
_KINDS: Final = {"internal": SpanKind.INTERNAL, "client": SpanKind.CLIENT, "server": SpanKind.SERVER}
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
        context=_context(span.key),
        parent=_context(span.parent, is_remote=True) if span.parent else None,
        resource=resource,
        attributes=span.attributes,
        events=[SdkEvent(moment.name, timestamp=_nanos(moment.at)) for moment in span.events],
        links=[Link(_context(link)) for link in span.links],
        kind=_KINDS[span.kind],
        status=Status(StatusCode.ERROR, span.failed) if span.failed else Status(StatusCode.UNSET),
        start_time=_nanos(span.start),
        end_time=max(_nanos(span.end), _nanos(span.start)),  # the clocks of two machines may differ
        instrumentation_scope=_SCOPE,
    )


def _context(place: SpanKey, is_remote: bool = False) -> SpanContext:
    return SpanContext(place.trace, place.span, is_remote, TraceFlags(TraceFlags.SAMPLED))


def _nanos(seconds: float) -> int:
    return round(seconds * 1e6) * 1000  # to the microsecond, which is as exact as a float of today's time is


class OtelMetrics:
    """Exports the two histograms of the conventions, computed from spans, and all our own metrics."""

    def __init__(self, resource: Resource, reader: PeriodicExportingMetricReader, metrics: Metrics = METRICS) -> None:
        self._provider = MeterProvider([reader], resource, shutdown_on_exit=False)
        meter = self._provider.get_meter("everturn")
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage", "{token}", "Tokens used.", explicit_bucket_boundaries_advisory=TOKENS
        )
        self._seconds = meter.create_histogram(
            "gen_ai.client.operation.duration",
            "s",
            "How long a model, a tool or a turn took.",
            explicit_bucket_boundaries_advisory=MODEL_SECONDS,
        )
        for family in ALL:
            name = family.name.replace("everturn_", "everturn.", 1).removesuffix("_total")
            if family.kind == "counter":
                meter.create_observable_counter(name, [_observe_family(metrics, family)], description=family.text)
            elif family.kind == "gauge":
                meter.create_observable_gauge(name, [_observe_family(metrics, family)], description=family.text)

    def export(self, spans: Sequence[Span]) -> None:
        """Record the durations and tokens of spans."""
        for span in spans:
            attributes = {
                name: value
                for name, value in span.attributes.items()
                if name in ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "error.type")
            }
            if "gen_ai.operation.name" not in attributes:
                continue
            self._seconds.record(max(span.end - span.start, 0.0), attributes)
            if attributes["gen_ai.operation.name"] == "chat":
                for kind in ("input", "output"):
                    tokens = span.attributes.get(f"gen_ai.usage.{kind}_tokens")
                    if isinstance(tokens, int) and tokens:
                        self._tokens.record(tokens, {**attributes, "gen_ai.token.type": kind})

    def close(self) -> None:
        """Send the current metrics, and stop."""
        self._provider.shutdown(timeout_millis=TIMEOUT * 1000)


def _observe_family(metrics: Metrics, family: MetricFamily) -> Callable[[CallbackOptions], Iterable[Observation]]:
    def observe(options: CallbackOptions) -> Iterable[Observation]:
        for series_family, labels, value in metrics.items(family.kind):
            if series_family is family:
                yield Observation(value, dict(zip(family.labels, labels, strict=True)))

    return observe


def span_exporter(endpoint: str, headers: dict[str, str]) -> SpanExporter:
    """An exporter to the collector at this address (without `/v1/traces`)."""
    return OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces", headers=headers, timeout=TIMEOUT)


def metric_reader(endpoint: str, headers: dict[str, str], seconds: float) -> PeriodicExportingMetricReader:
    """A reader that exports to the same collector every `seconds`."""
    exporter = OTLPMetricExporter(f"{endpoint.rstrip('/')}/v1/metrics", headers=headers, timeout=TIMEOUT)
    return PeriodicExportingMetricReader(exporter, seconds * 1000, TIMEOUT * 1000)
