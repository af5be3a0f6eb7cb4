"""Operations → PostgreSQL, in groups: what many sessions write at once is one transaction of a few statements.

A writer is a connection with a queue. It takes what has queued up while it was busy, never two operations of one session,
says with one statement what it can (merging.py), runs the others in step (grouping.py) and commits once; nobody waits for
a group to fill. A group that fails is rolled back and its operations run alone. When the connection is lost they
are run again from their beginning on a new one, and told so if nobody knows whether their COMMIT arrived. All of it belongs
to one event loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from everturn import faults
from everturn.errors import StoreUnavailable
from everturn.stores.sql.connecting import Link, Links
from everturn.stores.sql.database import Operation
from everturn.stores.sql.grouping import Batch, Run, TornGroup, lockstep
from everturn.stores.sql.merging import Foretold, merge
from everturn.stores.sql.trouble import Trouble, has_divided, has_ended, is_answer, is_waiting, told, trouble_of
from everturn.stores.sql.walls import inside

T = TypeVar("T")

GROUP = 256  # operations in one transaction: more would only make the first of them wait
TRIES = 10  # of an operation that runs alone and meets others at its rows
PATIENCE = 30.0  # seconds: a restart or a failover of the database takes less


class Postgres:
    """A `Database` on PostgreSQL: `Postgres("postgresql://user@host/name")`, or `…?schema=tenant` for a part of one."""

    dialect = "postgresql"

    def __init__(self, url: str, schema: str | None = None, writers: int = 2, patience: float = PATIENCE) -> None:
        self._links = Links(url, schema)
        self._patience = patience
        self._writers = [_Writer(self._links) for _ in range(writers)]

    async def read(self, operation: Callable[[], Operation[T]], is_long: bool = False) -> T:
        """Run an operation that only reads; every query of it sees a moment of its own."""
        loop = asyncio.get_running_loop()
        until, tries = loop.time() + self._patience, 0
        while True:
            try:
                run = await self._read(Run(operation()))
                break
            except Exception as error:
                tries, trouble = tries + 1, trouble_of(error)
                if trouble is Trouble.NONE:
                    raise
                if trouble is Trouble.FINAL or (loop.time() > until and not (tries == 1 and has_ended(error))):
                    raise told(error) from error
            await asyncio.sleep(_pause(tries))
        if run.error is not None:
            raise run.error
        return run.result

    async def _read(self, run: Run) -> Run:
        link = await self._links.borrow(inside())
        try:
            await _run(link, [run])
        except BaseException as error:
            if not is_answer(error):
                link.terminate()
            raise
        finally:
            self._links.give_back(link)
        return run

    async def write(self, operation: Callable[[bool], Operation[T]], session: str, is_long: bool = False) -> T:
        """Run an operation in a group and return when that is committed."""
        self._links.check()
        loop = asyncio.get_running_loop()
        job = _Job(operation, session, loop.create_future(), loop.time() + self._patience, is_long)
        self._writers[hash(session) % len(self._writers)].add(job)
        return await job.future

    @property
    def walls(self) -> str:
        """The role that reads for one tenant, once there is a connection; "" where tenants are kept apart by queries alone."""
        return self._links.role

    async def hold(self) -> None:
        """Be the one process that drives what is in here, until this is closed."""
        await self._links.hold()

    async def tidy(self, rewrite: bool = False) -> None:
        """There is nothing to do: PostgreSQL cleans up by itself, in its own time."""

    async def aclose(self) -> None:
        """Finish what is queued, then let go of every connection."""
        self._links.close_door()
        for writer in self._writers:
            await writer.drain()
        await self._links.aclose()


class _Job:
    """An operation that somebody waits for."""

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
        self.is_alone = is_alone  # it is long, or has been in the way of others, or they in its
        self.tries = 0

    def fail(self, error: BaseException) -> None:
        if not self.future.done():
            self.future.set_exception(error)


_Told: TypeAlias = Sequence[tuple[_Job, Foretold]]


class _Writer:
    """A connection, what waits for it, and a task as long as something does."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self._queue: deque[_Job] = deque()
        self._link: Link | None = None
        self._task: asyncio.Task[None] | None = None
        self._runs: Sequence[Run] = ()  # whose COMMIT is under way

    def add(self, job: _Job) -> None:
        self._queue.append(job)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def drain(self) -> None:
        """Wait until everything is written, then let go."""
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

    def _take(self) -> list[_Job]:
        """What can be written together: the oldest of every session."""
        taken, left, behind = dict[str, _Job](), list[_Job](), set[str]()
        while self._queue and len(taken) < GROUP and len(left) < GROUP:
            job = self._queue.popleft()
            if job.future.done():  # nobody waits for it any more
                continue
            if job.is_alone and not taken and not left:
                return [job]
            if job.is_alone or job.session in taken or job.session in behind:
                left.append(job)
                behind.add(job.session)
            else:
                taken[job.session] = job
        self._queue.extendleft(reversed(left))
        # Whoever writes to several sessions takes them in the same order, or two groups could wait for each other.
        return [taken[session] for session in sorted(taken)]

    async def _connected(self) -> Link | None:
        """A connection; while there is none to be had, those who have waited long enough are sent away."""
        loop, tries = asyncio.get_running_loop(), 0
        while self._queue:
            if self._link is not None and not self._link.is_closed:
                return self._link
            try:
                self._link = await self._links.writer()
            except Exception as error:
                tries += 1
                is_final = trouble_of(error) not in (Trouble.CROWD, Trouble.LOST)
                waiting, self._queue = self._queue, deque[_Job]()
                for job in waiting:
                    if is_final or loop.time() > job.until:
                        job.fail(told(error))
                    else:
                        self._queue.append(job)
                await asyncio.sleep(_pause(tries) if self._queue else 0)
        return None

    async def _write(self, link: Link, group: list[_Job]) -> None:
        """Write a group: at once what can be written so, and then the rest in step."""
        faults.hit("store.group.before")
        told = [(job, Foretold(job.make, job.is_again)) for job in group]
        whole, rest = [pair for pair in told if pair[1].is_whole], [pair for pair in told if not pair[1].is_whole]
        is_free = False
        try:
            is_free = not whole or await self._try(link, whole, self._at_once)
        finally:
            if not is_free:
                self._queue.extendleft(job for job, _ in reversed(rest))
        if is_free and rest:
            await self._try(link, rest, self._in_step)

    async def _try(self, link: Link, told: _Told, write: Callable[[Link, _Told], Awaitable[None]]) -> bool:
        """Write; if that fails, each alone; what the connection was lost with goes back to the queue, and False."""
        group = [job for job, _ in told]
        try:
            await write(link, told)
        except asyncio.CancelledError:
            self._queue.extendleft(reversed(group))
            raise
        except Exception as error:
            if not await self._is_free(link, error):
                self._put_back(group, error)
                await asyncio.sleep(_pause(max(job.tries for job in group)))
                return False
            if len(group) == 1:
                await self._judge(group[0], error)
            else:
                for job in group:
                    job.is_alone = True
                self._queue.extendleft(reversed(group))
        return True

    async def _is_free(self, link: Link, error: Exception) -> bool:
        """Whether the connection is at rest again after an error, so that nothing of the transaction is left."""
        if is_answer(error) or not (self._runs or trouble_of(error) is Trouble.LOST):
            self._runs = ()
            try:
                await link.say("ROLLBACK")
                return True
            except Exception:
                pass  # then it is lost after all, and the transaction with it
        link.terminate()
        self._link = None
        return False

    def _put_back(self, group: list[_Job], error: Exception) -> None:
        now = asyncio.get_running_loop().time()
        for job, run in zip(group, self._runs, strict=False):
            job.is_again = job.is_again or run.has_written  # nobody knows what became of that; of nothing, everybody
        self._runs = ()
        for job in reversed(group):
            job.tries += 1
            job.is_alone = job.is_alone or job.tries > 2  # perhaps it is one of them that the server cannot bear
            # A process that was stopped for a while has no time left, and finds connections that the server has ended.
            if now > job.until and not (job.tries == 1 and has_ended(error)):
                job.fail(told(error))
            else:
                self._queue.appendleft(job)

    async def _judge(self, job: _Job, error: Exception) -> None:
        """An operation failed although it was alone: tell whoever waits, or let it try again."""
        job.tries += 1
        if isinstance(error, TornGroup):
            job.fail(error.__cause__ or error)
        elif (
            trouble_of(error) is not Trouble.CROWD
            or asyncio.get_running_loop().time() > job.until
            or (job.tries >= TRIES and not is_waiting(error))
        ):
            job.fail(told(error))
        else:
            # Behind the others, which need not wait for whoever holds these rows; but before those of its own session.
            at = next((n for n, other in enumerate(self._queue) if other.session == job.session), len(self._queue))
            self._queue.insert(at, job)
            await asyncio.sleep(min(_pause(job.tries), 0.1))

    async def _at_once(self, link: Link, told: _Told) -> None:
        """With one statement, which commits by itself; in step, should one of them be refused."""
        runs = self._runs = [Run(each.operation()) for _, each in told]
        for run, (_, each) in zip(runs, told, strict=True):
            run.has_written, run.result = True, each.result  # unless the server says that it did not
        faults.hit("store.commit.before")
        try:
            await link.ask(merge([each for _, each in told]))
        except Exception as error:
            if not has_divided(error):
                raise
            self._runs = ()
            await self._in_step(link, told)
        else:
            faults.hit("store.commit.after")
            self._runs = ()
            _hand_out(told, runs)

    async def _in_step(self, link: Link, told: _Told) -> None:
        runs = [Run(each.operation()) for _, each in told]
        await link.say("BEGIN")
        await _run(link, runs)
        faults.hit("store.commit.before")
        self._runs = runs
        done = await link.say("COMMIT")
        faults.hit("store.commit.after")
        self._runs = ()
        if done != "COMMIT":  # PostgreSQL rolled it back, and does not call that an error
            raise ConnectionError("the transaction was rolled back")
        _hand_out(told, runs)


def _hand_out(told: _Told, runs: Sequence[Run]) -> None:
    """Tell everybody what became of their operation."""
    for (job, _), run in zip(told, runs, strict=True):
        if job.future.done():
            continue
        if run.error is not None:
            job.future.set_exception(run.error)
        else:
            job.future.set_result(run.result)


async def _run(link: Link, runs: Sequence[Run]) -> None:
    """Run operations in step, to their ends."""
    steps = lockstep(runs)
    try:
        batch: Batch = next(steps)
        while True:
            batch = steps.send(await link.ask(batch))
    except StopIteration:
        pass


def _pause(tries: int) -> float:
    return min(0.01 * 2 ** min(tries, 6), 0.5)
