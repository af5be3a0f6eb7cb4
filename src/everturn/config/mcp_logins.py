"""Logins of people to MCP servers: opens the encrypted store that all processes of the installation share."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from everturn.base_app import BaseApp
from everturn.config.load import LoadedConfig
from everturn.config.secret_box import open_secret_box
from everturn.config.tools import state_folder
from everturn.errors import ConfigError
from everturn.mcp.login_store import DeferredLogins, FileLogins, LoginStore, StoredLogins
from everturn.mcp.servers import McpServers

log = logging.getLogger(__name__)


async def open_logins(app: BaseApp, loaded: LoadedConfig, environ: Mapping[str, str], key_file: Path | None) -> None:
    """Open the logins of people: in the store of the sessions, encrypted with the key of the settings.

    Without such a key they are in files of this machine, as the logins of the installation are.
    """
    waiting = [
        source.login_store
        for source in app.sources
        if isinstance(source, McpServers) and isinstance(source.login_store, DeferredLogins)
    ]
    if not waiting:
        return
    logins: LoginStore
    try:
        box = await open_secret_box(loaded, environ, app.store, key_file)
        logins = StoredLogins(app.store.user_memory, box, app.clock.now)
    except ConfigError as error:
        if any(table.auth == "oauth" for table in loaded.config.mcp.values()):
            log.warning("logins of people to MCP servers are kept on this machine only: %s", error)
        logins = FileLogins(state_folder(environ) / "mcp-tokens" / "people")
    for deferred in waiting:
        deferred.open(logins)
