"""`everturn serve`: a configuration → a server that says where it is and how one gets in."""

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

from everturn.cluster import Cluster
from everturn.cluster.processes import loop_factory
from everturn.cluster.watchdog import LoopWatchdog
from everturn.config.building import Given, cluster_of, open_house, server_options, store_of, token_file
from everturn.config.checking import is_loopback
from everturn.config.keeping import keep_house
from everturn.config.loading import Loaded, load
from everturn.config.models import usual_model
from everturn.config.reloading import Reloading
from everturn.config.working import FILE, TARGET
from everturn.errors import ConfigError
from everturn.models.offline import OFFLINE
from everturn.telemetry import logs

if TYPE_CHECKING:
    from everturn.access.access import House
    from everturn.config.options import ServerOptions

log = logging.getLogger(__name__)

NEEDED: Final = ("starlette", "uvicorn", "jwt")
FOREVER = 1e9  # seconds


def config_file(options: argparse.Namespace) -> str | None:
    """The file that is meant, if one is named."""
    return options.config or os.environ.get(FILE) or None


def serve(options: argparse.Namespace) -> int:
    """Serve until told to leave."""
    gone = [name for name in NEEDED if find_spec(name) is None]
    if gone:
        are = "is" if len(gone) == 1 else "are"
        raise ConfigError(f"{', '.join(gone)} {are} not installed; `pip install 'everturn[server]'`")
    loaded = load(config_file(options))
    logs.setup("json" if options.json_logs else loaded.config.telemetry.logs, loaded.config.telemetry.level.upper())
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_serve(options, loaded))
    return 0


async def _serve(options: argparse.Namespace, loaded: Loaded) -> None:
    from everturn.access.entrance import Entrance
    from everturn.cli.store_connection import Door
    from everturn.cli.store_handover import take_store
    from everturn.cli.store_server import beside
    from everturn.core.accounts import LOCAL
    from everturn.server import serving
    from everturn.server.descriptors import with_room
    from everturn.server.routing import Route

    places = {name: getattr(options, name) for name in ("database", "restate", "admin", "nats")}
    if not options.cluster and (named := [name for name, value in places.items() if value]):
        raise ConfigError(f"--{named[0]} is for a node of a cluster; say --cluster, too")
    given = Given(options.host, options.port, options.store, options.model, places if options.cluster else None)
    how = server_options(loaded, given, os.environ)
    store = "" if options.cluster else store_of(loaded, given.store, os.environ)
    async with AsyncExitStack() as stack:
        taken, routes = None, list[Route]()
        if store in ("", "memory"):
            house = await stack.enter_async_context(open_house(loaded, given))
            entrance = Entrance(house.accounts, house.runtime.clock, how.oidc)
        else:
            taken = await stack.enter_async_context(
                take_store(beside(store, os.environ), lambda: open_house(loaded, given))
            )
            house, routes = taken.house, taken.routes
            entrance = Door(house, taken.token, how.oidc)
        token = token_file(loaded, store, os.environ)
        try:
            token.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            await entrance.local_token(token)
        except OSError as error:
            why = f"{token} cannot be made: {error.strerror}; say `token_file` under [server]"
            raise ConfigError(why) from None
        link = "" if _is_kept(options, loaded) else await entrance.login_link(LOCAL, "local")
        model = given.model or usual_model(os.environ)
        reloading = Reloading(loaded, house.runtime, house, model, config_file(options))
        besides = [asyncio.create_task(reloading.watch(FOREVER if options.no_reload else 1.0))]
        if not options.cluster:  # there the workers do
            besides.append(asyncio.create_task(keep_house(house.runtime, loaded.config.store.keep)))
        how, place = with_room(how), address_file(token)

        def ready(address: str) -> None:
            note_address(place, address)
            if taken is not None:
                taken.served_at(local_address(address, how))
            for line in welcome(address, link, token, house, how.host):
                print(line, flush=True)

        watchdog = LoopWatchdog(
            loaded.config.cluster.loop_timeout, ends=False
        )  # nobody else could go on with its turns
        watchdog.start()
        try:
            await serving.serve(house, entrance, how, ready, routes)
        finally:
            watchdog.stop()
            place.unlink(missing_ok=True)
            for task in besides:
                task.cancel()
            await asyncio.gather(*besides, return_exceptions=True)


def _is_kept(options: argparse.Namespace, loaded: Loaded) -> bool:
    """Whether what is printed goes to a journal or a collector, so that a link in it would be for all who read that."""
    is_json = options.json_logs or loaded.config.telemetry.logs == "json"
    return options.cluster or is_json or "JOURNAL_STREAM" in os.environ


def prepare_worker(options: argparse.Namespace, given: dict[str, str]) -> tuple[str, Cluster]:
    """What makes the runtime of a worker that is configured, and where its cluster is."""
    file = config_file(options)
    loaded = load(file)
    logs.setup(loaded.config.telemetry.logs, loaded.config.telemetry.level.upper())
    if file is not None:
        os.environ[FILE] = os.path.abspath(file)  # for workers that are processes of their own
    cluster = cluster_of(loaded, given, os.environ, listen="127.0.0.1:9080")
    return TARGET, replace(cluster, writes=options.writes or cluster.writes)


def address_file(token: Path) -> Path:
    """Where a server that runs says where it is, for `everturn login`."""
    return token.with_name("server.address")


def local_address(address: str, how: ServerOptions) -> str:
    """Where other processes of this machine reach the server, whatever it is called in public."""
    if how.public_url:
        address = f"http://{how.host}:{how.port}"
    return re.sub(r"^http://(?:0\.0\.0\.0|\[::\]|::)(?=:\d+$)", "http://127.0.0.1", address)


def note_address(place: Path, address: str) -> None:
    """Say where the server is. That it cannot be said is no reason not to serve."""
    try:
        partial = place.with_name(f".{place.name}.{os.getpid()}")
        partial.write_text(f"{address}\n", encoding="utf-8")
        os.replace(partial, place)
    except OSError as error:
        log.warning("%s cannot be written, so `everturn login` needs --url: %s", place, error.strerror)


def welcome(address: str, link: str, token: Path, house: House, host: str) -> list[str]:
    """What whoever started it is told."""
    agent = house.agents.get("")
    # The path in quotes, whatever is in it: this line is pasted into a shell.
    bearer = "-H \"Authorization: Bearer $(cat '{}')\"".format(str(token).replace("'", "'\\''"))
    lines = [
        f"Everturn serves at {address}",
        f"  agent   {agent.name}, which asks {agent.options.model}",
        f"  log in  {address}/login?token={link}  (once, within ten minutes; another: everturn login)"
        if link
        else "  log in  `everturn login` makes a link; none is printed where others may read what was",
        f"  token   {token}",
        f"  try     curl -s {address}/api/sessions {bearer} \\",
        "            -H 'Content-Type: application/json' -d '{\"text\": \"What time is it?\"}'",
        "  answer  with the session that this says for SESSION:",
        f"            curl -s {address}/api/sessions/SESSION/messages {bearer}",
    ]
    if agent.options.model == OFFLINE:
        lines.append("  No model is named and no key was found, so an offline demo answers. --model names one.")
    if not is_loopback(host):
        lines.append(f"  Warning: {host} can be reached from other machines, in plain HTTP. Put TLS in front of it.")
    return lines
