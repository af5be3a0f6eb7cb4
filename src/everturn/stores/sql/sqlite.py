"""SQLite: runs writes in groups on one connection and reads on another, and commits in a thread.

The statements themselves take a few microseconds each, less than it takes to hand one to a thread, so they run on the
event loop. What takes time is to sync a group to disk: a thread does that, and meanwhile the next group gathers.
Readers of a file in WAL mode never wait for its writer.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from everturn import failpoints
from everturn.errors import StoreUnavailable
from everturn.stores.sql.database import Operation, Row
from everturn.stores.sql.file_lock import FileLock
from everturn.stores.sql.migrate import upgrade_sqlite

T = TypeVar("T")

GROUP_LIMIT = 128  # operations in a group: more would block the event loop for too long
BUSY_TIMEOUT = 10.0  # seconds to wait for another process that is writing

# A page that many groups change is copied from the WAL into the file once for all of them.
CHECKPOINT = "wal_autocheckpoint = 4000"  # pages: at most about 16 MB beside the file

OperationFactory = Callable[[bool], Operation[Any]]


class _SqliteJob:
    """A queued operation; without a `factory`, a statement (`word`) for the database itself."""

    __slots__ = ("error", "factory", "future", "is_long", "result", "word")

    def __init__(
        self, future: asyncio.Future[Any], factory: OperationFactory | None, is_long: bool, word: str = ""
    ) -> None:
        self.future, self.factory, self.is_long, self.word = future, factory, is_long, word
        self.result: Any = None
        self.error: BaseException | None = None


class _Unclean(Exception):
    """An operation failed after it had written something."""


class Sqlite:
    """A database in a file, or in memory (":memory:")."""

    dialect = "sqlite"

    def __init__(self, path: str | Path) -> None:
        self._path = str(path)
        self._is_memory = self._path == ":memory:"
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self._long_reader: sqlite3.Connection | None = None
        self._hold: FileLock | None = None
        # One thread each, created on first use: for opening and commits; for long reads.
        self._thread = ThreadPoolExecutor(1, "everturn-sqlite")
        self._reading = ThreadPoolExecutor(1, "everturn-sqlite-reading")
        self._waiting: list[_SqliteJob] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_busy = self._is_closed = False
        self._timeout = BUSY_TIMEOUT  # of the writer, as currently set
        self._idle: asyncio.Future[None] | None = None

    @property
    def is_alone(self) -> bool:
        """Whether only this process writes to the logs in this database."""
        return self._hold is not None or self._is_memory

    # Opening and closing ----------------------------------------------------------------------------------------

    async def _ready(self) -> None:
        if self._is_closed:
            raise self._closed()
        try:
            if self._is_memory:
                self._open()
            else:
                await asyncio.get_running_loop().run_in_executor(self._thread, self._open)
        except sqlite3.Error as error:
            raise self._unavailable(error) from error

    def _open(self) -> None:
        if self._writer is not None:
            return
        if not self._is_memory:
            with contextlib.suppress(OSError):  # it exists; or it cannot be created, and SQLite reports why
                # Readable by its owner only. SQLite gives its other files the same mode.
                os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_CLOEXEC", 0), 0o600))
        writer = self._connect(BUSY_TIMEOUT)
        try:
            upgrade_sqlite(writer)
            reader = writer if self._is_memory else self._connect(1.0)
        except BaseException:
            writer.close()
            raise
        self._writer, self._reader = writer, reader

    def _connect(self, timeout: float) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=timeout, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        try:
            # FULL: a COMMIT is on disk when it returns, even if the power fails after that.
            _switch_to_wal(connection, BUSY_TIMEOUT)
            for pragma in ("synchronous = FULL", "secure_delete = ON", CHECKPOINT):
                connection.execute(f"PRAGMA {pragma}").fetchall()
        except BaseException:
            connection.close()
            raise
        return connection

    async def hold_driver_lock(self) -> None:
        """Become the only process that drives the sessions of this file.

        Raises:
            StoreBusy: another process drives them.
        """
        if self._hold is None and not self._is_memory:
            self._hold = FileLock(Path(f"{self._path}.lock"))

    async def compact(self, rewrite: bool = False) -> None:
        """Remove deleted data from the files too, by a checkpoint of the WAL.

        Unused parts of pages may keep copies of moved data; to `rewrite` the whole file leaves none.
        """
        if self._writer is None or self._is_closed:
            await self._ready()
        if not self._is_memory:
            if rewrite:
                await self._join(None, True, "VACUUM")
            await self._join(None, True, "PRAGMA wal_checkpoint(TRUNCATE)")

    async def aclose(self) -> None:
        """Close the file. Acknowledged writes are durable."""
        self._is_closed = True
        loop = asyncio.get_running_loop()
        if self._is_busy and self._loop is loop:
            self._idle = loop.create_future()
            await self._idle
        for thread in (self._thread, self._reading):
            thread.shutdown()
        for connection in (self._long_reader, self._reader, self._writer):
            if connection is not None:
                connection.close()
        self._writer = self._reader = self._long_reader = None
        if self._hold is not None:
            self._hold.release()
            self._hold = None

    def _closed(self) -> StoreUnavailable:
        return StoreUnavailable(f"the store in {self._path} is closed; open another one on the same file")

    def _unavailable(self, error: BaseException) -> StoreUnavailable:
        folder = Path(self._path).parent
        if not self._is_memory and not folder.is_dir():
            return StoreUnavailable(f"the store in {self._path} cannot be opened: create the folder {folder} first")
        return StoreUnavailable(f"the store in {self._path} does not work: {error}")

    # Reading ----------------------------------------------------------------------------------------------------

    async def read(self, operation: Callable[[], Operation[T]], is_long: bool = False) -> T:
        """Run an operation that only reads: at once, or (a long one) in a thread."""
        if self._reader is None:
            await self._ready()
        if self._reader is None:  # closed while this read waited for the file to open
            raise self._closed()
        try:
            if not is_long or self._is_memory:
                return _run(self._reader, operation())
            return await asyncio.get_running_loop().run_in_executor(self._reading, self._read_aside, operation)
        except sqlite3.Error as error:
            raise self._unavailable(error) from error

    def _read_aside(self, operation: Callable[[], Operation[T]]) -> T:
        if self._long_reader is None:
            self._long_reader = self._connect(BUSY_TIMEOUT)
        return _run(self._long_reader, operation())

    # Writing ----------------------------------------------------------------------------------------------------

    async def write(self, operation: Callable[[bool], Operation[T]], session: str, is_long: bool = False) -> T:
        """Run an operation with all others that wait, and return when the group is durable."""
        if self._writer is None or self._is_closed:
            await self._ready()
        return await self._join(operation, is_long)

    def _join(self, factory: OperationFactory | None, is_long: bool, word: str = "") -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        if self._is_closed:  # closed while this write waited for the file to open
            raise self._closed()
        if loop is not self._loop:  # an earlier loop has ended, and its waiting callers with it
            self._loop, self._is_busy, self._waiting = loop, False, []
        future: asyncio.Future[Any] = loop.create_future()
        self._waiting.append(_SqliteJob(future, factory, is_long, word))
        if not self._is_busy:
            self._is_busy = True
            loop.call_soon(self._begin)  # after other tasks that are about to write
        return future

    def _begin(self) -> None:
        """Run a group, and have it committed."""
        assert self._loop is not None
        jobs, self._waiting = self._waiting[:GROUP_LIMIT], self._waiting[GROUP_LIMIT:]
        if not self._is_memory and any(job.is_long for job in jobs):
            self._thread.submit(self._work, jobs, self._loop)
            return
        try:
            has_written = self._perform(jobs, 0.0)
            if has_written and not self._is_memory:
                self._thread.submit(self._make_safe, jobs, self._loop)
                return
            self._commit()
        except BaseException as error:
            if _is_locked(error):  # locked by another process: a thread waits for it
                self._thread.submit(self._work, jobs, self._loop)
                return
            self._give_up(jobs, error)
        self._finish(jobs)

    def _work(self, jobs: list[_SqliteJob], loop: asyncio.AbstractEventLoop) -> None:
        """Run and commit a group in the thread."""
        try:
            assert self._writer is not None
            for job in jobs:
                if job.factory is None:
                    self._writer.execute(job.word).fetchall()
            self._perform(jobs, BUSY_TIMEOUT)
            self._commit()
        except BaseException as error:
            self._give_up(jobs, error)
        self._hand_back(jobs, loop)

    def _make_safe(self, jobs: list[_SqliteJob], loop: asyncio.AbstractEventLoop) -> None:
        try:
            self._commit()
        except BaseException as error:
            self._give_up(jobs, error)
        self._hand_back(jobs, loop)

    def _hand_back(self, jobs: list[_SqliteJob], loop: asyncio.AbstractEventLoop) -> None:
        with suppress(RuntimeError):  # the loop has ended, and no caller waits any more
            loop.call_soon_threadsafe(self._finish, jobs)

    def _perform(self, jobs: list[_SqliteJob], timeout: float) -> bool:
        """Run the operations of a group in one transaction; return whether anything was written."""
        writer = self._writer
        assert writer is not None
        failpoints.hit_failpoint("store.group.before")
        before = writer.total_changes
        try:
            self._enter(writer, timeout)
            for job in jobs:
                changes = writer.total_changes
                _run_job(writer, job)
                if job.error is not None and writer.total_changes != changes:
                    raise _Unclean
        except _Unclean:
            # Once more, each behind a savepoint: the writes of one can be rolled back alone.
            writer.execute("ROLLBACK")
            self._enter(writer, timeout)
            for job in jobs:
                writer.execute("SAVEPOINT one")
                _run_job(writer, job)
                if job.error is not None:
                    writer.execute("ROLLBACK TO one")
                writer.execute("RELEASE one")
        return writer.total_changes != before

    def _enter(self, writer: sqlite3.Connection, timeout: float) -> None:
        if writer.in_transaction:  # left by a loop that ended in the middle
            writer.execute("ROLLBACK")
        if timeout != self._timeout:
            writer.execute(f"PRAGMA busy_timeout = {int(timeout * 1000)}")
            self._timeout = timeout
        writer.execute("BEGIN IMMEDIATE")

    def _commit(self) -> None:
        assert self._writer is not None
        failpoints.hit_failpoint("store.commit.before")
        self._writer.execute("COMMIT")
        failpoints.hit_failpoint("store.commit.after")

    def _give_up(self, jobs: Sequence[_SqliteJob], error: BaseException) -> None:
        """Roll the group back and fail all its jobs."""
        assert self._writer is not None
        with suppress(sqlite3.Error):  # SQLite may have rolled back by itself
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
        for job in jobs:  # also the refused ones: the reason of their refusal may be rolled back
            job.error = self._unavailable(error) if isinstance(error, sqlite3.Error) else error

    def _finish(self, jobs: Sequence[_SqliteJob]) -> None:
        for job in jobs:
            if job.future.done():
                continue
            if job.error is None:
                job.future.set_result(job.result)
            else:
                job.future.set_exception(job.error)
        assert self._loop is not None
        if self._waiting:
            self._loop.call_soon(self._begin)
            return
        self._is_busy = False
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)


def _switch_to_wal(connection: sqlite3.Connection, timeout: float) -> None:
    """Switch the file to write-ahead logging, also when another connection is doing the same.

    Two that switch a new file at once each hold a read lock the other one needs released: SQLite refuses one of them
    at once instead of waiting, whatever the busy timeout says.
    """
    end = time.monotonic() + timeout
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
            return
        except sqlite3.OperationalError as error:
            if not _is_locked(error) or time.monotonic() > end:
                raise
        time.sleep(0.01)


_NOTHING: Row = ()


def _run(connection: sqlite3.Connection, operation: Operation[T]) -> T:
    """Run an operation to its end."""
    rows: list[Row] | None = None
    send = operation.send
    try:
        while True:
            statement, parameters, many = send(rows)  # type: ignore[arg-type]
            bound: Any = parameters
            if _NUMBERS_ARE_NAMES and "?1" in statement.sqlite:
                bound = [_by_number(row) for row in parameters] if many else _by_number(parameters)
            if many:
                connection.executemany(statement.sqlite, bound)
                rows = []
            else:
                cursor = connection.execute(statement.sqlite, bound)
                rows = cursor.fetchall()
                if not rows and statement.returns and cursor.rowcount > 0:
                    rows = [_NOTHING] * cursor.rowcount  # RETURNING would double the cost of an UPDATE
    except StopIteration as stop:
        return stop.value


# CPython 3.12.0 to 3.12.3 warns when numbered parameters (`?1`) are bound by a sequence (gh-117995). A mapping from the
# number is the same to SQLite, and costs a dictionary that the other versions are spared.
_NUMBERS_ARE_NAMES = (3, 12, 0) <= sys.version_info[:3] < (3, 12, 4)


def _by_number(parameters: Sequence[Any]) -> Mapping[str, Any]:
    return {str(number): value for number, value in enumerate(parameters, 1)}


def _run_job(writer: sqlite3.Connection, job: _SqliteJob) -> None:
    """Run the operation of a job and record its outcome; an error of the database itself fails the whole group."""
    job.result = job.error = None
    try:
        if job.factory is not None:
            # `again` is always False: when a COMMIT fails here, nothing is retried automatically.
            job.result = _run(writer, job.factory(False))
    except sqlite3.Error as error:
        if not isinstance(error, _OPERATION_ERRORS):
            raise
        job.error = error
    except Exception as error:
        job.error = error


# Errors that an operation causes itself, and that do not affect the others of its group.
_OPERATION_ERRORS = (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.InterfaceError, sqlite3.ProgrammingError)


def _is_locked(error: BaseException) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without the extended code: recovering, a snapshot
    return isinstance(error, sqlite3.OperationalError) and code == sqlite3.SQLITE_BUSY
