"""A worker of a cluster that is made of a configuration: `everturn worker --config FILE`.

Workers that share a socket are processes of their own, and are told by a variable which file is meant.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any, Final

from everturn.config.building import maker, telemetry_of
from everturn.config.keeping import keep_house
from everturn.config.loading import load
from everturn.config.models import usual_model
from everturn.config.reloading import Reloading
from everturn.telemetry import logs
from everturn.telemetry.services import watch_services
from everturn.wiring import Runtime

FILE: Final = "EVERTURN_CONFIG"
TARGET: Final = "everturn.config.working:make"
_tasks: set[asyncio.Task[None]] = set()  # a task that nobody holds may be let go of


def make(**ports: Any) -> Runtime:
    """The runtime of the file that the environment names; its rules are read anew when they change.

    Raises:
        ConfigError: something of it makes no sense, or cannot be had here.
    """
    named = os.environ.get(FILE) or None
    loaded, model = load(named), usual_model(os.environ)
    logs.setup(loaded.config.telemetry.logs, loaded.config.telemetry.level.upper())
    runtime = maker(loaded, model, os.environ, telemetry_of(loaded, os.environ))(**ports)
    reloading = Reloading(loaded, runtime, None, model, named)
    loop = asyncio.get_running_loop()
    for work in (reloading.watch(), keep_house(runtime, loaded.config.store.keep), watch_services(runtime)):
        task = loop.create_task(work)
        _tasks.add(task)
        task.add_done_callback(_tasks.discard)
    return runtime
