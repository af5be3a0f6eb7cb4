"""Everything that can happen in a session, in the past tense. The list of these is the log, and the log is the truth.

Events are frozen data, versioned by `everturn.wire`. Whatever is not here (a piece of text that is still streaming, a
tool's progress) is a delta: shown, and never stored.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from everturn.core.asking import Claimed, Gate, Grant, Verdict
from everturn.core.messages import Message
from everturn.core.options import Spent, TurnOptions
from everturn.core.parts import CallState, FileChange, Finish, Output, StreamedPart, Usage
from everturn.core.policy import Rule

Outcome = Literal["completed", "error", "cancelled"]
Effects = Literal["read", "write", "once"]
Scope = Literal["turn", "above", "session", "tenant"]


class Problem(Struct, frozen=True, gc=False):
    """Why a turn failed, or what a plugin's hook reported: a stable `kind` and a text for people."""

    kind: str
    text: str


class Append(Struct, frozen=True, gc=False, omit_defaults=True):
    """A message a plugin has deferred until every plugin is done with the step."""

    message: Message
    priority: int = 0
    request: bool = False


class Event(Struct, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """The root of all events; `at` is when it was written down."""

    at: float = 0.0


class TurnEvent(Event, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """An event of one turn."""

    turn: str


class TurnStarted(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A turn began: with a new input, or (a re-run) under a message that is already there."""

    parent: str | None = None
    input: Message | None = None
    options: TurnOptions = TurnOptions()
    command: str = ""
    untitled: bool = False


class AnswerOpened(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """The placeholder the next steps fill."""

    message: Message


class MessageAdded(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A plugin, or the runtime itself, appended a message; `request` asks for another step.

    With a `command` it is a person's, who sent it while the turn was under way.
    """

    message: Message
    request: bool = False
    command: str = ""


class StepStarted(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A model request is about to go out; a `closing` one carries no tools and is the last."""

    step: int
    closing: bool = False


class StepRestarted(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A step whose driver died starts again; readers drop what they saw of it."""

    step: int


class StepFinished(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """The step's stream ended well, and these are its parts."""

    step: int
    parts: tuple[StreamedPart, ...]
    finish: Finish
    usage: Usage = Usage()


class StepInterrupted(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """The step's stream broke off (an error or a cancel); these parts had arrived, and none of their calls runs."""

    step: int
    parts: tuple[StreamedPart, ...]
    finish: Finish
    problem: Problem | None = None
    usage: Usage = Usage()


class GateOpened(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A call asks a person."""

    gate: Gate


class GateAnswered(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """Somebody who may has answered, once."""

    gate: str
    call: str
    verdict: Verdict
    command: str = ""
    grant: Grant | None = None


class GateClaimed(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A client has taken a call upon itself; nobody else may do it meanwhile."""

    gate: str
    claim: Claimed
    command: str = ""


class CallMade(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A tool that runs makes a call of its own: it is judged, asked about and run like any, and no model sees it."""

    call: str
    parent: str
    name: str
    arguments: str
    identity: str = ""


class CallJudged(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """The rules, or a person at a gate, have decided about a call. One stands before every start, in the same append."""

    call: str
    tool: str
    identity: str
    hash: str
    allowed: bool
    why: str
    rule: Rule | None = None
    gate: str = ""  # at which a person decided
    mark: str = ""  # by which the loop guard knows the call again


class LimitReached(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A budget is used up, or a loop was denied: no call starts any more, and the next request is the last."""

    limit: str  # steps | calls | tokens | cost | seconds | loop
    scope: Scope
    text: str


class CallStarted(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A tool is about to run with exactly these arguments. Written before the effect, always."""

    call: str
    tool: str
    arguments: str
    hash: str
    effects: Effects
    key: str


class CallBelow(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A call is about to have a sub-turn run: this one, in this session."""

    call: str
    session: str
    below: str  # the turn
    number: int = 1  # of those that this call asks for


class CallPaused(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A tool was put aside until these gates are answered, these calls settled, this sub-turn over.

    Nothing of it is held in memory but what it `kept` for when it is begun again.
    """

    call: str
    kept: str = ""
    gates: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    below: str = ""  # the turn


class CallStirred(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """The sub-turn that a call waits for is about to be over."""

    call: str
    command: str = ""


class CallResumed(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A tool that was put aside is about to be begun again. Written before the effect, always."""

    call: str


class CallSettled(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A call has its one result. When it is `out` its tool runs on without it, and hands in a late one."""

    call: str
    state: CallState
    output: Output
    out: bool = False
    spent: Spent | None = None  # by the sub-turn it was,
    trail: tuple[str, ...] = ()  # and the marks of the last calls in there


class FilesChanged(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """What became of files beneath a root in a step; "" is the session's own, where a call changes them one by one."""

    step: int
    before: str
    after: str
    root: str = ""
    changes: tuple[FileChange, ...] = ()
    call: str = ""
    blobs: tuple[str, ...] = ()  # that the tree after it needs and the one before did not


class LateArrived(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A tool finished after its call had been settled as cancelled; the result stays beside the call."""

    call: str
    output: Output
    command: str = ""


class HookFinished(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A plugin is done with a step, and these are the appends it deferred."""

    step: int
    plugin: str
    deferred: tuple[Append, ...] = ()


class TurnParked(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """Every plugin that is not done waits for something from outside; nothing is held in memory."""

    step: int


class TurnEnding(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """The outcome is known; what is left is to settle, tidy up and say so."""

    outcome: Outcome
    problem: Problem | None = None
    hard: bool = False
    command: str = ""


class TurnCompleted(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """The turn ended well."""

    usage: Usage = Usage()
    reports: tuple[Problem, ...] = ()


class TurnFailed(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """The turn ended in an error."""

    problem: Problem
    usage: Usage = Usage()
    reports: tuple[Problem, ...] = ()


class TurnCancelled(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """The turn was cancelled."""

    usage: Usage = Usage()
    reports: tuple[Problem, ...] = ()


class TitleSet(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """The session has a title."""

    title: str


class LeafSelected(Event, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """Another branch was selected."""

    message: str | None
    command: str = ""


class MessageDeleted(Event, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A message and everything under it was hidden."""

    message: str
    command: str = ""


class GrantRevoked(Event, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A remembered answer holds no more."""

    grant: str
    by: str = ""
    command: str = ""


class RevertStarted(Event, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """Files are about to be what they were; `before` is what they are now."""

    root: str
    before: str
    after: str
    key: str  # of the command


class FilesReverted(Event, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """Files are again what they were; `before` is what they were until now, so that this can be taken back."""

    root: str
    before: str
    after: str
    by: str = ""
    command: str = ""


class CommandDropped(Event, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """An admitted command had lost its object when its turn came (a cancel of a turn that was over)."""

    command: str
    reason: str


Terminal = TurnCompleted | TurnFailed | TurnCancelled

LogEvent = (
    TurnStarted
    | AnswerOpened
    | MessageAdded
    | StepStarted
    | StepRestarted
    | StepFinished
    | StepInterrupted
    | GateOpened
    | GateAnswered
    | GateClaimed
    | CallMade
    | CallJudged
    | LimitReached
    | CallStarted
    | CallBelow
    | CallPaused
    | CallStirred
    | CallResumed
    | CallSettled
    | FilesChanged
    | LateArrived
    | HookFinished
    | TurnParked
    | TurnEnding
    | TurnCompleted
    | TurnFailed
    | TurnCancelled
    | TitleSet
    | LeafSelected
    | MessageDeleted
    | GrantRevoked
    | RevertStarted
    | FilesReverted
    | CommandDropped
)
"""Every event the log may hold, as one type: what `wire` reads and writes."""


class Entry(Struct, frozen=True, gc=False):
    """An event at its place in the log."""

    seq: int
    event: Event
