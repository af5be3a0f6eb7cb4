"""Many operations → one row of statements: they go in step, and what several ask at once is asked once. Pure.

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


class Batch(NamedTuple):
    """What to say for everybody who asks it now: arrays are its parameters, one for each column; or, for one row, values."""

    text: str
    parameters: Sequence[Any]


Lockstep: TypeAlias = Generator[Batch, Sequence[Row], None]


class TornGroup(Exception):
    """An operation failed after it had written: its group must be rolled back, and its operations run alone."""


class Run:
    """One operation under way, and what became of it."""

    __slots__ = ("_operation", "error", "has_written", "query", "result", "rows", "said")

    def __init__(self, operation: Operation[Any]) -> None:
        self._operation = operation
        self.query: Query | None = None
        self.rows: list[Row] = []
        self.result: Any = None
        self.error: Exception | None = None
        self.has_written = False
        self.said: tuple[str, ...] = ()

    def start(self) -> None:
        """Run it up to its first query."""
        try:
            self._ask(next(self._operation))
        except StopIteration as end:
            self.result = end.value
        except Exception as error:
            self.error = error

    def step(self) -> None:
        """Give it the rows it asked for, and run it up to its next query."""
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
        self.said = (*self.said, query.statement.name)
        _learn(self.said)


def lockstep(runs: Sequence[Run]) -> Lockstep:
    """Run operations side by side: the same statement of many is one batch.

    Operations differ, and one that skips a table would soon be a statement ahead of the others. So it waits: of the
    statements that are asked now, one is run that no other was ever followed by, and nearly every statement is run once
    for a group. Rows come in the order of `runs`.

    Raises:
        TornGroup: one failed after it had written.
    """
    for run in runs:
        run.start()
    waiting = [run for run in runs if run.query is not None]
    while waiting:
        asking = dict[str, list[Run]]()
        for run in waiting:
            asking.setdefault(run.said[-1], []).append(run)
        name = _first(asking) if len(asking) > 1 else waiting[0].said[-1]
        yield from _ask(asking[name])
        for run in asking[name]:
            run.step()
        waiting = [run for run in waiting if run.query is not None]


_later: dict[str, set[str]] = {}  # statement -> those that an operation came to after it
_seen: set[tuple[str, ...]] = set()


def _learn(said: tuple[str, ...]) -> None:
    """Remember in which order operations say things; there are few ways, and each is looked at once."""
    if said not in _seen and len(_seen) < 10_000:
        _seen.add(said)
        for earlier in said[:-1]:
            _later.setdefault(earlier, set()).add(said[-1])


def _first(asking: dict[str, list[Run]]) -> str:
    names = sorted(asking)
    for name in names:
        if not any(name in _later.get(other, ()) for other in names if other != name):
            return name
    return names[0]  # they go round in a circle


def _ask(runs: list[Run]) -> Lockstep:
    """One statement of everybody who asks it."""
    rows, owners = list[Sequence[Any]](), list[Run | None]()
    for run in runs:
        query = run.query
        assert query is not None
        if query.many:
            rows += query.parameters
            owners += [None] * len(query.parameters)  # they are told nothing
        elif query.parameters:
            rows.append(query.parameters)
            owners.append(run)
        else:  # nothing in its rows would say whose they are
            _hand(query.statement, (yield Batch(query.statement.postgres, ())), [run])
            continue
        if not query.statement.returns and is_write(query.statement):
            run.has_written = run.has_written or bool(query.parameters)
    if rows:
        statement = runs[0].query.statement  # pyright: ignore[reportOptionalMemberAccess]
        if len(rows) == 1 and (text := for_one(statement)):
            batch = Batch(text, rows[0])
        else:
            batch = Batch(statement.postgres, list(zip(*rows, strict=True)))
        _hand(statement, (yield batch), owners)


def _hand(statement: Statement, answer: Sequence[Row], owners: Sequence[Run | None]) -> None:
    """Give everybody their rows, without the number that says whose they are."""
    if not statement.returns:
        return
    wrote = is_write(statement)
    for row in answer:
        number: int = row[0]
        if (run := owners[number - 1]) is not None:
            run.rows.append(row[1:])
            run.has_written = run.has_written or wrote


_WRITES = re.compile(r"(?<!FOR )(?<!NO KEY )\b(?:INSERT|UPDATE|DELETE)\b", re.IGNORECASE)


@cache
def is_write(statement: Statement) -> bool:
    """Whether a statement may change anything. One that returns rows has done so only if some come back."""
    return _WRITES.search(statement.postgres) is not None


_UNNEST = re.compile(r"unnest\(((?:\s*\$\d+::\w+\[\],?)+)\)(\s+WITH ORDINALITY)?(?!\w)(\s+AS\b)?", re.IGNORECASE)


@cache
def for_one(statement: Statement) -> str | None:
    """The same statement for one row of parameters, as values: PostgreSQL takes arrays apart for twice the price.

    None if it uses its arrays otherwise.
    """

    def values(found: re.Match[str]) -> str:
        number = ", 1::bigint" if found[2] else ""
        return f"(VALUES ({found[1].replace('[]', '')}{number})){found[3] or ' AS p'}"

    text = _UNNEST.sub(values, statement.postgres)
    return text if "[]" not in text and "unnest" not in text else None
