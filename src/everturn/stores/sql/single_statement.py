"""Single-statement commit: merges a group of appends into one statement that commits by itself. Pure.

An append with a cached projection reads nothing. Its only question is whether its fence still holds, and there is only
one way to continue if it does. So it is run to its end as if it did, and all its statements are sent at once:

    WITH q0 AS (fence of A, B, C), q1 AS (events of A, B, C), q2 AS (messages of B), … SELECT 1 / (all fences hold)

If a fence does not hold, the division fails and nothing is written; then the group runs in lockstep, where only the
stale append is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from everturn.stores.sql.database import Operation, Query, Row, Statement
from everturn.stores.sql.group_commit import StatementBatch, is_write, single_row_sql

_FENCE_HOLDS: list[Row] = [()]


class PredictedOperation:
    """An operation, run as far as its answers can be predicted: its queries, then its result or its next query."""

    __slots__ = ("_make", "_next", "_operation", "error", "is_whole", "queries", "result")

    def __init__(self, make: Callable[[bool], Operation[Any]], is_again: bool) -> None:
        self._make, self._operation = make, make(is_again)
        self._next: Query | None = None
        self.queries: list[Query] = []
        self.result: Any = None
        self.error: Exception | None = None
        try:
            self._look_ahead()
        except StopIteration as end:
            self.result = end.value
        except Exception as error:
            self.error = error
        # Parts of one statement do not see each other's writes: an operation may write to each table once only.
        tables = {_table(query.statement) for query in self.queries}
        self.is_whole = self._next is None and self.error is None and 0 < len(self.queries) == len(tables)

    def _look_ahead(self) -> None:
        query = next(self._operation)
        while is_write(query.statement) and (query.statement.is_predictable or not query.statement.returns):
            self.queries.append(query)
            query = self._operation.send(_FENCE_HOLDS if query.statement.is_predictable else [])
        self._next = query

    def operation(self) -> Operation[Any]:
        """Replay the operation with real answers. A refused one is created again, to find out why."""
        for query in self.queries:
            rows = yield query
            if query.statement.is_predictable and not rows:
                return (yield from self._make(True))
        if self.error is not None:
            raise self.error
        query = self._next
        try:
            while query is not None:
                query = self._operation.send((yield query))
        except StopIteration as end:
            return end.value
        return self.result


def merge_operations(group: Sequence[PredictedOperation]) -> StatementBatch:
    """Merge all queries of whole operations into one statement. It divides by zero unless all fences hold."""
    by_name: dict[str, tuple[Statement, list[Sequence[Any]]]] = {}
    for operation in group:
        for statement, parameters, many in operation.queries:
            rows = by_name.setdefault(statement.name, (statement, []))[1]
            if many:
                rows += parameters
            else:
                rows.append(parameters)
    parts, values = list[tuple[Statement, bool]](), list[Any]()
    expected = 0
    # In a fixed order: each order would be a statement of its own, to be planned and kept by the server.
    for statement, rows in sorted(by_name.values(), key=lambda pair: (not pair[0].is_predictable, pair[0].name)):
        # Values for a single row are cheaper, but in a group every mixture of the two would be a statement of its own.
        is_one = len(group) == 1 and len(rows) == 1 and single_row_sql(statement) is not None
        parts.append((statement, is_one))
        values += rows[0] if is_one else zip(*rows, strict=True)
        expected += len(rows) if statement.is_predictable else 0
    return StatementBatch(_text(tuple(parts)), [*values, expected])


@cache
def _text(parts: tuple[tuple[Statement, bool], ...]) -> str:
    texts, count, fences = list[str](), 0, "0"
    for at, (statement, is_one) in enumerate(parts):
        text = (single_row_sql(statement) if is_one else None) or statement.postgres
        shifted = re.sub(r"\$(\d+)", lambda found, by=count: f"${int(found[1]) + by}", text)
        texts.append(f"q{at} AS ({shifted})")
        count += max(int(number) for number in re.findall(r"\$(\d+)", text))
        if statement.is_predictable:
            fences = f"(SELECT count(*) FROM q{at})"
    return f"WITH {', '.join(texts)} SELECT 1 / CASE WHEN {fences} = ${count + 1}::bigint THEN 1 ELSE 0 END"


@cache
def _table(statement: Statement) -> str:
    match = re.search(r"(?:INSERT INTO|UPDATE|DELETE FROM)\s+(\w+)", statement.postgres)
    return match[1] if match else statement.name
