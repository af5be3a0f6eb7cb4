"""A name → its IP addresses, as the machine resolves it; bounded in time, and in how many wait at once."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from everturn.errors import FetchFailed

Resolve = Callable[[str], Awaitable[Sequence[str]]]
"""A name to the texts of all its addresses. Raises OSError when it has none."""

MOST_LOOKUPS: Final = 32  # a lookup cannot be stopped, so those that nobody waits for any more count as well
_places: Final = threading.BoundedSemaphore(MOST_LOOKUPS)


async def resolve(host: str) -> Sequence[str]:
    """Ask the machine's resolver, in a thread of its own.

    Not in a pool: a name server that does not answer would hold places of it, and with them everybody else's work.
    """
    places = _places  # the thread gives back what it took, whatever this name means by then
    if not places.acquire(blocking=False):
        raise FetchFailed(f"{MOST_LOOKUPS} names are being looked up already; try again in a minute", "dns")
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Sequence[str] | Exception] = loop.create_future()

    def finish(found: Sequence[str] | Exception) -> None:
        if not done.done():  # it may have been given up in the meantime
            done.set_result(found)

    def work() -> None:
        found: Sequence[str] | Exception
        try:
            # Bytes: a text would go through the IDNA codec first, and what we judged is what must be asked for.
            rows = socket.getaddrinfo(host.encode("ascii"), None, type=socket.SOCK_STREAM)
            found = list(dict.fromkeys(_address(row[4]) for row in rows))
        except Exception as error:
            found = error
        finally:
            places.release()
        with contextlib.suppress(RuntimeError):  # the loop is gone, and with it whoever asked
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
    """With its zone, if it has one: it is refused for it."""
    scope = row[3] if len(row) == 4 else 0
    text = str(row[0])
    return f"{text}%{scope}" if scope and "%" not in text else text
