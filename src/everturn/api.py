"""HTTP API types: the bodies of requests and responses, as data.

The OpenAPI document is generated from them; the server and `everturn.client` encode and decode them. Clients send ids,
text and decisions, and nothing else: no history, no role, no tenant.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from everturn.core.accounts import AuditRecord, CredentialKind, Role
from everturn.core.deltas import CallDelta, CallProgress, ReasoningDelta, TextDelta
from everturn.core.events import FilesReverted, LogEvent, Problem
from everturn.core.gates import CallClaim, Gate, Grant
from everturn.core.messages import Message
from everturn.core.options import ClientTool, LatePolicy, Spent, ToolHistory
from everturn.core.parts import FilePart, Usage
from everturn.core.rules.policy import Rule, RuleAction
from everturn.core.state import Phase

Id = Annotated[str, Meta(min_length=1, max_length=200)]
Name = Annotated[str, Meta(max_length=200)]
Text = Annotated[str, Meta(max_length=1_000_000)]
Busy = Literal["queue", "reject", "fork", "steer"]
"""What happens to a message while a turn is running: it waits, it is refused (409), it starts a branch beside the turn,
or it joins the turn between two steps. `Sent.turn` is then the turn that it will join; if that ends first, it waits.
"""


class Body(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base class of request bodies. Unknown fields are refused: otherwise a misspelt field would be ignored."""


class View(Struct, frozen=True, kw_only=True, omit_defaults=False):
    """Base class of responses. New fields may be added; none is removed."""


# Request bodies ------------------------------------------------------------------------------------------------------


class MessageRequest(Body, frozen=True, kw_only=True):
    """A user message: a text, files that were uploaded before, or both, with options for its turn."""

    text: Text = ""
    files: Annotated[list[Annotated[str, Meta(max_length=1000)]], Meta(max_length=32)] = []  # `FileView.file`
    agent: Name = ""  # "": that of the session, or the first one
    model: Name = ""  # "": that of the agent; otherwise one of the server's models
    params: dict[str, Any] | None = None
    tools: Annotated[list[Name], Meta(max_length=200)] | None = None
    tool_history: ToolHistory | None = None
    late: LatePolicy | None = None
    max_steps: Annotated[int, Meta(ge=1, le=1000)] | None = None
    clients: Annotated[list[ClientTool], Meta(max_length=50)] = []  # tools that the sending client runs
    busy: Busy = "queue"


class NewSession(MessageRequest, frozen=True, kw_only=True):
    """Start a session with its first message. A session has at least one message."""


class NewMessage(MessageRequest, frozen=True, kw_only=True):
    """A message at the end of the selected branch, or `after` another message."""

    after: Id | None = None


class EditMessage(Body, frozen=True, kw_only=True):
    """A new version of a user message, and an answer to it."""

    text: Text = ""
    files: Annotated[list[Annotated[str, Meta(max_length=1000)]], Meta(max_length=32)] = []
    model: Name = ""


class RegenerateAnswer(Body, frozen=True, kw_only=True):
    """Regenerate an answer."""

    model: Name = ""
    params: dict[str, Any] | None = None


class SelectBranch(Body, frozen=True, kw_only=True):
    """Select the branch that ends at a message; None: the beginning."""

    message: Id | None = None


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
    until: Annotated[float, Meta(ge=0)] = 0.0
    others: bool = False
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


class AgentView(View, frozen=True, kw_only=True):
    """A configured agent."""

    name: str
    description: str
    model: str
    tools: list[str] | None = None
    is_default: bool = False
    models: list[str] = []  # other models that a message may select


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


class SessionPage(View, frozen=True, kw_only=True):
    """A page of sessions, and the cursor of the next page; "": this is the last page."""

    sessions: list[SessionView]
    next: str = ""
    waiting: list[str] = []  # those of them with an open gate, in themselves or in a sub-agent run


class MessageReceipt(View, frozen=True, kw_only=True):
    """A durable message, and the turn that it starts."""

    session: str
    turn: str
    message: str  # "" for a re-run
    is_new: bool  # False: the same message was sent before with this key


class MessageList(View, frozen=True, kw_only=True):
    """A branch, or its last page, oldest first, and the cursor of the page before it; "": there is none."""

    messages: list[Message]
    next: str = ""


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


class NewKeyView(KeyView, frozen=True, kw_only=True):
    """A new key. Its secret is shown only in this response."""

    secret: str


class KeyList(View, frozen=True, kw_only=True):
    """Credentials, oldest first."""

    keys: list[KeyView]


class UserView(View, frozen=True, kw_only=True):
    """A user."""

    id: str
    name: str
    role: Role
    is_active: bool
    origin: str = ""  # the issuer whose tokens may authenticate this user; "": none


class UserList(View, frozen=True, kw_only=True):
    """Users, by id."""

    users: list[UserView]


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


class McpList(View, frozen=True, kw_only=True):
    """MCP servers, as they are configured."""

    servers: list[McpView]


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
    end: Literal["", "over", "drain", "slow", "revoked", "erased", "lost"] = ""


class InboxItem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message of the event stream of a tenant: first a snapshot, then changes. A missed message does no harm: every
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
