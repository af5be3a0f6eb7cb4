"""Database port: what runs operations, and the statements and queries that an operation may use.

An operation is a generator: it yields a `Query`, is sent the rows, and returns its result. It does no I/O of its own
and keeps no state outside itself, so that it can be run again from its beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from msgspec import Struct

T = TypeVar("T")


def remove_nul(text: str) -> str:
    """Return a text without NUL, which PostgreSQL cannot store."""
    return text.replace("\0", "") if "\0" in text else text


Row = Sequence[Any]


class Statement(Struct, frozen=True):
    """One SQL statement, in both dialects.

    On SQLite the parameters are one row (`?`), or many rows of a statement that returns none. On PostgreSQL every
    parameter is an array with one element per row, to be expanded by `unnest`, so that the same statement serves one
    operation and a whole group of them; if it `returns` rows, their first column is the number (from 1) of the
    parameter row they belong to (`WITH ORDINALITY`), which the operation does not see.

    A predictable statement is a write that returns one empty row for each row of parameters, unless its operation is
    refused: its answer can be predicted.
    """

    name: str
    sqlite: str
    postgres: str
    returns: bool = False
    is_predictable: bool = False


class Query(NamedTuple):
    """A statement with its parameters: one row of them or, with `many`, a list of rows; then no rows are returned."""

    statement: Statement
    parameters: Sequence[Any] = ()
    many: bool = False


Operation = Generator[Query, list[Row], T]


class Database(Protocol):
    """Runs operations: reads at once, writes in groups that share one transaction and one COMMIT."""

    dialect: str

    async def read(self, operation: Callable[[], Operation[T]], is_long: bool = False) -> T:
        """Run an operation that only reads. It sees everything whose write has returned.

        With `is_long`, the operation may read a lot, and runs where it blocks no other.
        """
        ...

    async def write(self, operation: Callable[[bool], Operation[T]], session: str, is_long: bool = False) -> T:
        """Run an operation in a transaction and return when the transaction is durable.

        Operations of one session run one after another. One that raises has written nothing, and does not affect the
        others of its group. If it is unknown whether its COMMIT succeeded, the operation is created and run again with
        True: then it looks for its own traces (a token, a key) behind the lock on its session.

        Raises:
            StoreUnavailable: the database did not answer in time, or could not write. A retry finds out whether
                this was written.
        """
        ...

    async def hold_driver_lock(self) -> None:
        """Become the only process that drives the sessions of this database, until it is closed.

        Raises:
            StoreBusy: another process drives them.
        """
        ...

    async def compact(self, rewrite: bool = False) -> None:
        """Remove deleted data from the disk too, where that is up to us; `rewrite` rewrites the whole file."""
        ...

    async def aclose(self) -> None:
        """Close the database. Acknowledged writes are durable."""
        ...
