"""`everturn serve`: starts the HTTP server of a configuration, and prints its address and how to log in."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import re
from contextlib import AsyncExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from everturn.cli.config_options import config_file
from everturn.cli.store.local_server import OFFLINE_HINT, is_unnamed_demo
from everturn.cluster import Cluster
from everturn.cluster.workers import loop_factory, tune_garbage_collector
from everturn.config.build import (
    CommandLineOverrides,
    configured_cluster,
    configured_store,
    open_server,
    server_options,
    token_file,
)
from everturn.config.load import LoadedConfig, load_config
from everturn.config.models import default_model
from everturn.config.reload import ConfigReloader
from everturn.config.retention_job import erase_temporary_sessions, run_maintenance
from everturn.config.worker import FILE, TARGET
from everturn.core.rules.urls import is_loopback
from everturn.errors import ConfigError
from everturn.models.offline import OFFLINE
from everturn.stores.migration import require_current_schema
from everturn.telemetry import logs
from everturn.watchdog import LoopWatchdog

if TYPE_CHECKING:
    from everturn.access.context.server_context import ServerContext
    from everturn.config.server_options import ServerOptions
    from everturn.mcp.servers import McpServers

log = logging.getLogger(__name__)

NEEDED: Final = ("starlette", "uvicorn", "jwt")
FOREVER = 1e9  # seconds


def serve(options: argparse.Namespace) -> int:
    """Serve until the process is told to stop.

    Raises:
        ConfigError: a package is missing, or the configuration is invalid.
    """
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise ConfigError(f"{', '.join(missing)} {verb} not installed; `pip install 'everturn[server]'`")
    loaded = load_config(config_file(options))
    logs.setup("json" if options.json_logs else loaded.config.telemetry.logs, loaded.config.telemetry.level.upper())
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_serve(options, loaded))
    return 0


async def _serve(options: argparse.Namespace, loaded: LoadedConfig) -> None:
    from everturn.access.auth.authentication import Authenticator
    from everturn.cli.store.connection import StoreOwnerAuth
    from everturn.cli.store.handover import take_store
    from everturn.cli.store.server import sidecar_path
    from everturn.core.tenants.accounts import LOCAL
    from everturn.server import serve
    from everturn.server.file_descriptors import fit_connections
    from everturn.server.route import Route

    places = {name: getattr(options, name) for name in ("database", "restate", "admin", "temporal", "nats")}
    if not options.cluster and (named := [name for name, value in places.items() if value]):
        raise ConfigError(f"--{named[0]} is for a node of a cluster; add --cluster")
    overrides = CommandLineOverrides(
        options.host,
        options.port,
        options.store,
        options.model,
        places if options.cluster else None,
        holds_calls=True,
    )
    server = server_options(loaded, overrides, os.environ)
    store = "" if options.cluster else configured_store(loaded, overrides.store, os.environ)
    if not loaded.config.store.migrate and store != "memory":
        await require_current_schema(store or configured_cluster(loaded, places, os.environ).database)
    async with AsyncExitStack() as stack:
        takeover, routes = None, list[Route]()
        if store in ("", "memory"):
            context = await stack.enter_async_context(open_server(loaded, overrides))
            authenticator = Authenticator(context.accounts, context.app.clock, server.oidc)
        else:
            takeover = await stack.enter_async_context(
                take_store(sidecar_path(store, os.environ), lambda: open_server(loaded, overrides))
            )
            context, routes = takeover.context, takeover.routes
            authenticator = StoreOwnerAuth(context, takeover.token, server.oidc)
        token = token_file(loaded, store, os.environ)
        try:
            token.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            await authenticator.local_token(token)
        except OSError as error:
            why = f"{token} cannot be made: {error.strerror}; say `token_file` under [server]"
            raise ConfigError(why) from None
        link = "" if _is_output_logged(options, loaded) else await authenticator.login_link(LOCAL, "local")
        model = overrides.model or default_model(os.environ)
        reloading = ConfigReloader(loaded, context.app, context, model, config_file(options))
        is_file = store not in ("", "memory") and "://" not in store
        await reloading.open_settings(Path(f"{store}.settings-key") if is_file else None)
        tasks = [asyncio.create_task(reloading.watch(FOREVER if options.no_reload else 1.0))]
        tasks.append(asyncio.create_task(reloading.watch_settings()))
        if not options.cluster:  # in a cluster the workers do this
            tasks.append(asyncio.create_task(run_maintenance(context.app, loaded.config.store.retention_days)))
            tasks.append(asyncio.create_task(erase_temporary_sessions(context.app)))
        server, address_path = fit_connections(server), address_file(token)

        def ready(address: str) -> None:
            write_address_file(address_path, address)
            if takeover is not None:
                takeover.publish_address(local_address(address, server))
            is_unnamed = is_unnamed_demo(loaded, overrides.model)
            for line in render_startup_message(address, link, token, context, server.host, is_unnamed=is_unnamed):
                print(line, flush=True)

        # It does not end the process, because no other one could continue its turns. Where the engine is PostgreSQL
        # another one can: the app has a watchdog of its own, which ends it later.
        watchdog = LoopWatchdog(loaded.config.cluster.loop_timeout, ends=False)
        watchdog.start()
        tune_garbage_collector()
        try:
            await serve.serve(context, authenticator, server, ready, routes)
        finally:
            watchdog.stop()
            address_path.unlink(missing_ok=True)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _is_output_logged(options: argparse.Namespace, loaded: LoadedConfig) -> bool:
    """Whether the output goes to a journal or a log collector, whose readers could all use a login link in it."""
    is_json = options.json_logs or loaded.config.telemetry.logs == "json"
    return options.cluster or is_json or "JOURNAL_STREAM" in os.environ


def prepare_worker(options: argparse.Namespace, addresses: dict[str, str]) -> tuple[str, Cluster]:
    """Return the target that builds the runtime of a configured worker, and the addresses of its cluster."""
    file = config_file(options)
    loaded = load_config(file)
    logs.setup(loaded.config.telemetry.logs, loaded.config.telemetry.level.upper())
    if file is not None:
        os.environ[FILE] = os.path.abspath(file)  # for workers in processes of their own
    cluster = configured_cluster(loaded, addresses, os.environ, listen="127.0.0.1:9080")
    if not loaded.config.store.migrate:
        asyncio.run(require_current_schema(cluster.database))
    return TARGET, replace(cluster, writes=options.writes or cluster.writes)


def address_file(token: Path) -> Path:
    """Return the file in which a running server publishes its address, for `everturn login`."""
    return token.with_name("server.address")


def local_address(address: str, how: ServerOptions) -> str:
    """Return the address by which processes on this machine reach the server, whatever its public URL."""
    if how.public_url:
        address = f"http://{how.host}:{how.port}"
    return re.sub(r"^http://(?:0\.0\.0\.0|\[::\]|::)(?=:\d+$)", "http://127.0.0.1", address)


def write_address_file(place: Path, address: str) -> None:
    """Write the address file. If it cannot be written, the server runs all the same."""
    try:
        partial = place.with_name(f".{place.name}.{os.getpid()}")
        partial.write_text(f"{address}\n", encoding="utf-8")
        os.replace(partial, place)
    except OSError as error:
        log.warning("%s cannot be written, so `everturn login` needs --url: %s", place, error.strerror)


def mcp_sources(context: ServerContext) -> list[McpServers]:
    """Return the MCP servers of the configuration."""
    if not context.app.sources:
        return []
    from everturn.mcp.servers import McpServers  # loaded only where there are MCP servers

    return [source for source in context.app.sources if isinstance(source, McpServers)]


def render_startup_message(
    address: str, link: str, token: Path, context: ServerContext, host: str, *, is_unnamed: bool
) -> list[str]:
    """Return the lines that `everturn serve` prints at its start."""
    agent = context.agents.get("")
    # The path in quotes, whatever is in it: this line is pasted into a shell.
    bearer = "-H \"Authorization: Bearer $(cat '{}')\"".format(str(token).replace("'", "'\\''"))
    lines = [
        f"Everturn serves at {address}",
        f"  agent   {agent.name} (model {agent.options.model})",
        f"  log in  {address}/login?token={link}  (works once, within ten minutes; `everturn login` makes another)"
        if link
        else "  log in  run `everturn login`; no link is printed here, because this output is logged",
        f"  token   {token}",
        f"  try     curl -s {address}/api/sessions {bearer} \\",
        "            -H 'Content-Type: application/json' -d '{\"text\": \"What time is it?\"}'",
        "  answer  replace SESSION with the session in the response:",
        f"            curl -s {address}/api/sessions/SESSION/messages {bearer}",
    ]
    for status in (status for source in mcp_sources(context) for status in source.status()):
        later = "; its tools follow when it is ready" if status.state == "connecting" else ""
        lines.append(f"  mcp     {status.name}: {status.state}{f' ({status.reason})' if status.reason else ''}{later}")
    if is_unnamed and agent.options.model == OFFLINE:
        lines.append(f"  {OFFLINE_HINT}")
    if not is_loopback(host):
        lines.append(f"  Warning: {host} can be reached from other machines, in plain HTTP. Put TLS in front of it.")
    return lines
