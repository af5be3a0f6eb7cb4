"""Events of the session log, named in the past tense. The log is the only source of truth.

Events are frozen data, versioned by `everturn.wire`. Everything else (text that is still streaming, a tool's progress)
is a delta: shown, and never stored.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from everturn.core.gates import CallClaim, Gate, GateResolution, Grant
from everturn.core.messages import Message
from everturn.core.options import Spent, TurnOptions
from everturn.core.parts import (
    CacheCollapse,
    CallState,
    CompactionReason,
    FileChange,
    Finish,
    Output,
    StreamedPart,
    Usage,
)
from everturn.core.ratings import Rating
from everturn.core.rules.policy import Rule
from everturn.core.session_parameters import SessionParameters

Outcome = Literal["completed", "error", "cancelled"]
Scope = Literal["turn", "parent", "session", "tenant"]
ProblemPhase = Literal["", "prepare", "request", "stream", "tools", "finalize"]
"""The stages of a turn, as an error names them; "" in logs of older versions."""
WaitKind = Literal["timer", "external"]
UploadState = Literal["started", "ready", "refused", "gone"]


class Problem(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """Why a turn failed, or what a plugin's hook reported: a stable `kind` and a text for people."""

    kind: str
    text: str
    phase: ProblemPhase = ""  # the stage in which it failed


class DeferredMessage(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """A message a plugin has deferred until every plugin is done with the step."""

    message: Message
    priority: int = 0
    request: bool = False


class Event(Struct, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True, repr_omit_defaults=True):
    """Base class of all events; `at` is when the event was written."""

    at: float = 0.0


class TurnEvent(Event, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """An event of one turn."""

    turn: str


class TurnStarted(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A turn started: with a new input, or (a re-run) under an existing message."""

    parent: str | None = None
    input: Message | None = None
    options: TurnOptions = TurnOptions()
    command: str = ""
    untitled: bool = False


class AgentSwitched(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """An agent took over the turn: after a handoff, or at the start if its instructions had to be rendered.

    `options` are those of the turn from now on, with everything that the agent contributes to a request.
    """

    agent: str
    options: TurnOptions
    call: str = ""  # the call that handed over; "": the start of the turn


class AnswerStarted(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """The placeholder of the answer was added; the next steps fill it."""

    message: Message


class MessageAdded(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A plugin, or the runtime itself, appended a message; `request` asks for another step.

    With a `command` it is a steering message that a person sent while the turn was running.
    """

    message: Message
    request: bool = False
    command: str = ""


class InputRefused(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A plugin refused a message of the user: no model reads this message, now or later.

    If it is the message that the turn answers, `text` is the answer. Written before anything else is done with it.
    """

    message: str
    text: str
    by: str = ""  # the plugin


class StepStarted(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A model request is about to be sent; a `closing` one has no tools and is the last."""

    step: int
    closing: bool = False
    instructions: str = ""  # of the agent, for this step alone


class StepRestarted(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A step whose driver died starts again; readers drop the text that they have shown of it."""

    step: int


class RequestRetried(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A model request failed before any content arrived; after `seconds` it is sent again, to the same model or another."""

    step: int
    attempt: int  # the number of the attempt that follows
    attempts: int  # how many there are at most
    problem: Problem  # why the attempt before it failed
    seconds: float = 0.0
    model: str = ""  # another model that is asked instead; "": the same one


class FileUploadChanged(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A file is uploaded to a provider, to be named by reference in requests. `started` is written before the upload.

    `ready` has the provider's reference. A `refused` file is sent inline. A file that is `gone` is uploaded again.
    """

    upload: str
    state: UploadState
    blob: str
    account: str  # the hash of the provider, its address and the API key: another one cannot read the file
    reference: str = ""
    expires: float = 0.0  # when the provider deletes it


class StepFinished(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """The step's stream completed with these parts."""

    step: int
    parts: tuple[StreamedPart, ...]
    finish: Finish
    usage: Usage = Usage()
    model: str = ""  # the model that wrote it, if another than the answer's `by` (a fallback)
    first_chunk_at: float = 0.0  # when its first content arrived; 0: nothing did, or the log is older
    refused: str = ""  # the plugin that refused what the model wrote; the parts are its refusal
    warning: str = (
        ""  # what its request lacked, such as tools that the turn was to have; or that its answer was cut off
    )
    continues: bool = False  # its text was cut at the output limit, and the next step continues it
    loops: bool = False  # the model repeats itself: no plugin may ask for another step
    cache: CacheCollapse | None = None  # its request missed the provider's prompt cache


class StepInterrupted(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """The step's stream broke off (an error or a cancel); these parts had arrived, and none of their calls runs."""

    step: int
    parts: tuple[StreamedPart, ...]
    finish: Finish
    problem: Problem | None = None
    usage: Usage = Usage()
    model: str = ""
    first_chunk_at: float = 0.0


class OutputRejected(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """The answer of a step is not a valid output: the step finishes without parts, and the next step
    asks the model to correct it.

    The attempt is in the log and not in the conversation.
    """

    step: int
    parts: tuple[StreamedPart, ...]
    problem: str


class CompactionStarted(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """The driver is about to request a summary of everything above `kept`; a driver that takes over repeats the request."""

    number: int  # among those of the turn, from 1
    why: CompactionReason = "limit"
    kept: str = ""  # as in `SummaryPart`, like the next two
    step: int = 0
    task: str = ""
    used: int = 0  # tokens of a request now
    limit: int = 0  # tokens that a request may have


class CompactionFinished(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """The summary is written: its message is added in the same append."""

    number: int
    usage: Usage = Usage()
    model: str = ""  # the model that wrote it


class CompactionFailed(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """There is no summary, and the conversation stays as it is."""

    number: int
    problem: Problem
    usage: Usage = Usage()


class GateOpened(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A call, a tool or a plugin opened a gate."""

    gate: Gate


class GateResolved(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """An authorised person or client resolved a gate. A gate is resolved at most once."""

    gate: str
    call: str
    resolution: GateResolution
    command: str = ""
    grant: Grant | None = None


class CallClaimed(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A client claimed a call; no other client may run it until the claim expires."""

    gate: str
    claim: CallClaim
    command: str = ""


class NestedCallRequested(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A running tool made a call of its own: it passes the same rules and gates as any call, and no model sees it."""

    call: str
    parent: str
    name: str
    arguments: str
    identity: str = ""


class PermissionDecided(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """The rules, or a person at a gate, decided about a call. It precedes every `CallStarted`, in the same append."""

    call: str
    tool: str
    identity: str
    hash: str
    allowed: bool
    why: str
    rule: Rule | None = None
    gate: str = ""  # the gate at which a person decided
    fingerprint: str = ""  # the fingerprint of the call, for loop detection


class LimitReached(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A budget is used up, or a person denied a loop: no further call starts, and the next request is the last.

    With `denied`, a person denied a call and stopped the turn: there is no further request at all.
    """

    limit: str  # steps | calls | tokens | cost | seconds | loop | denied
    scope: Scope
    text: str


class CallStarted(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A tool is about to run with exactly these arguments. Written before the effect, always."""

    call: str
    tool: str
    arguments: str
    hash: str
    key: str
    read_only: bool = False
    idempotent: bool = False

    @property
    def at_most_once(self) -> bool:
        """Whether a second run of the tool could do harm, so that a crash must not repeat it."""
        return not (self.read_only or self.idempotent)


class SubagentStarted(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A call is about to start this sub-agent run, in this session."""

    call: str
    session: str
    child: str  # the turn
    number: int = 1  # its number among the sub-agent runs of this call


class ToolStepStarted(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A tool is about to run a step (`ctx.step`). Written before the effect, like `CallStarted`."""

    call: str
    name: str


class ToolStepFinished(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A step of a tool returned this JSON value, which a resumed tool gets again; a `failed` one may be run again."""

    call: str
    name: str
    value: str = ""
    failed: bool = False


class WaitStarted(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A tool waits for a time (`ctx.sleep`) or for the result of an external system (`ctx.external`)."""

    call: str
    wait: str
    kind: WaitKind
    until: float = 0.0  # when the timer fires, or the external result times out; 0: never
    label: str = ""  # what the tool says that it waits for


class WaitFinished(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """The timer fired, the external system delivered this JSON value, or its time is over."""

    call: str
    wait: str
    value: str = ""
    timed_out: bool = False
    command: str = ""


class CallSuspended(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A tool was suspended until these gates are resolved, these calls and waits finished and this sub-agent run over.

    Only its `saved_state` survives until it is resumed; nothing is held in memory.
    """

    call: str
    saved_state: str = ""
    gates: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    child: str = ""  # the turn
    waits: tuple[str, ...] = ()


class CallNotified(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """The sub-agent run that a call waits for is about to end."""

    call: str
    command: str = ""


class CallResumed(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A suspended tool is about to be resumed. Written before the effect, always."""

    call: str


class CallFinished(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A call has its final result. With `still_running` its tool still runs, and delivers a late result."""

    call: str
    state: CallState
    output: Output
    still_running: bool = False
    spent: Spent | None = None  # by its sub-agent run
    recent_calls: tuple[str, ...] = ()  # fingerprints of the last calls of that run


class FilesChanged(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """Files under a root changed in a step; "" is the session's own root, where each call records its changes."""

    step: int
    before: str
    after: str
    root: str = ""
    changes: tuple[FileChange, ...] = ()
    call: str = ""
    blobs: tuple[str, ...] = ()  # blobs that the new tree needs and the old one did not


class LateResultReceived(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A tool finished after its call was cancelled; the result is kept beside the call."""

    call: str
    output: Output
    command: str = ""


class HookFinished(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A plugin is done with a step, and deferred these messages."""

    step: int
    plugin: str
    deferred: tuple[DeferredMessage, ...] = ()


class TurnSuspended(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """Every plugin that is not done waits for an external event; nothing is held in memory."""

    step: int


class TurnFinishing(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """The outcome is known; open calls are finished and clean-ups run before the terminal event."""

    outcome: Outcome
    problem: Problem | None = None
    hard: bool = False
    command: str = ""


class TurnCompleted(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """The turn completed."""

    usage: Usage = Usage()
    reports: tuple[Problem, ...] = ()


class TurnFailed(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """The turn failed."""

    problem: Problem
    usage: Usage = Usage()
    reports: tuple[Problem, ...] = ()


class TurnCancelled(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """The turn was cancelled."""

    usage: Usage = Usage()
    reports: tuple[Problem, ...] = ()


class TitleSet(TurnEvent, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """The session got a title: from its first message, or with `model` from that model."""

    title: str
    usage: Usage = Usage()
    model: str = ""


class LeafSelected(Event, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """Another branch was selected."""

    message: str | None
    command: str = ""


class AgentSelected(Event, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A person handed the session to another agent: it takes the next turns, unless a message names another."""

    agent: str
    by: str = ""
    command: str = ""


class InstructionsSet(Event, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A person set the instructions of the session, for the turns that start with later messages; "" removes them."""

    text: str
    by: str = ""
    command: str = ""


class SessionUpdated(Event, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A person renamed, pinned, archived or labelled the session, or chose its parameters; None: that was not changed.

    A title that a person gave is not replaced by later `TitleSet` events.
    """

    title: str | None = None
    pinned: bool | None = None
    archived: bool | None = None
    labels: tuple[str, ...] | None = None
    parameters: SessionParameters | None = None
    by: str = ""
    command: str = ""


class AnswerRated(Event, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A person rated an answer, with a reason; "" withdraws the rating. The last one of each person counts.

    No model reads it.
    """

    message: str
    rating: Rating
    reason: str = ""
    by: str = ""
    command: str = ""


class MessageDeleted(Event, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A message and everything under it was hidden."""

    message: str
    command: str = ""


class MessagesImported(Event, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A conversation that was held elsewhere was added, each message after the one before it, and selected.

    It is text and data only: it belongs to no turn, grants nothing, and none of its calls runs.
    """

    messages: tuple[Message, ...]
    title: str = ""  # of a session that had none
    by: str = ""
    command: str = ""


class GrantRevoked(Event, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A grant was revoked."""

    grant: str
    by: str = ""
    command: str = ""


class RevertStarted(Event, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """A revert is about to start; `before` is the present tree, `after` the one to restore."""

    root: str
    before: str
    after: str
    key: str  # the key of the command


class FilesReverted(Event, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """Files were restored; `before` is the tree before the revert, so that it can be undone."""

    root: str
    before: str
    after: str
    by: str = ""
    command: str = ""


class CommandDropped(Event, frozen=True, gc=False, kw_only=True, tag=True, omit_defaults=True):
    """An admitted command was dropped because its object was gone (for example, a cancel of a finished turn)."""

    command: str
    reason: str


Terminal = TurnCompleted | TurnFailed | TurnCancelled

LogEvent = (
    TurnStarted
    | AgentSwitched
    | AnswerStarted
    | MessageAdded
    | InputRefused
    | StepStarted
    | StepRestarted
    | RequestRetried
    | FileUploadChanged
    | StepFinished
    | StepInterrupted
    | OutputRejected
    | CompactionStarted
    | CompactionFinished
    | CompactionFailed
    | GateOpened
    | GateResolved
    | CallClaimed
    | NestedCallRequested
    | PermissionDecided
    | LimitReached
    | CallStarted
    | SubagentStarted
    | ToolStepStarted
    | ToolStepFinished
    | WaitStarted
    | WaitFinished
    | CallSuspended
    | CallNotified
    | CallResumed
    | CallFinished
    | FilesChanged
    | LateResultReceived
    | HookFinished
    | TurnSuspended
    | TurnFinishing
    | TurnCompleted
    | TurnFailed
    | TurnCancelled
    | TitleSet
    | LeafSelected
    | AgentSelected
    | InstructionsSet
    | SessionUpdated
    | AnswerRated
    | MessageDeleted
    | MessagesImported
    | GrantRevoked
    | RevertStarted
    | FilesReverted
    | CommandDropped
)
"""Every event that the log may hold, as one type: what `wire` encodes and decodes."""


class Entry(Struct, frozen=True, gc=False):
    """An event at its position in the log."""

    seq: int
    event: Event
