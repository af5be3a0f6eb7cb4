"""Spans and counts → OpenTelemetry's SDK, and by OTLP over HTTP to a collector. The only file that knows the SDK."""

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

from everturn.telemetry.families import ALL, MODEL_SECONDS, Family
from everturn.telemetry.ids import Place
from everturn.telemetry.metrics import METRICS, Metrics
from everturn.telemetry.shapes import Span

DELAY: Final = 1.0  # seconds after which spans are sent; AGAIN of `tracing` is much longer
MOST_WAITING: Final = 8192  # spans; when a collector is away, the next ones are dropped
TIMEOUT: Final = 3.0  # seconds a collector has
TOKENS: Final = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
_KINDS: Final = {"internal": SpanKind.INTERNAL, "client": SpanKind.CLIENT, "server": SpanKind.SERVER}
_SCOPE: Final = InstrumentationScope("everturn")


def resource_of(service: str, version: str, instance: str) -> Resource:
    """Who speaks. Beside it what OTEL_RESOURCE_ATTRIBUTES says."""
    return Resource.create({"service.name": service, "service.version": version, "service.instance.id": instance})


class OtelSpans:
    """An exporter of spans, through the batches of the SDK."""

    def __init__(self, resource: Resource, exporter: SpanExporter) -> None:
        self._resource = resource
        self._batches = BatchSpanProcessor(
            exporter,
            max_queue_size=MOST_WAITING,
            schedule_delay_millis=DELAY * 1000,
            export_timeout_millis=TIMEOUT * 1000,
        )
        atexit.register(self.close)  # for a process that ends without saying so: the last second is in line

    def export(self, spans: Sequence[Span]) -> None:
        """Put them in line."""
        for span in spans:
            self._batches.on_end(readable(span, self._resource))

    def close(self) -> None:
        """Send what is in line, and stop."""
        atexit.unregister(self.close)
        self._batches.shutdown()


def readable(span: Span, resource: Resource) -> ReadableSpan:
    """A span as the SDK has it: one that is over."""
    return ReadableSpan(
        name=span.name,
        context=_context(span.place),
        parent=_context(span.parent, is_remote=True) if span.parent else None,
        resource=resource,
        attributes=span.attributes,
        events=[SdkEvent(moment.name, timestamp=_nanos(moment.at)) for moment in span.moments],
        links=[Link(_context(link)) for link in span.links],
        kind=_KINDS[span.kind],
        status=Status(StatusCode.ERROR, span.failed) if span.failed else Status(StatusCode.UNSET),
        start_time=_nanos(span.start),
        end_time=max(_nanos(span.end), _nanos(span.start)),  # the clocks of two machines
        instrumentation_scope=_SCOPE,
    )


def _context(place: Place, is_remote: bool = False) -> SpanContext:
    return SpanContext(place.trace, place.span, is_remote, TraceFlags(TraceFlags.SAMPLED))


def _nanos(seconds: float) -> int:
    return round(seconds * 1e6) * 1000  # as exact as a float of today is


class OtelMetrics:
    """The two histograms of the conventions out of spans, and all our own counts as they stand."""

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
                meter.create_observable_counter(name, [_reading(metrics, family)], description=family.text)
            elif family.kind == "gauge":
                meter.create_observable_gauge(name, [_reading(metrics, family)], description=family.text)

    def export(self, spans: Sequence[Span]) -> None:
        """Take note of how long they took, and what they used."""
        for span in spans:
            about = {
                name: value
                for name, value in span.attributes.items()
                if name in ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "error.type")
            }
            if "gen_ai.operation.name" not in about:
                continue
            self._seconds.record(max(span.end - span.start, 0.0), about)
            if about["gen_ai.operation.name"] == "chat":
                for kind in ("input", "output"):
                    used = span.attributes.get(f"gen_ai.usage.{kind}_tokens")
                    if isinstance(used, int) and used:
                        self._tokens.record(used, {**about, "gen_ai.token.type": kind})

    def close(self) -> None:
        """Send what there is, and stop."""
        self._provider.shutdown(timeout_millis=TIMEOUT * 1000)


def _reading(metrics: Metrics, family: Family) -> Callable[[CallbackOptions], Iterable[Observation]]:
    def read(options: CallbackOptions) -> Iterable[Observation]:
        for each, labels, value in metrics.items(family.kind):
            if each is family:
                yield Observation(value, dict(zip(family.labels, labels, strict=True)))

    return read


def span_exporter(endpoint: str, headers: dict[str, str]) -> SpanExporter:
    """To a collector at this address (without `/v1/traces`)."""
    return OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces", headers=headers, timeout=TIMEOUT)


def metric_reader(endpoint: str, headers: dict[str, str], seconds: float) -> PeriodicExportingMetricReader:
    """To the same, every so many seconds."""
    exporter = OTLPMetricExporter(f"{endpoint.rstrip('/')}/v1/metrics", headers=headers, timeout=TIMEOUT)
    return PeriodicExportingMetricReader(exporter, seconds * 1000, TIMEOUT * 1000)
