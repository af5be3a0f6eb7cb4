"""Worker process of a campaign: `python -m tools.chaos.worker CONFIG`.

It answers the scenarios, records its effects in the ledger, and follows its fault plan.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Awaitable, Callable

import msgspec
from msgspec import Struct

from everturn import failpoints
from everturn.app import App
from everturn.cluster import Cluster
from everturn.cluster.workers import loop_factory
from everturn.core.ports import Bus, Engine
from everturn.core.store_ports import Store
from tools.chaos.ledger import EffectLedger
from tools.chaos.plan import FaultPlan, install_from_environment
from tools.chaos.sabotage import SABOTAGES
from tools.chaos.scenario import TOOL_TIME, ScenarioModel, make_tools
from tools.chaos.versions import pretend

READY, ARMED = "ready", "armed"


class WorkerConfig(Struct, frozen=True):
    """The settings of a worker."""

    name: str
    cluster: Cluster
    ledger: str
    plan: str = ""  # a file with a fault plan, to be read on SIGUSR1
    pace: float = 0.0
    pause: float = TOOL_TIME
    sabotage: str = ""  # a deliberate bug, to test the checks
    version: int = 0  # of the log format that it simulates; 0: this one


def record_drives(engine: Engine, ledger: EffectLedger) -> None:
    """Have each drive begin with a line of the ledger: a kill hits a session also before its driver has done anything."""
    serve = engine.serve

    async def serve_recorded(drive: Callable[[str], Awaitable[None]]) -> None:
        async def recorded(session: str) -> None:
            ledger.write("drive", session=session)
            await drive(session)

        await serve(recorded)

    engine.serve = serve_recorded


def main() -> None:
    """Work until stopped."""
    config = msgspec.json.decode(sys.argv[1], type=WorkerConfig)
    logging.basicConfig(level=logging.WARNING, format=f"{config.name} %(asctime)s %(name)s %(message)s")
    pretend(config.version)
    if config.sabotage:
        SABOTAGES[config.sabotage]()
    ledger = EffectLedger(config.ledger, config.name)

    def make(*, store: Store, bus: Bus, engine: Engine) -> App:
        record_drives(engine, ledger)
        model = ScenarioModel(ledger, config.pace)
        return App(model, tools=make_tools(ledger, config.pause), store=store, bus=bus, engine=engine)

    def arm() -> None:
        """Follow another plan from now on; points are counted anew."""
        with open(config.plan, encoding="utf-8") as file:
            text = file.read()
        failpoints.install_plan(FaultPlan.parse(text) if text else None)
        print(ARMED, flush=True)

    def ready() -> None:
        install_from_environment()
        if config.plan:
            asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, arm)
        print(READY, flush=True)

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(config.cluster.work(make, ready))


if __name__ == "__main__":
    main()
