"""Options → what a process needs to be seen: watchers of its store, plugins of its turns, and how all that ends.

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
from everturn.telemetry.exposing import Exposed
from everturn.telemetry.logs import LogKind
from everturn.telemetry.metrics import METRICS
from everturn.telemetry.tracing import Tracing
from everturn.telemetry.turns import TurnMetrics
from everturn.telemetry.watching import Watcher


class TelemetryOptions(Struct, frozen=True):
    """Where traces go, what is in them, and how lines are logged."""

    otlp: str = ""  # the address of a collector that takes OTLP over HTTP; "": none
    headers: dict[str, str] = {}  # for the collector, such as a key; values are secrets
    content: bool = False  # whether spans hold what was said; secrets and private values never
    ratio: float = 1.0  # the part of all turns that is traced
    interval: float = 30.0  # seconds between two reports of metrics to the collector
    service: str = "everturn"
    logs: LogKind = "text"
    level: str = "info"
    expose: str = ""  # host:port at which a worker tells its metrics, to everybody; "": nowhere


class Telemetry:
    """What a process is seen by."""

    def __init__(self, tracing: Tracing | None = None, exposed: Exposed | None = None) -> None:
        self.turns, self.tracing, self.exposed = TurnMetrics(), tracing, exposed
        self.watchers: Sequence[Watcher] = (self.turns, tracing) if tracing else (self.turns,)
        self.plugins: Sequence[object] = (self.turns,)

    async def aclose(self) -> None:
        """Send what is left. After the runtime was closed: its last events are told before."""
        if self.exposed is not None:
            await asyncio.to_thread(self.exposed.close)
        if self.tracing is not None:
            await self.tracing.aclose()


def open_telemetry(options: TelemetryOptions | None = None) -> Telemetry:
    """Begin to be seen.

    Raises:
        ConfigError: a collector is named, and what speaks to it is not installed; or an option makes no sense.
    """
    options = options or TelemetryOptions()
    METRICS.set("info", 1, _version())
    if not 0 <= options.ratio <= 1 or options.interval <= 0:
        raise ConfigError("telemetry: `ratio` is from 0 to 1, and `interval` more than 0 seconds")
    tracing = _tracing(options) if options.otlp else None
    return Telemetry(tracing, Exposed(options.expose) if options.expose else None)


def _tracing(options: TelemetryOptions) -> Tracing:
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
    return Tracing(spans, meter=metrics, content=options.content, ratio=options.ratio)


def _version() -> str:
    try:
        return metadata.version("everturn")
    except metadata.PackageNotFoundError:  # run from a folder
        return "0"
