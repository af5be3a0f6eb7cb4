"""SQL `RateLimitStore`: a row for each bucket, replaced by compare-and-swap.

A process reads the row without a lock, and writes it only if nobody else has meanwhile; so no append waits for it. On a
SQLite file that only this process drives, the state is kept in memory.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Final

from everturn.errors import StoreUnavailable
from everturn.stores.rate_limits import MemoryRateLimits
from everturn.stores.sql.database import Database, Operation, Query, Statement

TRIES: Final = 50
PAUSE: Final = 0.02  # seconds, at most, after a process that was faster

_READ = Statement(
    "rate limit",
    "SELECT version, state, 0.0 FROM rate_limits WHERE key = ?",
    """SELECT p.n, r.version, r.state, extract(epoch FROM clock_timestamp())::float8
    FROM unnest($1::text[]) WITH ORDINALITY AS p(key, n) LEFT JOIN rate_limits r ON r.key = p.key""",
    returns=True,
)
_SWAP = Statement(
    "swap rate limit",
    """INSERT INTO rate_limits (key, version, state) VALUES (?1, ?2 + 1, ?3)
    ON CONFLICT (key) DO UPDATE SET version = excluded.version, state = excluded.state
    WHERE rate_limits.version = excluded.version - 1 RETURNING key""",
    """INSERT INTO rate_limits AS r (key, version, state)
    SELECT p.key, p.version + 1, p.state FROM unnest($1::text[], $2::bigint[], $3::bytea[]) AS p(key, version, state)
    ON CONFLICT (key) DO UPDATE SET version = excluded.version, state = excluded.state
    WHERE r.version = excluded.version - 1 RETURNING 1::bigint""",
    returns=True,
    is_predictable=True,
)


class SqlRateLimits:
    """The shared state of buckets in the database of the sessions."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._memory = MemoryRateLimits()

    async def update(self, key: str, change: Callable[[bytes, float], bytes | None]) -> None:
        """Replace the state of a bucket."""
        if getattr(self._database, "is_alone", False):
            await self._memory.update(key, change)
            return
        for _ in range(TRIES):
            version, state, now = await self._database.read(lambda: _read(key))
            changed = change(state, now or time.time())
            # Alone in its transaction: no append waits for the row.
            if changed is None or await self._database.write(
                lambda _, version=version, changed=changed: _swap(key, version, changed), f"rate limit {key}", True
            ):
                return
            await asyncio.sleep(PAUSE * random.random())
        raise StoreUnavailable(f"the rate limit {key} was changed by others {TRIES} times in a row")


def _read(key: str) -> Operation[tuple[int, bytes, float]]:
    rows = yield Query(_READ, (key,))
    if not rows:
        return 0, b"", 0.0
    return rows[0][0] or 0, bytes(rows[0][1] or b""), rows[0][2]


def _swap(key: str, version: int, state: bytes) -> Operation[bool]:
    return bool((yield Query(_SWAP, (key, version, state))))
