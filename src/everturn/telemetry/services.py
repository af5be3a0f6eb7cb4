"""Gauges that are polled: counts of the whole store, and whether the services a process needs answer.

`gates_waiting`, `sessions_stuck` and `wake_lag_seconds` are of the store, so every process says the same of them.
`service_up` is how this process sees the database, NATS and Restate, as far as it uses them.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final, Protocol

from everturn.core.ports import Clock, Store
from everturn.telemetry.metrics import METRICS, Metrics

log = logging.getLogger(__name__)

PAUSE: Final = 10.0  # seconds between two looks
PATIENCE: Final = 5.0  # seconds in which a service must answer


class Standing(Protocol):
    """What a process stands on: a `Runtime`, mostly."""

    store: Store
    bus: Any
    engine: Any
    clock: Clock


async def look_at_services(on: Standing, metrics: Metrics = METRICS) -> None:
    """Ask once. A service that does not answer is told by its measure, and by nothing else."""
    await asyncio.gather(_store(on, metrics), _engine(on.engine, metrics))
    # A bus that has a connection to somebody says whether it is up; one in memory has none.
    is_up = getattr(on.bus, "is_up", None)
    if is_up is not None:
        metrics.set("service_up", int(bool(is_up)), "nats")


async def watch_services(on: Standing, metrics: Metrics = METRICS) -> None:
    """Ask again and again, until this is cancelled."""
    while True:
        try:
            await look_at_services(on, metrics)
        except Exception:
            log.exception("the services could not be looked at, and are looked at again")
        await asyncio.sleep(PAUSE)


async def _store(on: Standing, metrics: Metrics) -> None:
    try:
        async with asyncio.timeout(PATIENCE):
            tally = await on.store.tally()
    except Exception as error:
        log.debug("the store did not answer: %r", error)
        metrics.set("service_up", 0, "database")
        return
    metrics.set("service_up", 1, "database")
    metrics.set("gates_waiting", tally.gates)
    metrics.set("sessions_stuck", tally.stuck)
    metrics.set("wake_lag_seconds", max(0.0, on.clock.now() - tally.oldest) if tally.oldest else 0.0)


async def _engine(engine: Any, metrics: Metrics) -> None:
    health = getattr(engine, "health", None)
    if health is None:  # it is in this process
        return
    try:
        async with asyncio.timeout(PATIENCE):
            found = await health()
    except Exception as error:
        log.debug("Restate did not answer: %r", error)
        metrics.set("service_up", 0, "restate")
        return
    metrics.set("service_up", int(found.ingress and found.admin), "restate")
