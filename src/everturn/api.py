"""HTTP API types: the bodies of requests and responses, as data.

The OpenAPI document is generated from them; the server and `everturn.client` encode and decode them. Clients send ids,
text and decisions, and nothing else: no history, no role, no tenant.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from everturn.core.accounts import AuditRecord, CredentialKind, Role
from everturn.core.compaction import CONTEXT_PATTERN
from everturn.core.deltas import CallDelta, CallProgress, ReasoningDelta, TextDelta
from everturn.core.events import FilesReverted, LogEvent, Problem
from everturn.core.gates import CallClaim, Gate, Grant
from everturn.core.messages import Message
from everturn.core.options import (
    Budget,
    ClientTool,
    LatePolicy,
    PermissionMode,
    Review,
    Spent,
    StepLimitPolicy,
    ToolHistory,
)
from everturn.core.parts import FilePart, Usage
from everturn.core.rate_limits import Priority
from everturn.core.ratings import MAX_REASON, Rating
from everturn.core.rules.policy import Rule, RuleAction
from everturn.core.saved_prompts import MAX_PROMPT_ARGUMENTS, MAX_PROMPT_CHARS, PROMPT_NAME_PATTERN
from everturn.core.schedules import CatchUp, Origin, Overlap, RunOutcome
from everturn.core.settings import AgentSettings, ModelSettings, SettingKind
from everturn.core.sharing import SessionLevel, ShareKind, ShareLevel
from everturn.core.state import Phase
from everturn.core.stats import TurnStats
from everturn.core.titles import MAX_LABEL, MAX_LABELS, MAX_TITLE
from everturn.core.turn_trace import TraceSpan
from everturn.core.user_records import InvitationKind, PasswordSupport
from everturn.core.webhooks import DeliveryState, WebhookEvent

Id = Annotated[str, Meta(min_length=1, max_length=200)]
Name = Annotated[str, Meta(max_length=200)]
Text = Annotated[str, Meta(max_length=1_000_000)]
Busy = Literal["queue", "reject", "fork", "steer"]
"""What happens to a message while a turn is running: it waits, it is refused (409), it starts a branch beside the turn,
or it joins the turn between two steps. `Sent.turn` is then the turn that it will join; if that ends first, it waits.
"""


GrantReach = Literal["", "user", "folder", "tenant"]
"""Of all sessions, those in which a grant "everywhere" holds. "" is the person who asked: another user's turns are not
allowed by it."""

Archived = Literal["exclude", "include", "only"]
"""Whether a list has archived sessions."""

MAX_INSTRUCTIONS = 16_000  # characters of the instructions of a tenant, a user or a session


class Body(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base class of request bodies. Unknown fields are refused: otherwise a misspelt field would be ignored."""


class View(Struct, frozen=True, kw_only=True, omit_defaults=False):
    """Base class of responses. New fields may be added; none is removed."""


# Request bodies ------------------------------------------------------------------------------------------------------


class AttachedContext(Body, frozen=True, kw_only=True):
    """Context that the client attaches to a message: a selection, a page, a note. A model reads it as quoted data."""

    kind: Annotated[str, Meta(min_length=1, max_length=50)]  # "selection", "page", "note", or any other word
    text: Annotated[str, Meta(min_length=1, max_length=1_000_000)]
    title: Annotated[str, Meta(max_length=500)] = ""
    source: Annotated[str, Meta(max_length=2_000)] = ""  # where it is from: a URL, a path
    untrusted: bool = True  # it may contain text of third parties


class MessageRequest(Body, frozen=True, kw_only=True):
    """A user message: a text, files that were uploaded before, or both, with options for its turn."""

    text: Text = ""
    files: Annotated[list[Annotated[str, Meta(max_length=1000)]], Meta(max_length=32)] = []  # `FileView.file`
    contexts: Annotated[list[AttachedContext], Meta(max_length=32)] = []
    agent: Name = ""  # "": that of the session, or the first one
    model: Name = ""  # "": that of the agent; otherwise one of the server's models
    params: dict[str, Any] | None = None
    tools: Annotated[list[Name], Meta(max_length=200)] | None = None
    tool_history: ToolHistory | None = None
    context: Annotated[str, Meta(pattern=CONTEXT_PATTERN)] | None = None  # auto, off or last_turns(n)
    late: LatePolicy | None = None
    max_steps: Annotated[int, Meta(ge=1, le=1000)] | None = None
    mode: PermissionMode = ""  # plan, ask or auto_edit, if the agent has it; "": ask
    at_step_limit: StepLimitPolicy = "answer"  # ask: at `max_steps` a gate asks whether the turn may continue
    clients: Annotated[list[ClientTool], Meta(max_length=50)] = []  # tools that the sending client runs
    busy: Busy = "queue"
    priority: Priority | None = None  # where requests wait for a rate limit; None: interactive, with `at` background
    at: Annotated[float, Meta(ge=0, lt=1e11)] = 0.0  # Unix time before which its turn does not start; 0: now


class NewSession(MessageRequest, frozen=True, kw_only=True):
    """Start a session with its first message. A session has at least one message."""

    temporary: bool = False  # it is in no list and not found by searches, and is erased after a day


class NewMessage(MessageRequest, frozen=True, kw_only=True):
    """A message at the end of the selected branch, or `after` another message."""

    after: Id | None = None


class EditMessage(Body, frozen=True, kw_only=True):
    """A new version of a user message, and an answer to it."""

    text: Text = ""
    files: Annotated[list[Annotated[str, Meta(max_length=1000)]], Meta(max_length=32)] = []
    contexts: Annotated[list[AttachedContext], Meta(max_length=32)] | None = None  # None: those of the earlier version
    model: Name = ""
    mode: PermissionMode = ""
    at_step_limit: StepLimitPolicy = "answer"


class RegenerateAnswer(Body, frozen=True, kw_only=True):
    """Regenerate an answer."""

    model: Name = ""
    mode: PermissionMode = ""
    at_step_limit: StepLimitPolicy = "answer"
    params: dict[str, Any] | None = None


class NewShare(Body, frozen=True, kw_only=True):
    """Share a session with a user, or with everybody who has at least a role."""

    user: Name = ""
    role: Role | None = None
    level: ShareLevel = "read"  # "write": also send messages
    expires: Annotated[float, Meta(ge=0, lt=1e11)] = 0.0  # Unix time; 0: until it is revoked


class NewLink(Body, frozen=True, kw_only=True):
    """Create a read-only link to a session, for the users of the tenant."""

    expires: Annotated[float, Meta(ge=0, lt=1e11)] = 0.0  # Unix time; 0: until it is revoked


class OpenLink(Body, frozen=True, kw_only=True):
    """Open a link."""

    link: Annotated[str, Meta(min_length=1, max_length=200)]


class OpenAsAdministrator(Body, frozen=True, kw_only=True):
    """Read a private session for a short time; its author is told the reason."""

    reason: Annotated[str, Meta(min_length=1, max_length=500)]
    minutes: Annotated[int, Meta(ge=1, le=60)] = 15


class CompactSession(Body, frozen=True, kw_only=True):
    """Summarise the earlier part of the selected branch."""

    focus: Annotated[str, Meta(max_length=2_000)] = ""  # what the summary keeps above all


class PatchSession(Body, frozen=True, kw_only=True):
    """Rename, pin, archive or label a session. A field that is left out stays as it is."""

    title: Annotated[str, Meta(min_length=1, max_length=MAX_TITLE)] | None = None
    pinned: bool | None = None
    archived: bool | None = None
    labels: (
        Annotated[list[Annotated[str, Meta(min_length=1, max_length=MAX_LABEL)]], Meta(max_length=MAX_LABELS)] | None
    ) = None  # all of them; [] removes them


class PutRating(Body, frozen=True, kw_only=True):
    """Rate an answer up or down; "" withdraws the caller's rating."""

    rating: Rating
    reason: Annotated[str, Meta(max_length=MAX_REASON)] = ""


class SelectBranch(Body, frozen=True, kw_only=True):
    """Select the branch that ends at a message; None: the beginning."""

    message: Id | None = None


class SwitchAgent(Body, frozen=True, kw_only=True):
    """Hand the session to another agent, which takes the next turns."""

    agent: Name


class CancelTurn(Body, frozen=True, kw_only=True):
    """Cancel a turn; `hard` cancels its tools as well."""

    hard: bool = False


class AnswerGate(Body, frozen=True, kw_only=True):
    """Answer a gate: one of `allow`, `deny` and `result`; see `Turn.answer`.

    `hash` is the hash of the gate that was shown.
    """

    hash: Annotated[str, Meta(min_length=1, max_length=200)]
    allow: Literal["once", "always"] | None = None
    rule: Rule | None = None  # with allow="always": one of the gate's offers
    deny: Annotated[str, Meta(max_length=10_000)] | bool | None = None
    arguments: dict[str, Any] | None = None
    result: Annotated[str, Meta(max_length=4_000_000)] | None = None
    text: Annotated[str, Meta(max_length=4_000_000)] | None = None
    everywhere: bool = False
    within: GrantReach = (
        ""  # with `everywhere`: in turns of the same "user" (""), of the same "folder", or of the "tenant"
    )
    until: Annotated[float, Meta(ge=0)] = 0.0
    others: bool = False
    stop: bool = False
    failed: bool = False
    claim: Name = ""


class ClaimGate(Body, frozen=True, kw_only=True):
    """Claim a call for a client; `claim` is an unguessable name, which the client repeats in its answer."""

    hash: Annotated[str, Meta(min_length=1, max_length=200)]
    claim: Annotated[str, Meta(min_length=16, max_length=200)]
    lease: Annotated[float, Meta(gt=0, le=3600)] = 60.0


class RevertFiles(Body, frozen=True, kw_only=True):
    """Revert files: `tree` is the `before` or the `after` of a files part, or of an earlier revert."""

    root: Annotated[str, Meta(max_length=4096)]
    tree: Annotated[str, Meta(min_length=1, max_length=200)]


class NewKey(Body, frozen=True, kw_only=True):
    """Create an API key for a user of the tenant, limited to this role."""

    name: Name = ""
    user: Name = ""  # "": the caller
    role: Role = "member"
    expires: Annotated[float, Meta(ge=0)] = 0.0


class PutUser(Body, frozen=True, kw_only=True):
    """Create or update a user."""

    name: Name = ""
    role: Role = "member"
    is_active: bool = True
    origin: Annotated[str, Meta(max_length=1000)] | None = (
        None  # the issuer whose tokens may authenticate this user; None: unchanged
    )


Password = Annotated[str, Meta(min_length=1, max_length=1000)]


class PutUserBudget(Body, frozen=True, kw_only=True):
    """Limit what a user may use in a period; 0 is no limit."""

    steps: Annotated[int, Meta(ge=0, le=2**53)] = 0
    calls: Annotated[int, Meta(ge=0, le=2**53)] = 0
    tokens: Annotated[int, Meta(ge=0, le=2**53)] = 0
    cost: Annotated[float, Meta(ge=0, le=1e12)] = 0.0  # in US dollars
    period: Annotated[float, Meta(ge=0, le=1e10)] = 30 * 86_400.0  # seconds back from now; 0: ever


class NewInvitation(Body, frozen=True, kw_only=True):
    """Invite a person: the link works once, and creates this user with this role."""

    user: Annotated[str, Meta(min_length=1, max_length=200)]
    name: Name = ""
    role: Role = "member"
    hours: Annotated[float, Meta(gt=0, le=24 * 30)] = 72.0  # until it expires


class OpenInvitation(Body, frozen=True, kw_only=True):
    """Look at an invitation before it is used."""

    token: Annotated[str, Meta(min_length=1, max_length=200)]


class AcceptInvitation(Body, frozen=True, kw_only=True):
    """Use an invitation, or the link that resets a password. The password is left out where passwords are off."""

    token: Annotated[str, Meta(min_length=1, max_length=200)]
    password: Annotated[str, Meta(max_length=1000)] = ""


class PasswordLogin(Body, frozen=True, kw_only=True):
    """Log a browser in with a password."""

    user: Annotated[str, Meta(min_length=1, max_length=200)]
    password: Password
    tenant: Annotated[str, Meta(min_length=1, max_length=200)] = "local"


class ChangePassword(Body, frozen=True, kw_only=True):
    """Change the caller's own password. `current` is left out by somebody who has none yet."""

    new: Password
    current: Annotated[str, Meta(max_length=1000)] = ""


class ScheduleDefinition(Body, frozen=True, kw_only=True):
    """A message that is sent at the planned times of a cron expression, or once `at` a time (seconds since 1970)."""

    text: Annotated[str, Meta(min_length=1, max_length=100_000)]
    cron: Annotated[str, Meta(max_length=200)] = ""  # minute hour day month weekday, in wall-clock time of `timezone`
    at: Annotated[float, Meta(ge=0)] = 0.0
    timezone: Annotated[str, Meta(max_length=100)] = "UTC"  # an IANA name
    agent: Annotated[str, Meta(max_length=200)] = ""
    session: Annotated[str, Meta(max_length=1000)] = ""  # of all its turns; "": a new one for each
    catch_up: CatchUp = "once"  # of planned times that passed while no process ran
    max_catch_up: Annotated[int, Meta(ge=1, le=100)] = 10  # with catch_up "all"
    overlap: Overlap = "queue"  # while a turn of the session is running
    until: Annotated[float, Meta(ge=0)] = 0.0  # no run is planned after it; 0: for ever
    metadata: dict[str, Any] | None = None
    priority: Priority = "background"  # of its turns, where requests wait for a rate limit


class NewSchedule(ScheduleDefinition, frozen=True, kw_only=True):
    """A new schedule. The same `id` with the same definition is the same schedule."""

    id: Annotated[str, Meta(max_length=64)] = ""  # letters, digits, - and _; "": one is made


class NewWebhook(Body, frozen=True, kw_only=True):
    """A URL that is to be told of events; without `events`, of all."""

    url: Annotated[str, Meta(min_length=1, max_length=2000)]
    events: list[WebhookEvent] = []
    description: Annotated[str, Meta(max_length=500)] = ""


class ReplayDeliveries(Body, frozen=True, kw_only=True):
    """Which deliveries are sent again: all dead ones, or that of one event."""

    session: Annotated[str, Meta(max_length=1000)] = ""
    seq: Annotated[int, Meta(ge=0, le=2**53)] = 0


class PutMemory(Body, frozen=True, kw_only=True):
    """Write a whole memory file of the caller. `base` is the hash that was read, `none` for a new file; "": any."""

    path: Annotated[str, Meta(min_length=1, max_length=1000)]
    text: Annotated[str, Meta(max_length=70_000)]
    base: Annotated[str, Meta(max_length=64)] = ""
    untrusted: bool | None = None  # whether it has text of third parties; None: as it was


class PromptArgumentView(Body, frozen=True, kw_only=True):
    """An argument of a saved prompt; without a default, the person has to give a value."""

    name: Annotated[str, Meta(min_length=1, max_length=64)]
    description: Annotated[str, Meta(max_length=500)] = ""
    default: Annotated[str, Meta(max_length=10_000)] | None = None


class PutPrompt(Body, frozen=True, kw_only=True):
    """Write a saved prompt of the caller; with `shared` of the tenant, which takes an owner.

    `{{argument}}` in the text stands for the value of an argument; those that are not described are added.
    """

    name: Annotated[str, Meta(pattern=PROMPT_NAME_PATTERN)]
    text: Annotated[str, Meta(min_length=1, max_length=MAX_PROMPT_CHARS)]
    description: Annotated[str, Meta(max_length=500)] = ""
    arguments: Annotated[list[PromptArgumentView], Meta(max_length=MAX_PROMPT_ARGUMENTS)] = []
    shared: bool = False


class PutInstructions(Body, frozen=True, kw_only=True):
    """Write the instructions of the caller, for all their sessions; with `shared` of the tenant. "" removes them."""

    text: Annotated[str, Meta(max_length=MAX_INSTRUCTIONS)]
    shared: bool = False


class PutSessionInstructions(Body, frozen=True, kw_only=True):
    """Set the instructions of a session, for the messages that are sent from now on. "" removes them."""

    text: Annotated[str, Meta(max_length=MAX_INSTRUCTIONS)]


class PutTenant(Body, frozen=True, kw_only=True):
    """Create or update a tenant."""

    name: Name = ""
    is_active: bool = True


class ExplainCall(Body, frozen=True, kw_only=True):
    """Explain what the rules would decide about a call. Nothing is run."""

    tool: Id
    arguments: dict[str, Any] = {}
    agent: Name = ""  # "": that of the session, or the first one
    session: Id | None = None  # its grants count, too


class TrustServer(Body, frozen=True, kw_only=True):
    """Trust an MCP server as it was shown: `hash` is the hash of its `McpView`."""

    hash: Annotated[str, Meta(min_length=1, max_length=200)]


# Responses -----------------------------------------------------------------------------------------------------------


class ErrorView(View, frozen=True, kw_only=True):
    """An error: a stable code, a text for people that says what to do next, and the path of an invalid value."""

    code: str
    message: str
    where: str = ""


class ErrorResponse(View, frozen=True, kw_only=True):
    """The body of every error response."""

    error: ErrorView


class Me(View, frozen=True, kw_only=True):
    """The authenticated user."""

    tenant: str
    user: str
    role: Role
    version: str
    csrf: str = ""  # a client with a cookie sends it back as `X-CSRF-Token`


class InstructionsFunction(View, frozen=True, kw_only=True):
    """A function among the instructions of an agent."""

    function: str  # module:name
    each_step: bool = False  # whether it is called for each step, not once for a turn


class RuleRow(View, frozen=True, kw_only=True):
    """A permission rule, as it is written in everturn.toml."""

    tool: str
    action: str
    match: dict[str, str] = {}


class AgentDetails(View, frozen=True, kw_only=True):
    """What an agent is made of, under the keys of `[agents.NAME]` in everturn.toml; code is named as `module:name`."""

    model: str
    models: list[str]
    description: str
    instructions: list[str | InstructionsFunction]
    tools: list[str]
    subagents: list[str]
    handoffs: list[str]
    deps: str
    output_type: dict[str, Any] | None  # a JSON Schema; None: any text
    output_retries: int
    plugins: list[str]
    permissions: list[RuleRow]
    budget: Budget
    max_steps: int
    timeout: float
    gate_timeout: float
    timezone: str
    reasoning: str
    params: dict[str, Any]
    tool_history: ToolHistory
    context: str
    late: LatePolicy
    review: Review
    manual: list[str]


class AgentView(View, frozen=True, kw_only=True):
    """A configured agent."""

    name: str
    description: str
    model: str
    tools: list[str] | None = None
    is_default: bool = False
    models: list[str] = []  # other models that a message may select
    modes: list[str] = []  # permission modes that a message may select
    any_model: bool = False  # a message may select any model
    folder: str = ""  # the folder that it works in; "": none
    details: AgentDetails | None = None  # for operators only: it has the instructions


class OpenFolder(Body, frozen=True, kw_only=True):
    """Open a folder of this machine: its agent works there."""

    path: Annotated[str, Meta(min_length=1, max_length=4_096)]
    key: Annotated[str, Meta(max_length=200)] = ""  # the Idempotency-Key that a first message will have


class FolderCommand(View, frozen=True, kw_only=True):
    """A slash command that a file defines: `text` is what it sends, with `$ARGUMENTS` and `$1` for its arguments."""

    name: str
    text: str
    description: str = ""
    hint: str = ""  # its arguments, for people
    source: str = ""  # the file


class FolderView(View, frozen=True, kw_only=True):
    """A folder that the server of a terminal has open: its agent, and notes about what is missing or risky."""

    agent: str
    root: str
    label: str  # its path, for people
    mode: PermissionMode = "ask"  # the permission mode to begin with
    notes: list[str] = []
    session: str = ""  # the session that a first message with that key starts; "": no key was given
    commands: list[FolderCommand] = []
    skills: list[str] = []  # the names of its skills
    subagents: list[str] = []  # the names of its sub-agents


class ToolView(View, frozen=True, kw_only=True):
    """A tool as a model sees it."""

    name: str
    description: str
    schema: dict[str, Any]
    origin: str
    approval: str
    read_only: bool
    idempotent: bool
    group: str = ""


class SessionView(View, frozen=True, kw_only=True):
    """A session in a list."""

    id: str
    title: str
    agent: str
    by: str
    created: float
    updated: float
    leaf: str | None
    is_awake: bool
    quarantined: str
    parent: str = ""
    awaited_agent: str = ""  # it waits for a process that knows this agent; "": it does not
    pinned: bool = False
    archived: bool = False
    labels: list[str] = []
    is_renamed: bool = False  # a person gave the title
    is_listed: bool = True  # False: a temporary session, or of others, of which the caller sees the open gates only


class SessionPage(View, frozen=True, kw_only=True):
    """A page of sessions, and the cursor of the next page; "": this is the last page."""

    sessions: list[SessionView]
    next: str = ""
    waiting: list[str] = []  # those of them with an open gate, in themselves or in a sub-agent run
    pinned: list[SessionView] = []  # on the first page: all pinned sessions that fit, wherever they are in the list


class MessageReceipt(View, frozen=True, kw_only=True):
    """A durable message, and the turn that it starts."""

    session: str
    turn: str
    message: str  # "" for a re-run
    is_new: bool  # False: the same message was sent before with this key


class RatingView(View, frozen=True, kw_only=True):
    """How a person rated an answer."""

    message: str
    rating: Rating
    reason: str
    by: str
    at: float


class MessageList(View, frozen=True, kw_only=True):
    """A branch, or its last page, oldest first, and the cursor of the page before it; "": there is none."""

    messages: list[Message]
    next: str = ""
    ratings: list[RatingView] = []  # of these messages, one of each person


class TreeView(View, frozen=True, kw_only=True):
    """All messages of a session, in the order in which they were added, and the end of the selected branch."""

    messages: list[Message]
    leaf: str | None


class LogItem(View, frozen=True, kw_only=True):
    """An event at its position in the log."""

    seq: int
    event: LogEvent


class LogPage(View, frozen=True, kw_only=True):
    """A page of a session's log, in order; `is_whole`: this is the last page, and a stream continues `after` its `seq`."""

    entries: list[LogItem]
    is_whole: bool


class LogTail(View, frozen=True, kw_only=True):
    """The last turns of a session's log, each from its first event to its last; a stream continues `after` its `seq`.

    `start` is where it begins: turns that started before are left out (`before` it brings them), and so are events of
    the session itself; 1: nothing is left out.
    """

    entries: list[LogItem]
    start: int
    seq: int
    leaf: str | None = None
    title: str = ""
    cost: float | None = None  # of the whole session, with its sub-agent runs; None if no price is known


class QueuedView(View, frozen=True, kw_only=True):
    """A message that waits until the turn before it is over. If its turn is cancelled first, it is never sent."""

    turn: str
    message: str
    at: float
    text: str
    files: list[FilePart]
    by: str = ""
    steers: str = ""  # the turn that it will join at the next step; "": it starts its own


class QueueList(View, frozen=True, kw_only=True):
    """The queued messages, in the order in which they will be sent."""

    queued: list[QueuedView]


class TurnView(View, frozen=True, kw_only=True):
    """The present state of a turn, from its log."""

    session: str
    turn: str
    phase: Phase
    step: int
    messages: list[Message]
    gates: list[Gate]
    usage: Usage
    problem: Problem | None = None
    stats: TurnStats = TurnStats()


class TraceView(View, frozen=True, kw_only=True):
    """What a turn did and when: its spans by their starts, as far as its log goes. Times are in seconds since 1970."""

    session: str
    turn: str
    phase: Phase
    agent: str
    model: str
    answer: str  # the message; "": none has been started
    start: float
    end: float  # 0: it runs
    now: float  # by the clock of the server
    usage: Usage
    stats: TurnStats
    problem: Problem | None = None
    spans: list[TraceSpan]
    trace_id: str  # of the trace that is exported to OpenTelemetry; "" for roles below approver


SentPartKind = Literal["text", "reasoning", "notice", "file", "call", "result"]


class SentPart(View, frozen=True, kw_only=True):
    """A part of a message of a request: its text, the arguments of a call, or the media type of a file."""

    kind: SentPartKind
    text: str
    name: str  # of a tool, a file or a kind of notice
    call: str
    size: int  # characters, also of those that are not shown


class SentMessage(View, frozen=True, kw_only=True):
    """A message of a request."""

    role: str
    parts: list[SentPart]


class SentTool(View, frozen=True, kw_only=True):
    """A tool that a request offers."""

    name: str
    description: str
    schema: dict[str, Any]


class SentRequestView(View, frozen=True, kw_only=True):
    """The request of a step, before it is rendered for a provider. System prompt and parameters: null below approver."""

    step: int
    model: str
    system: str | None
    params: dict[str, Any] | None
    tools: list[SentTool]
    messages: list[SentMessage]
    left_out: list[str]  # plugins that may have changed it, and are not called again


class NewPushSubscription(Body, frozen=True, kw_only=True):
    """A push subscription of a browser: its endpoint and keys, as `PushSubscription.toJSON()` has them."""

    endpoint: Annotated[str, Meta(min_length=1, max_length=2000)]
    p256dh: Annotated[str, Meta(min_length=1, max_length=200)]
    auth: Annotated[str, Meta(min_length=1, max_length=100)]
    key: Annotated[str, Meta(max_length=200)]  # of the server, with which it was made
    language: Literal["en", "zh"] = "en"
    label: Name = ""
    site: Annotated[str, Meta(max_length=200, pattern=r"^(https://[^\s/]+)?$")] = ""  # the origin of the server


class PushSubscriptionView(View, frozen=True, kw_only=True):
    """A browser that is told of approvals."""

    id: str
    label: str
    created: float
    credential: str  # the login that it belongs to


class PushView(View, frozen=True, kw_only=True):
    """The public key to subscribe with, base64url ("": there is no push), and the browsers of the caller."""

    key: str
    subscriptions: list[PushSubscriptionView]


class GateView(View, frozen=True, kw_only=True):
    """An open gate: its session, since when it is open, and the claim of a client, if any."""

    session: str
    title: str
    opened: float
    gate: Gate
    claim: CallClaim | None = None


class GateList(View, frozen=True, kw_only=True):
    """A page of open gates, oldest first, and the cursor of the next page; "": this is the last page."""

    gates: list[GateView]
    next: str = ""


class ClaimView(View, frozen=True, kw_only=True):
    """A client's claim of a call, until a time."""

    until: float


class SessionGrantList(View, frozen=True, kw_only=True):
    """The valid grants."""

    grants: list[Grant]


class RevertView(View, frozen=True, kw_only=True):
    """The result of a revert."""

    reverted: FilesReverted


class FileView(View, frozen=True, kw_only=True):
    """A stored file. `file` is its handle in a message, valid for this tenant only."""

    file: str
    part: FilePart


class SearchHit(View, frozen=True, kw_only=True):
    """A search hit: a message, and the title of its top-level session."""

    session: str
    message: Message
    title: str = ""
    updated: float = 0.0  # when something last happened in that session; 0: not known


class SearchResults(View, frozen=True, kw_only=True):
    """Search hits, newest first."""

    results: list[SearchHit]


class DailyUsage(View, frozen=True, kw_only=True):
    """Usage of one agent on one day."""

    day: str  # 2026-11-15, UTC
    agent: str
    spent: Spent


class UsageView(View, frozen=True, kw_only=True):
    """Usage of the tenant since a time."""

    since: float
    total: Spent
    days: list[DailyUsage]


class KeyView(View, frozen=True, kw_only=True):
    """A credential, without its secret."""

    id: str
    user: str
    kind: CredentialKind
    name: str
    role: Role
    created: float
    expires: float
    revoked: float
    used: float = 0.0  # when it was last used, to a minute; 0: not yet


class NewKeyView(KeyView, frozen=True, kw_only=True):
    """A new key. Its secret is shown only in this response."""

    secret: str


class KeyList(View, frozen=True, kw_only=True):
    """Credentials, oldest first."""

    keys: list[KeyView]


class PersonView(View, frozen=True, kw_only=True):
    """A user whom a conversation can be shared with."""

    id: str
    name: str


class PeopleList(View, frozen=True, kw_only=True):
    """The users of the tenant, by id."""

    people: list[PersonView]


class ShareView(View, frozen=True, kw_only=True):
    """A permission to see a session: of a user, a role, a link, or an administrator who opened it."""

    id: str
    kind: ShareKind
    name: str  # the user or the role; "" for a link
    level: ShareLevel
    by: str  # who shared it
    created: float
    expires: float  # 0: until it is revoked
    reason: str = ""  # that an administrator gave
    via: str = ""  # the link that the user has opened


class SharingView(View, frozen=True, kw_only=True):
    """Who may see a session. `shares` is shown to its author only."""

    author: str  # "": it belongs to the owners of the tenant
    level: SessionLevel  # what the caller may do in it
    shares: list[ShareView]
    temporary_until: float = 0.0  # when it is erased; 0: it is not temporary


class LinkView(View, frozen=True, kw_only=True):
    """A new link. `link` is its secret, which is shown once."""

    share: ShareView
    link: str


class OpenedLink(View, frozen=True, kw_only=True):
    """The session that a link leads to."""

    session: str


class NoticeView(View, frozen=True, kw_only=True):
    """An administrator opened a conversation of the caller."""

    id: str
    session: str
    title: str
    by: str
    reason: str
    at: float
    expires: float


class NoticeList(View, frozen=True, kw_only=True):
    """The notices that the caller has not dismissed, oldest first."""

    notices: list[NoticeView]


class UserBudgetView(View, frozen=True, kw_only=True):
    """What a user may use in a period, and what of it they have used; 0 is no limit."""

    steps: int
    calls: int
    tokens: int
    cost: float
    period: float
    spent: Spent


class UserView(View, frozen=True, kw_only=True):
    """A user."""

    id: str
    name: str
    role: Role
    is_active: bool
    origin: str = ""  # the issuer whose tokens may authenticate this user; "": none
    created: float = 0.0
    has_password: bool = False
    last_used: float = 0.0  # when a key or login of theirs was last used, to a minute; 0: not yet
    budget: UserBudgetView | None = None


class InvitationView(View, frozen=True, kw_only=True):
    """An invitation, or a link that resets a password, without its secret."""

    id: str
    kind: InvitationKind
    user: str
    name: str
    role: Role
    by: str
    created: float
    expires: float
    used: float
    revoked: float


class InvitationList(View, frozen=True, kw_only=True):
    """Invitations, newest first. `passwords`: whether people set a password when they accept one."""

    invitations: list[InvitationView]
    passwords: PasswordSupport


class NewInvitationView(InvitationView, frozen=True, kw_only=True):
    """A new invitation. Its secret is shown only in this response; the link is `{server}/#/invite/{secret}`."""

    secret: str


class OpenedInvitation(View, frozen=True, kw_only=True):
    """What an invitation is for."""

    kind: InvitationKind
    tenant: str
    user: str
    name: str
    passwords: PasswordSupport
    min_length: int  # of a password


class LoggedIn(View, frozen=True, kw_only=True):
    """Who a browser is logged in as; the response sets its cookie."""

    tenant: str
    user: str


class UserUsage(View, frozen=True, kw_only=True):
    """Usage of one user with one model and one agent; "" is unknown."""

    user: str
    model: str
    agent: str
    spent: Spent


class UserUsageView(View, frozen=True, kw_only=True):
    """Usage of the tenant since a time, by user, model and agent."""

    since: float
    rows: list[UserUsage]


class QuarantinedSession(View, frozen=True, kw_only=True):
    """A quarantined session: no title and no text, because it may be private."""

    id: str
    by: str
    agent: str
    created: float
    updated: float
    reason: str
    open_turns: int


class QuarantineList(View, frozen=True, kw_only=True):
    """Quarantined sessions, oldest first, and how long sessions are kept."""

    sessions: list[QuarantinedSession]
    retention_days: float  # days after which an idle session is erased; 0: never
    temporary_hours: float  # after which a temporary chat is erased


class CancelledSession(View, frozen=True, kw_only=True):
    """How many open turns of a session are being cancelled."""

    turns: int


class UserList(View, frozen=True, kw_only=True):
    """Users, by id."""

    users: list[UserView]


class MemoryInfoView(View, frozen=True, kw_only=True):
    """A memory file in a list. The path is relative to `/memories`."""

    path: str
    size: int  # bytes
    hash: str
    updated: float
    untrusted: bool = False  # it has text of third parties


class MemoryList(View, frozen=True, kw_only=True):
    """The memory files of the caller, by path, and how many bytes all of them, and one of them, may have."""

    files: list[MemoryInfoView]
    limit: int
    file_limit: int


class MemoryFileView(View, frozen=True, kw_only=True):
    """A memory file."""

    file: MemoryInfoView
    text: str


class ScheduleRunView(View, frozen=True, kw_only=True):
    """A run of a schedule: its turn, or why there is none."""

    planned: float
    at: float
    session: str
    turn: str
    outcome: RunOutcome
    problem: str


class ScheduleView(View, frozen=True, kw_only=True):
    """A schedule, its next planned time (`due`; 0: none) and its last runs, newest first."""

    id: str
    text: str
    cron: str
    at: float
    timezone: str
    agent: str
    session: str
    catch_up: CatchUp
    max_catch_up: int
    overlap: Overlap
    until: float
    metadata: dict[str, Any] | None
    priority: Priority
    by: str
    created: float
    origin: Origin
    is_paused: bool
    due: float
    started: int
    missed: int
    runs: list[ScheduleRunView]


class ScheduleList(View, frozen=True, kw_only=True):
    """A page of schedules, by id; `next` is the `after` of the next page ("": this is the last)."""

    schedules: list[ScheduleView]
    next: str = ""


PromptScope = Literal["config", "shared", "user"]
"""Whose a saved prompt is: of the configuration, of the tenant, or of the caller."""


class PromptView(View, frozen=True, kw_only=True):
    """A saved prompt."""

    name: str
    text: str
    description: str
    arguments: list[PromptArgumentView]
    scope: PromptScope


class PromptList(View, frozen=True, kw_only=True):
    """Saved prompts, by name. Of two with one name there is the caller's, or else the tenant's."""

    prompts: list[PromptView]


class InstructionLayer(View, frozen=True, kw_only=True):
    """A part of the system prompt. `text` is "" for a part of the configuration, unless an operator asks."""

    layer: str  # header, model, app, workspace, shared, custom, user, agent, session or privacy
    text: str
    size: int  # bytes


class InstructionsView(View, frozen=True, kw_only=True):
    """The parts of the system prompt of the next turn that are not empty, in the order in which they are sent."""

    layers: list[InstructionLayer]


class FixedSettingView(View, frozen=True, kw_only=True):
    """A model, agent or key that a file or the environment defines; it cannot be changed on the page."""

    kind: SettingKind
    name: str
    value: str
    where: str


class ModelKeyView(View, frozen=True, kw_only=True):
    """The API key of a vendor, without the key: its last four characters, a fingerprint, who stored it and when."""

    vendor: str
    last_four: str
    fingerprint: str
    by: str
    at: float
    problem: str = ""


class ModelSettingsView(View, frozen=True, kw_only=True):
    """A model that an administrator offers; `problem` says why it is not in use."""

    name: str
    version: int
    by: str
    at: float
    problem: str = ""
    settings: ModelSettings


class AgentSettingsView(View, frozen=True, kw_only=True):
    """One version of an agent that an administrator made; `problem` says why it is not in use."""

    name: str
    version: int
    by: str
    at: float
    problem: str = ""
    is_deleted: bool = False
    settings: AgentSettings


class AgentVersionList(View, frozen=True, kw_only=True):
    """The versions of an agent, newest first."""

    versions: list[AgentSettingsView]


class SettingsView(View, frozen=True, kw_only=True):
    """What administrators have set. `problem`: why nothing can be changed; `secret_problem`: why no key can be stored."""

    is_editable: bool
    problem: str = ""
    secret_problem: str = ""
    vendors: list[str] = []
    fixed: list[FixedSettingView] = []
    keys: list[ModelKeyView] = []
    models: list[ModelSettingsView] = []
    agents: list[AgentSettingsView] = []
    mcp: list[McpSettingsView] = []
    programs: list[ProgramView] = []
    mcp_problem: str = ""  # why no MCP server can be added


class McpSettingsView(View, frozen=True, kw_only=True):
    """An MCP server that an administrator added; the values of its headers or variables are never shown."""

    name: str
    version: int
    by: str
    at: float
    problem: str = ""
    url: str = ""
    program: str = ""  # one that the configuration file offers
    auth: Literal["none", "oauth"] = "none"
    values: list[str] = []  # names of headers or variables
    trusted: int = 0  # tools
    server: McpView | None = None  # as this node sees it


class ProgramView(View, frozen=True, kw_only=True):
    """A program that the configuration file offers to administrators, and the variables that it takes."""

    name: str
    variables: list[str] = []


class NewModelKey(Body, frozen=True, kw_only=True):
    """The API key of a vendor."""

    key: Annotated[str, Meta(min_length=1, max_length=4096)]


class NewModelSettings(Body, frozen=True, kw_only=True):
    """A model. `version` is the one that was seen, 0 for a new model; `key` is that of its base_url, "" keeps the one stored."""

    settings: ModelSettings
    version: int | None = None
    key: str = ""


class NewAgentSettings(Body, frozen=True, kw_only=True):
    """An agent. `version` is the one that was seen, 0 for a new agent."""

    settings: AgentSettings
    version: int | None = None


class NewMcpSettings(Body, frozen=True, kw_only=True):
    """An MCP server: a `url` or a `program`. `values` are those of its headers or variables; all "" keeps the ones stored.
    `version` is the one that was seen, 0 for a new server."""

    url: Annotated[str, Meta(max_length=2000)] = ""
    program: Annotated[str, Meta(max_length=64)] = ""
    auth: Literal["none", "oauth"] = "none"
    values: Annotated[dict[Annotated[str, Meta(min_length=1, max_length=200)], str], Meta(max_length=20)] = {}
    version: int | None = None


class RestoreVersion(Body, frozen=True, kw_only=True):
    """The version to restore."""

    version: int


class KeyTestView(View, frozen=True, kw_only=True):
    """What a vendor said to a key: its models, or what went wrong."""

    models: list[str]
    problem: str
    is_refused: bool


class WebhookView(View, frozen=True, kw_only=True):
    """A URL that is told of events. `disabled` says why it is not; its secret is never shown again."""

    id: str
    url: str
    events: list[WebhookEvent]
    description: str
    created: float
    by: str
    disabled: str


class WebhookList(View, frozen=True, kw_only=True):
    """The webhooks of a tenant, by id."""

    webhooks: list[WebhookView]


class WebhookWithSecret(View, frozen=True, kw_only=True):
    """A webhook, and the secret that its receiver verifies signatures with."""

    webhook: WebhookView
    secret: str


class DeliveryView(View, frozen=True, kw_only=True):
    """An event that a webhook is told of. `id` is the header `webhook-id`."""

    id: str
    session: str
    seq: int
    type: str
    at: float
    state: DeliveryState
    due: float | None
    tries: int
    status: int
    problem: str
    updated: float


class DeliveryList(View, frozen=True, kw_only=True):
    """Deliveries of a webhook, newest first."""

    deliveries: list[DeliveryView]


class ReplayedDeliveries(View, frozen=True, kw_only=True):
    """How many deliveries are sent again."""

    count: int


class HookView(View, frozen=True, kw_only=True):
    """An inbound hook: other systems deliver signed requests at its path. Its secret is never shown."""

    name: str
    path: str
    scheme: Literal["standard", "github", "slack"]
    action: Literal["send", "complete", "answer"]
    agent: str
    session: str
    text: str
    by: str
    priority: Priority
    max_bytes: int


class HookList(View, frozen=True, kw_only=True):
    """The inbound hooks of a tenant, by name."""

    hooks: list[HookView]


class HookReceiptView(View, frozen=True, kw_only=True):
    """What became of a delivery to an inbound hook. `is_new` is false for one that was received before."""

    outcome: Literal["started", "completed", "answered", "ignored", "challenge"]
    session: str
    turn: str
    is_new: bool


class TenantView(View, frozen=True, kw_only=True):
    """A tenant."""

    id: str
    name: str
    is_active: bool


class TenantList(View, frozen=True, kw_only=True):
    """Tenants, by id."""

    tenants: list[TenantView]


class AuditPage(View, frozen=True, kw_only=True):
    """Audit records, oldest first."""

    records: list[AuditRecord]


class ModelView(View, frozen=True, kw_only=True):
    """A model that one of the agents may use."""

    name: str  # the name to send in a message
    badge: str = ""  # the name on its answers
    context: int = 0  # the size of its context window in tokens; 0: unknown
    vendor: str = ""  # "": unknown
    input_price: float | None = None  # US dollars per million tokens; None: unknown
    output_price: float | None = None
    inputs: list[str] | None = None  # what it accepts beside text: image, audio, pdf; None: unknown
    has_native_tools: bool | None = None  # False: it is prompted to call tools; None: unknown


class AgentList(View, frozen=True, kw_only=True):
    """Agents, the default one first, and the models that they use."""

    agents: list[AgentView]
    models: list[ModelView] = []


class ToolList(View, frozen=True, kw_only=True):
    """Tools, by name."""

    tools: list[ToolView]


# Configuration -------------------------------------------------------------------------------------------------------


class RuleView(View, frozen=True, kw_only=True):
    """A rule in TOML, and why it can never decide, if another rule shadows it."""

    rule: Rule
    text: str
    shadow: str = ""


class ToolRules(View, frozen=True, kw_only=True):
    """The permission settings of a tool itself, which apply if no rule does."""

    name: str
    origin: str
    group: str
    approval: str
    review: str  # whether a person reviews its results before the model reads them
    read_only: bool
    idempotent: bool
    is_offered: bool  # False: it is denied outright, and not offered to the model
    manual: bool
    egress: bool
    subjects: dict[str, str]  # the arguments that rules match, and their kinds


class RulesView(View, frozen=True, kw_only=True):
    """Everything that decides about the calls of an agent, except grants."""

    agent: str
    rules: list[RuleView]  # the widest layer first
    tools: list[ToolRules]


class CaseView(View, frozen=True, kw_only=True):
    """The decision about one case of a call."""

    case: dict[str, str]
    action: RuleAction
    rule: RuleView | None
    reason: str


class ExplainView(View, frozen=True, kw_only=True):
    """The decision about a call, the rule that makes it, and the other rules that match."""

    action: RuleAction
    reason: str
    rule: RuleView | None
    is_final: bool  # False: no rule matches, so that a grant could decide it
    cases: list[CaseView]
    others: list[RuleView]  # rules that also match and do not decide
    lines: list[str]  # the explanation as text
    problem: str = ""  # why the arguments are invalid: no gate would open and nothing would run
    manual: bool = False  # a person runs it by hand
    review: str = "never"  # whether a person reviews the result before the model reads it
    warnings: list[str] = []  # what the agent lacks whatever is called: tools that no model is offered


class GrantView(View, frozen=True, kw_only=True):
    """A grant, the session it was given in, and the title of the session that it covers."""

    grant: Grant
    origin: str
    title: str


class GrantList(View, frozen=True, kw_only=True):
    """Grants, newest first."""

    grants: list[GrantView]


class McpToolView(View, frozen=True, kw_only=True):
    """A tool of an MCP server."""

    name: str
    description: str
    is_changed: bool  # it differs from what was trusted, and cannot be called


McpState = Literal["connecting", "ready", "down", "untrusted", "needs_login", "failed"]


class McpView(View, frozen=True, kw_only=True):
    """An MCP server, as this node sees it. The fields after `tools` are for operators only."""

    name: str
    transport: Literal["stdio", "http"]
    state: McpState
    since: float
    title: str
    tools: list[McpToolView]
    reason: str = ""
    problems: list[str] = []
    runs: str = ""  # the program without its arguments, or the address without its query
    variables: list[str] = []  # names of the environment variables or headers that it gets
    changes: list[str] = []
    hash: str = ""  # of everything that is trusted by trusting it now
    can_log_in: bool = False
    is_logging_in: bool = False
    login_problem: str = ""
    is_stored: bool = False  # an administrator added it on the page


class McpList(View, frozen=True, kw_only=True):
    """MCP servers, as they are configured."""

    servers: list[McpView]


class GetMcpPrompt(Body, frozen=True, kw_only=True):
    """Get a prompt of an MCP server, with its arguments filled in."""

    name: Annotated[str, Meta(min_length=1, max_length=200)]
    arguments: Annotated[dict[str, Annotated[str, Meta(max_length=10_000)]], Meta(max_length=20)] = {}


class ReadMcpResource(Body, frozen=True, kw_only=True):
    """Read a resource of an MCP server."""

    uri: Annotated[str, Meta(min_length=1, max_length=1_000)]


class McpPromptView(View, frozen=True, kw_only=True):
    """A prompt of an MCP server: `/server:name` is its command. The texts are the server's."""

    server: str
    name: str
    description: str
    arguments: list[McpPromptArgument]


class McpPromptArgument(View, frozen=True, kw_only=True):
    """An argument of a prompt; its value is a text."""

    name: str
    description: str
    required: bool


class McpResourceView(View, frozen=True, kw_only=True):
    """A resource of an MCP server: `@server:uri` attaches it. The texts are the server's."""

    server: str
    uri: str
    name: str
    description: str
    media_type: str


class McpOffers(View, frozen=True, kw_only=True):
    """The prompts and resources of the MCP servers that are connected."""

    prompts: list[McpPromptView]
    resources: list[McpResourceView]


class McpContent(View, frozen=True, kw_only=True):
    """What a prompt or a resource contains, for the `contexts` and `files` of a message. Its text is untrusted."""

    contexts: list[AttachedContext]
    files: list[FileView]


class LoginView(View, frozen=True, kw_only=True):
    """The URL at which a person logs in, in a browser on the server's machine."""

    address: str


class ModelSource(View, frozen=True, kw_only=True):
    """An available model source: an API key in the environment, or a model server on this machine."""

    kind: Literal["key", "server"]
    name: str  # of the variable, or of the server
    address: str  # of the server
    models: list[str]  # its models; for a vendor, one to start with
    toml: str  # the configuration for the first of them
    needs_restart: bool


class SetupView(View, frozen=True, kw_only=True):
    """The configured model, and the other available model sources."""

    agent: str
    model: str
    is_offline: bool
    file: str  # the configuration that is, or would be, read
    has_file: bool
    has_agent: bool  # whether the agent has a table there already
    options: list[ModelSource]


# The stream ------------------------------------------------------------------------------------------------------------

StreamDelta = TextDelta | ReasoningDelta | CallDelta


class StreamItem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The `data:` of one message of an event stream; its `id:` is the cursor after it. Exactly one field is set.

    `seq` comes with an `event`: its position in the log. `end` is the last message: why the server closes the stream.
    """

    seq: int = 0
    event: LogEvent | None = None
    delta: StreamDelta | None = None
    progress: CallProgress | None = None
    end: Literal["", "over", "drain", "slow", "revoked", "unshared", "erased", "lost"] = ""


class InboxItem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message of the event stream of a tenant: first a snapshot, then changes. A missed message is harmless: every
    connection starts with a new snapshot.
    """

    snapshot: InboxView | None = None
    session: SessionView | None = None  # it changed: started, titled, busy or idle
    waits: list[GateView] | None = None  # the open gates of `session`, if it changed
    end: Literal["", "drain", "slow", "revoked"] = ""


class InboxView(View, frozen=True, kw_only=True):
    """The open gates and the active sessions. If `next` is set, the rest follows session by session."""

    gates: list[GateView]
    awake: list[SessionView]
    next: str = ""
