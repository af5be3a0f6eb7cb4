"""Name resolution with the machine's resolver, bounded in time and in concurrent lookups."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from everturn.errors import FetchFailed

Resolve = Callable[[str], Awaitable[Sequence[str]]]
"""Resolves a name to the texts of all its addresses. Raises OSError when it has none."""

MAX_LOOKUPS: Final = 32  # a lookup cannot be cancelled, so abandoned ones count as well
_places: Final = threading.BoundedSemaphore(MAX_LOOKUPS)


async def resolve(host: str) -> Sequence[str]:
    """Resolve a name with the machine's resolver, in a thread of its own.

    Not in a pool: a name server that does not answer would occupy its threads, and block all other work.
    """
    places = _places  # the thread must release the semaphore it acquired, even if the global is replaced
    if not places.acquire(blocking=False):
        raise FetchFailed(f"{MAX_LOOKUPS} names are being resolved already; try again in a minute", "dns")
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Sequence[str] | Exception] = loop.create_future()

    def finish(result: Sequence[str] | Exception) -> None:
        if not done.done():  # the caller may have been cancelled in the meantime
            done.set_result(result)

    def work() -> None:
        found: Sequence[str] | Exception
        try:
            # Bytes: a str would go through the IDNA codec first, and exactly the checked name must be resolved.
            rows = socket.getaddrinfo(host.encode("ascii"), None, type=socket.SOCK_STREAM)
            found = list(dict.fromkeys(_address(row[4]) for row in rows))
        except Exception as error:
            found = error
        finally:
            places.release()
        with contextlib.suppress(RuntimeError):  # the loop is closed, and the caller gone
            loop.call_soon_threadsafe(finish, found)

    try:
        threading.Thread(target=work, name="lookup", daemon=True).start()
    except BaseException:
        places.release()
        raise
    found = await done
    if isinstance(found, Exception):
        raise found
    return found


def _address(row: Sequence[object]) -> str:
    """Return the address with its zone, if it has one: the policy refuses those."""
    scope = row[3] if len(row) == 4 else 0
    text = str(row[0])
    return f"{text}%{scope}" if scope and "%" not in text else text
