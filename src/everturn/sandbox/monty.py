"""Monty sandbox: runs Python code of a model in Monty, an interpreter that knows nothing of the machine.

It runs in worker processes that can be killed, never in ours. Besides computing, the code can only call the functions
that it is given here: a call suspends it until we have answered. Nothing in it depends on time or chance, so the same
code with the same answers makes the same calls.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import datetime
import functools
import os
import signal
import time
from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from msgspec import Struct

from everturn.core.canonical_json import JsonObject
from everturn.core.sandbox import KillReason, SandboxReport, SandboxResult
from everturn.errors import ConfigError, ToolChanged, ToolError
from everturn.sandbox.fair_share import FairShare
from everturn.sandbox.monty_values import NotJson, ValueBudget, describe_value, to_json_value

if TYPE_CHECKING:
    from pydantic_monty import (
        AsyncMonty,
        AsyncMontySession,
        AsyncSnapshot,
        ExternalFuture,
        ExternalSettledResult,
        OSPolicy,
    )

CallHandler = Callable[[str, tuple[Any, ...], dict[str, Any]], Awaitable[object]]
"""Answers a call of the code: the name of a function, its positional and its keyword arguments."""

CallableFunctions = tuple[CallHandler, Collection[str]]

MISSING: Final = "run_python needs Monty: pip install 'everturn[code]'"
AT_ONCE: Final = 16  # workers; a run that waits for an answer holds one, 13 MB of memory each
SHARE: Final = 4  # of them for one session
PATIENCE: Final = 300.0  # seconds to wait for one of the session's share
WAIT: Final = 10.0  # seconds to wait for any worker
RUNS: Final = 200  # of a worker, before it is replaced
EXIT_DELAY: Final = 0.2  # seconds
TEXT: Final = 20_000  # characters of a traceback


class MontyLimits(Struct, frozen=True):
    """How much a run may use."""

    memory: int = 64 << 20  # bytes
    depth: int = 200  # of nested function calls
    calls: int = 100
    keep: int = 50_000  # characters of its output that are kept
    flood: int = 1_000_000  # after which it is killed


DEFAULTS: Final = MontyLimits()


class Monty:
    """Runs Python in Monty's workers, which are started on demand."""

    name = "monty"

    def __init__(self, limits: MontyLimits = DEFAULTS) -> None:
        self.limits = limits
        self._pool: AsyncMonty | None = None
        self._shares = FairShare(SHARE, PATIENCE)

    async def probe(self) -> SandboxReport:
        """Probe the guarantees."""
        return await asyncio.to_thread(check)

    async def run(
        self,
        code: str,
        *,
        stdin: str = "",
        arguments: JsonObject | None = None,
        seconds: float = 10.0,
        call: CallHandler | None = None,
        functions: Collection[str] = (),
        now: float = 0.0,
        seed: str = "",
        owner: str = "",
        waits: Callable[[], None] = lambda: None,
    ) -> SandboxResult:
        """Run code; `arguments` are variables, as is `stdin`. `seconds` count while it runs, not while it waits for an
        answer.

        It may call the `functions`: what `call` returns for them is JSON data, and a `ToolError` becomes an exception
        inside. `now` is the fixed time of its clock, and its random numbers are seeded with `seed`. `owner` is the
        session, which has a limited share of the workers; `waits` is called if all of that is in use.

        Raises:
            ToolError: all workers are in use for too long; or a call raised `ToolChanged`, which ends the run.
            ConfigError: Monty is not installed.
        """
        inputs = dict(arguments or {}) | ({"stdin": stdin} if stdin else {})
        async with self._shares.acquire(owner, waits):
            return await self._run(
                code, inputs, seconds, (call or _no_call, functions), deterministic_policy(now, seed)
            )

    async def _run(
        self, code: str, inputs: dict[str, Any], seconds: float, known: CallableFunctions, policy: OSPolicy
    ) -> SandboxResult:
        pool, printed = await self._open(), PrintBuffer(self.limits)
        session = pool.checkout(
            limits={
                "max_feed_duration_secs": seconds,
                "max_memory": self.limits.memory,
                "max_recursion_depth": self.limits.depth,
                "max_suspensions": self.limits.calls * 10,  # a name lookup is one, too
                "max_total_sleep_secs": 0.0,
            },
            os_policy=policy,
        )
        try:
            await session.__aenter__()
        except TimeoutError:
            raise ToolError(f"all {AT_ONCE} Python interpreters are busy; try again later") from None
        except (OSError, RuntimeError) as error:
            raise ConfigError(f"Monty's worker cannot be started: {error}; `everturn doctor` shows why") from None
        try:
            printed.worker = session.worker_pid
            return await self._drive(session, code, inputs, known, printed)
        finally:
            printed.worker = None
            await session.__aexit__(None, None, None)

    async def aclose(self) -> None:
        """Stop the workers."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.__aexit__(None, None, None)

    async def _drive(
        self,
        session: AsyncMontySession,
        code: str,
        inputs: dict[str, Any],
        known: CallableFunctions,
        printed: PrintBuffer,
    ) -> SandboxResult:
        """Run it from call to call."""
        import pydantic_monty as monty

        calls = 0
        try:
            at: AsyncSnapshot = await session.feed_start(code, inputs=inputs, print_callback=printed)
            while not isinstance(at, monty.MontyComplete):
                if isinstance(at, monty.AsyncFunctionSnapshot) and not at.is_os_function:
                    calls += 1
                    answer = await self._answered(at, known, calls)
                    if at.allow_eager_await:  # `await f()` and `f()` mean the same here
                        later: ExternalFuture = {"future": ...}
                        waiting = await at.resume(later)
                        assert isinstance(waiting, monty.AsyncFutureSnapshot)
                        at = await waiting.resume(dict.fromkeys(waiting.pending_call_ids, answer))
                    else:
                        at = await at.resume(answer)
                else:
                    at = await _without(at, known)
            return printed.make_result(value=describe_value(at.output))
        except monty.MontyCrashedError as error:
            return printed.make_result(
                killed="output" if printed.is_flood else "time" if error.timed_out else "", error=DIED
            )
        except (monty.MontyRuntimeError, monty.MontySyntaxError) as error:
            reason, killed = error.display("type-msg"), _killed(error.display("type-msg"))
            if killed:
                _kill(printed.worker)  # it was stopped in the middle of something
            return printed.make_result(killed=killed, error=reason[:TEXT] if killed else _end(error.display()))
        except monty.MontyError as error:
            return printed.make_result(error=_end(str(error)))

    async def _answered(self, at: Any, known: CallableFunctions, calls: int) -> ExternalSettledResult:
        """Call a function for the code. An error becomes an exception inside, which the code may catch."""
        (call, functions), name = known, str(at.function_name)
        if name not in functions or at.object_id is not None:
            return _raised("NameError", f"name {name!r} is not defined; functions: {', '.join(functions) or 'none'}")
        if calls > self.limits.calls:
            return _raised("RuntimeError", f"this is call {calls}; a run makes at most {self.limits.calls}")
        try:
            budget = ValueBudget()
            args = cast("list[Any]", to_json_value(list(at.args), budget))
            value = await call(name, tuple(args), cast("dict[str, Any]", to_json_value(at.kwargs, budget)))
        except NotJson as error:
            return _raised("TypeError", f"{name}: {error}")
        except ToolChanged:  # the code made another call than before; nothing that it does now can be trusted
            raise
        except ToolError as error:
            return _raised("RuntimeError", str(error))
        return {"return_value": value}

    async def _open(self) -> AsyncMonty:
        if self._pool is None:
            try:
                from pydantic_monty import AsyncMonty
            except ImportError:
                raise ConfigError(MISSING) from None
            _calm_exit()
            pool = AsyncMonty(
                min_processes=0, max_processes=AT_ONCE, checkout_timeout=WAIT, max_checkouts_per_worker=RUNS
            )
            await pool.__aenter__()
            if self._pool is not None:  # another task was first
                await pool.__aexit__(None, None, None)
            else:
                self._pool = pool
        return self._pool


DIED: Final = (
    "the interpreter was killed in the middle of the run; what it had called was called, the rest was not done"
)
WRONG_AWAIT: Final = "functions are called one after the other here: write f(x=1), not gather(f(x=1), …)"


class PrintBuffer:
    """Keeps the beginning of the output, and kills a worker that prints too much: it would go on to its time limit."""

    def __init__(self, limits: MontyLimits) -> None:
        self._limits = limits
        self._kept: dict[str, list[str]] = {"stdout": [], "stderr": []}
        self._size = 0
        self.worker: int | None = None
        self.is_flood = False

    def __call__(self, stream: Literal["stdout", "stderr"], text: str) -> None:
        """Called from a thread of Monty's."""
        remaining = max(0, self._limits.keep - self._size)
        self._size += len(text)
        if remaining:
            self._kept[stream].append(text[:remaining])
        if self._size > self._limits.flood and not self.is_flood:
            self.is_flood = True
            _kill(self.worker)

    def make_result(self, *, value: object = None, killed: KillReason = "", error: str = "") -> SandboxResult:
        """The result of the run."""
        is_cut = self._size > self._limits.keep
        stdout, stderr = ("".join(self._kept[name]) for name in ("stdout", "stderr"))
        ok = not killed and not error
        return SandboxResult(0 if ok else None if killed else 1, stdout, stderr, is_cut, False, killed, value, error)


def deterministic_policy(now: float, seed: str) -> OSPolicy:
    """The OS policy of a fixed clock and seeded random numbers."""
    return {
        "datetime": datetime.datetime.fromtimestamp(now, datetime.UTC),
        "timezone": "utc",
        "sleep": "zero",  # it counts towards no time limit
        "process_time": "zero",
        "random_start": {"seed": seed},
    }


def _raised(kind: Literal["RuntimeError", "TypeError", "NameError"], text: str) -> ExternalSettledResult:
    return {"exc_type": kind, "message": text[:TEXT].encode(errors="replace").decode()}


async def _without(at: Any, known: CallableFunctions) -> AsyncSnapshot:
    """Continue after a request that is no call: there are no files, no environment and no clock."""
    import pydantic_monty as monty

    if isinstance(at, monty.AsyncFunctionSnapshot):
        return await at.resume_not_handled()
    if isinstance(at, monty.AsyncNameLookupSnapshot):
        is_function = at.object_id is None and at.variable_name in known[1]
        return await (at.resume(value=_named(at.variable_name)) if is_function else at.resume())
    waiting: list[int] = at.pending_call_ids
    return await at.resume(dict.fromkeys(waiting, _raised("RuntimeError", WRONG_AWAIT)))


async def _no_call(name: str, args: tuple[Any, ...], named: dict[str, Any]) -> object:
    raise ToolError("no tools can be called here")


def _named(name: str) -> Callable[[], None]:
    def function() -> None: ...

    function.__name__ = function.__qualname__ = name
    return function


def _killed(reason: str) -> KillReason:
    if reason.startswith("TimeoutError: feed time limit"):
        return "time"
    return "memory" if reason.startswith("MemoryError") else ""


def _kill(worker: int | None) -> None:
    if worker is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)


def _end(text: str) -> str:
    return text if len(text) <= TEXT else "…" + text[-TEXT:]


@functools.cache
def _calm_exit() -> None:
    """Let Monty's threads finish before the process exits.

    pydantic-monty 1.4 aborted the process in 8 of 24 exits right after a run, closed or not; after a pause in none of
    12.
    """
    atexit.register(time.sleep, EXIT_DELAY)


@functools.cache
def check() -> SandboxReport:
    """Probe the guarantees, once per process."""
    from everturn.sandbox.monty_probe import probe

    return probe()
