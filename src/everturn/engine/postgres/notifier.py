"""Notifier: tells the other workers to look for due sessions, with one NOTIFY for all wakes of a moment.

It runs outside of the transactions that write wakes (see `everturn.postgres.link`). A process that dies between the two
costs the time until the next look of the others.
"""

from __future__ import annotations

import asyncio
import logging

from everturn.postgres.link import LINK_ERRORS, PostgresLink

log = logging.getLogger(__name__)


class WakeNotifier:
    """The notifications of one process. The payload is the delay in seconds; "0" is now."""

    def __init__(self, link: PostgresLink, channel: str) -> None:
        self._link, self._channel = link, channel
        self._delay: float | None = None
        self._sending: asyncio.Task[None] | None = None

    def notify(self, delay: float = 0.0) -> None:
        """Have the other workers look, now or after a delay."""
        self._delay = delay if self._delay is None else min(delay, self._delay)
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send())

    async def _send(self) -> None:
        try:
            while (delay := self._delay) is not None:
                self._delay = None
                await self._link.notify([(self._channel, f"{delay:.3f}")])
        except LINK_ERRORS as error:
            self._delay = None
            log.debug("other workers were not notified, and find the sessions at their next poll: %r", error)
        finally:
            self._sending = None

    async def flush(self) -> None:
        """Wait until everything was sent."""
        if self._sending is not None:
            await asyncio.wait({self._sending})
