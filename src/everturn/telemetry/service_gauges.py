"""Gauges that are polled: counts of the whole store, and whether the services that a process uses answer.

`gates_waiting`, `sessions_quarantined` and `wake_lag_seconds` are of the store, so every process reports the same.
`service_up` is how this process sees the database, NATS and the engine (Restate or Temporal), as far as it uses them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import Any, Final, Protocol

from everturn.core.ports import Clock
from everturn.core.store_ports import Store
from everturn.errors import EverturnError, UnknownSession
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


async def check_services(on: ServiceStatus, patience: float) -> dict[str, bool]:
    """Whether the store, the engine and the bus answer; an engine or a bus in this process always does.

    Each is asked over the connection that it is used with: a service that listens and refuses the login does not answer.
    """
    store, engine = await asyncio.gather(_answers(_head(on.store), patience), _answers(_health(on.engine), patience))
    return {"store": store, "engine": engine, "bus": bool(getattr(on.bus, "is_up", True))}


async def _answers(check: Awaitable[bool], patience: float) -> bool:
    try:
        async with asyncio.timeout(patience):
            return await check
    except (EverturnError, TimeoutError, OSError) as error:
        log.debug("a service did not answer: %r", error)
        return False


async def _head(store: Store) -> bool:
    try:
        await store.head("readyz")
    except UnknownSession:
        pass  # the store has answered
    return True


async def _health(engine: Any) -> bool:
    health = getattr(engine, "health", None)
    if health is None:  # it runs in this process, or in the store
        return True
    status = await health()
    return bool(status.ingress and status.admin)


async def watch_services(on: ServiceStatus, metrics: Metrics = METRICS) -> None:
    """Poll until cancelled."""
    while True:
        try:
            await poll_services(on, metrics)
        except Exception:
            log.exception("the health of the services could not be checked; trying again")
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
