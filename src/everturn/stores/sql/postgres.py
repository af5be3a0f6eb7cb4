"""PostgreSQL: runs operations in groups, so that the writes of many sessions share one transaction of a few statements.

A writer is a connection with a queue. It takes what has queued up while it was busy, never two operations of one
session, merges what it can into one statement (single_statement.py), runs the others in lockstep (group_commit.py) and
commits once; it never waits for a group to fill. A group that fails is rolled back and its operations run alone. When
the connection is lost, they run again from their beginning on a new one, with `again` if it is unknown whether their
COMMIT succeeded. All of it belongs to one event loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from everturn import failpoints
from everturn.errors import StoreUnavailable
from everturn.stores.sql.database import Operation
from everturn.stores.sql.errors import (
    ErrorAction,
    classify_error,
    is_connection_closed,
    is_fence_failure,
    is_lock_timeout,
    is_server_error,
    translate_error,
)
from everturn.stores.sql.group_commit import OperationRun, StatementBatch, TornGroup, lockstep
from everturn.stores.sql.postgres_pool import PostgresConnection, PostgresConnections
from everturn.stores.sql.row_security import current_scope
from everturn.stores.sql.single_statement import PredictedOperation, merge_operations

T = TypeVar("T")

GROUP_LIMIT = 256  # operations in one transaction: more would only delay the first of them
TRIES = 10  # of an operation that runs alone and conflicts with others
RETRY_SECONDS = 30.0  # seconds: a restart or a failover of the database takes less


class Postgres:
    """A `Database` on PostgreSQL: `Postgres("postgresql://user@host/name")`, or `…?schema=tenant` for a part of one."""

    dialect = "postgresql"

    def __init__(self, url: str, schema: str | None = None, writers: int = 2, timeout: float = RETRY_SECONDS) -> None:
        self._links = PostgresConnections(url, schema)
        self._timeout = timeout
        self._writers = [_PostgresWriter(self._links) for _ in range(writers)]

    async def read(self, operation: Callable[[], Operation[T]], is_long: bool = False) -> T:
        """Run an operation that only reads; each of its queries has its own snapshot."""
        loop = asyncio.get_running_loop()
        deadline, tries = loop.time() + self._timeout, 0
        while True:
            try:
                run = await self._read(OperationRun(operation()))
                break
            except Exception as error:
                tries, response = tries + 1, classify_error(error)
                if response is ErrorAction.OWN_ERROR:
                    raise
                if response is ErrorAction.FINAL or (
                    loop.time() > deadline and not (tries == 1 and is_connection_closed(error))
                ):
                    raise translate_error(error) from error
            await asyncio.sleep(_pause(tries))
        if run.error is not None:
            raise run.error
        return run.result

    async def _read(self, run: OperationRun) -> OperationRun:
        link = await self._links.borrow(current_scope())
        try:
            await _run(link, [run])
        except BaseException as error:
            if not is_server_error(error):
                link.terminate()
            raise
        finally:
            self._links.give_back(link)
        return run

    async def write(self, operation: Callable[[bool], Operation[T]], session: str, is_long: bool = False) -> T:
        """Run an operation in a group and return when the group is committed."""
        self._links.check()
        loop = asyncio.get_running_loop()
        job = _PostgresJob(operation, session, loop.create_future(), loop.time() + self._timeout, is_long)
        self._writers[hash(session) % len(self._writers)].add(job)
        return await job.future

    @property
    def tenant_role(self) -> str:
        """The role that reads for one tenant, once connected; "" where only queries separate tenants."""
        return self._links.role

    async def hold_driver_lock(self) -> None:
        """Become the only process that drives the sessions of this database, until it is closed."""
        await self._links.hold_driver_lock()

    async def compact(self, rewrite: bool = False) -> None:
        """Do nothing: PostgreSQL vacuums by itself."""

    async def aclose(self) -> None:
        """Finish the queued writes, then close every connection."""
        self._links.refuse_writes()
        for writer in self._writers:
            await writer.drain()
        await self._links.aclose()


class _PostgresJob:
    """A queued operation and the future of its caller."""

    __slots__ = ("future", "is_again", "is_alone", "make", "session", "tries", "until")

    def __init__(
        self,
        make: Callable[[bool], Operation[Any]],
        session: str,
        future: asyncio.Future[Any],
        until: float,
        is_alone: bool,
    ) -> None:
        self.make, self.session, self.future, self.until = make, session, future, until
        self.is_again = False  # an earlier run of it may have been committed
        self.is_alone = is_alone  # it is long, or has conflicted with others of a group
        self.tries = 0

    def fail(self, error: BaseException) -> None:
        if not self.future.done():
            self.future.set_exception(error)


_Predicted: TypeAlias = Sequence[tuple[_PostgresJob, PredictedOperation]]


class _PostgresWriter:
    """A connection with a queue of jobs, and a task while the queue is not empty."""

    def __init__(self, links: PostgresConnections) -> None:
        self._links = links
        self._queue: deque[_PostgresJob] = deque()
        self._link: PostgresConnection | None = None
        self._task: asyncio.Task[None] | None = None
        self._runs: Sequence[OperationRun] = ()  # whose COMMIT is under way

    def add(self, job: _PostgresJob) -> None:
        self._queue.append(job)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def drain(self) -> None:
        """Wait until everything is written, then close the connection."""
        while self._task is not None:
            await asyncio.wait({self._task})
        if self._link is not None:
            await self._link.aclose()

    async def _work(self) -> None:
        try:
            while self._queue:
                if (link := await self._connected()) is not None and (group := self._take()):
                    await self._write(link, group)
        finally:
            self._task = None
            for job in self._queue:  # only when this is cancelled, with its event loop
                job.fail(StoreUnavailable("the store was stopped"))
            self._queue.clear()

    def _take(self) -> list[_PostgresJob]:
        """Return the jobs that can be written together: the oldest of each session."""
        taken, postponed, postponed_sessions = dict[str, _PostgresJob](), list[_PostgresJob](), set[str]()
        while self._queue and len(taken) < GROUP_LIMIT and len(postponed) < GROUP_LIMIT:
            job = self._queue.popleft()
            if job.future.done():  # its caller was cancelled
                continue
            if job.is_alone and not taken and not postponed:
                return [job]
            if job.is_alone or job.session in taken or job.session in postponed_sessions:
                postponed.append(job)
                postponed_sessions.add(job.session)
            else:
                taken[job.session] = job
        self._queue.extendleft(reversed(postponed))
        # All groups lock their sessions in the same order, or two groups could wait for each other.
        return [taken[session] for session in sorted(taken)]

    async def _connected(self) -> PostgresConnection | None:
        """Return a connection; while there is none, fail the jobs that have waited too long."""
        loop, tries = asyncio.get_running_loop(), 0
        while self._queue:
            if self._link is not None and not self._link.is_closed:
                return self._link
            try:
                self._link = await self._links.writer()
            except Exception as error:
                tries += 1
                is_final = classify_error(error) not in (ErrorAction.CONFLICT, ErrorAction.LOST)
                waiting, self._queue = self._queue, deque[_PostgresJob]()
                for job in waiting:
                    if is_final or loop.time() > job.until:
                        job.fail(translate_error(error))
                    else:
                        self._queue.append(job)
                await asyncio.sleep(_pause(tries) if self._queue else 0)
        return None

    async def _write(self, link: PostgresConnection, group: list[_PostgresJob]) -> None:
        """Write a group: first the operations that fit into one statement, then the rest in lockstep."""
        failpoints.hit_failpoint("store.group.before")
        predicted = [(job, PredictedOperation(job.make, job.is_again)) for job in group]
        whole, rest = (
            [pair for pair in predicted if pair[1].is_whole],
            [pair for pair in predicted if not pair[1].is_whole],
        )
        is_free = False
        try:
            is_free = not whole or await self._try(link, whole, self._at_once)
        finally:
            if not is_free:
                self._queue.extendleft(job for job, _ in reversed(rest))
        if is_free and rest:
            await self._try(link, rest, self._in_step)

    async def _try(
        self,
        link: PostgresConnection,
        predicted: _Predicted,
        write: Callable[[PostgresConnection, _Predicted], Awaitable[None]],
    ) -> bool:
        """Write a group; if that fails, each job alone. If the connection is lost, requeue it and return False."""
        group = [job for job, _ in predicted]
        try:
            await write(link, predicted)
        except asyncio.CancelledError:
            self._queue.extendleft(reversed(group))
            raise
        except Exception as error:
            if not await self._is_free(link, error):
                self._put_back(group, error)
                await asyncio.sleep(_pause(max(job.tries for job in group)))
                return False
            if len(group) == 1:
                await self._handle_failure(group[0], error)
            else:
                for job in group:
                    job.is_alone = True
                self._queue.extendleft(reversed(group))
        return True

    async def _is_free(self, link: PostgresConnection, error: Exception) -> bool:
        """Return whether the connection is idle again after an error, with nothing left of the transaction."""
        if is_server_error(error) or not (self._runs or classify_error(error) is ErrorAction.LOST):
            self._runs = ()
            try:
                await link.execute("ROLLBACK")
                return True
            except Exception:
                pass  # then the connection is lost, and the transaction with it
        link.terminate()
        self._link = None
        return False

    def _put_back(self, group: list[_PostgresJob], error: Exception) -> None:
        now = asyncio.get_running_loop().time()
        for job, run in zip(group, self._runs, strict=False):
            job.is_again = (
                job.is_again or run.has_written
            )  # its outcome is unknown; without a write there is none to know
        self._runs = ()
        for job in reversed(group):
            job.tries += 1
            job.is_alone = job.is_alone or job.tries > 2  # perhaps one of them crashes the server
            # A process that was stopped for a while is past its deadlines, and finds its connections closed.
            if now > job.until and not (job.tries == 1 and is_connection_closed(error)):
                job.fail(translate_error(error))
            else:
                self._queue.appendleft(job)

    async def _handle_failure(self, job: _PostgresJob, error: Exception) -> None:
        """Handle an operation that failed although it was alone: fail its job, or retry it."""
        job.tries += 1
        if isinstance(error, TornGroup):
            job.fail(error.__cause__ or error)
        elif (
            classify_error(error) is not ErrorAction.CONFLICT
            or asyncio.get_running_loop().time() > job.until
            or (job.tries >= TRIES and not is_lock_timeout(error))
        ):
            job.fail(translate_error(error))
        else:
            # Behind the others, which need not wait for the holder of these rows; but before those of its own session.
            at = next((n for n, other in enumerate(self._queue) if other.session == job.session), len(self._queue))
            self._queue.insert(at, job)
            await asyncio.sleep(min(_pause(job.tries), 0.1))

    async def _at_once(self, link: PostgresConnection, predicted: _Predicted) -> None:
        """Write with one statement, which commits by itself; in lockstep, should one operation be refused."""
        runs = self._runs = [OperationRun(each.operation()) for _, each in predicted]
        for run, (_, each) in zip(runs, predicted, strict=True):
            run.has_written, run.result = True, each.result  # unless the server reports that it did not
        failpoints.hit_failpoint("store.commit.before")
        try:
            await link.fetch(merge_operations([each for _, each in predicted]))
        except Exception as error:
            if not is_fence_failure(error):
                raise
            self._runs = ()
            await self._in_step(link, predicted)
        else:
            failpoints.hit_failpoint("store.commit.after")
            self._runs = ()
            _hand_out(predicted, runs)

    async def _in_step(self, link: PostgresConnection, predicted: _Predicted) -> None:
        runs = [OperationRun(each.operation()) for _, each in predicted]
        await link.execute("BEGIN")
        await _run(link, runs)
        failpoints.hit_failpoint("store.commit.before")
        self._runs = runs
        status = await link.execute("COMMIT")
        failpoints.hit_failpoint("store.commit.after")
        self._runs = ()
        if status != "COMMIT":  # PostgreSQL rolled it back, and does not report that as an error
            raise ConnectionError("the transaction was rolled back")
        _hand_out(predicted, runs)


def _hand_out(predicted: _Predicted, runs: Sequence[OperationRun]) -> None:
    """Resolve each job's future with the outcome of its operation."""
    for (job, _), run in zip(predicted, runs, strict=True):
        if job.future.done():
            continue
        if run.error is not None:
            job.future.set_exception(run.error)
        else:
            job.future.set_result(run.result)


async def _run(link: PostgresConnection, runs: Sequence[OperationRun]) -> None:
    """Run operations in lockstep to their ends."""
    steps = lockstep(runs)
    try:
        batch: StatementBatch = next(steps)
        while True:
            batch = steps.send(await link.fetch(batch))
    except StopIteration:
        pass


def _pause(tries: int) -> float:
    return min(0.01 * 2 ** min(tries, 6), 0.5)
