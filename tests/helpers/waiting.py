"""Wait until a condition holds: in the event loop, or in a thread that may block."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any


async def wait_until(condition: Callable[[], Any], seconds: float = 60.0, pause: float = 0.005) -> Any:
    """What `condition` returns, or its awaitable, as soon as it is true.

    Raises:
        TimeoutError: it stayed false.
    """
    async with asyncio.timeout(seconds):
        while True:
            found = condition()
            if inspect.isawaitable(found):
                found = await found
            if found:
                return found
            await asyncio.sleep(pause)


def wait_until_sync(condition: Callable[[], Any], seconds: float = 60.0, why: str = "") -> Any:
    """What `condition` returns as soon as it is true; it is called twenty times a second.

    Raises:
        TimeoutError: it stayed false.
    """
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(why or "the condition never held")
        time.sleep(0.05)
    return found
