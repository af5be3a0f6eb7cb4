"""Sender: messages as notifications, one statement for all messages of a moment.

The payload is the sender's id, the subject and the message. Frames of a turn go to one of a few channels, by a hash, so
that a process hears those that it may want. Signals and requests are small and rare, and have one channel; announcements have
another, which a process hears when something in it wants them.
"""

from __future__ import annotations

import logging
import secrets
import zlib
from collections.abc import Sequence

from everturn.postgres.link import PostgresLink

log = logging.getLogger(__name__)

PREFIX = "live"  # of all subjects
FRAME_CHANNELS = 64
# PostgreSQL takes payloads of less than 8,000 bytes. The sender's id and the subject need up to 210 of them.
MESSAGE_LIMIT = 7_700


class NotificationSender:
    """Sends what this process publishes."""

    def __init__(self, link: PostgresLink) -> None:
        self._link = link
        self.node = secrets.token_hex(6)
        self.signals, self.announcements = link.channel("signals"), link.channel("announcements")
        self._has_logged = False

    @property
    def message_limit(self) -> int | None:
        """How many bytes a message may have; None while there is no connection."""
        return MESSAGE_LIMIT if self._link.is_up else None

    def channel_of(self, subject: str) -> str:
        """The channel of a subject."""
        if subject.startswith(f"{PREFIX}.a."):
            return self.announcements
        if not subject.startswith(f"{PREFIX}.d."):
            return self.signals
        return self._link.channel(f"frames{zlib.crc32(subject.encode()) % FRAME_CHANNELS}")

    async def send(self, messages: Sequence[tuple[str, bytes]]) -> None:
        """Send messages, each with its subject."""
        await self._link.notify(
            [
                (self.channel_of(subject), f"{self.node} {subject} {data.decode('utf-8', 'replace')}")
                for subject, data in messages
            ]
        )
        self._has_logged = False

    def log_problem(self, problem: str, error: object) -> None:
        """Log a problem: once, until something could be sent again."""
        if not self._has_logged:
            self._has_logged = True
            log.warning("PostgreSQL: %s (%r); readers get what is missing from the log", problem, error)
