"""Telemetry: traces, metrics and logs for operators. They contain no message content, unless tracing is configured to.

    everturn.telemetry.instrument()  # spans and metrics of every App, with the program's own OpenTelemetry providers

- `instrumentation`: `instrument`, for programs that use the library
- `setup`: opens telemetry from its options, or for OpenTelemetry providers
- `store_observer`: a store wrapper that reports appended events
- `turn_metrics`: counts events of turns
- `metrics`: counters, gauges and histograms of this process, in Prometheus format
- `metric_families`: the table of all metrics and their labels
- `service_gauges`: gauges that are polled: the store, NATS and the engine
- `process`: CPU, memory and file descriptors of this process
- `metrics_port`: an HTTP port with the metrics of a worker
- `tracer`: turns events into spans as they are written
- `spans`: the spans of a turn, computed from its log
- `span_types`: `Span`, `SpanEvent` and `OpenCall`
- `ids`: deterministic trace and span ids
- `trace_context`: the caller's span, which becomes the parent of a turn's
- `request_content`: a request as it is sent, for its span, if content is wanted
- `otel_names`: attribute names of the OpenTelemetry conventions
- `otel`: exports spans and metrics to a collector, through the OpenTelemetry SDK
- `otel_provider`: exports spans and metrics through a program's own OpenTelemetry providers
- `otel_meter`: metrics with OpenTelemetry instruments
- `otel_span`: spans in OpenTelemetry's types
- `logs`: log formatters, as JSON or text
- `redact`: removes secrets from log texts
"""

from typing import TYPE_CHECKING, Any

from everturn.telemetry.instrumentation import Instrumentation, instrument, uninstrument

if TYPE_CHECKING:  # `_HOMES` says the same
    from everturn.telemetry.setup import Telemetry, TelemetryOptions, open_telemetry

# Imported when they are first asked for: an App that nobody observes needs none of them.
_HOMES = dict.fromkeys(("Telemetry", "TelemetryOptions", "open_telemetry"), "everturn.telemetry.setup")

__all__ = ["Instrumentation", "Telemetry", "TelemetryOptions", "instrument", "open_telemetry", "uninstrument"]


def __getattr__(name: str) -> Any:
    """Import what was asked for."""
    from importlib import import_module

    if name in _HOMES:
        found = getattr(import_module(_HOMES[name]), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
