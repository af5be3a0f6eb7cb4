"""`everturn router` and `everturn admin tenant`: the reverse proxy in front of cells, and moves of tenants between them."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys

from everturn.cells.routes import TenantRoute
from everturn.cli.config_options import config_file
from everturn.cli.output import confirm, count_nouns
from everturn.config.build import configured_cells
from everturn.config.load import load_config


def router(options: argparse.Namespace) -> int:
    """Route requests to the cells of their tenants, until the process is told to stop.

    Raises:
        ConfigError: the configuration is invalid.
        StoreUnavailable: the database of the routing table does not answer.
    """
    import logging

    from everturn.cluster.workers import loop_factory

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_serve(options))
    return 0


async def _serve(options: argparse.Namespace) -> None:
    from everturn.cells.router import CellRouter, serve_router
    from everturn.cluster.workers import tune_garbage_collector

    loaded = load_config(config_file(options))
    table = loaded.config.router
    routed = CellRouter(configured_cells(loaded, os.environ), wait=table.wait, domain=table.domain, hooks=table.hooks)
    leave, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, leave.set)
    port = table.port if options.port is None else options.port
    tune_garbage_collector()
    await serve_router(routed, options.host or table.host, port, leave, _print_address)


def tenant(options: argparse.Namespace) -> int:
    """Run `everturn admin tenant`.

    Raises:
        ConfigError: the configuration is invalid, or the tenant cannot be moved.
        StoreUnavailable: a database does not answer.
        UnreadableLog: the copy differs from the source.
    """
    question = f"Delete the copy of {getattr(options, 'tenant', '')} that its last move has left?"
    if options.action == "erase-source" and not confirm(question, options.yes):
        return 1
    for line in asyncio.run(_run(options)):
        print(line)
    return 0


async def _run(options: argparse.Namespace) -> list[str]:
    from everturn.cells.move import TenantMover

    mover = TenantMover(configured_cells(load_config(config_file(options)), os.environ), _print_note)
    if options.action == "routes":
        return [_line(route) for route in await mover.routes()] or ["the routing table is empty"]
    if options.action == "abort":
        await mover.abort(options.tenant)
        return [f"{options.tenant}: the move was aborted"]
    if options.action == "erase-source":
        count = await mover.erase_source(options.tenant)
        return [f"{options.tenant}: the old copy with {count_nouns(session=count)} was deleted"]
    report = await mover.move(options.tenant, options.to)
    counts = {name: report.rows.get(name, 0) for name in ("sessions", "events", "messages", "gates")}
    moved = count_nouns(session=counts["sessions"], event=counts["events"], message=counts["messages"])
    return [
        f"{report.tenant} moved from {report.source} to {report.target} (epoch {report.epoch}): {moved}; "
        f"held for {report.frozen_seconds:.2f} s",
        f"{report.source} keeps a frozen copy until: everturn admin tenant erase-source {report.tenant}",
    ]


def _line(route: TenantRoute) -> str:
    move = f"  {route.phase}: {route.source} -> {route.target}" if route.phase else ""
    return f"{route.tenant}  {route.cell}  epoch {route.epoch}{'  held' if route.is_held else ''}{move}"


def _print_address(url: str) -> None:
    _print_note(f"routes at {url}")


def _print_note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
