"""A worker process for the tests: it drives by noting down when a drive begins and when it ends.

It is given the two addresses of Restate, a listening socket, a directory for its notes and how long a drive takes. A
session called "long-…" takes that many seconds, every other one none.
"""

import asyncio
import os
import signal
import socket
import sys
import time
from pathlib import Path

from everturn.engine.restate import RestateEngine


async def main() -> None:
    ingress, admin, inherited, notes, seconds = sys.argv[1:]
    engine = RestateEngine(ingress, admin, listen=socket.socket(fileno=int(inherited)))

    def note(kind: str, session: str) -> None:
        line = f"{kind} {session} {os.getpid()} {time.monotonic()}\n"
        file = os.open(Path(notes, "notes"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, line.encode())  # one write, so that two processes never mix their lines
        os.close(file)

    async def drive(session: str) -> None:
        note("begin", session)
        if session.startswith("long"):
            await asyncio.sleep(float(seconds))
        note("end", session)

    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    loop.add_reader(sys.stdin, lambda: os._exit(1))  # whoever started it is gone
    await engine.serve(drive)
    note("serving", "-")
    await stopped.wait()
    await engine.aclose()
    note("closed", "-")


asyncio.run(main())
