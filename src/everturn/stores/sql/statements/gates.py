"""Statements that read open gates: those of a session, of a tenant or of the store, and pages of them."""

from __future__ import annotations

from everturn.stores.sql.database import Statement

GATES = Statement(
    "gates",
    """SELECT body, opened, claim, session, gate, tenant FROM gates WHERE session = ? AND is_open = 1 AND resolution IS NULL
    ORDER BY opened, gate""",
    """SELECT p.n, g.body, g.opened, g.claim, g.session, g.gate, g.tenant FROM unnest($1::text[]) WITH ORDINALITY AS p(session, n)
    JOIN gates g ON g.session = p.session AND g.is_open AND g.resolution IS NULL ORDER BY p.n, g.opened, g.gate""",
    returns=True,
)
ALL_GATES = Statement(
    "all gates",
    """SELECT body, opened, claim, session, gate, tenant FROM gates WHERE is_open = 1 AND resolution IS NULL
    ORDER BY opened, gate""",
    """SELECT 1, body, opened, claim, session, gate, tenant FROM gates WHERE is_open AND resolution IS NULL
    ORDER BY opened, gate""",
    returns=True,
)
TENANT_GATES = Statement(
    "gates of a tenant",
    """SELECT body, opened, claim, session, gate, tenant FROM gates
    WHERE tenant = ? AND tenant != '' AND is_open = 1 AND resolution IS NULL ORDER BY opened, gate""",
    """SELECT p.n, g.body, g.opened, g.claim, g.session, g.gate, g.tenant FROM unnest($1::text[]) WITH ORDINALITY AS p(tenant, n)
    JOIN gates g ON g.tenant = p.tenant AND g.tenant != '' AND g.is_open AND g.resolution IS NULL ORDER BY p.n, g.opened, g.gate""",
    returns=True,
)

# Pages of open gates, by (opened, session, gate), the oldest first.
_SHOWN_GATE = "g.session, g.body, g.opened, g.claim, g.gate, g.tenant"
_BEHIND_LITE = """g.is_open = 1 AND g.resolution IS NULL AND g.opened >= ?2
    AND (g.opened > ?2 OR g.session > ?3 OR (g.session = ?3 AND g.gate > ?4)) ORDER BY g.opened, g.session, g.gate LIMIT ?5"""
_BEHIND_PG = """g.is_open AND g.resolution IS NULL AND g.opened >= p.at
    AND (g.opened > p.at OR g.session COLLATE "C" > p.session OR (g.session = p.session AND g.gate COLLATE "C" > p.gate))
    ORDER BY g.opened, g.session COLLATE "C", g.gate COLLATE "C" LIMIT p.most"""
_GATES_GIVEN = """unnest($1::text[], $2::float8[], $3::text[], $4::text[], $5::bigint[]) WITH ORDINALITY
    AS p(whose, at, session, gate, most, n)"""


def _gate_page(name: str, lite: str, pg: str) -> Statement:
    return Statement(
        name,
        f"{lite} AND {_BEHIND_LITE}",
        f"""SELECT p.n, {_SHOWN_GATE} FROM {_GATES_GIVEN} CROSS JOIN LATERAL ({pg} AND {_BEHIND_PG}) g
        ORDER BY p.n, g.opened, g.session COLLATE "C", g.gate COLLATE "C\"""",
        returns=True,
    )


GATE_PAGE = _gate_page(
    "gate page",
    f"SELECT {_SHOWN_GATE} FROM gates g WHERE ?1 = ''",
    "SELECT * FROM gates g WHERE p.whose = ''",
)
TENANT_GATE_PAGE = _gate_page(
    "gate page of a tenant",
    f"SELECT {_SHOWN_GATE} FROM gates g WHERE g.tenant = ?1 AND g.tenant != ''",
    "SELECT * FROM gates g WHERE g.tenant = p.whose AND g.tenant != ''",
)
_SUBTREE = """WITH RECURSIVE subtree(id, tenant) AS (
    SELECT id, tenant FROM sessions WHERE id = {session} AND NOT erased
    UNION SELECT s.id, s.tenant FROM subtree b JOIN sessions s ON s.parent = b.id AND s.parent != '' AND s.tenant = b.tenant)"""
SESSION_GATE_PAGE = _gate_page(
    "gate page of a session",  # with its sub-agent runs
    f"{_SUBTREE.format(session='?1')} SELECT {_SHOWN_GATE} FROM subtree b CROSS JOIN gates g ON g.session = b.id WHERE true",
    f"{_SUBTREE.format(session='p.whose')} SELECT g.* FROM subtree b JOIN gates g ON g.session = b.id WHERE true",
)
# Those of the sessions that have an open gate, in them or in a sub-agent run of theirs.
WAITING = Statement(
    "waiting",
    """WITH RECURSIVE subtree(top, id, tenant) AS (
        SELECT s.id, s.id, s.tenant FROM json_each(?) j CROSS JOIN sessions s ON s.id = j.value AND NOT s.erased
        UNION SELECT b.top, s.id, s.tenant FROM subtree b
        JOIN sessions s ON s.parent = b.id AND s.parent != '' AND s.tenant = b.tenant)
    SELECT DISTINCT b.top FROM subtree b
    WHERE EXISTS (SELECT 1 FROM gates g WHERE g.session = b.id AND g.is_open = 1 AND g.resolution IS NULL)""",
    """WITH RECURSIVE p AS (SELECT * FROM unnest($1::text[]) WITH ORDINALITY AS p(ids, n)),
    subtree(n, top, id, tenant) AS (
        SELECT p.n, s.id, s.id, s.tenant FROM p CROSS JOIN LATERAL json_array_elements_text(p.ids::json) AS j(id)
        JOIN sessions s ON s.id = j.id AND NOT s.erased
        UNION SELECT b.n, b.top, s.id, s.tenant FROM subtree b
        JOIN sessions s ON s.parent = b.id AND s.parent != '' AND s.tenant = b.tenant)
    SELECT DISTINCT b.n, b.top FROM subtree b
    WHERE EXISTS (SELECT 1 FROM gates g WHERE g.session = b.id AND g.is_open AND g.resolution IS NULL)""",
    returns=True,
)
