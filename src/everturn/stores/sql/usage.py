"""Usage: one row per turn, updated with every step it ends, every call it starts and at its end; reads return sums.

A step and the calls it starts are mostly one append, and so one upsert. The usage of a tenant is read from
`usage_days`, which triggers update in the same transaction: a row per day and agent instead of one per turn. Only the
day on which `since` falls is summed turn by turn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from everturn.core.options import Spent
from everturn.core.parts import Usage
from everturn.core.store_ports import UsageRecord
from everturn.stores.memory_usage import DAY, account_column
from everturn.stores.sql.database import Operation, Query, Row, Statement, remove_nul
from everturn.stores.sql.projections import LiveTurn

END = 2**62  # a day after every other
LATEST_TIME = 1e15  # a time after every other

_COLUMNS = """session, turn, tenant, at, outcome, input, output, cached, reasoning, written, cost, steps, calls,
    top, home, agent, who, model"""
_MARKS = ", ".join("?" * 18)
# The account of a turn is fixed when its row is created.
_AGAIN = "ON CONFLICT (session, turn) DO UPDATE SET " + ", ".join(
    f"{name} = excluded.{name}"
    for name in "at outcome input output cached reasoning written cost steps calls model".split()
)
_COUNT = Statement(
    "count usage",
    f"INSERT INTO usage ({_COLUMNS}) VALUES ({_MARKS}) {_AGAIN}",
    f"""INSERT INTO usage ({_COLUMNS})
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::float8[], $5::text[], $6::bigint[], $7::bigint[],
        $8::bigint[], $9::bigint[], $10::bigint[], $11::float8[], $12::integer[], $13::integer[], $14::text[],
        $15::text[], $16::text[], $17::text[], $18::text[]) {_AGAIN}""",
)

_SUMS = """sum(u.steps), sum(u.calls), sum(u.input), sum(u.output), sum(u.cached), sum(u.reasoning), sum(u.written),
    sum(u.cost)"""


def _sums(column: str) -> Statement:
    only = "AND u.top != ''" if column == "top" else ""  # matches the partial index
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
    """Return the SQL for whole days from `first` on, and for the turns between `since` and that day."""
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
BY_USER = Statement(
    "usage by user",
    f"""SELECT u.who, u.model, u.agent, {_SUMS} FROM usage u WHERE u.tenant = ? AND u.at >= ?
    GROUP BY u.who, u.model, u.agent""",
    f"""SELECT p.n, u.who, u.model, u.agent, {_SUMS} FROM unnest($1::text[], $2::float8[]) WITH ORDINALITY
        AS p(tenant, since, n) JOIN usage u ON u.tenant = p.tenant AND u.at >= p.since GROUP BY 1, 2, 3, 4""",
    returns=True,
)
OF_USER = Statement(
    "usage of user",
    f"SELECT {_SUMS} FROM usage u WHERE u.tenant = ? AND u.who = ? AND u.who != '' AND u.at >= ?",
    f"""SELECT p.n, {_SUMS} FROM unnest($1::text[], $2::text[], $3::float8[]) WITH ORDINALITY
        AS p(tenant, who, since, n)
    LEFT JOIN usage u ON u.tenant = p.tenant AND u.who = p.who AND u.who != '' AND u.at >= p.since GROUP BY p.n""",
    returns=True,
)
_BY = {column: _sums(column) for column in ("session", "home", "top")}


def write_usage(session: str, tenant: str, turns: Mapping[str, LiveTurn], is_restored: bool) -> Operation[None]:
    """Write the usage of turns so far. A restored log adds none: it is untrusted, and was not used here."""
    rows: list[tuple[object, ...]] = []
    for turn, live in turns.items():
        parent = None if is_restored else live.lineage
        top, home = ("", session) if parent is None else (parent.turn, parent.session)
        u = live.usage
        counts = (u.input, u.output, u.cached, u.reasoning, u.written, u.cost, live.steps, live.calls)
        counts = (0, 0, 0, 0, 0, None, 0, 0) if is_restored else counts
        names = (remove_nul(live.agent), "" if is_restored else remove_nul(live.by), remove_nul(live.model))
        rows.append((session, turn, tenant, live.moved, live.outcome, *counts, top, home, *names))
    yield Query(_COUNT, rows, many=True)


def record_usage(record: UsageRecord) -> Operation[None]:
    """Write the usage of a request outside of a turn, as a row without a session. A row that is written again is the same."""
    u = record.spent.usage
    counts = (u.input, u.output, u.cached, u.reasoning, u.written, u.cost, record.spent.steps, record.spent.calls)
    names = ("", remove_nul(record.user), remove_nul(record.model))
    row = ("", record.id, record.tenant, record.at, "completed", *counts, "", "", *names)
    yield Query(_COUNT, [row], many=True)


def usage(session: str | None, tenant: str, since: float) -> Operation[Usage]:
    """Return the total usage of a session's own turns, or of a tenant's turns since a time."""
    column, name = ("tenant", tenant) if session is None else ("session", session)
    return (yield from _sum(column, name, since)).usage


def spent(session: str, top: str, tenant: str, since: float) -> Operation[Spent]:
    """Return the usage of an account: of the root session, of the root turn, or of a tenant."""
    return (yield from _sum(account_column(session, top, tenant), session or top or tenant, since))


def usage_by_day(tenant: str, since: float) -> Operation[list[tuple[int, str, Spent]]]:
    """Return the usage of a tenant by day and agent."""
    rows = yield Query(BY_DAY, _since(tenant, since))
    usages = [(int(day), str(agent), _spent(sums)) for day, agent, *sums in rows]
    return [row for row in sorted(usages, key=lambda row: row[:2]) if row[2] != Spent()]


def usage_by_user(tenant: str, since: float) -> Operation[list[tuple[str, str, str, Spent]]]:
    """Return the usage of a tenant by user, model and agent."""
    rows = yield Query(BY_USER, (tenant, max(since, 0.0)))
    usages = [(str(user), str(model), str(agent), _spent(sums)) for user, model, agent, *sums in rows]
    return [row for row in sorted(usages, key=lambda row: row[:3]) if row[3] != Spent()]


def user_spent(tenant: str, user: str, since: float) -> Operation[Spent]:
    """Return the usage of the turns that a user started."""
    return _spent((yield Query(OF_USER, (tenant, user, max(since, 0.0))))[0])


def _sum(column: str, name: str, since: float) -> Operation[Spent]:
    query = Query(OF_TENANT, _since(name, since)) if column == "tenant" else Query(_BY[column], (name,))
    return _spent((yield query)[0])


def _since(tenant: str, since: float) -> tuple[str, float, int, float]:
    """Return the parameters of a time: the time, the first whole day after it, and the start of that day."""
    if since <= 0:
        return tenant, 0.0, -END, 0.0
    first = math.ceil(min(since, LATEST_TIME) / DAY)
    return tenant, since, first, float(first * DAY)


def _spent(sums: Row) -> Spent:
    *counts, cost = sums
    steps, calls, *tokens = (int(count or 0) for count in counts)
    return Spent(steps, calls, Usage(*tokens, cost=cost))
