"""A recording, and another prompt or other rules → what would have been different. Pure: nothing is run.

What the model said is kept. Its calls are judged anew by the very rules that turns are judged by, and what it was asked is
written anew. A log does not say what a tool's arguments are: whoever gives the tools, or says so, is told exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import unified_diff
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.canonical import JsonObject, canonical, parse_object
from everturn.core.events import (
    CallJudged,
    CallMade,
    CallSettled,
    CallStarted,
    Event,
    GateAnswered,
    GateOpened,
    GrantRevoked,
    StepFinished,
    TurnStarted,
)
from everturn.core.options import TurnOptions
from everturn.core.parts import ToolPart
from everturn.core.policy import Action, Judgement, Rule, Subject, SubjectKind
from everturn.core.requests import Execute, ToolSpec
from everturn.errors import ToolError
from everturn.testing.replay.recording import Recording
from everturn.turn.judging import NOT_ALLOWED
from everturn.turn.permit import Permits
from everturn.turn.request import system_prompt
from everturn.turn.run import Prompt

WAS: Final[Mapping[Action, str]] = {"allow": "was allowed", "ask": "was asked about", "deny": "was denied"}
WOULD: Final[Mapping[Action, str]] = {"allow": "would run", "ask": "would be asked about", "deny": "would be denied"}
USUAL: Final[Mapping[str, SubjectKind]] = {"path": "path", "url": "url", "command": "command"}
ASKING: Final = ("call", "egress", "loop", "hand")
SHOWN: Final = 200  # characters of arguments


class Change(Struct, frozen=True):
    """What is different now. None: as it was recorded."""

    system: str | None = None
    rules: Sequence[Rule] | None = None  # of the runtime
    own_rules: Sequence[Rule] | None = None  # of the agent, or the session
    specs: Mapping[str, ToolSpec] = {}
    subjects: Mapping[str, SubjectKind] = {}


class Rejudged(Struct, frozen=True):
    """A call that would have been judged otherwise."""

    call: str  # with its tool and its arguments
    was: str
    now: str


class Otherwise(Struct, frozen=True):
    """What would have been different."""

    prompt: list[str] = []  # a unified diff
    calls: list[Rejudged] = []
    told: list[str] = []  # a unified diff of the first results that the model would have read otherwise

    @property
    def lines(self) -> list[str]:
        """All of it."""
        prompt = ["the system prompt:", *self.prompt] if self.prompt else []
        told = ["what the model would have been told:", *self.told] if self.told else []
        calls = [line for one in self.calls for line in (one.call, f"  {one.was}", f"  {one.now}")]
        return [*prompt, *calls, *told]

    @property
    def summary(self) -> str:
        """In a few words; "" where nothing is different."""
        calls = f"{len(self.calls)} {'call' if len(self.calls) == 1 else 'calls'} judged otherwise"
        return ", ".join([*(["another prompt"] if self.prompt else []), *([calls] if self.calls else [])])


class _Asked(Struct, frozen=True):
    """A call as it was judged the first time."""

    call: str
    tool: str
    arguments: JsonObject
    action: Action
    why: str
    kind: str
    options: TurnOptions
    grants: tuple[Rule, ...]


def what_if(recording: Recording, change: Change) -> Otherwise:
    """Say what a change would have made of the recorded turns."""
    prompt: list[str] = []
    for event in recording.events:
        if (
            isinstance(event, TurnStarted)
            and event.turn in recording.turns
            and change.system is not None
            and not prompt
        ):
            prompt = _prompt(event, change.system)
    calls: list[Rejudged] = []
    told: list[str] = []
    for asked in _asked(recording) if change.rules is not None or change.own_rules is not None else ():
        now = _judge(asked, recording, change)
        if now.action == asked.action:
            continue
        about = f"{asked.call} {asked.tool} {_cut(canonical(asked.arguments))}"
        calls.append(Rejudged(about, f"{WAS[asked.action]}: {asked.why}", WOULD[now.action] + _by(now)))
        if now.action == "deny" and not told:
            told = _told(recording, asked, now)
    return Otherwise(prompt, calls, told)


def _prompt(event: TurnStarted, system: str) -> list[str]:
    old, new = (
        "\n\n".join(filter(None, system_prompt(Prompt(), text, event.at))) for text in (event.options.system, system)
    )
    return _diff(old, new)


def _diff(old: str, new: str) -> list[str]:
    return [*unified_diff(old.splitlines(), new.splitlines(), "recorded", "now", lineterm="", n=2)]


def _asked(recording: Recording) -> list[_Asked]:
    """The calls that were judged, in their order, each as it was at first."""
    found: dict[str, _Asked] = {}
    options: dict[str, TurnOptions] = {}
    written: dict[str, str] = {}  # call -> its arguments
    grants: dict[str, Rule] = {}
    for event in recording.events:
        match event:
            case TurnStarted(turn=turn):
                options[turn] = event.options
            case StepFinished(parts=parts):
                written |= {part.call: part.arguments for part in parts if isinstance(part, ToolPart)}
            case CallMade(call=call, arguments=arguments):
                written[call] = arguments
            case GateAnswered(grant=grant) if grant is not None:
                grants[grant.id] = grant.rule
            case GrantRevoked(grant=name):
                grants.pop(name, None)
            case GateOpened(turn=turn, gate=gate) if gate.call and gate.kind in ASKING and gate.call not in found:
                given = parse_object(gate.arguments) or {}
                found[gate.call] = _Asked(
                    gate.call, gate.tool, given, "ask", gate.why, gate.kind, options[turn], tuple(grants.values())
                )
            case CallJudged(turn=turn, call=call, tool=tool, allowed=allowed, why=why) if call not in found:
                given = parse_object(_started(recording, call) or written.get(call, "")) or {}
                action: Action = "allow" if allowed else "deny"
                found[call] = _Asked(call, tool, given, action, why, "call", options[turn], tuple(grants.values()))
            case _:
                pass
    return [one for one in found.values() if _turn_of(recording, one.call)]


def _started(recording: Recording, call: str) -> str:
    starts = (one.arguments for one in recording.events if isinstance(one, CallStarted) and one.call == call)
    return next(starts, "")


def _turn_of(recording: Recording, call: str) -> bool:
    return any(call.startswith(f"{turn}-") for turn in recording.turns)


def _judge(asked: _Asked, recording: Recording, change: Change) -> Judgement:
    rules = change.rules if change.rules is not None else ()
    own = asked.options.rules if change.own_rules is None else tuple(change.own_rules)
    options, permits = replace(asked.options, rules=own), Permits(rules, _read_command)
    spec = change.specs.get(asked.tool) or _guess(asked.tool, recording, change)
    if permits.is_denied(spec, options):
        judged = permits.judge(spec, [{}], options)
        return judged if judged.action == "deny" else Judgement("deny", reason="it would not be offered")
    try:
        judged = permits.judge(spec, permits.cases(spec, asked.arguments, options, asked.grants), options, asked.grants)
    except ToolError as error:
        return Judgement("deny", reason=str(error))
    if judged.action == "deny" or asked.kind == "call":
        return judged
    if asked.kind == "loop":
        loop = permits.judge_loop(asked.tool, options, asked.grants)
        return judged if loop.action == "allow" else loop
    return Judgement("ask", reason=asked.why)


def _guess(tool: str, recording: Recording, change: Change) -> ToolSpec:
    """What a log shows of a tool: what it says of itself where no rule says more; and arguments by their usual names."""
    execute: Execute = "auto"
    for event in recording.events:
        match event:
            case CallJudged(tool=name, rule=rule) if name == tool and rule is not None and rule.layer == "defaults":
                execute = "deny" if rule.action == "deny" else "auto"
            case GateOpened(gate=gate) if gate.tool == tool and gate.why.endswith("asks every time"):
                execute = "ask"
            case GateOpened(gate=gate) if gate.tool == tool and gate.why.startswith("no rule says anything"):
                execute = "ask_once"
            case _:
                continue
    return ToolSpec(tool, "", {}, execute=execute, subjects=dict(change.subjects) or _usual(tool, recording))


def _usual(tool: str, recording: Recording) -> dict[str, SubjectKind]:
    given = (one for one in _arguments(recording.events, tool))
    return {name: USUAL[name] for arguments in given for name in arguments if name in USUAL}


def _arguments(events: Sequence[Event], tool: str) -> list[JsonObject]:
    return [parse_object(one.arguments) or {} for one in events if isinstance(one, CallStarted) and one.tool == tool]


def _told(recording: Recording, asked: _Asked, now: Judgement) -> list[str]:
    """What the model would have read of a call that is denied now."""
    outputs = (one.output.text for one in recording.events if isinstance(one, CallSettled) and one.call == asked.call)
    return _diff(next(outputs, ""), NOT_ALLOWED.format(why=now.reason))


def _by(judged: Judgement) -> str:
    return (
        f" by {judged.rule.source or judged.rule.layer}: {judged.rule}"
        if judged.rule is not None
        else f": {judged.reason}"
    )


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def _read_command(text: str) -> Sequence[Subject]:
    from everturn.permissions.shell import read_command  # only who asks about commands pays for the parser

    return read_command(text)
