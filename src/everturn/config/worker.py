"""Worker from a configuration: builds the runtime of a cluster's worker, `everturn worker --config FILE`.

Workers that share a socket are separate processes; an environment variable passes them the file.
"""

from __future__ import annotations

import asyncio
import logging
import os
from typing import Any, Final

from everturn.app import App
from everturn.config.build import app_factory, configured_telemetry
from everturn.config.load import load_config
from everturn.config.models import default_model
from everturn.config.reload import SETTINGS_PAUSE, ConfigReloader
from everturn.config.retention_job import erase_temporary_sessions, run_maintenance
from everturn.errors import StoreUnavailable
from everturn.telemetry import logs
from everturn.telemetry.service_gauges import watch_services

log = logging.getLogger(__name__)
FILE: Final = "EVERTURN_CONFIG"
TARGET: Final = "everturn.config.worker:make"
_tasks: set[asyncio.Task[None]] = set()  # asyncio may collect a task without a reference


def make(**ports: Any) -> App:
    """Return the runtime of the file that the environment names; its rules are reloaded when they change.

    Raises:
        ConfigError: something is invalid, or not available here.
    """
    named = os.environ.get(FILE) or None
    loaded, model = load_config(named), default_model(os.environ)
    logs.setup(loaded.config.telemetry.logs, loaded.config.telemetry.level.upper())
    app = app_factory(loaded, model, os.environ, configured_telemetry(loaded, os.environ))(**ports)
    reloading = ConfigReloader(loaded, app, None, model, named)
    if loaded.config.settings.editable:
        app.permissions.hold()  # unfinished turns continue before the stored rules are read
    loop = asyncio.get_running_loop()

    async def follow_settings() -> None:
        while True:
            try:
                await reloading.open_settings()
                break
            except StoreUnavailable as error:
                log.warning("the settings of administrators cannot be read yet, so calls wait: %s", error)
                await asyncio.sleep(SETTINGS_PAUSE)
        await reloading.watch_settings()

    for work in (
        reloading.watch(),
        follow_settings(),
        run_maintenance(app, loaded.config.store.retention_days),
        erase_temporary_sessions(app),
        watch_services(app),
    ):
        task = loop.create_task(work)
        _tasks.add(task)
        task.add_done_callback(_tasks.discard)
    return app
