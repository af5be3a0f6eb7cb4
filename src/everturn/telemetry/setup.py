"""Telemetry setup: opens tracing and metrics from options, and provides the store observers and plugins they need.

seen = open_telemetry(options)
app = App(model, telemetry=seen)
...
await seen.aclose()
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Sequence
from importlib import metadata
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.commands import Send
from everturn.core.options import TurnOptions
from everturn.errors import ConfigError
from everturn.telemetry.logs import LogKind
from everturn.telemetry.metrics import METRICS
from everturn.telemetry.store_observer import S, StoreObserver, observe_store
from everturn.telemetry.trace_context import current_traceparent, enter_span
from everturn.telemetry.tracer import Tracer
from everturn.telemetry.turn_metrics import TurnMetrics

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from everturn.telemetry.metrics_port import MetricsPort


log = logging.getLogger(__name__)


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
    """The telemetry of an App: traces, metrics and log lines."""

    def __init__(self, tracing: Tracer | None = None, exposed: MetricsPort | None = None) -> None:
        self.turns, self.tracer, self.metrics_port = TurnMetrics(), tracing, exposed

    @property
    def observers(self) -> Sequence[StoreObserver]:
        """What sees the events that are appended to the store."""
        return (self.turns,) if self.tracer is None else (self.turns, self.tracer)

    @property
    def plugins(self) -> Sequence[object]:
        """The plugins it needs; they come after all others."""
        recorder = self.tracer.recorder if self.tracer is not None else None
        return (self.turns,) if recorder is None else (self.turns, recorder)

    def observe(self, store: S) -> S:
        """The same store, observed."""
        return observe_store(store, *self.observers)

    @classmethod
    def from_providers(
        cls,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        *,
        content: bool = False,
    ) -> Telemetry:
        """Telemetry for providers of OpenTelemetry; None is the global one. They stay the caller's to shut down.

        Raises:
            ConfigError: opentelemetry-sdk is not installed, or the tracer provider is not one of its own.
        """
        try:
            from everturn.telemetry import otel_provider
        except ModuleNotFoundError as error:
            raise _not_installed(error) from error
        METRICS.set("info", 1, _version())
        spans = otel_provider.ProviderSpans(tracer_provider)
        return cls(Tracer(spans, meter=otel_provider.meter_of(meter_provider), content=content))

    def with_caller(self, command: Send) -> Send:
        """The command with the current span as its caller, unless it names one, or is a sub-agent's."""
        options = command.options
        if self.tracer is None or options.trace or options.lineage is not None:
            return command
        trace = current_traceparent()
        return replace(command, options=replace(options, trace=trace)) if trace else command

    def enter_call(self, session: str, turn: str, options: TurnOptions, call: str) -> None:
        """Make the span of a call the current one of OpenTelemetry, so that a tool's own spans are its children."""
        try:
            if self.tracer is not None:
                enter_span(self.tracer.call_key(session, turn, options, call))
        except Exception:  # a call matters more than its trace
            log.exception("call %s runs without its span", call)

    async def finish_reads(self) -> None:
        """Wait for logs that are being read, so that the spans of all events so far exist."""
        if self.tracer is not None:
            await self.tracer.finish_reads()

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
        raise ConfigError("telemetry: `ratio` must be from 0 to 1, and `interval` more than 0 seconds")
    tracing = _tracing(options) if options.otlp else None
    if not options.expose:
        return Telemetry(tracing)
    from everturn.telemetry.metrics_port import MetricsPort  # a server of its own: only where it is wanted

    return Telemetry(tracing, MetricsPort(options.expose))


def _tracing(options: TelemetryOptions) -> Tracer:
    if not options.otlp.startswith(("http://", "https://")):
        raise ConfigError(f"telemetry: otlp={options.otlp!r} is not a URL; for example http://127.0.0.1:4318")
    try:
        from everturn.telemetry import otel
    except ModuleNotFoundError as error:
        raise _not_installed(error) from error
    resource = otel.resource_of(options.service, _version(), f"{socket.gethostname()}:{os.getpid()}")
    spans = otel.OtelSpans(resource, otel.span_exporter(options.otlp, options.headers))
    metrics = otel.OtelMetrics(resource, otel.metric_reader(options.otlp, options.headers, options.interval))
    return Tracer(spans, meter=metrics, content=options.content, ratio=options.ratio)


def _not_installed(error: ModuleNotFoundError) -> ConfigError:
    name = (error.name or "opentelemetry").partition(".")[0]
    return ConfigError(f"{name} is not installed; `pip install 'everturn[otel]'`")


def _version() -> str:
    try:
        return metadata.version("everturn")
    except metadata.PackageNotFoundError:  # run from a source folder
        return "0"
