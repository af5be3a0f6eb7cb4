"""Gauges that are polled: counts of the whole store, and whether the services that a process uses answer.

`gates_waiting`, `sessions_quarantined` and `wake_lag_seconds` are of the store, so every process reports the same.
`service_up` is how this process sees the database, NATS and the engine (Restate or Temporal), as far as it uses them.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final, Protocol

from everturn.core.ports import Clock
from everturn.core.store_ports import Store
from everturn.telemetry.metrics import METRICS, Metrics

log = logging.getLogger(__name__)

PAUSE: Final = 10.0  # seconds between two polls
PATIENCE: Final = 5.0  # seconds in which a service must answer


class ServiceStatus(Protocol):
    """The services of a process: usually a `App`."""

    store: Store
    bus: Any
    engine: Any
    clock: Clock


async def poll_services(on: ServiceStatus, metrics: Metrics = METRICS) -> None:
    """Poll once. A service that does not answer is reported by its gauge, and by nothing else."""
    await asyncio.gather(_store(on, metrics), _engine(on.engine, metrics))
    # A bus with a connection tells whether it is up; the one in memory has none.
    is_up = getattr(on.bus, "is_up", None)
    if is_up is not None:
        metrics.set("service_up", int(bool(is_up)), getattr(on.bus, "service", "nats"))


async def watch_services(on: ServiceStatus, metrics: Metrics = METRICS) -> None:
    """Poll until cancelled."""
    while True:
        try:
            await poll_services(on, metrics)
        except Exception:
            log.exception("the services could not be looked at, and are looked at again")
        await asyncio.sleep(PAUSE)


async def _store(on: ServiceStatus, metrics: Metrics) -> None:
    try:
        async with asyncio.timeout(PATIENCE):
            tally = await on.store.count_all()
    except Exception as error:
        log.debug("the store did not answer: %r", error)
        metrics.set("service_up", 0, "database")
        return
    metrics.set("service_up", 1, "database")
    metrics.set("gates_waiting", tally.gates)
    metrics.set("sessions_quarantined", tally.quarantined)
    metrics.set("wake_lag_seconds", max(0.0, on.clock.now() - tally.oldest) if tally.oldest else 0.0)


async def _engine(engine: Any, metrics: Metrics) -> None:
    health = getattr(engine, "health", None)
    if health is None:  # it runs in this process
        return
    try:
        async with asyncio.timeout(PATIENCE):
            status = await health()
    except Exception as error:
        log.debug("%s did not answer: %r", engine.service_name, error)
        metrics.set("service_up", 0, engine.service_name)
        return
    metrics.set("service_up", int(status.is_up), engine.service_name)
