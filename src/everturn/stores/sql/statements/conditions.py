"""Conditions and constants that statements share: what is awake, due or live.

The conditions of partial indexes are written exactly as the schema writes them: SQLite uses such an index only for a
query with the very same condition.
"""

from __future__ import annotations

END = 2**62  # a position that is behind every other
SECOND = 1.0
NEVER = 9e99  # a time that is later than every other: SQLite has no infinity to write down

# A session with work: commands to handle, a turn that is not suspended, or calls whose tools still run. Each session is looked
# up: for an EXISTS, PostgreSQL would choose to read the open turns of all sessions into a hash table.
AWAKE = """((SELECT 1 FROM inbox i WHERE i.session = s.id AND i.is_open LIMIT 1) IS NOT NULL
    OR (SELECT 1 FROM turns t WHERE t.session = s.id AND (t.state != 'over' OR t.out > 0)
        AND (t.state = 'busy' OR t.out > 0) LIMIT 1) IS NOT NULL)"""


def _due(least: str, is_open: str) -> str:
    """Return when a session is due: the first expiry of an unanswered gate, or the deadline of an open turn."""
    return f"""{least}(
        coalesce((SELECT min(g.expires) FROM gates g
                  WHERE g.session = s.id AND {is_open} AND g.resolution IS NULL AND g.expires > 0), {NEVER}),
        coalesce((SELECT min(t.deadline) FROM turns t WHERE t.session = s.id AND (t.state != 'over' OR t.out > 0)
                  AND t.state != 'over' AND t.deadline > 0), {NEVER}))"""


DUE_LITE, DUE_PG = _due("min", "g.is_open = 1"), _due("least", "g.is_open")

# Sessions that could be awake or due, found by the small indexes of what is live.
_LIVE = """SELECT session FROM inbox WHERE is_open
    UNION SELECT session FROM turns WHERE (state != 'over' OR out > 0) AND (state = 'busy' OR out > 0 OR deadline > 0)
    UNION SELECT session FROM gates WHERE {is_open} AND resolution IS NULL AND expires > 0"""
LIVE_LITE, LIVE_PG = _LIVE.format(is_open="is_open = 1"), _LIVE.format(is_open="is_open")
