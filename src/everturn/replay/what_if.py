"""What-if analysis: what another prompt, or other rules, would have changed in a recording. Pure: nothing runs.

The model's answers stay. Its calls are decided again by the same code that decides them in turns, and the system prompt
is built again. A log does not say which arguments are paths, URLs or commands: the result is exact only if the caller
passes the tools or the subjects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import unified_diff
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from everturn.calls.admit import NOT_ALLOWED
from everturn.core.canonical_json import JsonObject, encode_canonical, parse_object
from everturn.core.events import (
    CallFinished,
    CallStarted,
    Event,
    GateOpened,
    GateResolved,
    GrantRevoked,
    NestedCallRequested,
    PermissionDecided,
    StepFinished,
    TurnStarted,
)
from everturn.core.options import Approval, TurnOptions
from everturn.core.parts import ToolPart
from everturn.core.requests import ToolSpec
from everturn.core.rules.policy import PolicyDecision, Rule, RuleAction, Subject, SubjectKind
from everturn.errors import ToolError
from everturn.replay.recording import Recording
from everturn.running.permissions import Permissions
from everturn.turn.request import system_prompt

WAS: Final[Mapping[RuleAction, str]] = {"allow": "was allowed", "ask": "was asked about", "deny": "was denied"}
WOULD: Final[Mapping[RuleAction, str]] = {
    "allow": "would run",
    "ask": "would be asked about",
    "deny": "would be denied",
}
USUAL_SUBJECTS: Final[Mapping[str, SubjectKind]] = {"path": "path", "url": "url", "command": "command"}
CALL_GATE_KINDS: Final = ("call", "egress", "loop", "manual")
SHOWN: Final = 200  # characters of arguments that are shown


class Change(Struct, frozen=True):
    """The values that differ from the recording. None: as recorded."""

    system: str | None = None
    rules: Sequence[Rule] | None = None  # of the runtime
    own_rules: Sequence[Rule] | None = None  # of the agent, or the session
    specs: Mapping[str, ToolSpec] = {}
    subjects: Mapping[str, SubjectKind] = {}


class ChangedDecision(Struct, frozen=True):
    """A call with another permission decision."""

    call: str  # with its tool and its arguments
    was: str
    now: str
    id: str = ""  # of the call
    action: RuleAction = "allow"  # what would be decided


class WhatIfResult(Struct, frozen=True):
    """The differences."""

    prompt: list[str] = []  # a unified diff
    calls: list[ChangedDecision] = []
    result_diff: list[str] = []  # a unified diff of the first result that the model would have read differently

    @property
    def lines(self) -> list[str]:
        """All differences, as lines."""
        prompt = ["the system prompt:", *self.prompt] if self.prompt else []
        result_lines = ["what the model would have been told:", *self.result_diff] if self.result_diff else []
        calls = [line for call in self.calls for line in (call.call, f"  {call.was}", f"  {call.now}")]
        return [*prompt, *calls, *result_lines]

    @property
    def summary(self) -> str:
        """A short summary; "" if nothing differs."""
        calls = f"{len(self.calls)} {'call' if len(self.calls) == 1 else 'calls'} judged otherwise"
        return ", ".join([*(["another prompt"] if self.prompt else []), *([calls] if self.calls else [])])


class _DecidedCall(Struct, frozen=True):
    """A call with its recorded permission decision."""

    call: str
    tool: str
    arguments: JsonObject
    action: RuleAction
    why: str
    kind: str
    options: TurnOptions
    grants: tuple[Rule, ...]


def what_if(recording: Recording, change: Change) -> WhatIfResult:
    """Return what a change would have changed in the recorded turns."""
    prompt: list[str] = []
    for event in recording.events:
        if (
            isinstance(event, TurnStarted)
            and event.turn in recording.turns
            and change.system is not None
            and not prompt
        ):
            prompt = _prompt(event, change.system)
    calls: list[ChangedDecision] = []
    result_diff: list[str] = []
    for call in _decided_calls(recording) if change.rules is not None or change.own_rules is not None else ():
        decision = _decide_again(call, recording, change)
        if decision.action == call.action:
            continue
        call_text = f"{call.call} {call.tool} {_shorten(encode_canonical(call.arguments))}"
        calls.append(
            ChangedDecision(
                call_text,
                f"{WAS[call.action]}: {call.why}",
                WOULD[decision.action] + _decided_by(decision),
                call.call,
                decision.action,
            )
        )
        if decision.action == "deny" and not result_diff:
            result_diff = _result_diff(recording, call, decision)
    return WhatIfResult(prompt, calls, result_diff)


def _prompt(event: TurnStarted, system: str) -> list[str]:
    old, new = (
        "\n\n".join(filter(None, system_prompt(options, event.at)))
        for options in (event.options, replace(event.options, system=system))
    )
    return _diff(old, new)


def _diff(old: str, new: str) -> list[str]:
    return [*unified_diff(old.splitlines(), new.splitlines(), "recorded", "now", lineterm="", n=2)]


def _decided_calls(recording: Recording) -> list[_DecidedCall]:
    """Return the calls with a permission decision, in order, each with its first one."""
    decided: dict[str, _DecidedCall] = {}
    options: dict[str, TurnOptions] = {}
    arguments_by_call: dict[str, str] = {}  # call -> its arguments
    grants: dict[str, Rule] = {}
    for event in recording.events:
        match event:
            case TurnStarted(turn=turn):
                options[turn] = event.options
            case StepFinished(parts=parts):
                arguments_by_call |= {part.call: part.arguments for part in parts if isinstance(part, ToolPart)}
            case NestedCallRequested(call=call, arguments=arguments):
                arguments_by_call[call] = arguments
            case GateResolved(grant=grant) if grant is not None:
                grants[grant.id] = grant.rule
            case GrantRevoked(grant=name):
                grants.pop(name, None)
            case GateOpened(turn=turn, gate=gate) if (
                gate.call and gate.kind in CALL_GATE_KINDS and gate.call not in decided
            ):
                parsed = parse_object(gate.arguments) or {}
                decided[gate.call] = _DecidedCall(
                    gate.call, gate.tool, parsed, "ask", gate.why, gate.kind, options[turn], tuple(grants.values())
                )
            case PermissionDecided(turn=turn, call=call, tool=tool, allowed=allowed, why=why) if call not in decided:
                parsed = parse_object(_started(recording, call) or arguments_by_call.get(call, "")) or {}
                action: RuleAction = "allow" if allowed else "deny"
                decided[call] = _DecidedCall(
                    call, tool, parsed, action, why, "call", options[turn], tuple(grants.values())
                )
            case _:
                pass
    return [entry for entry in decided.values() if _turn_of(recording, entry.call)]


def _started(recording: Recording, call: str) -> str:
    starts = (event.arguments for event in recording.events if isinstance(event, CallStarted) and event.call == call)
    return next(starts, "")


def _turn_of(recording: Recording, call: str) -> bool:
    return any(call.startswith(f"{turn}-") for turn in recording.turns)


def _decide_again(call: _DecidedCall, recording: Recording, change: Change) -> PolicyDecision:
    rules = change.rules if change.rules is not None else ()
    own_rules = call.options.rules if change.own_rules is None else tuple(change.own_rules)
    options, permits = replace(call.options, rules=own_rules), Permissions(rules, _read_command)
    spec = change.specs.get(call.tool) or _guess(call.tool, recording, change)
    if permits.is_denied(spec, options):
        decision = permits.decide_cases(spec, [{}], options)
        return decision if decision.action == "deny" else PolicyDecision("deny", reason="it would not be offered")
    try:
        decision = permits.decide_cases(
            spec, permits.cases(spec, call.arguments, options, call.grants), options, call.grants
        )
    except ToolError as error:
        return PolicyDecision("deny", reason=str(error))
    if decision.action == "deny" or call.kind == "call":
        return decision
    if call.kind == "loop":
        loop = permits.decide_loop(call.tool, options, call.grants)
        return decision if loop.action == "allow" else loop
    return PolicyDecision("ask", reason=call.why)


def _guess(tool: str, recording: Recording, change: Change) -> ToolSpec:
    """Guess the spec of a tool from the log: its default where no rule decided, and the subjects by the usual names of
    arguments."""
    approval: Approval = "auto"
    for event in recording.events:
        match event:
            case PermissionDecided(tool=name, rule=rule) if (
                name == tool and rule is not None and rule.layer == "defaults"
            ):
                approval = "deny" if rule.action == "deny" else "auto"
            case GateOpened(gate=gate) if gate.tool == tool and gate.why.endswith("always requires approval"):
                approval = "always"
            case GateOpened(gate=gate) if gate.tool == tool and gate.why.startswith("no rule covers"):
                approval = "ask"
            case _:
                continue
    return ToolSpec(tool, "", {}, approval=approval, subjects=dict(change.subjects) or _usual_subjects(tool, recording))


def _usual_subjects(tool: str, recording: Recording) -> dict[str, SubjectKind]:
    calls = (entry for entry in _arguments(recording.events, tool))
    return {name: USUAL_SUBJECTS[name] for arguments in calls for name in arguments if name in USUAL_SUBJECTS}


def _arguments(events: Sequence[Event], tool: str) -> list[JsonObject]:
    return [
        parse_object(event.arguments) or {} for event in events if isinstance(event, CallStarted) and event.tool == tool
    ]


def _result_diff(recording: Recording, call: _DecidedCall, decision: PolicyDecision) -> list[str]:
    """Return the change in what the model would have read about a call that is now denied."""
    outputs = (
        event.output.text for event in recording.events if isinstance(event, CallFinished) and event.call == call.call
    )
    return _diff(next(outputs, ""), NOT_ALLOWED.format(why=decision.reason))


def _decided_by(decision: PolicyDecision) -> str:
    return (
        f" by {decision.rule.source or decision.rule.layer}: {decision.rule}"
        if decision.rule is not None
        else f": {decision.reason}"
    )


def _shorten(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def _read_command(text: str) -> Sequence[Subject]:
    from everturn.permissions.shell.command_line import read_command  # imported only when a rule is about commands

    return read_command(text)
