"""`everturn eval` in a process that ends at once if it looks up a name, connects, sends, or starts another process.

    python offline_eval.py PROBE DATASET OPTIONS…

An audit hook sees what C code does, too, and cannot be taken away. PROBE `connect` tries a connection first, to show that
the hook works.
"""

from __future__ import annotations

import os
import socket
import sys

from everturn.cli import main

FORBIDDEN = (
    "socket.connect",
    "socket.getaddrinfo",
    "socket.sendto",
    "socket.sendmsg",
    "subprocess.Popen",
    "os.posix_spawn",
)
CAUGHT = 86


def forbid(event: str, values: tuple[object, ...]) -> None:
    if event in FORBIDDEN:
        os.write(2, f"{event} {values}\n".encode())
        os._exit(CAUGHT)


if __name__ == "__main__":
    sys.addaudithook(forbid)
    if sys.argv[1] == "connect":
        socket.socket().connect_ex(("127.0.0.1", 9))
    sys.exit(main(["eval", *sys.argv[2:]]))
