"""One call that has not run → it starts, it asks, or it is settled here and now.

find → read → validate → permit → (gate) → start. Nothing here runs a tool; a failure is the call's result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.asking import Gate, GateKind
from everturn.core.calls import Call
from everturn.core.canonical import JsonObject, canonical, clean, digest
from everturn.core.chunks import TOO_MANY, is_beyond
from everturn.core.events import CallJudged, CallStarted, Event
from everturn.core.globs import escape
from everturn.core.loops import LONGEST, mark_as, period_of
from everturn.core.parts import Output
from everturn.core.policy import Case, Judgement, Rule
from everturn.core.ports import Preview, Tool
from everturn.core.requests import ToolSpec
from everturn.errors import BadArguments, BadOutput, ToolChanged, ToolError
from everturn.turn.contexts import OneCall, OneStep, open_gate
from everturn.turn.finding import find
from everturn.turn.gating import bound_to, denial_of, gate_for, settled
from everturn.turn.hookup import call as call_hook
from everturn.turn.marking import marks_before
from everturn.turn.passing import resolve
from everturn.turn.permit import is_by_hand, offers_for
from everturn.turn.repair import read_arguments
from everturn.turn.within import Within, is_moved

UNRUN = {
    "length": "the model's output was cut off at its length limit, so these arguments may be incomplete",
    "content_filter": "the provider filtered this answer",
    "refusal": "the model refused to answer",
}
NOT_ALLOWED = "This call is not allowed: {why}."
BY_HAND = "done by hand"
CHANGED = "{name} is not any more what it was when {who}; nothing was run. Look at its description and call it anew."
MOST_PREVIEW = 500_000  # characters
MOVED = (
    "The person wants this done to something else, which they were not shown, so nothing was done. Call it anew with "
    "these arguments: {edited}"
)
LEAVES = "what is given to it leaves the house, and this conversation has read private data and what strangers wrote"
LOOPS = "the same calls, over and over: for the third time{pattern}"


class Start(Struct, frozen=True):
    """A call that may run. `arguments` are what the tool is given; what is written down may refer to them."""

    call: Call
    tool: Tool
    arguments: JsonObject


class Judged(Struct, frozen=True):
    """What comes of a call: events to write down and, where it may run, its start."""

    events: Sequence[Event]
    start: Start | None = None
    by_hand: Output | None = None  # what a person says came of it


async def judge(ctx: OneStep, call: Call, tools: Mapping[str, Tool]) -> Judged:
    """Find, read, check and permit one call.

    Raises:
        ToolError: what is wrong with it; that is its result.
    """
    if ctx.finish in UNRUN:
        raise BadArguments(f"this call was not run: {UNRUN[ctx.finish]}")
    if is_beyond(call.id):
        raise BadArguments(TOO_MANY)
    gate, verdict = call.gate, call.verdict
    # Once a person was asked, it is the tool they were shown, whatever else there is by now.
    tool = find(call.name if gate is None else gate.tool, tools)
    spec, identity = tool.spec, ctx.run.setup.permits.identity(tool.spec)
    _check_identity(call, spec, identity)
    if call.judged is not None and not call.judged.allowed and (verdict is None or verdict.allowed):
        # The log was cut between that and what follows from it.
        return Judged(_denied(ctx, call, spec, identity, NOT_ALLOWED.format(why=call.judged.why), ""))
    if verdict is None:
        read = await read_arguments(call.arguments, ctx.finish)
        arguments = await _rewrite(ctx, call, tool, read.value)
    else:
        assert gate is not None
        if not verdict.allowed:
            return Judged(_denied(ctx, call, spec, identity, denial_of(verdict), verdict.reason, gate=gate.id))
        # What was shown is what runs: the bytes of the gate, or the person's own edit of them.
        arguments = (await read_arguments(verdict.arguments or gate.arguments, "stop")).value
        if is_moved(call, spec):
            raise ToolError(MOVED.format(edited=verdict.arguments))
    text = canonical(arguments)
    given = await resolve(ctx.run, spec, arguments)
    meant = tool.validate(given) or given  # with its defaults, and numbers for what only looks like one
    if verdict is not None and verdict.result is not None:
        done = Output(verdict.result, title=BY_HAND)
        return Judged((), Start(call, tool, given), done)
    # However it was written; but what was put in place of a reference is nobody's to read.
    is_as_written = meant is given or given is not arguments
    call.known_as = mark_as(spec.name, text if is_as_written else canonical(meant))
    one = _One(ctx, call, tool, identity, text, given, tools)
    judged = await one.permit(meant)
    if judged.action == "deny":
        text = NOT_ALLOWED.format(why=judged.reason)
        return Judged(_denied(ctx, call, spec, identity, text, judged.reason, judged.rule))
    if verdict is None and (asked := await one.ask(judged, tools)) is not None:
        return Judged(asked)
    return Judged([*one.start(judged, gate)], Start(call, tool, given))


def _check_identity(call: Call, spec: ToolSpec, identity: str) -> None:
    if call.gate is not None and call.gate.identity != identity:
        raise ToolChanged(CHANGED.format(name=spec.name, who="the person was asked about it"))
    if call.identity and call.identity != identity:
        raise ToolChanged(CHANGED.format(name=spec.name, who="it was offered"))


async def _rewrite(ctx: OneStep, call: Call, tool: Tool, arguments: JsonObject) -> JsonObject:
    hooks, before = ctx.run.setup.hooks["on_call_start"], getattr(tool, "before", None)
    if not hooks and before is None:
        return arguments
    await ctx.run.commit([])  # what a plugin rewrites is written
    one = OneCall(ctx.run, call, tool.spec, arguments)
    for plugin, method in hooks:
        await ctx.run.call_hook(plugin, "on_call_start", method, one)
    if before is not None:
        await ctx.run.call_hook(tool.spec.name, "before", before, one)
    return one.arguments


class _One:
    """A call whose tool and arguments are known."""

    def __init__(
        self,
        ctx: OneStep,
        call: Call,
        tool: Tool,
        identity: str,
        text: str,
        given: JsonObject,
        tools: Mapping[str, Tool],
    ) -> None:
        self._ctx, self._call, self._spec, self._identity, self._text = ctx, call, tool.spec, identity, text
        self._tool, self._given, self._tools = tool, given, tools
        self._cases: Sequence[Case] = ()

    async def permit(self, meant: JsonObject) -> Judgement:
        """What the rules say to it, as it was written and as its tool reads it."""
        run = self._ctx.run
        decided = await run.setup.permits.decide(self._spec, self._given, meant, run.state.options, run.grants)
        self._cases = decided.cases
        return decided.judgement

    async def ask(self, judged: Judgement, tools: Mapping[str, Tool]) -> list[Event] | None:
        """The gate it has to pass, if any: one for all that there is to ask."""
        run, spec = self._ctx.run, self._spec
        options = run.state.options
        if is_by_hand(spec, options):
            return await self._open("hand", "a person runs this tool, and says what came of it")
        if loop := await self._loop(tools):
            if loop.action == "deny":
                return [
                    *_denied(
                        self._ctx,
                        self._call,
                        spec,
                        self._identity,
                        NOT_ALLOWED.format(why=loop.reason),
                        loop.reason,
                        loop.rule,
                    )
                ]
            return await self._open(
                "loop", loop.reason, (Rule("doom_loop", "allow", {"tool": escape(spec.name)}, "grants"),)
            )
        if spec.egress and all(await run.taint()):
            return await self._open("egress", LEAVES)
        if judged.action == "ask":
            offers = () if judged.is_final else offers_for(spec, self._cases, self._is_asked)
            return await self._open("call", judged.reason, offers)
        return None

    def _is_asked(self, case: Case) -> bool:
        run = self._ctx.run
        return run.setup.permits.judge(self._spec, [case], run.state.options).action == "ask"

    async def _loop(self, tools: Mapping[str, Tool]) -> Judgement | None:
        """Whether this is the third time round; None: it is not, or that is wanted."""
        if self._spec.repeatable:
            return None
        run = self._ctx.run
        above, mark = run.state.options.above, self._call.mark
        calls, before = run.state.calls, above.trail if above is not None else ()
        # One that is not among the last few completes no round of anything.
        if mark not in (*before, *marks_before(calls, self._call, tools.get, LONGEST))[-LONGEST:]:
            return None
        trail = [*before, *marks_before(calls, self._call, tools.get)]
        period = period_of([*trail, mark])
        if not period:
            return None
        judged = run.setup.permits.judge_loop(self._spec.name, run.state.options, await run.grants())
        if judged.action == "allow":
            return None
        pattern = "" if period == 1 else f", {period} in turn"
        return Judgement(judged.action, judged.rule, reason=LOOPS.format(pattern=pattern), is_final=judged.is_final)

    async def _open(self, kind: GateKind, why: str, offers: tuple[Rule, ...] = ()) -> list[Event]:
        """Open a gate for exactly these bytes."""
        # A command is allowed to a user of a server in one session, never everywhere (decision 0113).
        only = bool(offers and self._ctx.run.state.options.by) and "command" in self._spec.subjects.values()
        asked = (self._spec.name, self._identity, self._text, why, offers)
        gate = gate_for(self._ctx, self._call, kind, *asked, session_only=only)
        if (preview := await self._preview()) is not None:
            # What a person is shown of the world is part of what they allow.
            bound = digest(gate.hash, preview.text, preview.basis)
            gate = replace(gate, preview=preview.text, basis=preview.basis, hash=bound)
        return await open_gate(self._ctx.run, gate)

    async def _preview(self) -> Preview | None:
        """What the call would do, where its tool can say so; a call that could not be done is not asked about."""
        show = getattr(self._tool, "preview", None)
        if show is None:
            return None
        context = Within(self._ctx, self._call, self._tool, self._tools).context()
        made = await call_hook(show, self._given, replace(context, cases=self._cases))
        if made is not None and not isinstance(made, Preview):
            raise BadOutput(f"{self._spec.name} shows a {type(made).__name__}; a preview is a Preview(text, basis)")
        if made is not None and len(made.text) > MOST_PREVIEW:
            raise BadOutput(f"{self._spec.name} shows more than {MOST_PREVIEW:,} characters; nobody would read them")
        return None if made is None else Preview(clean(made.text), clean(made.basis))

    def start(self, judged: Judgement, gate: Gate | None) -> list[Event]:
        """The record of the decision, and the start it allows: always in one append."""
        ctx, call, spec, verdict = self._ctx, self._call, self._spec, self._call.verdict
        bound = bound_to(ctx, call, "call", spec.name, self._identity, self._text)
        record = call.judged
        if record is not None and (not record.allowed or (record.tool, record.hash) != (spec.name, bound)):
            raise ToolChanged(CHANGED.format(name=spec.name, who="this call was allowed"))
        by = f"allowed by {verdict.by or 'a person'}" if verdict is not None else judged.reason
        now = ctx.run.now()
        return _unless_judged(
            call,
            [
                CallJudged(
                    turn=ctx.turn,
                    at=now,
                    call=call.id,
                    tool=spec.name,
                    identity=self._identity,
                    hash=bound,
                    allowed=True,
                    why=by,
                    rule=judged.rule if judged.action == "allow" else None,
                    gate=gate.id if gate is not None else "",
                    mark=call.known_as,
                ),
                CallStarted(
                    turn=ctx.turn,
                    at=now,
                    call=call.id,
                    tool=spec.name,
                    arguments=self._text,
                    hash=bound,
                    effects=spec.effects,
                    key=call.id,
                ),
            ],
        )


def _denied(
    ctx: OneStep,
    call: Call,
    spec: ToolSpec,
    identity: str,
    text: str,
    why: str,
    rule: Rule | None = None,
    gate: str = "",
) -> list[Event]:
    turn, at = ctx.turn, ctx.run.now()
    record = CallJudged(
        turn=turn,
        at=at,
        call=call.id,
        tool=spec.name,
        identity=identity,
        hash="",
        allowed=False,
        why=why,
        rule=rule,
        gate=gate,
        mark=call.known_as,
    )
    return _unless_judged(call, [record, settled(ctx, call.id, "denied", Output(text, code="denied"))])


def _unless_judged(call: Call, events: list[Event]) -> list[Event]:
    """The record is made once, even where the log was cut between it and what follows from it.

    An earlier record that says something else never comes this far: `judge` denies again what was denied, and
    `_One.start` refuses what was allowed for another tool or other arguments.
    """
    return events if call.judged is None else events[1:]
