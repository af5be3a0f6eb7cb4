"""Calls → results: find → parse → validate → permit → (gate) → start → run → shape → settle.

Each stage is a small function. A failure at any of them is a result that tells the model what was wrong and what there is
instead; it is never an exception of the turn. Nothing runs before its `CallStarted` is in the log.

These are the functions `plugins/tool_calling.py` stands on; another plugin may stand on them as well.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn import faults
from everturn.core.calls import Call
from everturn.core.canonical import JsonObject, canonical, clean, clean_all, digest, parse_object
from everturn.core.events import CallSettled, CallStarted, Event, Gate, Verdict
from everturn.core.hooks import PENDING, Pending, StepContext
from everturn.core.parts import CallState, Output
from everturn.core.ports import Progress, Tool, ToolContext
from everturn.core.requests import ToolSpec
from everturn.errors import BadArguments, BadOutput, ToolError, ToolTimeout, UnknownTool
from everturn.turn.contexts import OneCall, OneStep, open_gate
from everturn.turn.hookup import is_cancelling
from everturn.turn.supervisor import Settlement

log = logging.getLogger(__name__)

OUTCOME_UNKNOWN = (
    "The process that ran this call died before it had a result. Whether it took effect is not known, and it was not "
    "run again. Find out before you try anew."
)
BY_HAND = "done by hand"
GRACE = 1.0  # seconds a tool has to end after it was told to
UNRUN = {
    "length": "the model's output was cut off at its length limit, so these arguments may be incomplete",
    "content_filter": "the provider filtered this answer",
    "refusal": "the model refused to answer",
}


class Limits(Struct, frozen=True):
    """How much at once, and how much of a result a model is shown."""

    parallel: int = 8
    output: int = 50_000  # characters


class Start(Struct, frozen=True):
    """A call that may run, with exactly these arguments."""

    call: Call
    tool: Tool
    arguments: JsonObject


def find(name: str, tools: Mapping[str, Tool]) -> Tool:
    """Look a tool up, forgiving case and `-` for `_`: models write `ReadFile` for `read_file`.

    Raises:
        UnknownTool: and it names the tools there are.
    """
    if name in tools:
        return tools[name]
    alike = [tool for other, tool in tools.items() if _plain(other) == _plain(name)]
    if len(alike) == 1:
        return alike[0]
    names = ", ".join(spec.name for spec in offered(tools)) or "none"
    raise UnknownTool(f"there is no tool called {name!r}; there are: {names}")


def _plain(name: str) -> str:
    return name.replace("-", "").replace("_", "").casefold()


def parse(arguments: str) -> JsonObject:
    """Read arguments. None at all are an empty object; broken ones are refused, never guessed at.

    Raises:
        BadArguments: they are not one JSON object.
    """
    parsed = parse_object(arguments) if arguments.strip() else {}
    if parsed is None:
        raise BadArguments("the arguments are not one complete JSON object; send them again, whole")
    return parsed


async def settle_calls(ctx: StepContext, tools: Mapping[str, Tool], limits: Limits) -> Pending | None:
    """Bring every call of a step to its result, or return `PENDING` while a person is asked about one."""
    assert isinstance(ctx, OneStep), "call this with the context the hook was given"
    while True:
        heard = ctx.stirs
        await _record_done(ctx)
        faults.hit("calls.recorded")
        if all(call.is_settled for call in ctx.calls):
            return None
        events, starts = await _plan(ctx, tools, limits)
        faults.hit("calls.planned")
        if events:
            await ctx.record(*events)
        for start in starts:
            ctx.spawn(start.call.id, _run(ctx, start, limits))
        faults.hit("calls.started")
        if ctx.running():
            await ctx.stir(heard)
        elif not events:
            return PENDING


async def _record_done(ctx: OneStep) -> None:
    """Write down what has finished, in the order of the calls."""
    if done := ctx.done():
        found = [call.id for call in ctx.calls if call.id in done and not call.is_settled]
        events = [_settled(ctx, call, done[call].state, done[call].output) for call in found]
        # Forgotten only when they are written: if the append fails, another drive finds them still here.
        if all(call.is_settled or call.id in done for call in ctx.calls):
            await ctx.record_last(events, lambda: ctx.forget(done))
        else:
            await ctx.record(*events)
            ctx.forget(done)


async def _plan(ctx: OneStep, tools: Mapping[str, Tool], limits: Limits) -> tuple[list[Event], list[Start]]:
    """What to write down next, and what may then be started: as much as the cap allows."""
    events: list[Event] = []
    starts: list[Start] = []
    running = ctx.running()
    for call in ctx.calls:
        if call.is_settled or call.state == "asking" or call.id in running:
            continue
        if call.state == "running":
            _take_over(ctx, call, tools, events, starts)
            continue
        if len(running) + len(starts) >= limits.parallel:
            continue
        try:
            await _judge(ctx, call, tools, limits, events, starts)
        except Exception as error:
            events.append(_settled(ctx, call.id, "failed", _failure(error)))
    return events, starts


def _take_over(ctx: OneStep, call: Call, tools: Mapping[str, Tool], events: list[Event], starts: list[Start]) -> None:
    """A call somebody else had started and never settled: run it again only if a repeat does no harm."""
    started = call.started
    assert started is not None
    tool = tools.get(started.tool)
    if tool is None or tool.spec.execute == "deny" or "once" in (started.effects, tool.spec.effects):
        events.append(_settled(ctx, call.id, "outcome_unknown", Output(OUTCOME_UNKNOWN, code="outcome_unknown")))
    else:
        starts.append(Start(call, tool, parse(started.arguments)))


async def _judge(
    ctx: OneStep,
    call: Call,
    tools: Mapping[str, Tool],
    limits: Limits,
    events: list[Event],
    starts: list[Start],
) -> None:
    """Find, parse, check and permit one call that has not run: it starts, asks, or is settled here and now."""
    if ctx.finish in UNRUN:
        raise BadArguments(f"this call was not run: {UNRUN[ctx.finish]}")
    # Once a person was asked, it is the tool they were shown, whatever else there is by now.
    tool = find(call.name if call.gate is None else call.gate.tool, tools)
    verdict = call.verdict
    if tool.spec.execute == "deny":
        events.append(_settled(ctx, call.id, "denied", Output("This tool may not be used here.", code="denied")))
        return
    if verdict is not None:
        assert call.gate is not None
        if not verdict.allowed:
            events.append(_settled(ctx, call.id, "denied", Output(_denial(verdict), code="denied")))
            return
        # What was shown is what runs: the bytes of the gate, or the person's own edit of them.
        arguments = parse(verdict.arguments or call.gate.arguments)
        tool.validate(arguments)
        if verdict.result is not None:
            state: CallState = "failed" if verdict.failed else "completed"
            done = await _after(ctx, Start(call, tool, arguments), state, Output(verdict.result, title=BY_HAND))
            events.append(_settled(ctx, call.id, done.state, await shape(ctx, done.output, limits)))
            return
    else:
        arguments = await _rewrite(ctx, call, tool, parse(call.arguments))
        tool.validate(arguments)
        if tool.spec.execute != "auto":  # whatever else it says, a person is asked
            events += await _ask(ctx, call, tool, arguments)
            return
    # The event first: arguments that cannot be written down must not run either.
    events.append(_started(ctx, call, tool, arguments))
    starts.append(Start(call, tool, arguments))


def _denial(verdict: Verdict) -> str:
    if verdict.by == "everturn":
        return f"This call was not allowed: {verdict.reason}."
    who = f"The plugin {verdict.by[7:]}" if verdict.by.startswith("plugin:") else "The person"
    reason = f" and said why: {verdict.reason}" if verdict.reason else ""
    return f"{who} did not allow this call{reason}."


async def _rewrite(ctx: OneStep, call: Call, tool: Tool, arguments: JsonObject) -> JsonObject:
    hooks = ctx.run.setup.hooks["on_call_start"]
    if not hooks:
        return arguments
    await ctx.run.commit([])  # what a plugin rewrites is written
    one = OneCall(ctx.run, call, tool.spec, arguments)
    for plugin, method in hooks:
        await ctx.run.call_hook(plugin, "on_call_start", method, one)
    return one.arguments


async def _ask(ctx: OneStep, call: Call, tool: Tool, arguments: JsonObject) -> list[Event]:
    """Open a gate for exactly these bytes."""
    text, name = canonical(arguments), tool.spec.name
    patience = ctx.run.state.options.gate_timeout
    expires = ctx.run.now() + patience if patience else 0.0
    gate = Gate(ctx.run.setup.ids.new("gate"), ctx.turn, call.id, name, text, _bound(ctx, call, name, text), expires)
    return await open_gate(ctx.run, gate)


def _bound(ctx: OneStep, call: Call, tool: str, arguments: str) -> str:
    """The hash of everything that is executed: what a gate shows, an answer echoes and a start records."""
    return digest(ctx.session, ctx.turn, call.id, tool, arguments)


def _started(ctx: OneStep, call: Call, tool: Tool, arguments: JsonObject) -> CallStarted:
    spec, text = tool.spec, canonical(arguments)
    return CallStarted(
        turn=ctx.turn,
        at=ctx.run.now(),
        call=call.id,
        tool=spec.name,
        arguments=text,
        hash=_bound(ctx, call, spec.name, text),
        effects=spec.effects,
        key=call.id,
    )


def _settled(ctx: OneStep, call: str, state: CallState, output: Output) -> CallSettled:
    return CallSettled(turn=ctx.turn, at=ctx.run.now(), call=call, state=state, output=output)


# Running one call ------------------------------------------------------------------------------------------------


async def _run(ctx: OneStep, start: Start, limits: Limits) -> Settlement:
    """Run a tool to its end. Never raises, whatever the tool does."""
    run, call, tool = ctx.run, start.call, start.tool
    try:
        context = ToolContext(run.session, run.turn, call.id, call.id, lambda text: run.progress(call.id, text))
        faults.hit("call.run.before")
        value = await _within(ctx, tool, start.arguments, context)
        state: CallState = "completed"
        output = to_output(value)
        faults.hit("call.run.after")
    except asyncio.CancelledError:
        if is_cancelling():
            raise
        state, output = "failed", Output("the tool was cancelled from within", code="failed")
    except BaseException as error:  # a tool may raise SystemExit; it harms its own call and nothing else
        state, output = "failed", _failure(error)
    # Plugins see the whole before it is cut, so that what one of them takes out is not kept in the blob either.
    ended = await _after(ctx, start, state, output)
    try:
        return Settlement(ended.state, await shape(ctx, ended.output, limits))
    except Exception as error:
        log.exception("the output of call %s could not be kept", call.id)
        return Settlement("failed", Output(f"its output was too long to show and could not be kept: {error!r}"))


async def _within(ctx: OneStep, tool: Tool, arguments: JsonObject, context: ToolContext) -> object:
    """Wait for a tool no longer than it may take."""
    seconds = tool.spec.timeout
    task = asyncio.current_task()
    assert task is not None
    has_expired = False

    def expire() -> None:
        nonlocal has_expired
        has_expired = True
        task.cancel()
        # A tool that swallows its cancellation keeps running, but not the turn waiting.
        gone = Settlement("failed", _failure(late()))
        clock.call_later(GRACE, lambda: ctx.give_up(context.call, gone))

    def late() -> ToolTimeout:
        return ToolTimeout(f"the tool did not answer within {seconds:g} s; whether it took effect is unknown")

    clock = ctx.run.setup.clock
    timer = clock.call_later(seconds, expire)
    try:
        return await _result(tool.run(arguments, context), context)
    except asyncio.CancelledError:
        if not has_expired or task.uncancel() > 0:
            raise
        raise late() from None
    finally:
        timer.cancel()


async def _result(answer: Awaitable[object] | AsyncIterator[object], context: ToolContext) -> object:
    if inspect.iscoroutine(answer) or not isinstance(answer, AsyncIterator):
        return await answer
    output: object = None
    try:
        async for item in answer:
            if isinstance(item, Progress):
                context.progress(item.text)
            else:
                output = item
    finally:
        aclose = getattr(answer, "aclose", None)
        if aclose is not None:
            await aclose()
    return output


async def _after(ctx: OneStep, start: Start, state: CallState, output: Output) -> Settlement:
    """Let plugins have the last word on a result, a late one included; one that fails fails the call."""
    hooks = ctx.run.setup.hooks["on_call_end"]
    if not hooks:
        return Settlement(state, output)
    one = OneCall(ctx.run, start.call, start.tool.spec, start.arguments)
    one.output, one.state = output, "completed" if state == "completed" else "failed"
    try:
        for plugin, method in hooks:
            await ctx.run.call_hook(plugin, "on_call_end", method, one)
        if one.state not in ("completed", "failed"):
            raise BadOutput(f"on_call_end set the state to {one.state!r}; there are: completed, failed")
        return Settlement(one.state, tidy(one.output))
    except Exception as error:
        return Settlement("failed", _failure(error))


def to_output(value: object) -> Output:
    """Write down whatever a tool returned.

    Raises:
        BadOutput: it cannot be written as JSON.
    """
    match value:
        case Output():
            return tidy(value)
        case str():
            return Output(clean(value))
        case None:
            return Output("done")
        case _:
            pass
    try:
        return Output(msgspec.json.encode(value, enc_hook=_plain_data).decode())
    except Exception as error:
        kind = type(value).__name__
        raise BadOutput(
            f"the tool returned a {kind} that cannot be written as JSON ({error}); return text or data"
        ) from None


def _plain_data(value: Any) -> Any:
    """How a pydantic model is written, wherever in a result it stands; nothing else is guessed at."""
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not inspect.isclass(value):
        return dump(mode="json")
    raise TypeError(f"{type(value).__name__} is not data")


def tidy(output: Output) -> Output:
    """An output that every store can keep, and read again.

    Raises:
        BadOutput: something in it cannot be written as JSON, or is not what it should be.
    """
    if output == Output(output.text) and isinstance(output.text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        return Output(clean(output.text))
    try:
        return msgspec.convert(clean_all(msgspec.to_builtins(output)), Output)
    except Exception as error:
        raise BadOutput(f"the tool's output cannot be written down ({error})") from None


async def shape(ctx: OneStep, output: Output, limits: Limits) -> Output:
    """Cut what is too long to its head and tail; the whole is kept as a blob."""
    if len(output.text) <= limits.output:
        return output
    half = limits.output // 2
    blob = await ctx.run.setup.store.put_blob(output.text.encode())
    left_out = len(output.text) - 2 * half
    text = f"{output.text[:half]}\n[… {left_out} characters left out; the whole is kept …]\n{output.text[-half:]}"
    return replace(output, text=text, blob=blob)


def _failure(error: BaseException) -> Output:
    """What a model is told of a failure: a `ToolError` in its own words, anything else by its type and text."""
    name = type(error).__name__
    is_told = isinstance(error, ToolError)
    try:
        text = str(error) if is_told else f"{name}: {error}"
    except BaseException:  # even to say what it is can fail
        text = name
    return Output(clean(text), code=error.code if is_told else "failed")


def offered(tools: Mapping[str, Tool]) -> list[ToolSpec]:
    """The tools a model is told of: those denied outright are not."""
    return [tool.spec for tool in tools.values() if tool.spec.execute != "deny"]
