"""Group commit: runs many operations in lockstep, so that the same statement of several is sent once. Pure.

operation A   fence ─┐        insert ─┐
operation B   fence ─┼─ one   insert ─┼─ one   …   COMMIT
operation C   fence ─┘        (refused: it leaves)
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from everturn.stores.sql.database import Operation, Query, Row, Statement


class StatementBatch(NamedTuple):
    """One statement for all operations that wait for it. Parameters: an array per column or, for one row, values."""

    text: str
    parameters: Sequence[Any]


Lockstep: TypeAlias = Generator[StatementBatch, Sequence[Row], None]


class TornGroup(Exception):
    """An operation failed after it had written: its group must be rolled back, and its operations run alone."""


class OperationRun:
    """A running operation and its outcome."""

    __slots__ = ("_operation", "error", "has_written", "query", "result", "rows", "statements")

    def __init__(self, operation: Operation[Any]) -> None:
        self._operation = operation
        self.query: Query | None = None
        self.rows: list[Row] = []
        self.result: Any = None
        self.error: Exception | None = None
        self.has_written = False
        self.statements: tuple[str, ...] = ()

    def start(self) -> None:
        """Run the operation up to its first query."""
        try:
            self._ask(next(self._operation))
        except StopIteration as end:
            self.result = end.value
        except Exception as error:
            self.error = error

    def step(self) -> None:
        """Send the operation its rows, and run it up to its next query."""
        rows, self.rows = self.rows, []
        try:
            self._ask(self._operation.send(rows))
        except StopIteration as end:
            self.query, self.result = None, end.value
        except Exception as error:
            self.query, self.error = None, error
            if self.has_written:
                raise TornGroup from error

    def _ask(self, query: Query) -> None:
        self.query = query
        self.statements = (*self.statements, query.statement.name)
        _learn(self.statements)


def lockstep(runs: Sequence[OperationRun]) -> Lockstep:
    """Run operations side by side: the same statement of many is one batch.

    Operations differ, and one that skips a table would soon be a statement ahead of the others. So it waits: of the
    pending statements, the next is one that was never seen to follow another pending one, and nearly every statement is
    sent once for a group. Rows are in the order of `runs`.

    Raises:
        TornGroup: an operation failed after it had written.
    """
    for run in runs:
        run.start()
    waiting = [run for run in runs if run.query is not None]
    while waiting:
        by_statement = dict[str, list[OperationRun]]()
        for run in waiting:
            by_statement.setdefault(run.statements[-1], []).append(run)
        name = _first(by_statement) if len(by_statement) > 1 else waiting[0].statements[-1]
        yield from _ask(by_statement[name])
        for run in by_statement[name]:
            run.step()
        waiting = [run for run in waiting if run.query is not None]


_followers: dict[str, set[str]] = {}  # statement -> the statements that followed it in some operation
_known_orders: set[tuple[str, ...]] = set()


def _learn(names: tuple[str, ...]) -> None:
    """Record the order of an operation's statements; there are few orders, and each is recorded once."""
    if names not in _known_orders and len(_known_orders) < 10_000:
        _known_orders.add(names)
        for earlier in names[:-1]:
            _followers.setdefault(earlier, set()).add(names[-1])


def _first(by_statement: dict[str, list[OperationRun]]) -> str:
    names = sorted(by_statement)
    for name in names:
        if not any(name in _followers.get(other, ()) for other in names if other != name):
            return name
    return names[0]  # the order is cyclic


def _ask(runs: list[OperationRun]) -> Lockstep:
    """Send one statement for all operations that wait for it."""
    rows, owners = list[Sequence[Any]](), list[OperationRun | None]()
    for run in runs:
        query = run.query
        assert query is not None
        if query.many:
            rows += query.parameters
            owners += [None] * len(query.parameters)  # such a query gets no rows
        elif query.parameters:
            rows.append(query.parameters)
            owners.append(run)
        else:  # without parameters, its rows cannot be attributed
            _distribute(query.statement, (yield StatementBatch(query.statement.postgres, ())), [run])
            continue
        if not query.statement.returns and is_write(query.statement):
            run.has_written = run.has_written or bool(query.parameters)
    if rows:
        statement = runs[0].query.statement  # pyright: ignore[reportOptionalMemberAccess]
        if len(rows) == 1 and (text := single_row_sql(statement)):
            batch = StatementBatch(text, rows[0])
        else:
            batch = StatementBatch(statement.postgres, list(zip(*rows, strict=True)))
        _distribute(statement, (yield batch), owners)


def _distribute(statement: Statement, rows: Sequence[Row], owners: Sequence[OperationRun | None]) -> None:
    """Give each operation its rows, without the number of the parameter row."""
    if not statement.returns:
        return
    is_writing = is_write(statement)
    for row in rows:
        number: int = row[0]
        if (run := owners[number - 1]) is not None:
            run.rows.append(row[1:])
            run.has_written = run.has_written or is_writing


_WRITES = re.compile(r"(?<!FOR )(?<!NO KEY )\b(?:INSERT|UPDATE|DELETE)\b", re.IGNORECASE)


@cache
def is_write(statement: Statement) -> bool:
    """Return whether a statement may write. One that returns rows has written only if it returned some."""
    return _WRITES.search(statement.postgres) is not None


_UNNEST = re.compile(r"unnest\(((?:\s*\$\d+::\w+\[\],?)+)\)(\s+WITH ORDINALITY)?(?!\w)(\s+AS\b)?", re.IGNORECASE)


@cache
def single_row_sql(statement: Statement) -> str | None:
    """Return the statement for one row of parameters, as values: PostgreSQL needs twice the time to expand arrays.

    Returns None if the statement uses its arrays in another way.
    """

    def values(match: re.Match[str]) -> str:
        number = ", 1::bigint" if match[2] else ""
        return f"(VALUES ({match[1].replace('[]', '')}{number})){match[3] or ' AS p'}"

    text = _UNNEST.sub(values, statement.postgres)
    return text if "[]" not in text and "unnest" not in text else None
