"""Retry pauses of a session whose driver died: how soon it is claimed again, and when it is quarantined."""

from __future__ import annotations

MAX_QUICK_CLAIMS = 3  # claims without progress after which a session is claimed again only after a pause
RETRY_PAUSES = (3.0, 7.0, 15.0)  # seconds of pause after the third, fourth and fifth claim without progress
QUARANTINE_SECONDS = (
    600.0  # seconds of quarantine after each further one: by then the session itself stops its drivers, not a neighbour
)
PAUSED_TEXT = "session {session} stopped its driver {tries} times without moving on; it is tried again by itself, apart from others"
QUARANTINED_TEXT = "session {session} stopped its driver {tries} times without moving on and is left alone; send or cancel to try again"


def retry_pause(tries: int) -> float:
    """Seconds of pause before the next claim of a session with so many claims without progress.

    When a worker dies, the count of all its sessions goes up, because the store cannot tell which of them stopped it.
    The quick tries are therefore followed by a few after growing pauses, when the session runs beside other neighbours.
    A session that still stops its driver is quarantined.
    """
    if tries < MAX_QUICK_CLAIMS:
        return 0.0
    return (
        RETRY_PAUSES[tries - MAX_QUICK_CLAIMS] if tries < MAX_QUICK_CLAIMS + len(RETRY_PAUSES) else QUARANTINE_SECONDS
    )


def is_quarantined(tries: int) -> bool:
    """Whether a session with so many claims without progress is quarantined."""
    return tries >= MAX_QUICK_CLAIMS + len(RETRY_PAUSES)
