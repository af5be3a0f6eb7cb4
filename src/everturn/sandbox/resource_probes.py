"""Resource probes: code that runs inside a sandbox and takes as much memory or disk as it gets.

It is passed as text to a Python inside, with the arguments KIND and WANTED. It holds what it got until it is killed, and
prints how many bytes (or files) that is if it was not killed.
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
HOLDS_FILES = 4.0  # seconds: another program may free as much meanwhile, and then only an occasional walk finds it
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
    """0 if memory or space was refused; another failure proves nothing."""
    sys.stderr.write(f"{error}\n")
    stopped = (errno.ENOMEM, errno.ENOBUFS, errno.ENOSPC, errno.EDQUOT)
    return 0 if isinstance(error, MemoryError) or getattr(error, "errno", 0) in stopped else UNTRIED


def idle(wanted: int) -> int:
    """Nothing: if even this is stopped, the other probes prove nothing."""
    return wanted


def mapped(wanted: int) -> int:
    """Memory of processes."""
    held.append(b"x" * wanted)
    return wanted


def fill(send: Callable[[bytes], int]) -> int:
    """Send until the buffer is full."""
    total = 0
    try:
        while True:
            total += send(PIECE)
    except BlockingIOError:
        return total


def sockets(wanted: int) -> int:
    """Buffers of Unix sockets."""
    total = 0
    while total < wanted:
        pair = socket.socketpair()
        pair[0].setblocking(False)
        held.append(pair)
        total += fill(pair[0].send)
    return total


def tcp(wanted: int) -> int:
    """Buffers of loopback connections."""
    total = 0
    with socket.create_server(("127.0.0.1", 0)) as server:
        while total < wanted and len(held) < CONNECTIONS:
            sender = socket.create_connection(server.getsockname())
            held.append((sender, server.accept()[0]))
            sender.setblocking(False)
            total += fill(sender.send)
    return total


def udp(wanted: int) -> int:
    """Buffers of UDP sockets; dropped data is not counted."""
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
    """Files in memory (tmpfs)."""
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
    """Empty files in memory, each of about a kilobyte."""
    for number in range(wanted // 1024):
        os.mknod(f"/tmp/{number}")
    return wanted


def disk(wanted: int) -> int:
    """Files of a writable folder: named, and removed while they are open."""
    total = 0
    for number in range(64):
        file = os.open(f"/work/{number}", os.O_CREAT | os.O_WRONLY)
        if number % 2:
            os.unlink(f"/work/{number}")
        for _ in range(wanted // 64 // len(PIECE)):
            total += os.write(file, PIECE)
    return total


def files(wanted: int) -> int:
    """Many files of a writable folder."""
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
    kind, wanted = sys.argv[1], int(sys.argv[2])
    try:
        got = spread(KINDS[kind], wanted) if kind in SPREAD else KINDS[kind](wanted)
    except (OSError, MemoryError) as error:
        got = refused(error)
    sys.stdout.write(f"{got}\n")
    sys.stdout.flush()
    if got:
        time.sleep(HOLDS_FILES if kind in ("disk", "files") else HOLDS)  # for the checks, which run periodically
