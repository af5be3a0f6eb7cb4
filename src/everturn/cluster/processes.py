"""One parent, many workers: they share a socket, and one that dies is started again.

The socket is the parent's, so that there is one queue of connections from which only a living worker takes; and one
address, for Restate sends what is new to the address that was registered last.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import signal
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import msgspec

from everturn.cluster import Cluster, address
from everturn.errors import ConfigError, EverturnError

log = logging.getLogger(__name__)

PAUSE = 0.2  # seconds before a worker that died is started again; doubled while it dies young
LONGEST = 10.0
YOUNG = 5.0  # seconds
FAREWELL = 20.0  # seconds a worker that was told to leave has for it
VARIABLE = "EVERTURN_CLUSTER"
HOPELESS = 2  # the exit code of a worker whose settings are wrong


def load(target: str) -> Callable[..., Any]:
    """The function that makes a runtime, by the name `module:function`.

    Raises:
        ConfigError: there is none of this name.
    """
    module, _, name = target.partition(":")
    if not module or not name:
        raise ConfigError(f"{target!r} names no function; write module:function, such as shop:make")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{target!r} cannot be found: {error}") from error
    if not callable(found):
        raise ConfigError(f"{target!r} is no function; it takes store, bus and engine, and returns a Runtime")
    return found


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's event loop, where it is installed: a worker needs 13 to 19 % less processor time with it."""
    if find_spec("uvloop") is None:
        return None
    import uvloop

    return uvloop.new_event_loop


async def work(target: str, cluster: Cluster, say: Callable[[str], None]) -> None:
    """Be one worker."""
    make = load(target)
    await cluster.work(make, lambda: say(f"worker {os.getpid()} drives sessions of {_bare(cluster.database)}"))


async def supervise(target: str, cluster: Cluster, count: int, say: Callable[[str], None]) -> None:
    """Keep `count` workers running until this process is told to leave, and see them off."""
    from everturn.engine.restate import listening, url_of

    load(target)  # what is wrong with it is said once, and here
    where = address(cluster.listen)
    if not isinstance(where, tuple):
        raise ConfigError("several workers share an address to listen on; for example --listen 127.0.0.1:9080")
    try:
        shared_socket = listening(*where)
    except OSError as error:
        raise ConfigError(
            f"{cluster.listen} cannot be listened on: {error.strerror}; choose another --listen"
        ) from error
    with shared_socket as sock:
        os.set_inheritable(sock.fileno(), True)
        shared = msgspec.structs.replace(
            cluster, listen=f"fd:{sock.fileno()}", advertise=cluster.advertise or url_of(sock)
        )
        leave, loop = asyncio.Event(), asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, leave.set)
        say(f"{count} workers for {_bare(cluster.database)}; Restate reaches them at {shared.advertise}")
        async with asyncio.TaskGroup() as group:
            for _ in range(count):
                group.create_task(_keep(target, shared, sock.fileno(), leave))


async def _keep(target: str, cluster: Cluster, socket: int, leave: asyncio.Event) -> None:
    leaving = asyncio.ensure_future(leave.wait())
    pause, loop = PAUSE, asyncio.get_running_loop()
    while not leave.is_set():
        started = loop.time()
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "everturn.cluster.processes",
            target,
            env={**os.environ, VARIABLE: msgspec.json.encode(cluster).decode()},  # it may hold a password
            pass_fds=(socket,),
            start_new_session=True,  # Ctrl-C is for the parent; it tells its workers
        )
        ended = asyncio.ensure_future(process.wait())
        await asyncio.wait({ended, leaving}, return_when="FIRST_COMPLETED")
        if leave.is_set():
            if process.returncode is None:
                process.terminate()
            await asyncio.wait({ended}, timeout=FAREWELL)
            if process.returncode is None:
                log.warning("worker %d does not end; killing it", process.pid)
                process.kill()
                await ended
            return
        if process.returncode == HOPELESS:
            leave.set()  # it has said why, and another one would say the same
            return
        pause = min(pause * 2, LONGEST) if loop.time() - started < YOUNG else PAUSE
        log.warning("worker %d ended with %s; another one starts in %g s", process.pid, process.returncode, pause)
        await asyncio.wait({leaving}, timeout=pause)


def _bare(url: str) -> str:
    """An address without who may use it."""
    return url.rpartition("@")[2] if "@" in url else url


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    given = msgspec.json.decode(os.environ.pop(VARIABLE), type=Cluster)
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(work(sys.argv[1], given, lambda text: print(text, file=sys.stderr, flush=True)))
    except ConfigError as error:
        print(f"everturn: {error}", file=sys.stderr)
        raise SystemExit(HOPELESS) from None
    except EverturnError as error:  # a server that is not there yet, say
        print(f"everturn: {error}", file=sys.stderr)
        raise SystemExit(1) from None
