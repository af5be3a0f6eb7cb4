"""Worker supervisor: one parent starts several workers on a shared socket, and restarts one that dies.

With Restate the parent owns the socket, so that there is one queue of connections, from which only a living worker
accepts; and one address, because Restate sends new drives to the address that was registered last.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import logging
import os
import signal
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import msgspec

from everturn.cluster import Cluster, parse_listen_address
from everturn.errors import ConfigError, EverturnError

log = logging.getLogger(__name__)

PAUSE = 0.2  # seconds before a worker that died is restarted; doubled while it dies young
LONGEST = 10.0
YOUNG_SECONDS = 5.0  # seconds
STOP_TIMEOUT = 20.0  # seconds in which a worker must stop after SIGTERM
VARIABLE = "EVERTURN_CLUSTER"
CONFIG_EXIT_CODE = 2  # the exit code of a worker whose settings are invalid


def load_factory(target: str) -> Callable[..., Any]:
    """Load the function that creates a runtime, by the name `module:function`.

    Raises:
        ConfigError: there is no such function.
    """
    module, _, name = target.partition(":")
    if not module or not name:
        raise ConfigError(f"{target!r} is not the name of a function; write module:function, such as shop:make")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{target!r} cannot be found: {error}") from error
    if not callable(function):
        raise ConfigError(f"{target!r} is not a function; it must take store, bus and engine, and return an App")
    return function


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's event loop factory, where it is installed: a worker needs 13 to 19 % less processor time with it."""
    if find_spec("uvloop") is None:
        return None
    import uvloop

    return uvloop.new_event_loop


def tune_garbage_collector() -> None:
    """Have the collector of cycles look less often, and never at what was imported: a server makes few cycles.

    It takes about a tenth of a turn otherwise. For processes of our own only: a library leaves the collector alone.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


async def run_worker(target: str, cluster: Cluster, say: Callable[[str], None]) -> None:
    """Run one worker."""
    make = load_factory(target)
    tune_garbage_collector()
    await cluster.work(
        make, lambda: say(f"worker {os.getpid()} drives sessions of {_without_credentials(cluster.database)}")
    )


async def supervise(target: str, cluster: Cluster, count: int, say: Callable[[str], None]) -> None:
    """Keep `count` workers running until this process is stopped, then stop them."""
    load_factory(target)  # reports an invalid name once, in the parent
    if not cluster.restate:
        how = f"they take sessions from Temporal at {cluster.temporal}" if cluster.temporal else ""
        await _supervise(target, cluster, count, None, say, how or "they take sessions from it")
        return
    from everturn.engine.restate import open_worker_socket, socket_url

    listen_address = parse_listen_address(cluster.listen)
    if not isinstance(listen_address, tuple):
        raise ConfigError("several workers need an address that they share; for example --listen 127.0.0.1:9080")
    try:
        shared_socket = open_worker_socket(*listen_address)
    except OSError as error:
        raise ConfigError(
            f"{cluster.listen} cannot be used to listen: {error.strerror}; choose another --listen"
        ) from error
    with shared_socket as sock:
        os.set_inheritable(sock.fileno(), True)
        shared = msgspec.structs.replace(
            cluster, listen=f"fd:{sock.fileno()}", advertise=cluster.advertise or socket_url(sock)
        )
        await _supervise(target, shared, count, sock.fileno(), say, f"Restate reaches them at {shared.advertise}")


async def _supervise(
    target: str, cluster: Cluster, count: int, socket: int | None, say: Callable[[str], None], how: str
) -> None:
    leave, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, leave.set)
    say(f"{count} workers for {_without_credentials(cluster.database)}; {how}")
    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(_keep_running(target, cluster, socket, leave))


async def _keep_running(target: str, cluster: Cluster, socket: int | None, leave: asyncio.Event) -> None:
    leaving = asyncio.ensure_future(leave.wait())
    pause, loop = PAUSE, asyncio.get_running_loop()
    while not leave.is_set():
        started = loop.time()
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "everturn.cluster.workers",
            target,
            env={**os.environ, VARIABLE: msgspec.json.encode(cluster).decode()},  # it may contain a password
            pass_fds=(socket,) if socket is not None else (),
            start_new_session=True,  # Ctrl-C goes to the parent, which stops its workers
        )
        ended = asyncio.ensure_future(process.wait())
        await asyncio.wait({ended, leaving}, return_when="FIRST_COMPLETED")
        if leave.is_set():
            if process.returncode is None:
                process.terminate()
            await asyncio.wait({ended}, timeout=STOP_TIMEOUT)
            if process.returncode is None:
                log.warning("worker %d does not end; killing it", process.pid)
                process.kill()
                await ended
            return
        if process.returncode == CONFIG_EXIT_CODE:
            leave.set()  # it has reported why, and another one would report the same
            return
        pause = min(pause * 2, LONGEST) if loop.time() - started < YOUNG_SECONDS else PAUSE
        log.warning("worker %d ended with %s; another one starts in %g s", process.pid, process.returncode, pause)
        await asyncio.wait({leaving}, timeout=pause)


def _without_credentials(url: str) -> str:
    """A URL without its credentials."""
    return url.rpartition("@")[2] if "@" in url else url


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    cluster_settings = msgspec.json.decode(os.environ.pop(VARIABLE), type=Cluster)
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(run_worker(sys.argv[1], cluster_settings, lambda text: print(text, file=sys.stderr, flush=True)))
    except ConfigError as error:
        print(f"everturn: {error}", file=sys.stderr)
        raise SystemExit(CONFIG_EXIT_CODE) from None
    except EverturnError as error:  # for example, a server does not answer yet
        print(f"everturn: {error}", file=sys.stderr)
        raise SystemExit(1) from None
