"""OpenTelemetry metrics: the two histograms of the conventions, computed from spans, and all our own metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from everturn.telemetry.metric_families import ALL, MODEL_SECONDS, MetricFamily
from everturn.telemetry.metrics import METRICS, Metrics
from everturn.telemetry.span_types import Span

TOKENS: Final = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)


class SpanMeter:
    """Records spans with the instruments of a meter."""

    def __init__(self, meter: Meter, metrics: Metrics = METRICS) -> None:
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
        """Nothing: the provider of the meter sends what is left."""


def _observe_family(metrics: Metrics, family: MetricFamily) -> Callable[[CallbackOptions], Iterable[Observation]]:
    def observe(options: CallbackOptions) -> Iterable[Observation]:
        for series_family, labels, value in metrics.items(family.kind):
            if series_family is family:
                yield Observation(value, dict(zip(family.labels, labels, strict=True)))

    return observe
