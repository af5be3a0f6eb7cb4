"""OpenTelemetry providers: gives spans to the `TracerProvider` and the `MeterProvider` of a program.

A span is created when its work is over, with the ids that every process computes from the log, so ids are not left to the
provider. Its sampler is: it is asked once for each trace, when the first span of the trace ends, because the turn's own
span, by which samplers usually decide, is the last one to be created.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Final
from weakref import WeakKeyDictionary

from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import Tracer as SdkTracer
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator, RandomIdGenerator
from opentelemetry.trace import Link, NonRecordingSpan, SpanKind, Status, StatusCode

from everturn.errors import ConfigError
from everturn.telemetry.ids import SpanKey
from everturn.telemetry.otel_meter import SpanMeter
from everturn.telemetry.otel_span import SPAN_KINDS, nanoseconds, span_context
from everturn.telemetry.span_types import Span

log = logging.getLogger(__name__)

SCOPE: Final = "everturn"
MOST_TRACES: Final = 4096  # traces whose sampling is remembered; of an older one the sampler is asked again
_NEXT: Final[ContextVar[SpanKey]] = ContextVar("everturn_next_span")
_meters: WeakKeyDictionary[metrics.MeterProvider, SpanMeter] = WeakKeyDictionary()


class _LogIds(IdGenerator):
    """The ids of the span that is being created."""

    def generate_span_id(self) -> int:
        key = _NEXT.get(None)
        return key.span if key is not None else RandomIdGenerator().generate_span_id()

    def generate_trace_id(self) -> int:
        key = _NEXT.get(None)
        return key.trace if key is not None else RandomIdGenerator().generate_trace_id()


class ProviderSpans:
    """Exports spans through a tracer provider; None is the global one, which may also be set later."""

    def __init__(self, provider: trace.TracerProvider | None = None) -> None:
        if provider is not None and not isinstance(provider, TracerProvider):
            raise ConfigError(
                f"{type(provider).__module__}.{type(provider).__qualname__} is not a tracer provider of "
                "opentelemetry-sdk: its spans cannot have the ids of the log; pass an "
                "opentelemetry.sdk.trace.TracerProvider"
            )
        self._own_provider, self._tracer = provider, None if provider is None else _tracer_of(provider)
        self._sampled: OrderedDict[int, bool] = OrderedDict()
        self._is_warned = False

    def export(self, spans: Sequence[Span]) -> None:
        """Create these spans, which are over."""
        tracer = self._tracer or self._find_tracer()
        if tracer is not None:
            for span in spans:
                if self._decide(tracer, span.key.trace, span.caller):
                    _create(tracer, span)

    def is_sampled(self, trace: int, caller: SpanKey | None) -> bool:
        """Whether the spans of a trace are recorded."""
        tracer = self._tracer or self._find_tracer()
        return tracer is not None and self._decide(tracer, trace, caller)

    def close(self) -> None:
        """Nothing: the provider belongs to the program, which shuts it down."""

    def _find_tracer(self) -> SdkTracer | None:
        """The tracer of the global provider; None while there is none, as for every library that uses the API."""
        provider = trace.get_tracer_provider()
        if isinstance(provider, TracerProvider):
            self._tracer = _tracer_of(provider)
            return self._tracer
        is_unset = isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider)
        if self._own_provider is None and not is_unset and not self._is_warned:
            self._is_warned = True
            log.warning("no spans: the global tracer provider (%s) is not of opentelemetry-sdk", type(provider))
        return None

    def _decide(self, tracer: SdkTracer, trace: int, caller: SpanKey | None) -> bool:
        if (known := self._sampled.get(trace)) is not None:
            return known
        context = _below(caller) if caller is not None else Context()
        result = tracer.sampler.should_sample(context, trace, "invoke_agent", SpanKind.INTERNAL, {}, ())
        self._sampled[trace] = is_sampled = result.decision.is_recording()
        if len(self._sampled) > MOST_TRACES:
            self._sampled.popitem(last=False)
        return is_sampled


def _tracer_of(provider: TracerProvider) -> SdkTracer | None:
    tracer = provider.get_tracer(SCOPE)
    if not isinstance(tracer, SdkTracer):  # OTEL_SDK_DISABLED
        return None
    tracer.id_generator = _LogIds()
    return tracer


def _below(parent: SpanKey) -> Context:
    return trace.set_span_in_context(NonRecordingSpan(span_context(parent, is_remote=True)), Context())


def _create(tracer: SdkTracer, span: Span) -> None:
    token = _NEXT.set(span.key)
    try:
        created = tracer.start_span(
            span.name,
            # Never None, which would be the current context: whatever happens to run while a span is created.
            context=_below(span.parent) if span.parent is not None else Context(),
            kind=SPAN_KINDS[span.kind],
            attributes=span.attributes,
            links=[Link(span_context(link)) for link in span.links],
            start_time=nanoseconds(span.start),
        )
    finally:
        _NEXT.reset(token)
    for moment in span.events:
        created.add_event(moment.name, timestamp=nanoseconds(moment.at))
    if span.failed:
        created.set_status(Status(StatusCode.ERROR, span.failed))
    created.end(end_time=max(nanoseconds(span.end), nanoseconds(span.start)))  # the clocks of two machines may differ


def meter_of(provider: metrics.MeterProvider | None = None) -> SpanMeter:
    """The instruments of a meter provider, created once; None is the global one, which may also be set later."""
    provider = provider or metrics.get_meter_provider()
    if provider not in _meters:
        _meters[provider] = SpanMeter(provider.get_meter(SCOPE))
    return _meters[provider]
