"""Telemetry: traces, metrics and logs for operators. They contain no message content, unless tracing is configured to.

- `setup`: opens telemetry from its options
- `store_observer`: a store wrapper that reports appended events
- `turn_metrics`: counts events of turns
- `metrics`: counters, gauges and histograms of this process, in Prometheus format
- `metric_families`: the table of all metrics and their labels
- `service_gauges`: gauges that are polled: the store, NATS and Restate
- `process`: CPU, memory and file descriptors of this process
- `metrics_port`: an HTTP port with the metrics of a worker
- `tracer`: turns events into spans as they are written
- `spans`: the spans of a turn, computed from its log
- `span_types`: `Span`, `SpanEvent` and `OpenCall`
- `ids`: deterministic trace and span ids
- `otel_names`: attribute names of the OpenTelemetry conventions
- `otel`: exports spans and metrics through the OpenTelemetry SDK
- `logs`: log formatters, as JSON or text
- `redact`: removes secrets from log texts
"""
