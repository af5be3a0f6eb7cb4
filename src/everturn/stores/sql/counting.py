"""What turns have used: a row for each, written with every step it ends, every call it starts and when it is over; sums
of them are read. A step and the calls it starts are mostly one append, and so one upsert.

What a tenant has used is read off `usage_days`, which triggers keep in the same transaction: a row per day and agent, and
not one per turn. Only the day on which `since` falls is added up turn by turn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from everturn.core.options import Spent
from everturn.core.parts import Usage
from everturn.stores.books import DAY, account
from everturn.stores.sql.changes import Live
from everturn.stores.sql.database import Operation, Query, Row, Statement, clean

END = 2**62  # a day that is behind every other
LAST = 1e15  # a time behind every other

_COLUMNS = """session, turn, tenant, at, outcome, input, output, cached, reasoning, written, cost, steps, calls,
    top, home, agent"""
# On whose account a turn goes is settled when its row is made.
_AGAIN = "ON CONFLICT (session, turn) DO UPDATE SET " + ", ".join(
    f"{name} = excluded.{name}" for name in "at outcome input output cached reasoning written cost steps calls".split()
)
_COUNT = Statement(
    "count usage",
    f"INSERT INTO usage ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) {_AGAIN}",
    f"""INSERT INTO usage ({_COLUMNS})
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::float8[], $5::text[], $6::bigint[], $7::bigint[],
        $8::bigint[], $9::bigint[], $10::bigint[], $11::float8[], $12::integer[], $13::integer[], $14::text[],
        $15::text[], $16::text[]) {_AGAIN}""",
)

_SUMS = """sum(u.steps), sum(u.calls), sum(u.input), sum(u.output), sum(u.cached), sum(u.reasoning), sum(u.written),
    sum(u.cost)"""


def _sums(column: str) -> Statement:
    only = "AND u.top != ''" if column == "top" else ""  # which has an index of those alone
    return Statement(
        f"usage by {column}",
        f"SELECT {_SUMS} FROM usage u WHERE u.{column} = ? {only}",
        f"""SELECT p.n, {_SUMS} FROM unnest($1::text[]) WITH ORDINALITY AS p(name, n)
        LEFT JOIN usage u ON u.{column} = p.name {only} GROUP BY p.n""",
        returns=True,
    )


_TOTALS = """sum(u.steps), sum(u.calls), sum(u.input), sum(u.output), sum(u.cached), sum(u.reasoning), sum(u.written),
    CASE WHEN sum(u.priced) > 0 THEN sum(u.cost) END"""
_COUNTS = "steps, calls, input, output, cached, reasoning, written"


def _totals(day: str, tenant: str, since: str, first: str, until: str) -> str:
    """Whole days from `first` on, and what happened before that since a time."""
    return f"""(SELECT d.day, d.agent, {", ".join(f"d.{name}" for name in _COUNTS.split(", "))}, d.cost, d.priced
        FROM usage_days d WHERE d.tenant = {tenant} AND d.day >= {first}
        UNION ALL SELECT {day}, t.agent, {", ".join(f"t.{name}" for name in _COUNTS.split(", "))}, coalesce(t.cost, 0),
            CASE WHEN t.cost IS NULL THEN 0 ELSE 1 END
        FROM usage t WHERE t.tenant = {tenant} AND t.at >= {since} AND t.at < {until})"""


_TOTALS_LITE = _totals(f"CAST(t.at / {DAY} AS INTEGER)", "?1", "?2", "?3", "?4")
_TOTALS_PG = _totals(f"floor(t.at / {DAY})::bigint", "p.tenant", "p.since", "p.first", "p.until")
_GIVEN = """unnest($1::text[], $2::float8[], $3::bigint[], $4::float8[]) WITH ORDINALITY
    AS p(tenant, since, first, until, n)"""
OF_TENANT = Statement(
    "usage by tenant",
    f"SELECT {_TOTALS} FROM {_TOTALS_LITE} u",
    f"SELECT p.n, {_TOTALS} FROM {_GIVEN} LEFT JOIN LATERAL {_TOTALS_PG} u ON true GROUP BY p.n",
    returns=True,
)
BY_DAY = Statement(
    "usage by day",
    f"SELECT u.day, u.agent, {_TOTALS} FROM {_TOTALS_LITE} u GROUP BY 1, 2",
    f"SELECT p.n, u.day, u.agent, {_TOTALS} FROM {_GIVEN} CROSS JOIN LATERAL {_TOTALS_PG} u GROUP BY 1, 2, 3",
    returns=True,
)
_BY = {column: _sums(column) for column in ("session", "home", "top")}


def count(session: str, tenant: str, turns: Mapping[str, Live], is_restored: bool) -> Operation[None]:
    """Write how much turns have used by now. What a restored log says was not used here: it may come from anybody."""
    rows: list[tuple[object, ...]] = []
    for turn, live in turns.items():
        above = None if is_restored else live.above
        top, home = ("", session) if above is None else (above.turn, above.session)
        u = live.usage
        counts = (u.input, u.output, u.cached, u.reasoning, u.written, u.cost, live.steps, live.calls)
        counts = (0, 0, 0, 0, 0, None, 0, 0) if is_restored else counts
        rows.append((session, turn, tenant, live.moved, live.outcome, *counts, top, home, clean(live.agent)))
    yield Query(_COUNT, rows, many=True)


def usage(session: str | None, tenant: str, since: float) -> Operation[Usage]:
    """What the turns of a session itself, or those of a tenant since a time, have used in all."""
    column, name = ("tenant", tenant) if session is None else ("session", session)
    return (yield from _sum(column, name, since)).usage


def spent(session: str, top: str, tenant: str, since: float) -> Operation[Spent]:
    """What was used on an account: of the session at the top, of the turn at the top, or of a tenant."""
    return (yield from _sum(account(session, top, tenant), session or top or tenant, since))


def used(tenant: str, since: float) -> Operation[list[tuple[int, str, Spent]]]:
    """What a tenant has used, by day and agent."""
    rows = yield Query(BY_DAY, _since(tenant, since))
    found = [(int(day), str(agent), _spent(sums)) for day, agent, *sums in rows]
    return [row for row in sorted(found, key=lambda row: row[:2]) if row[2] != Spent()]


def _sum(column: str, name: str, since: float) -> Operation[Spent]:
    query = Query(OF_TENANT, _since(name, since)) if column == "tenant" else Query(_BY[column], (name,))
    return _spent((yield query)[0])


def _since(tenant: str, since: float) -> tuple[str, float, int, float]:
    """From when on: the time, the first day that is whole, and when that begins."""
    if since <= 0:
        return tenant, 0.0, -END, 0.0
    first = math.ceil(min(since, LAST) / DAY)
    return tenant, since, first, float(first * DAY)


def _spent(sums: Row) -> Spent:
    *counts, cost = sums
    steps, calls, *tokens = (int(count or 0) for count in counts)
    return Spent(steps, calls, Usage(*tokens, cost=cost))
