"""Resource probes that run inside a sandbox: how much memory or disk they got.

It is given to a Python in there as text: `hogs.py KIND WANTED`. It holds what it got until it is ended, and says how many
bytes (or files) those are if nobody ended it.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
import time
from collections.abc import Callable

PIECE = b"x" * 65_536
PROCESSES = 4
CONNECTIONS = 100
UNTRIED = -1
HOLDS = 0.3  # seconds
held: list[object] = []


def spread(take: Callable[[int], int], wanted: int) -> int:
    """Let several processes take a part each and hold it: one alone has too few open files."""
    reader, writer = os.pipe()
    for _ in range(PROCESSES):
        if os.fork() == 0:
            try:
                got = take(wanted // PROCESSES)
            except (OSError, MemoryError) as error:
                got = refused(error)
            os.write(writer, b"%d\n" % got)
            time.sleep(60)
            os._exit(0)
    os.close(writer)
    with open(reader, encoding="ascii") as parts:
        got = [int(parts.readline()) for _ in range(PROCESSES)]
    return sum(got) if min(got) >= 0 else UNTRIED


def refused(error: BaseException) -> int:
    """Nothing, if it was refused memory or room; what failed otherwise proves nothing."""
    sys.stderr.write(f"{error}\n")
    stopped = (errno.ENOMEM, errno.ENOBUFS, errno.ENOSPC, errno.EDQUOT)
    return 0 if isinstance(error, MemoryError) or getattr(error, "errno", 0) in stopped else UNTRIED


def idle(wanted: int) -> int:
    """Nothing: what is stopped here would be stopped anyway, and would prove nothing."""
    return wanted


def mapped(wanted: int) -> int:
    """Memory of processes."""
    held.append(b"x" * wanted)
    return wanted


def fill(send: Callable[[bytes], int]) -> int:
    """Send until nobody takes any more."""
    total = 0
    try:
        while True:
            total += send(PIECE)
    except BlockingIOError:
        return total


def sockets(wanted: int) -> int:
    """What is on the way between sockets."""
    total = 0
    while total < wanted:
        pair = socket.socketpair()
        pair[0].setblocking(False)
        held.append(pair)
        total += fill(pair[0].send)
    return total


def tcp(wanted: int) -> int:
    """What is on the way between connections of the loopback."""
    total = 0
    with socket.create_server(("127.0.0.1", 0)) as server:
        while total < wanted and len(held) < CONNECTIONS:
            sender = socket.create_connection(server.getsockname())
            held.append((sender, server.accept()[0]))
            sender.setblocking(False)
            total += fill(sender.send)
    return total


def udp(wanted: int) -> int:
    """What waits in sockets without a connection; what is dropped is not counted."""
    receivers: list[socket.socket] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        while len(receivers) * 150_000 < wanted and len(receivers) < 220:
            receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            receiver.bind(("127.0.0.1", 0))
            receiver.setblocking(False)
            receivers.append(receiver)
            for _ in range(5):
                sender.sendto(PIECE[:40_000], receiver.getsockname())
    total = 0
    for receiver in receivers:
        try:
            while True:
                total += len(receiver.recv(65_536))
        except BlockingIOError:
            pass
    return total


def scratch(wanted: int) -> int:
    """Files that are in memory."""
    total = 0
    for place in ("/tmp", "/dev/shm", "/home/sandbox"):
        try:
            with open(f"{place}/hog", "wb", buffering=0) as file:
                while total < wanted:
                    total += file.write(PIECE)
        except OSError:
            pass
    return total


def inodes(wanted: int) -> int:
    """Empty files that are in memory, each of about a kilobyte."""
    for number in range(wanted // 1024):
        os.mknod(f"/tmp/{number}")
    return wanted


def disk(wanted: int) -> int:
    """Files of a folder that can be written to: named, and removed while they are open."""
    total = 0
    for number in range(64):
        file = os.open(f"/work/{number}", os.O_CREAT | os.O_WRONLY)
        if number % 2:
            os.unlink(f"/work/{number}")
        for _ in range(wanted // 64 // len(PIECE)):
            total += os.write(file, PIECE)
    return total


def files(wanted: int) -> int:
    """Many files of a folder that can be written to."""
    os.mkdir("/work/many")
    for number in range(wanted):
        os.mknod(f"/work/many/{number}")
    return wanted


KINDS: dict[str, Callable[[int], int]] = {
    "idle": idle, "mapped": mapped, "sockets": sockets, "tcp": tcp, "udp": udp, "scratch": scratch, "inodes": inodes,
    "disk": disk, "files": files,
}  # fmt: skip

SPREAD = ("idle", "mapped", "sockets", "tcp", "udp")

if __name__ == "__main__":
    try:
        kind, wanted = sys.argv[1], int(sys.argv[2])
        got = spread(KINDS[kind], wanted) if kind in SPREAD else KINDS[kind](wanted)
    except (OSError, MemoryError) as error:
        got = refused(error)
    sys.stdout.write(f"{got}\n")
    sys.stdout.flush()
    if got:
        time.sleep(HOLDS)  # for those who look now and then
