"""Admission of one call: decides whether it starts, opens a gate, or is finished without running.

The stages are lookup, parsing, validation, permission, gate and start. Nothing here runs a tool; a failure is the
call's result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from everturn.calls.arguments import parse_arguments, parse_strict_arguments
from everturn.calls.gates import build_gate, call_finished, denial_text, hash_call
from everturn.calls.lookup import find_tool
from everturn.calls.loop_guard import recent_fingerprints
from everturn.calls.references import resolve_references
from everturn.calls.tool_context import TurnForTool, has_edited_target
from everturn.core.calls import CallRecord
from everturn.core.canonical_json import JsonObject, encode_canonical, hash_values, replace_surrogates
from everturn.core.chunks import TOO_MANY_CALLS, exceeds_call_limit
from everturn.core.events import CallStarted, Event, PermissionDecided
from everturn.core.gates import Gate, GateKind
from everturn.core.loop_detection import LOOP_RULE_NAME, MAX_LOOP_PERIOD, find_loop_period, fingerprint_of_call
from everturn.core.parts import Output
from everturn.core.ports import Preview, Tool
from everturn.core.requests import ToolSpec
from everturn.core.rules.globs import escape_glob
from everturn.core.rules.policy import PolicyDecision, Rule, SubjectCase
from everturn.errors import BadArguments, BadOutput, HookError, ToolChanged, ToolError
from everturn.running.hook_contexts import CallHookContext, StepHookContext, open_gate
from everturn.running.permissions import is_manual, offer_grants
from everturn.running.plugin_table import invoke_hook as call_hook

UNRUN_FINISH_REASONS = {
    "length": "the model's output was cut off at its length limit, so these arguments may be incomplete",
    "content_filter": "the provider filtered this answer",
    "refusal": "the model refused to answer",
}
NOT_ALLOWED = "This call is not allowed: {why}."
MANUAL = "done by hand"
TOOL_CHANGED = "{name} has changed since {who}; nothing was run. Read its description and call it again."
MAX_PREVIEW_LENGTH = 500_000  # characters
TARGET_EDITED = (
    "The person changed the target of this call and has not seen a preview of the new target, so nothing was run. Call "
    "the tool again with these arguments: {edited}"
)
EGRESS_REASON = "its arguments are sent outside, and this conversation has read private data and untrusted text"
LOOP_REASON = "the same calls were repeated for the third time{pattern}"


class StartCall(Struct, frozen=True):
    """A call that may run. `arguments` are those that the tool gets; the log may have references in their place."""

    call: CallRecord
    tool: Tool
    arguments: JsonObject


class AdmissionResult(Struct, frozen=True):
    """The result of admission: events to write and, if the call may run, its start."""

    events: Sequence[Event]
    start: StartCall | None = None
    manual: Output | None = None  # the result that a person submitted


async def admit_call(ctx: StepHookContext, call: CallRecord, tools: Mapping[str, Tool]) -> AdmissionResult:
    """Look up, parse, validate and permit one call.

    Raises:
        ToolError: the call is invalid; the error is its result.
    """
    if ctx.finish in UNRUN_FINISH_REASONS:
        raise BadArguments(f"this call was not run: {UNRUN_FINISH_REASONS[ctx.finish]}")
    if exceeds_call_limit(call.id):
        raise BadArguments(TOO_MANY_CALLS)
    gate, resolution = call.gate, call.resolution
    # Once a person was asked, it must be the tool they were shown, whatever tools exist by now.
    tool = find_tool(call.name if gate is None else gate.tool, tools)
    spec, identity = tool.spec, ctx.run.setup.permissions.identity(tool.spec)
    _check_identity(call, spec, identity)
    if call.decision is not None and not call.decision.allowed and (resolution is None or resolution.allowed):
        # The process died between this decision and the event that follows from it.
        return AdmissionResult(_denial_events(ctx, call, spec, identity, NOT_ALLOWED.format(why=call.decision.why), ""))
    if resolution is None:
        arguments = parse_strict_arguments(call.arguments)
        if arguments is None:
            arguments = (await parse_arguments(call.arguments, ctx.finish)).value
        if ctx.run.setup.hooks["on_call_start"] or getattr(tool, "before", None) is not None:
            arguments = await _rewrite(ctx, call, tool, arguments)
    else:
        assert gate is not None
        if not resolution.allowed:
            return AdmissionResult(
                _denial_events(ctx, call, spec, identity, denial_text(resolution), resolution.reason, gate=gate.id)
            )
        # What was shown is what runs: the bytes of the gate, or the person's own edit of them.
        arguments = (await parse_arguments(resolution.arguments or gate.arguments, "stop")).value
        if has_edited_target(call, spec):
            raise ToolError(TARGET_EDITED.format(edited=resolution.arguments))
    text = encode_canonical(arguments)
    actual = await resolve_references(ctx.run, spec, arguments) if "$" in text else arguments
    validated = tool.validate(actual) or actual  # with defaults filled in, and numbers for numeric strings
    if resolution is not None and resolution.result is not None:
        manual_output = Output(resolution.result, title=MANUAL)
        return AdmissionResult((), StartCall(call, tool, actual), manual_output)
    # Of the validated arguments; but the values behind references must not be in the log.
    is_as_written = validated is actual or actual is not arguments
    call.fingerprint = fingerprint_of_call(spec.name, text if is_as_written else encode_canonical(validated))
    resolved = _ResolvedCall(ctx, call, tool, identity, text, actual, tools)
    decision = await resolved.permit(validated)
    if decision.action == "deny":
        text = NOT_ALLOWED.format(why=decision.reason)
        return AdmissionResult(_denial_events(ctx, call, spec, identity, text, decision.reason, decision.rule))
    if resolution is None and (gate_events := await resolved.ask(decision, tools)) is not None:
        return AdmissionResult(gate_events)
    return AdmissionResult(resolved.start(decision, gate), StartCall(call, tool, actual))


def _check_identity(call: CallRecord, spec: ToolSpec, identity: str) -> None:
    if call.gate is not None and call.gate.identity != identity:
        raise ToolChanged(TOOL_CHANGED.format(name=spec.name, who="the person was asked about it"))
    if call.identity and call.identity != identity:
        raise ToolChanged(TOOL_CHANGED.format(name=spec.name, who="it was offered"))


async def _rewrite(ctx: StepHookContext, call: CallRecord, tool: Tool, arguments: JsonObject) -> JsonObject:
    hooks, before = ctx.run.setup.hooks["on_call_start"], getattr(tool, "before", None)
    await ctx.run.commit([])  # the call that a plugin rewrites must be in the log
    hook_ctx = CallHookContext(ctx.run, call, tool.spec, arguments)
    for plugin, method in hooks:
        try:
            await ctx.run.call_hook(plugin, "on_call_start", method, hook_ctx)
        except HookError as error:
            if isinstance(error.__cause__, ToolError):  # the plugin refuses the call, and says why
                raise error.__cause__ from None
            raise
    if before is not None:
        await ctx.run.call_hook(tool.spec.name, "before", before, hook_ctx)
    return hook_ctx.arguments


class _ResolvedCall:
    """A call whose tool and arguments are known."""

    def __init__(
        self,
        ctx: StepHookContext,
        call: CallRecord,
        tool: Tool,
        identity: str,
        text: str,
        arguments: JsonObject,
        tools: Mapping[str, Tool],
    ) -> None:
        self._ctx, self._call, self._spec, self._identity, self._text = ctx, call, tool.spec, identity, text
        self._tool, self._arguments, self._tools = tool, arguments, tools
        self._cases: Sequence[SubjectCase] = ()

    async def permit(self, validated: JsonObject) -> PolicyDecision:
        """The decision of the rules, on the arguments as written and as the tool reads them."""
        run = self._ctx.run
        if (own := run.setup.permissions.own_decision(self._spec, run.state.options)) is not None:
            return own
        decision = await run.setup.permissions.decide(
            self._spec, self._arguments, validated, run.state.options, run.grants
        )
        self._cases = decision.cases
        return decision.decision

    async def ask(self, decision: PolicyDecision, tools: Mapping[str, Tool]) -> list[Event] | None:
        """Open the gate it has to pass, if any: one gate for everything there is to ask."""
        run, spec = self._ctx.run, self._spec
        options = run.state.options
        if is_manual(spec, options):
            return await self._open("manual", "a person runs this tool and enters the result")
        if not spec.repeatable and (loop := await self._loop(tools)) is not None:
            if loop.action == "deny":
                return [
                    *_denial_events(
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
                "loop", loop.reason, (Rule(LOOP_RULE_NAME, "allow", {"tool": escape_glob(spec.name)}, "grants"),)
            )
        if spec.egress and all(await run.taint()):
            return await self._open("egress", EGRESS_REASON)
        if decision.action == "ask":
            in_folder = bool(run.state.options.folder)
            offers = () if decision.is_final else offer_grants(spec, self._cases, self._is_asked, in_folder=in_folder)
            return await self._open("call", decision.reason, offers)
        return None

    def _is_asked(self, case: SubjectCase) -> bool:
        run = self._ctx.run
        return run.setup.permissions.decide_cases(self._spec, [case], run.state.options).action == "ask"

    async def _loop(self, tools: Mapping[str, Tool]) -> PolicyDecision | None:
        """The decision about a loop, if this call completes the third repetition; None: no loop, or loops are allowed."""
        run = self._ctx.run
        above, fingerprint = run.state.options.lineage, self._call.mark
        calls, parent_trail = run.state.calls, above.recent_calls if above is not None else ()
        # A call that is not among the last few completes no repetition.
        if (
            fingerprint
            not in (*parent_trail, *recent_fingerprints(calls, self._call, tools.get, MAX_LOOP_PERIOD))[
                -MAX_LOOP_PERIOD:
            ]
        ):
            return None
        recent = [*parent_trail, *recent_fingerprints(calls, self._call, tools.get)]
        period = find_loop_period([*recent, fingerprint])
        if not period:
            return None
        decision = run.setup.permissions.decide_loop(self._spec.name, run.state.options, await run.grants())
        if decision.action == "allow":
            return None
        pattern = "" if period == 1 else f", {period} in turn"
        return PolicyDecision(
            decision.action, decision.rule, reason=LOOP_REASON.format(pattern=pattern), is_final=decision.is_final
        )

    async def _open(self, kind: GateKind, why: str, offers: tuple[Rule, ...] = ()) -> list[Event]:
        """The events that open a gate for exactly these bytes."""
        # A command is allowed to a user of a server in one session, never everywhere (decision 0113).
        session_only = bool(offers and self._ctx.run.state.options.by) and "command" in self._spec.subjects.values()
        shown = (self._spec.name, self._identity, self._text, why, offers)
        gate = build_gate(self._ctx, self._call, kind, *shown, session_only=session_only)
        if (preview := await self._preview()) is not None:
            # The preview that a person is shown is part of what they approve.
            bound_hash = hash_values(gate.hash, preview.text, preview.base_version)
            gate = replace(gate, preview=preview.text, base_version=preview.base_version, hash=bound_hash)
        return await open_gate(self._ctx.run, gate)

    async def _preview(self) -> Preview | None:
        """The preview of the call, if its tool has one; a call whose preview fails opens no gate."""
        make_preview = getattr(self._tool, "preview", None)
        if make_preview is None:
            return None
        context = TurnForTool(self._ctx, self._call, self._tool, self._tools).context()
        preview = await call_hook(make_preview, self._arguments, replace(context, cases=self._cases))
        if preview is not None and not isinstance(preview, Preview):
            raise BadOutput(
                f"{self._spec.name} shows a {type(preview).__name__}; a preview must be a Preview(text, base_version)"
            )
        if preview is not None and len(preview.text) > MAX_PREVIEW_LENGTH:
            raise BadOutput(
                f"{self._spec.name} has a preview of more than {MAX_PREVIEW_LENGTH:,} characters, which is too "
                "long to review"
            )
        return (
            None
            if preview is None
            else Preview(replace_surrogates(preview.text), replace_surrogates(preview.base_version))
        )

    def start(self, decision: PolicyDecision, gate: Gate | None) -> list[Event]:
        """The permission decision and the start it allows: always in one append."""
        ctx, call, spec, resolution = self._ctx, self._call, self._spec, self._call.resolution
        call_hash = hash_call(ctx, call, "call", spec.name, self._identity, self._text)
        record = call.decision
        if record is not None and (not record.allowed or (record.tool, record.hash) != (spec.name, call_hash)):
            raise ToolChanged(TOOL_CHANGED.format(name=spec.name, who="this call was allowed"))
        by = f"allowed by {resolution.by or 'a person'}" if resolution is not None else decision.reason
        now = ctx.run.now()
        return _skip_recorded_decision(
            call,
            [
                PermissionDecided(
                    turn=ctx.turn,
                    at=now,
                    call=call.id,
                    tool=spec.name,
                    identity=self._identity,
                    hash=call_hash,
                    allowed=True,
                    why=by,
                    rule=decision.rule if decision.action == "allow" else None,
                    gate=gate.id if gate is not None else "",
                    fingerprint=call.fingerprint,
                ),
                CallStarted(
                    turn=ctx.turn,
                    at=now,
                    call=call.id,
                    tool=spec.name,
                    arguments=self._text,
                    hash=call_hash,
                    read_only=spec.read_only,
                    idempotent=spec.idempotent,
                    key=call.id,
                ),
            ],
        )


def _denial_events(
    ctx: StepHookContext,
    call: CallRecord,
    spec: ToolSpec,
    identity: str,
    text: str,
    why: str,
    rule: Rule | None = None,
    gate: str = "",
) -> list[Event]:
    turn, at = ctx.turn, ctx.run.now()
    record = PermissionDecided(
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
        fingerprint=call.fingerprint,
    )
    return _skip_recorded_decision(call, [record, call_finished(ctx, call.id, "denied", Output(text, code="denied"))])


def _skip_recorded_decision(call: CallRecord, events: list[Event]) -> list[Event]:
    """Leave out `PermissionDecided` if the log has it already: a process may have died right after writing it.

    An earlier decision that differs never gets this far: `decide` denies again what was denied, and
    `_ResolvedCall.start` refuses what was allowed for another tool or other arguments.
    """
    return events if call.decision is None else events[1:]
