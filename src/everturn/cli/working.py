"""`everturn worker` and `everturn ps`: a cluster's work, done and looked at."""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import sys
from typing import Any, Final

from everturn.cli.people import store_meant, there
from everturn.cli.saying import complain, long_wait
from everturn.cluster import Cluster
from everturn.cluster.overview import overview

PLACES: Final = ("database", "restate", "admin", "nats", "listen", "advertise")


def worker(options: argparse.Namespace) -> int:
    """Drive sessions until told to leave.

    Raises:
        ConfigError: it makes no sense; StoreUnavailable, EngineUnavailable: nobody answers.
    """
    from everturn.cluster.processes import loop_factory, supervise, work

    if options.target and options.config:
        return complain("a worker is made of MODULE:FUNCTION or of --config; say one of them", 2)
    target, cluster = _named(options) if options.target else _configured(options)
    if options.workers > 1:
        asyncio.run(supervise(target, cluster, options.workers, _say))
    else:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(work(target, cluster, _say))
    return 0


def _named(options: argparse.Namespace) -> tuple[str, Cluster]:
    import logging

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    found: dict[str, Any] = {"listen": "127.0.0.1:9080"}
    known = {name: getattr(options, name) or os.environ.get(f"EVERTURN_{name.upper()}", "") for name in PLACES}
    found.update((name, value) for name, value in known.items() if value)
    return options.target, Cluster(**found, writes=options.writes)


def _configured(options: argparse.Namespace) -> tuple[str, Cluster]:
    from everturn.cli.serving import prepare_worker

    return prepare_worker(options, {name: getattr(options, name) for name in PLACES})


def ps(options: argparse.Namespace) -> int:
    """Say what is to be done in a store, and who waits for whom.

    Raises:
        ConfigError: there is no such store; StoreUnavailable: it does not answer.
    """
    with long_wait("asking the store"):
        lines, more = asyncio.run(overview(there(store_meant(options)), options.limit, options.after))
    for line in lines:
        print(line)
    if more:
        _say(f"more of them: everturn ps --after {shlex.quote(more)}; all at once: --limit 0")
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
