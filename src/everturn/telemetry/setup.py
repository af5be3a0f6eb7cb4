"""Telemetry setup: opens tracing and metrics from options, and provides the store observers and plugins they need.

seen = telemetry.open_telemetry(options)
runtime = Runtime(model, store=watched(store, *seen.watchers), plugins=[*seen.plugins])
...
await seen.aclose()
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence
from importlib import metadata

from msgspec import Struct

from everturn.errors import ConfigError
from everturn.telemetry.logs import LogKind
from everturn.telemetry.metrics import METRICS
from everturn.telemetry.metrics_port import MetricsPort
from everturn.telemetry.store_observer import StoreObserver
from everturn.telemetry.tracer import Tracer
from everturn.telemetry.turn_metrics import TurnMetrics


class TelemetryOptions(Struct, frozen=True):
    """Where traces go, what they contain, and how log lines are formatted."""

    otlp: str = ""  # the URL of a collector for OTLP over HTTP; "": none
    headers: dict[str, str] = {}  # for the collector, such as an API key; values are secrets
    content: bool = False  # whether spans contain messages; secrets and private values never
    ratio: float = 1.0  # the share of turns that is traced
    interval: float = 30.0  # seconds between two exports of metrics to the collector
    service: str = "everturn"
    logs: LogKind = "text"
    level: str = "info"
    expose: str = ""  # host:port at which a worker serves its metrics, without authentication; "": nowhere


class Telemetry:
    """The open telemetry of a process."""

    def __init__(self, tracing: Tracer | None = None, exposed: MetricsPort | None = None) -> None:
        self.turns, self.tracer, self.metrics_port = TurnMetrics(), tracing, exposed
        self.observers: Sequence[StoreObserver] = (self.turns, tracing) if tracing else (self.turns,)
        self.plugins: Sequence[object] = (self.turns,)

    async def aclose(self) -> None:
        """Send what is left. Call it after the runtime was closed, whose last events are reported before."""
        if self.metrics_port is not None:
            await asyncio.to_thread(self.metrics_port.close)
        if self.tracer is not None:
            await self.tracer.aclose()


def open_telemetry(options: TelemetryOptions | None = None) -> Telemetry:
    """Open telemetry.

    Raises:
        ConfigError: a collector is configured without the OpenTelemetry packages, or an option is invalid.
    """
    options = options or TelemetryOptions()
    METRICS.set("info", 1, _version())
    if not 0 <= options.ratio <= 1 or options.interval <= 0:
        raise ConfigError("telemetry: `ratio` is from 0 to 1, and `interval` more than 0 seconds")
    tracing = _tracing(options) if options.otlp else None
    return Telemetry(tracing, MetricsPort(options.expose) if options.expose else None)


def _tracing(options: TelemetryOptions) -> Tracer:
    if not options.otlp.startswith(("http://", "https://")):
        raise ConfigError(f"telemetry: otlp={options.otlp!r} is no address; for example http://127.0.0.1:4318")
    try:
        from everturn.telemetry import otel
    except ModuleNotFoundError as error:
        name = (error.name or "opentelemetry").partition(".")[0]
        raise ConfigError(f"{name} is not installed; `pip install 'everturn[otel]'`") from error
    resource = otel.resource_of(options.service, _version(), f"{socket.gethostname()}:{os.getpid()}")
    spans = otel.OtelSpans(resource, otel.span_exporter(options.otlp, options.headers))
    metrics = otel.OtelMetrics(resource, otel.metric_reader(options.otlp, options.headers, options.interval))
    return Tracer(spans, meter=metrics, content=options.content, ratio=options.ratio)


def _version() -> str:
    try:
        return metadata.version("everturn")
    except metadata.PackageNotFoundError:  # run from a source folder
        return "0"
