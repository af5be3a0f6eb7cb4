"""`everturn worker` and `everturn ps`: runs workers of a cluster, and lists the unfinished sessions of a store."""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import sys
from functools import partial
from typing import Any, Final

from everturn.cli.config_options import open_store, require_existing_store, resolve_store
from everturn.cli.output import print_error, show_slow_operation
from everturn.cluster import Cluster
from everturn.cluster.ps import list_store

CLUSTER_ADDRESSES: Final = ("database", "restate", "admin", "temporal", "nats", "listen", "advertise")


def worker(options: argparse.Namespace) -> int:
    """Drive sessions until the process is told to stop.

    Raises:
        ConfigError: the configuration is invalid.
        StoreUnavailable, EngineUnavailable: the database, Restate or Temporal does not answer.
    """
    from everturn.cluster.workers import loop_factory, run_worker, supervise

    if options.target and options.config:
        return print_error("a worker is made of MODULE:FUNCTION or of --config; use one of them", 2)
    target, cluster = _named(options) if options.target else _configured(options)
    if options.workers > 1:
        asyncio.run(supervise(target, cluster, options.workers, _print_note))
    else:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(run_worker(target, cluster, _print_note))
    return 0


def _named(options: argparse.Namespace) -> tuple[str, Cluster]:
    import logging

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    fields: dict[str, Any] = {"listen": "127.0.0.1:9080"}
    addresses = {
        name: getattr(options, name) or os.environ.get(f"EVERTURN_{name.upper()}", "") for name in CLUSTER_ADDRESSES
    }
    fields.update((name, value) for name, value in addresses.items() if value)
    return options.target, Cluster(**fields, writes=options.writes)


def _configured(options: argparse.Namespace) -> tuple[str, Cluster]:
    from everturn.cli.commands.serve import prepare_worker

    return prepare_worker(options, {name: getattr(options, name) for name in CLUSTER_ADDRESSES})


def ps(options: argparse.Namespace) -> int:
    """List the sessions that run, wait or are quarantined in a store.

    Raises:
        ConfigError: there is no such store.
        StoreUnavailable: the store does not answer.
    """
    with show_slow_operation("asking the store"):
        name = require_existing_store(resolve_store(options))
        opened = partial(open_store, options)  # with its keys, if it is encrypted
        lines, more = asyncio.run(list_store(name, opened, options.limit, options.after))
    for line in lines:
        print(line)
    if more:
        _print_note(f"more of them: everturn ps --after {shlex.quote(more)}; all at once: --limit 0")
    return 0


def _print_note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
