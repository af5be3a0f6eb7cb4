"""Recorded world: answers tool calls and gates of a new run from a recording, and from nothing else.

A recorded result belongs to one call: the tool (its identity: name, schema, description and origin), the canonical
arguments, and how many calls with both came before it in the turn. `get_order(4512)` never gets the result of
`get_order(999)`, and the second `next_page()` never gets the result of the first.

A call that is not in the recording is a mismatch. What happens then depends on what the tool declares:

- a tool that acts (anything but `read_only`) does not run and gets no result: the turn is stopped, and the run is
  divergent;
- a `read_only` tool stops the turn, too, unless the caller chose to run it (`on_miss="run"`) or to let a model play it
  (`on_miss="emulate"`).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.canonical_json import JsonObject, encode_canonical, parse_object
from everturn.core.events import (
    CallFinished,
    CallStarted,
    Event,
    FilesChanged,
    GateOpened,
    GateResolved,
    PermissionDecided,
    StepFinished,
    StepStarted,
    TurnEvent,
    TurnFinishing,
)
from everturn.core.gates import Gate, GateResolution
from everturn.core.options import Approval
from everturn.core.parts import Output, ToolPart
from everturn.core.ports import Tool, ToolContext
from everturn.core.requests import ToolSpec
from everturn.core.rules.policy import SubjectKind
from everturn.core.store_ports import Store
from everturn.core.tool import Preview
from everturn.errors import OutcomeUnknown, ToolError
from everturn.evals.trajectory import CALL_GATES, EvalCall, collect_calls
from everturn.replay.plugins import RecordedSpec
from everturn.replay.recording import Recording
from everturn.replay.what_if import USUAL_SUBJECTS

OnMiss = Literal["stop", "run", "emulate"]
"""What a `read_only` call that is not in the recording does: ends the turn, runs, or is played by a model."""
Match = Literal["identity", "name"]
"""What must be equal for a tool to be the recorded one: its identity, or only its name."""
BY: Final = "eval"
"""Who resolves a gate that nobody answered in the recording."""
FUNCTION: Final = "function:"
LAST: Final = 10**9  # the step of what is written when a turn ends
NOT_RECORDED: Final = "divergent: this call is not in the recording"
SERVED: Final = "allowed: the recording has the result of this very call"


class RecordedResult(Struct, frozen=True):
    """The recorded result of a call."""

    call: EvalCall
    finished: CallFinished


class RecordedWorld:
    """The results and the answers of people of one recorded turn."""

    def __init__(
        self,
        recording: Recording,
        turn: str,
        match: Match = "identity",
        tools: Mapping[str, Tool] = MappingProxyType({}),
    ) -> None:
        self.match: Match = match
        events = [event for event in recording.events if isinstance(event, TurnEvent) and event.turn == turn]
        self.calls = collect_calls(events)
        finished = {event.call: event for event in events if isinstance(event, CallFinished)}
        self._moved = _moved_functions(self.calls, finished, tools)
        self._results: dict[tuple[str, ...], list[RecordedResult]] = {}
        for call in self.calls:
            if call.has_run and call.call in finished:
                self._results.setdefault(self.key(call), []).append(RecordedResult(call, finished[call.call]))
        self._gates = _resolved_gates(events)
        self.previews = {
            (gate.tool, _canonical(gate.arguments)): Preview(gate.preview, gate.base_version)
            for gate, _ in self._gates
            if gate.preview
        }
        self._validated = _validated_arguments(events)
        self.files = _file_changes(events)

    def key(self, call: EvalCall) -> tuple[str, ...]:
        """What a result belongs to."""
        identity, *rest = call.key
        return (self._moved.get(identity, identity), *rest) if self.match == "identity" else tuple(rest)

    def find(self, call: EvalCall, number: int) -> RecordedResult | None:
        """Return the recorded result of the n-th call (from 1) with this tool and these arguments."""
        results = self._results.get(self.key(call), ())
        return results[number - 1] if number <= len(results) else None

    def has_any(self, call: EvalCall) -> bool:
        """Whether some recorded call has this tool and these arguments."""
        return self.key(call) in self._results

    def nearest(self, call: EvalCall) -> EvalCall | None:
        """Return the recorded call of the same tool to show beside one that is not recorded."""
        same = [recorded for recorded in self.calls if recorded.tool == call.tool]
        return same[-1] if same else None

    def validated(self, tool: str, arguments: JsonObject) -> JsonObject | None:
        """Return the arguments as the recorded tool validated them, with defaults filled in; None: as they are."""
        return self._validated.get((tool, encode_canonical(arguments)))

    def resolution(self, gate: Gate, number: int) -> GateResolved | None:
        """Return the recorded answer to the n-th gate of this kind about this call."""
        same = [resolved for recorded, resolved in self._gates if _gate_key(recorded) == _gate_key(gate)]
        return same[number - 1] if number <= len(same) else None


def _moved_functions(
    calls: Sequence[EvalCall], finished: Mapping[str, CallFinished], tools: Mapping[str, Tool]
) -> dict[str, str]:
    """Map the identities of today's functions to the recorded ones, where only the module has another name.

    A function has its module in its origin, and a file has another module name on each machine and in each loader. So a
    recorded function is today's if it has the recorded identity under the recorded origin. A tool of an MCP server, of a
    client or of a folder is not compared so: its origin says whose it is.
    """
    moved: dict[str, str] = {}
    for call in calls:
        tool, recorded = tools.get(call.tool), finished.get(call.call)
        if tool is None or recorded is None or not _is_function(tool.spec.origin, recorded.output.origin):
            continue
        if replace(tool.spec, origin=recorded.output.origin).identity == call.identity:
            moved[tool.spec.identity] = call.identity
    return moved


def _is_function(*origins: str) -> bool:
    return all(origin.startswith(FUNCTION) for origin in origins)


def recorded_specs(recording: Recording) -> dict[str, ToolSpec]:
    """Return the specs of the tools that a recording calls, as far as its log shows them: enough for recorded answers."""
    events = [event for event in recording.events if isinstance(event, TurnEvent)]
    return {call.tool: _recorded_spec(call, events) for call in collect_calls(events) if call.identity}


def _recorded_spec(call: EvalCall, events: Sequence[Event]) -> ToolSpec:
    starts = [event for event in events if isinstance(event, CallStarted) and event.tool == call.tool]
    own = {start.call for start in starts}
    finished = [event for event in events if isinstance(event, CallFinished) and event.call in own]
    return RecordedSpec(
        call.tool,
        "",
        {},
        read_only=bool(starts) and starts[0].read_only,
        idempotent=bool(starts) and starts[0].idempotent,
        approval=_approval(call.tool, events),
        subjects=_subjects(call.tool, events),
        untrusted=any(event.output.untrusted for event in finished),
        origin=next((event.output.origin for event in finished if event.output.origin), "function"),
        known_as=call.identity,
    )


def _approval(tool: str, events: Sequence[Event]) -> Approval:
    approval: Approval = "auto"
    for event in events:
        match event:
            case PermissionDecided(tool=name, rule=rule) if name == tool and rule and rule.layer == "defaults":
                approval = "deny" if rule.action == "deny" else "auto"
            case GateOpened(gate=gate) if gate.tool == tool and gate.why.endswith("always requires approval"):
                approval = "always"
            case GateOpened(gate=gate) if gate.tool == tool and gate.kind == "call":
                approval = "ask"
            case _:
                pass
    return approval


def _subjects(tool: str, events: Sequence[Event]) -> dict[str, SubjectKind]:
    """Return the arguments that rules match: those that the offered grants name, with the kind of their usual name."""
    offers = [
        rule
        for event in events
        if isinstance(event, GateOpened) and event.gate.tool == tool
        for rule in event.gate.offers
    ]
    return {name: USUAL_SUBJECTS.get(name, "text") for rule in offers for name in rule.match}


def _resolved_gates(events: Sequence[Event]) -> list[tuple[Gate, GateResolved]]:
    gates = {event.gate.id: event.gate for event in events if isinstance(event, GateOpened)}
    return [(gates[item.gate], item) for item in events if isinstance(item, GateResolved) and item.gate in gates]


def _gate_key(gate: Gate) -> tuple[str, str, str]:
    return (gate.kind, gate.tool, _canonical(gate.arguments))


def _canonical(text: str) -> str:
    parsed = parse_object(text)
    return text if parsed is None else encode_canonical(parsed)


def _file_changes(events: Sequence[Event]) -> list[tuple[int, FilesChanged]]:
    """List the changes of files outside calls, each with the step before whose request it was written."""
    changes: list[tuple[int, FilesChanged]] = []
    step = 0
    for event in events:
        if isinstance(event, StepStarted):
            step = event.step
        elif isinstance(event, TurnFinishing):
            step = LAST
        elif isinstance(event, FilesChanged) and not event.call:
            changes.append((step, event))
    return changes


def _validated_arguments(events: Sequence[Event]) -> dict[tuple[str, str], JsonObject]:
    """Map the arguments of each call to those that its tool validated: the fingerprint of the call has them."""
    written = {
        part.call: part
        for event in events
        if isinstance(event, StepFinished)
        for part in event.parts
        if isinstance(part, ToolPart)
    }
    validated: dict[tuple[str, str], JsonObject] = {}
    for event in events:
        if isinstance(event, PermissionDecided) and (part := written.get(event.call)) is not None:
            arguments = parse_object(event.fingerprint.removeprefix(f"{event.tool} "))
            if arguments is not None:
                validated[part.name, _canonical(part.arguments)] = arguments
    return validated


Emulator = Callable[[ToolSpec, JsonObject], Awaitable[str]]
Stop = Callable[[str], Awaitable[None]]


class ServedTool:
    """A tool whose calls are answered from a recording. The real tool runs only if it is `read_only` and chosen to."""

    def __init__(
        self,
        spec: ToolSpec,
        world: RecordedWorld,
        store: Store,
        stop: Stop,
        *,
        real: Tool | None = None,
        on_miss: OnMiss = "stop",
        emulate: Emulator | None = None,
    ) -> None:
        self._spec = spec if isinstance(spec, RecordedSpec) else replace(spec, private=())
        self._world, self._store, self._stop, self._real = world, store, stop, real
        self._on_miss: OnMiss = on_miss
        self._emulate = emulate

    @property
    def spec(self) -> ToolSpec:
        """The spec of the real tool, or as much of it as the recording has."""
        return self._spec

    def validate(self, arguments: JsonObject) -> JsonObject | None:
        """Validate as the real tool does; without one, fill in what the recorded tool got."""
        if self._real is not None:
            return self._real.validate(arguments)
        return self._world.validated(self._spec.name, arguments)

    async def preview(self, arguments: JsonObject, context: ToolContext) -> Preview | None:
        """Return the recorded preview: a real one would look at the world of today."""
        return self._world.previews.get((self._spec.name, encode_canonical(arguments)))

    async def run(self, arguments: JsonObject, context: ToolContext) -> object:
        """Return the recorded result of this very call; a call that is not recorded stops the turn."""
        call, number = await self._occurrence(arguments, context)
        if (recorded := self._world.find(call, number)) is not None:
            return _serve(recorded.finished)
        if self._spec.read_only and self._on_miss == "run" and self._real is not None:
            return await _run(self._real, arguments, context)
        if self._spec.read_only and self._on_miss == "emulate" and self._emulate is not None:
            return Output(await self._emulate(self._spec, arguments), metadata={"emulated": True})
        await self._stop(context.call)
        return await asyncio.get_running_loop().create_future()  # until the turn is cancelled

    async def _occurrence(self, arguments: JsonObject, context: ToolContext) -> tuple[EvalCall, int]:
        """Return the call as the log has it, and how many calls up to it have its key: a resumed run counts the same."""
        log = [entry.event for entry in await self._store.events(context.session, turn=context.turn)]
        starts = [event for event in log if isinstance(event, CallStarted) and event.tool == self._spec.name]
        own = next((at for at, event in enumerate(starts) if event.call == context.call), None)
        if own is not None:
            arguments, starts = parse_object(starts[own].arguments) or arguments, starts[:own]
        call = EvalCall(context.call, self._spec.name, self._spec.identity, arguments)
        return call, 1 + sum(_canonical(event.arguments) == call.key[2] for event in starts)


async def _run(tool: Tool, arguments: JsonObject, context: ToolContext) -> object:
    result = tool.run(arguments, context)
    if not isinstance(result, AsyncIterator):
        return await result
    items = [item async for item in result]
    return items[-1] if items else None


class _RecordedFailure(ToolError):
    """A failure with its recorded code."""

    def __init__(self, output: Output) -> None:
        super().__init__(output.text)
        self.code = output.code or "failed"


def _serve(finished: CallFinished) -> Output:
    if finished.state == "outcome_unknown":
        raise OutcomeUnknown(finished.output.text)
    if finished.state != "completed":
        raise _RecordedFailure(finished.output)
    return finished.output


class RecordedGateAnswers:
    """Answers gates as people did in the recording."""

    def __init__(self, world: RecordedWorld) -> None:
        self._world = world
        self._seen: Counter[tuple[str, str, str]] = Counter()
        self._answered: dict[str, GateResolved | None] = {}

    def find(self, gate: Gate) -> tuple[str, GateResolution]:
        """Return the key and the resolution for a gate: the recorded one; an approval if the result of this call is
        recorded and only the question is new; otherwise a denial that stops the turn."""
        if gate.id not in self._answered:
            self._seen[_gate_key(gate)] += 1
            self._answered[gate.id] = self._world.resolution(gate, self._seen[_gate_key(gate)])
        if (recorded := self._answered[gate.id]) is not None:
            return recorded.command or f"answer-{gate.id}", recorded.resolution
        call = EvalCall(gate.call, gate.tool, gate.identity, parse_object(gate.arguments) or {})
        if (gate.kind in CALL_GATES and gate.kind != "manual" and self._world.has_any(call)) or gate.kind == "result":
            return f"answer-{gate.id}", GateResolution(True, SERVED, by=BY)
        return f"answer-{gate.id}", GateResolution(False, NOT_RECORDED, by=BY, stop=True)


class Divergence(Struct, frozen=True):
    """The first place where a run left the recording."""

    reason: str
    call: str = ""  # the tool and the arguments of the new call
    recorded: str = ""  # and of the recorded call beside it


def find_divergence(world: RecordedWorld, calls: Sequence[EvalCall], served_reads: bool = True) -> Divergence | None:
    """Return the first call of a run that the recording does not have. Pure: a finished run is judged from its log.

    With `served_reads=False`, calls of `read_only` tools may differ, because they ran or were emulated.
    """
    seen: Counter[tuple[str, ...]] = Counter()
    denied = {_loose_key(call) for call in world.calls if not call.has_run}
    for call in calls:
        if not call.has_run and call.approved is not False:
            continue  # it was denied by a rule, or failed before it was started
        if call.has_run:
            seen[world.key(call)] += 1
            if world.find(call, seen[world.key(call)]) is not None or (not call.acts and not served_reads):
                continue
        elif _loose_key(call) in denied or world.has_any(call):
            continue
        nearest = world.nearest(call)
        return Divergence(_reason(world, call), str(call), "" if nearest is None else str(nearest))
    return None


def _loose_key(call: EvalCall) -> tuple[str, str]:
    return (call.tool, encode_canonical(call.arguments))


def _reason(world: RecordedWorld, call: EvalCall) -> str:
    same_tool = [recorded for recorded in world.calls if recorded.tool == call.tool]
    if not same_tool:
        return "the recording has no call of this tool"
    if any(recorded.arguments == call.arguments for recorded in same_tool):
        if world.has_any(call):
            return "the recording has fewer calls with these arguments"
        return "the tool has another schema, description or origin than the recorded one"
    return "the recording has no call with these arguments"
