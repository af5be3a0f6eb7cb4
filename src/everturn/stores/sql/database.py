"""What an operation may ask of a database, and what runs operations.

An operation is a generator: it yields a `Query`, is sent the rows, and returns its result. It does no I/O of its own and
keeps nothing outside itself, so that it can be run once more from its beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from msgspec import Struct

T = TypeVar("T")


def clean(text: str) -> str:
    """A text as PostgreSQL can keep it: without NUL."""
    return text.replace("\0", "") if "\0" in text else text


Row = Sequence[Any]


class Statement(Struct, frozen=True):
    """One thing to say to a database, in both of its languages.

    On SQLite the parameters are one row (`?`), or many rows of a statement that returns none. On PostgreSQL every
    parameter is an array with one element per row, to be taken apart by `unnest`, so that the same statement serves one
    operation and a whole group of them; if it `returns` rows, their first column is the number (from 1) of the
    parameter row they belong to (`WITH ORDINALITY`), which the operation does not see.

    `foretold` is a write that answers each row of parameters with one empty row, unless its operation is refused.
    """

    name: str
    sqlite: str
    postgres: str
    returns: bool = False
    foretold: bool = False


class Query(NamedTuple):
    """A statement with its parameters: one row of them or, with `many`, a list of rows; then no row comes back."""

    statement: Statement
    parameters: Sequence[Any] = ()
    many: bool = False


Operation = Generator[Query, list[Row], T]


class Database(Protocol):
    """Runs operations: reads at once, writes in groups that share one transaction and one COMMIT."""

    dialect: str

    async def read(self, operation: Callable[[], Operation[T]], is_long: bool = False) -> T:
        """Run an operation that only reads. It sees everything whose write has returned.

        One that may read very much says so, and is run where it keeps nobody else waiting.
        """
        ...

    async def write(self, operation: Callable[[bool], Operation[T]], session: str, is_long: bool = False) -> T:
        """Run an operation in a transaction and return when that is safe on disk.

        Operations of one session run one after another. One that raises has written nothing, and the others of its
        group do not mind. If nobody knows whether its COMMIT arrived it is made and run again, and is told so: with
        True it looks for its own traces (a token, a key) behind the lock on its session.

        Raises:
            StoreUnavailable: the database did not answer in time, or could not write. Whether this was written will be
                found out by whoever tries again.
        """
        ...

    async def hold(self) -> None:
        """Be the one process that drives what is in here, until this is closed.

        Raises:
            StoreBusy: another process is.
        """
        ...

    async def tidy(self, rewrite: bool = False) -> None:
        """Let what was deleted be gone from the disk, too, as far as that is ours to do; `rewrite` spares no effort."""
        ...

    async def aclose(self) -> None:
        """Let go of it. What was acknowledged is safe."""
        ...
