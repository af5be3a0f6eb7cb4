"""A group of operations → one statement that commits by itself, where all they ask can be foretold. Pure.

An append with a shadow at hand reads nothing. It asks one thing only, whether its fence still stands, and goes on in one
way if it does. So it is run to its end as if it did, and everything it says is said at once:

WITH q0 AS (fence of A, B, C), q1 AS (events of A, B, C), q2 AS (messages of B), … SELECT 1 / (all fences stood)

If one did not, the division fails and nothing is written; then they are run in step, where the one is refused alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from everturn.stores.sql.database import Operation, Query, Row, Statement
from everturn.stores.sql.grouping import Batch, for_one, is_write

_STANDS: list[Row] = [()]


class Foretold:
    """An operation as far as it goes without knowing anything: its queries, and then its result or its next question."""

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
        # What a statement writes, another part of it does not see: an operation may say one thing to each table.
        tables = {_table(query.statement) for query in self.queries}
        self.is_whole = self._next is None and self.error is None and 0 < len(self.queries) == len(tables)

    def _look_ahead(self) -> None:
        query = next(self._operation)
        while is_write(query.statement) and (query.statement.foretold or not query.statement.returns):
            self.queries.append(query)
            query = self._operation.send(_STANDS if query.statement.foretold else [])
        self._next = query

    def operation(self) -> Operation[Any]:
        """The same again, for those who wait for answers. One that was refused is made anew: it will find out why."""
        for query in self.queries:
            rows = yield query
            if query.statement.foretold and not rows:
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


def merge(group: Sequence[Foretold]) -> Batch:
    """Everything that whole operations say, as one statement. It fails, dividing by zero, unless all stood."""
    said: dict[str, tuple[Statement, list[Sequence[Any]]]] = {}
    for operation in group:
        for statement, parameters, many in operation.queries:
            rows = said.setdefault(statement.name, (statement, []))[1]
            if many:
                rows += parameters
            else:
                rows.append(parameters)
    parts, values = list[tuple[Statement, bool]](), list[Any]()
    stands = 0
    # In one order, whoever spoke first: each order would be a statement of its own, to be planned and kept by the server.
    for statement, rows in sorted(said.values(), key=lambda one: (not one[0].foretold, one[0].name)):
        # Values for a single row are cheaper, but in a group every mixture of the two would be a statement of its own.
        is_one = len(group) == 1 and len(rows) == 1 and for_one(statement) is not None
        parts.append((statement, is_one))
        values += rows[0] if is_one else zip(*rows, strict=True)
        stands += len(rows) if statement.foretold else 0
    return Batch(_text(tuple(parts)), [*values, stands])


@cache
def _text(parts: tuple[tuple[Statement, bool], ...]) -> str:
    texts, count, stood = list[str](), 0, "0"
    for at, (statement, is_one) in enumerate(parts):
        text = (for_one(statement) if is_one else None) or statement.postgres
        shifted = re.sub(r"\$(\d+)", lambda found, by=count: f"${int(found[1]) + by}", text)
        texts.append(f"q{at} AS ({shifted})")
        count += max(int(number) for number in re.findall(r"\$(\d+)", text))
        if statement.foretold:
            stood = f"(SELECT count(*) FROM q{at})"
    return f"WITH {', '.join(texts)} SELECT 1 / CASE WHEN {stood} = ${count + 1}::bigint THEN 1 ELSE 0 END"


@cache
def _table(statement: Statement) -> str:
    found = re.search(r"(?:INSERT INTO|UPDATE|DELETE FROM)\s+(\w+)", statement.postgres)
    return found[1] if found else statement.name
