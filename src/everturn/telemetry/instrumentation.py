"""Instrumentation of a program that uses the library: every App made afterwards creates spans and metrics.

    from everturn import telemetry

    telemetry.instrument()                                    # OpenTelemetry's global providers
    telemetry.instrument(tracer_provider=mine, content=True)  # or the program's own

Imports nothing of OpenTelemetry until it is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from everturn.telemetry.setup import Telemetry

_installed: list[Instrumentation] = []  # the last one counts


class Instrumentation(Struct, frozen=True, eq=False):
    """The result of `instrument`; call `uninstrument()` to remove the instrumentation.

    It is also a context manager, for tests.
    """

    tracer_provider: TracerProvider | None
    meter_provider: MeterProvider | None
    content: bool

    def uninstrument(self) -> None:
        """Apps made from now on are not observed; present ones stay observed. Twice is harmless."""
        _installed[:] = [other for other in _installed if other is not self]

    def __enter__(self) -> Instrumentation:
        return self

    def __exit__(self, *error: object) -> None:
        self.uninstrument()

    def open(self) -> Telemetry:
        """The telemetry of one App."""
        from everturn.telemetry.setup import Telemetry

        return Telemetry.from_providers(self.tracer_provider, self.meter_provider, content=self.content)


def instrument(
    tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None, content: bool = False
) -> Instrumentation:
    """Observe every App that this process makes from now on, also those with a private store in memory.

    Without providers, OpenTelemetry's global ones are used, which may also be set later. `content` puts messages into
    spans: what people and models write, and each request as it is sent; never secrets or private values. A second call
    replaces the first.

    Raises:
        ConfigError: opentelemetry-sdk is not installed, or the tracer provider is not one of its own.
    """
    installed = Instrumentation(tracer_provider, meter_provider, content)
    installed.open()  # whatever is wrong is better reported now
    _installed[:] = [installed]
    return installed


def uninstrument() -> None:
    """Take `instrument` back. Harmless if it was not called."""
    _installed.clear()


def open_installed() -> Telemetry | None:
    """Telemetry for a new App, if `instrument` was called."""
    return _installed[-1].open() if _installed else None
