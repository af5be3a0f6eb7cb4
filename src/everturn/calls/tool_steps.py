"""Durable steps of a tool: `ctx.step`, `ctx.sleep` and `ctx.external`.

A tool that waits is suspended and later run again from its beginning (`suspend` says why). These three make that safe
for effects: a step is run once and its value recorded, a timer and an external result are rows in the log.

Invariants. A step is recorded as started before its function is called, so that a process which dies in between leaves
a trace: the next run finds a step that was started and has not ended, cannot know whether it took effect, and raises
`OutcomeUnknown` instead of repeating it. A tool that is `read_only` or `idempotent`, and did not ask for more with
`resumable`, may repeat everything, so it records only the ends of its steps. A wait for an external result is recorded
before its token is given away, because the result may arrive at once. `CallSuspended` is in the same append as the
wait (or as the step that gave the token away): nothing that a crash could repeat lies between the two.
"""

from __future__ import annotations

import asyncio
import inspect
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, cast

import msgspec

from everturn.calls.callbacks import callback_token, complete_callback
from everturn.calls.suspend import ToolWait
from everturn.core.calls import CallRecord
from everturn.core.canonical_json import replace_surrogates
from everturn.core.commands import FinishWait
from everturn.core.events import (
    CallResumed,
    Event,
    ToolStepFinished,
    ToolStepStarted,
    WaitFinished,
    WaitKind,
    WaitStarted,
)
from everturn.core.requests import ToolSpec
from everturn.core.store_ports import Receipt
from everturn.errors import BadOutput, ExternalTimeout, NotResumable, OutcomeUnknown, ToolChanged, ToolError

MAX_TOOL_STEPS = 1_000  # in one call; and as many waits
MAX_STEP_NAME = 200  # characters
MAX_STEP_VALUE = 1_000_000  # characters of a recorded value, as JSON
MAX_WAIT = 10 * 365 * 86_400.0  # seconds
MAX_LABEL = 200  # characters of what a wait is for

NOT_RESUMABLE = (
    "{name}: ctx.{what} works only in a tool that may be run again from its beginning. Declare it "
    "@tool(read_only=True) if "
    "it changes nothing, @tool(idempotent=True) if running it again changes nothing more, or @tool(resumable=True) if "
    "everything that must not be repeated is inside ctx.step."
)
STEP_UNKNOWN = (
    "The process that ran step {step!r} of {name} died before the step had a result. Whether it took effect is "
    "not known, "
    "and it was not run again. Check whether it took effect before you call the tool again."
)
WAIT_CHANGED = "{name} was resumed and does not wait as it did before. Nothing more was done."


class ToolSteps:
    """The steps, timers and external results of one running call, matched with the log by name and by order."""

    def __init__(self, call: str, spec: ToolSpec, wait: ToolWait) -> None:
        self._id, self._spec, self._wait = call, spec, wait
        self._records_starts = spec.resumable or spec.at_most_once
        self._counts: Counter[str] = Counter()
        self._waits = 0
        self.is_untrusted = False  # a value that an inbound hook delivered was read

    @property
    def _call(self) -> CallRecord:
        return self._wait.run.state.calls[self._id]

    async def step(self, name: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Run a plain or async function once, and record its JSON value; a resumed tool gets the recorded value."""
        self._require_resumable("step")
        if not isinstance(name, str) or not 0 < len(name) <= MAX_STEP_NAME or "#" in name:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ToolError(f"a step needs a name of at most {MAX_STEP_NAME} characters without #, not {name!r}")
        self._counts[name] += 1
        if self._counts.total() > MAX_TOOL_STEPS:
            raise ToolError(f"a call may run {MAX_TOOL_STEPS} steps, and this exceeds it")
        number = self._counts[name]
        return await self._run_once(
            name if number == 1 else f"{name}#{number}", lambda: function(*args, **kwargs), function
        )

    async def _run_once(
        self,
        name: str,
        run: Callable[[], Any],
        function: Callable[..., Any],
        then: Callable[[], Sequence[Event]] = tuple,
    ) -> Any:
        """Run a step unless its value is recorded; `then` are events for the append that records it."""
        steps = self._call.tool_steps
        if (finished := steps.get(name)) is not None and not finished.failed:
            return msgspec.json.decode(finished.value)
        if self._is_started(name) and self._records_starts:
            raise OutcomeUnknown(STEP_UNKNOWN.format(step=name, name=self._spec.name))
        turn, call = self._wait.run.turn, self._id
        with self._wait.hold():
            if self._records_starts:
                started = ToolStepStarted(turn=turn, at=self._now(), call=call, name=name)
                await self._wait.write(lambda: [] if self._is_started(name) else [started])
            try:
                value = await _run_function(run, function)
            except Exception:
                if self._records_starts:  # it has ended, so it may be run again
                    failed = ToolStepFinished(turn=turn, at=self._now(), call=call, name=name, failed=True)
                    with suppress(ToolError):
                        await self._wait.write(lambda: [failed])
                raise
            ended = ToolStepFinished(turn=turn, at=self._now(), call=call, name=name, value=self._encode(name, value))
            await self._wait.write(lambda: [] if self._has_value(name) else [ended, *then()])
        return value

    def _is_started(self, name: str) -> bool:
        """Whether the log has the start of a step and not its end: an append that seemed to fail was written after all."""
        return name in self._call.tool_steps and self._call.tool_steps[name] is None

    def _has_value(self, name: str) -> bool:
        finished = self._call.tool_steps.get(name)
        return finished is not None and not finished.failed

    def _encode(self, name: str, value: object) -> str:
        """A value as JSON, if a resumed tool would get the same value back."""
        try:
            text = msgspec.json.encode(value)
            is_same = msgspec.json.decode(text) == value
        except Exception:
            text, is_same = b"", False
        if not is_same:
            raise BadOutput(
                f"step {name!r} returned a {type(value).__name__}, which JSON does not give back as it was. Return text, "
                "numbers, booleans, None, lists, and dicts with text keys. The step has run."
            )
        if len(text) > MAX_STEP_VALUE:
            raise BadOutput(
                f"step {name!r} returned more than {MAX_STEP_VALUE:,} characters of JSON; store them in a blob"
            )
        return text.decode()

    async def sleep(self, seconds: float = 0.0, *, minutes: float = 0.0, hours: float = 0.0, days: float = 0.0) -> None:
        """Suspend the tool for a time: a durable timer, which needs no memory and survives restarts."""
        self._require_resumable("sleep")
        total = seconds + 60 * minutes + 3600 * hours + 86_400 * days
        if math.isnan(total) or not 0 <= total <= MAX_WAIT:
            raise ToolError(f"ctx.sleep takes seconds, minutes, hours and days, at most 10 years, not {total!r} s")
        wait = self._next_wait("timer")
        if wait not in self._call.waits:
            if total == 0:
                return
            await self._start_wait("timer", wait, total, lambda: [self._wait.suspended_event(self._id, wait, "waits")])
        await self._result(wait)

    async def external(
        self,
        start: Callable[[str], Any] | None = None,
        /,
        *,
        timeout: float = 0.0,  # noqa: ASYNC109 - it is durable
        hook: str = "",
        label: str = "",
    ) -> Any:
        """Start a wait for a value of an external system; `timeout` is in seconds, 0: as long as the turn may wait.
        User interfaces show the `label`, as "waits for {label}".

        Without `start` it returns an `ExternalResult`, whose token the tool gives away in a step of its own. With
        `start` that is done here: `start(token)` is run once, as a step, and the value is returned. With `hook` the
        token works only in a signed delivery to that inbound hook, and the result of the tool is untrusted.

        Raises:
            ExternalTimeout: no value was delivered in time.
        """
        self._require_resumable("external")
        if start is not None and not callable(start):
            raise ToolError("ctx.external takes a function that gives the token to the external system: start(token)")
        if math.isnan(timeout) or not 0 <= timeout <= MAX_WAIT:
            raise ToolError(f"timeout={timeout!r}: seconds, at most 10 years; 0: no limit")
        wait, number, run = self._next_wait("external"), self._waits, self._wait.run
        token = await callback_token(run.setup.store, run.ledger.tenant, run.session, run.turn, wait, hook)
        if wait not in self._call.waits:
            await self._start_wait("external", wait, timeout, label=label)
        if start is None:
            setup = run.setup

            async def admit(command: FinishWait) -> Receipt:
                return cast("Receipt", await setup.app.command(command))

            async def deliver(value: object) -> bool:
                return await complete_callback(setup.store, admit, token, value, setup.clock.now(), hook=hook)

            return _ExternalResult(token, lambda: self._external_value(wait, timeout, hook), deliver)

        def suspended() -> Sequence[Event]:
            is_here = wait in self._call.wait_results
            return [] if is_here else [self._wait.suspended_event(self._id, wait, "waits")]

        await self._run_once(f"#external.{number}", lambda: _ignore_value(start, token), start, suspended)
        return await self._external_value(wait, timeout, hook)

    async def _external_value(self, wait: str, timeout: float, hook: str) -> Any:  # noqa: ASYNC109 - it is durable
        self._wait.refuse_in_step()
        finished = await self._result(wait)
        if finished.timed_out:
            raise ExternalTimeout(f"the external system did not answer {self._spec.name} within {timeout:g} s")
        self.is_untrusted |= bool(hook)
        return msgspec.json.decode(finished.value)

    # Waits ----------------------------------------------------------------------------------------------------------

    def _require_resumable(self, operation: str) -> None:
        self._wait.refuse_in_step()
        if not self._wait.can_resume:
            raise NotResumable(NOT_RESUMABLE.format(name=self._spec.name, what=operation))

    def _now(self) -> float:
        return self._wait.run.now()

    def _next_wait(self, kind: WaitKind) -> str:
        self._waits += 1
        if self._waits > MAX_TOOL_STEPS:
            raise ToolError(f"a call may wait {MAX_TOOL_STEPS} times, and this exceeds it")
        wait = f"{self._id}.wait.{self._waits}"
        if wait in self._call.waits and self._call.waits[wait].kind != kind:
            raise ToolChanged(WAIT_CHANGED.format(name=self._spec.name))
        return wait

    async def _start_wait(
        self, kind: WaitKind, wait: str, seconds: float, then: Callable[[], Sequence[Event]] = tuple, label: str = ""
    ) -> None:
        now = self._now()
        started = WaitStarted(
            turn=self._wait.run.turn,
            at=now,
            call=self._id,
            wait=wait,
            kind=kind,
            until=now + seconds if seconds else 0.0,
            label=replace_surrogates(label)[:MAX_LABEL],
        )
        await self._wait.write(lambda: [] if wait in self._call.waits else [started, *then()])
        run = self._wait.run
        run.setup.bus.signal(run.session)  # its driver sets a timer, also while other calls keep the turn busy

    async def _result(self, wait: str) -> WaitFinished:
        """Wait until a wait has finished. The tool is suspended meanwhile."""
        await self._wait.wait_until(
            "waits", wait, lambda state: wait in state.calls[self._id].wait_results, lambda _: True
        )
        if (
            self._call.state == "waiting"
        ):  # it finished before the tool was suspended: the tool continues, so say so first
            resumed = CallResumed(turn=self._wait.run.turn, at=self._now(), call=self._id)
            await self._wait.write(lambda: [resumed] if self._call.state == "waiting" else [])
        return self._call.wait_results[wait]


class _ExternalResult:
    """A started wait: its token, and the value that arrives."""

    def __init__(
        self, token: str, value: Callable[[], Awaitable[Any]], deliver: Callable[[object], Awaitable[bool]]
    ) -> None:
        self.token, self._value, self.deliver = token, value, deliver

    async def result(self) -> Any:
        """Wait for the value."""
        return await self._value()

    def __repr__(self) -> str:
        return "ExternalResult(token=…)"  # whoever has the token may deliver the value


async def _run_function(run: Callable[[], Any], function: Callable[..., Any]) -> Any:
    """Call an async function here, and a plain one in a thread."""
    call = getattr(function, "__call__", None)  # noqa: B004 - an object with an async __call__
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call):
        return await run()
    value = await asyncio.to_thread(run)
    return await value if inspect.isawaitable(value) else value


def _ignore_value(start: Callable[[str], Any], token: str) -> Any:
    """Call `start`, whose value is not recorded: it may be anything."""

    async def awaited(value: Any) -> None:
        await value

    value = start(token)
    return awaited(value) if inspect.isawaitable(value) else None
