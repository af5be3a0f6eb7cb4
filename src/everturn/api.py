"""What goes over the wire between the server and whoever talks to it: bodies of requests and of answers, as data.

The OpenAPI document is made of these, the server reads and writes them, and `everturn.client` speaks them. Ids, text and
decisions come from outside, and nothing else: no history, no role, no tenant.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from everturn.core.accounts import AuditRecord, CredentialKind, Role
from everturn.core.asking import Claimed, Gate, Grant
from everturn.core.deltas import CallDelta, CallProgress, ReasoningDelta, TextDelta
from everturn.core.events import FilesReverted, LogEvent, Problem
from everturn.core.messages import Message
from everturn.core.options import ClientTool, HistoryPolicy, LatePolicy, Spent
from everturn.core.parts import FilePart, Usage
from everturn.core.policy import Action, Rule
from everturn.core.state import Phase

Id = Annotated[str, Meta(min_length=1, max_length=200)]
Name = Annotated[str, Meta(max_length=200)]
Text = Annotated[str, Meta(max_length=1_000_000)]
Busy = Literal["queue", "reject", "fork", "steer"]
"""What becomes of a message while a turn is under way: it waits, it is refused (409), it begins a branch beside it, or it
joins the turn between two steps. `Sent.turn` is then the turn that it is to join; if that ends first, it waits after all.
"""


class Body(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The root of all that comes in. What is not known is refused: a field that is misspelt would be ignored."""


class View(Struct, frozen=True, kw_only=True, omit_defaults=False):
    """The root of all that goes out. New fields may come; none goes."""


# What comes in ---------------------------------------------------------------------------------------------------------


class Said(Body, frozen=True, kw_only=True):
    """What a person says: a text, files that were uploaded before, or both."""

    text: Text = ""
    files: Annotated[list[Annotated[str, Meta(max_length=1000)]], Meta(max_length=32)] = []  # `FileView.file`
    agent: Name = ""  # "": that of the session, or the first one
    model: Name = ""  # "": that of the agent; else one of those the server has
    params: dict[str, Any] | None = None
    tools: Annotated[list[Name], Meta(max_length=200)] | None = None
    history: HistoryPolicy | None = None
    late: LatePolicy | None = None
    max_steps: Annotated[int, Meta(ge=1, le=1000)] | None = None
    clients: Annotated[list[ClientTool], Meta(max_length=50)] = []  # tools that whoever sends this runs
    busy: Busy = "queue"


class NewSession(Said, frozen=True, kw_only=True):
    """Begin a session with its first message. There is none without one."""


class NewMessage(Said, frozen=True, kw_only=True):
    """Go on: at the end of the selected branch, or `after` a message."""

    after: Id | None = None


class Edited(Body, frozen=True, kw_only=True):
    """A new version of a message of the person's, and an answer to it."""

    text: Text = ""
    files: Annotated[list[Annotated[str, Meta(max_length=1000)]], Meta(max_length=32)] = []
    model: Name = ""


class Rerun(Body, frozen=True, kw_only=True):
    """Another answer."""

    model: Name = ""
    params: dict[str, Any] | None = None


class Selected(Body, frozen=True, kw_only=True):
    """Go on from a message; None: from the beginning."""

    message: Id | None = None


class Cancelled(Body, frozen=True, kw_only=True):
    """End a turn; `hard` ends its tools as well."""

    hard: bool = False


class Answered(Body, frozen=True, kw_only=True):
    """Answer a gate: one of `allow`, `deny` and `result`; see `Turn.answer`. `hash` is that of the gate as it was shown."""

    hash: Annotated[str, Meta(min_length=1, max_length=200)]
    allow: Literal["once", "always"] | None = None
    rule: Rule | None = None  # with allow="always": the one of the gate's offers that is meant
    deny: Annotated[str, Meta(max_length=10_000)] | bool | None = None
    arguments: dict[str, Any] | None = None
    result: Annotated[str, Meta(max_length=4_000_000)] | None = None
    text: Annotated[str, Meta(max_length=4_000_000)] | None = None
    everywhere: bool = False
    until: Annotated[float, Meta(ge=0)] = 0.0
    others: bool = False
    failed: bool = False
    claim: Name = ""


class Claim(Body, frozen=True, kw_only=True):
    """A client takes a call upon itself; `claim` is a name nobody can guess, and comes back with the answer."""

    hash: Annotated[str, Meta(min_length=1, max_length=200)]
    claim: Annotated[str, Meta(min_length=16, max_length=200)]
    lease: Annotated[float, Meta(gt=0, le=3600)] = 60.0


class Reverted(Body, frozen=True, kw_only=True):
    """Let files be what they were: `tree` is the `before` or the `after` of a files part, or of an earlier revert."""

    root: Annotated[str, Meta(max_length=4096)]
    tree: Annotated[str, Meta(min_length=1, max_length=200)]


class NewKey(Body, frozen=True, kw_only=True):
    """A new API key for a user of the tenant, who may do at most this much with it."""

    name: Name = ""
    user: Name = ""  # "": whoever asks
    role: Role = "member"
    expires: Annotated[float, Meta(ge=0)] = 0.0


class PutUser(Body, frozen=True, kw_only=True):
    """Make a user, or change one."""

    name: Name = ""
    role: Role = "member"
    is_active: bool = True
    origin: Annotated[str, Meta(max_length=1000)] | None = None  # the issuer whose tokens speak of them; None: as it is


class PutTenant(Body, frozen=True, kw_only=True):
    """Make a tenant, or change one."""

    name: Name = ""
    is_active: bool = True


class Explain(Body, frozen=True, kw_only=True):
    """What would become of a call? Nothing is run."""

    tool: Id
    arguments: dict[str, Any] = {}
    agent: Name = ""  # "": that of the session, or the first one
    session: Id | None = None  # what was allowed from then on in it counts, too


class TrustServer(Body, frozen=True, kw_only=True):
    """Trust an MCP server as it was shown: `hash` is that of its `McpView`."""

    hash: Annotated[str, Meta(min_length=1, max_length=200)]


# What goes out ---------------------------------------------------------------------------------------------------------


class ErrorView(View, frozen=True, kw_only=True):
    """What went wrong: a stable code, a text for people that says what to do next, and where a bad value stands."""

    code: str
    message: str
    where: str = ""


class Failure(View, frozen=True, kw_only=True):
    """The body of every answer that is no success."""

    error: ErrorView


class Me(View, frozen=True, kw_only=True):
    """Who is asking."""

    tenant: str
    user: str
    role: Role
    version: str
    csrf: str = ""  # to be sent back as `X-CSRF-Token` by whoever comes with a cookie


class AgentView(View, frozen=True, kw_only=True):
    """An agent that can be talked to."""

    name: str
    description: str
    model: str
    tools: list[str] | None = None
    is_default: bool = False
    models: list[str] = []  # others that a message may ask for instead


class ToolView(View, frozen=True, kw_only=True):
    """A tool as a model is told of it."""

    name: str
    description: str
    schema: dict[str, Any]
    origin: str
    execute: str
    effects: str
    group: str = ""


class SessionView(View, frozen=True, kw_only=True):
    """A session in a list."""

    id: str
    title: str
    agent: str
    by: str
    created: float
    touched: float
    leaf: str | None
    is_awake: bool
    stuck: str
    above: str = ""


class SessionPage(View, frozen=True, kw_only=True):
    """Some sessions, and what to ask for to have more of them; "": these were the last."""

    sessions: list[SessionView]
    next: str = ""
    waiting: list[str] = []  # those of them in which, or in whose sub-turns, a question stands open


class Sent(View, frozen=True, kw_only=True):
    """A message that is safe, and the turn that it begins."""

    session: str
    turn: str
    message: str  # "" for a re-run
    is_new: bool  # False: the same was sent before, with this key


class MessageList(View, frozen=True, kw_only=True):
    """A branch, oldest first; or its end, and before which message the page before it ends; "": there is none."""

    messages: list[Message]
    next: str = ""


class TreeView(View, frozen=True, kw_only=True):
    """All messages of a session, as they joined, and where the selected branch ends."""

    messages: list[Message]
    leaf: str | None


class LogItem(View, frozen=True, kw_only=True):
    """An event at its place in the log."""

    seq: int
    event: LogEvent


class LogPage(View, frozen=True, kw_only=True):
    """Some of a session's log, in order; `is_whole`: these were the last, and a stream goes on `after` their `seq`."""

    entries: list[LogItem]
    is_whole: bool


class QueuedView(View, frozen=True, kw_only=True):
    """A message that waits until the turn before it is over. Its turn can be cancelled; then it was never sent."""

    turn: str
    message: str
    at: float
    text: str
    files: list[FilePart]
    by: str = ""
    steers: str = ""  # the turn that it is to join, at the next step; "": it begins one of its own


class QueueList(View, frozen=True, kw_only=True):
    """What waits, in the order in which it will go."""

    queued: list[QueuedView]


class TurnView(View, frozen=True, kw_only=True):
    """A turn as its log tells it, now."""

    session: str
    turn: str
    phase: Phase
    step: int
    messages: list[Message]
    gates: list[Gate]
    usage: Usage
    problem: Problem | None = None


class GateView(View, frozen=True, kw_only=True):
    """A question that stands open: where, since when, and which client has it, if it is for one."""

    session: str
    title: str
    opened: float
    gate: Gate
    claim: Claimed | None = None


class GateList(View, frozen=True, kw_only=True):
    """Questions that stand open, oldest first, and after what the next page begins; "": these were the last."""

    gates: list[GateView]
    next: str = ""


class ClaimView(View, frozen=True, kw_only=True):
    """A call is this client's, until then."""

    until: float


class GrantList(View, frozen=True, kw_only=True):
    """What people have allowed from then on."""

    grants: list[Grant]


class RevertView(View, frozen=True, kw_only=True):
    """Files are again what they were."""

    reverted: FilesReverted


class FileView(View, frozen=True, kw_only=True):
    """A file that is kept. `file` is what a message names it by; it is good for this tenant only."""

    file: str
    part: FilePart


class FoundView(View, frozen=True, kw_only=True):
    """A message that has the words, and the title of the conversation that it is in or below."""

    session: str
    message: Message
    title: str = ""


class FoundList(View, frozen=True, kw_only=True):
    """What was found, newest first."""

    found: list[FoundView]


class UsedView(View, frozen=True, kw_only=True):
    """What was used on a day, by an agent."""

    day: str  # 2026-11-15, UTC
    agent: str
    spent: Spent


class UsageView(View, frozen=True, kw_only=True):
    """What the tenant has used since a time."""

    since: float
    total: Spent
    days: list[UsedView]


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
    """A new key: this is the only time that anybody sees its secret."""

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
    origin: str = ""  # the issuer whose tokens speak of them; "": none does


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
    """What was done, oldest first."""

    records: list[AuditRecord]


class ModelView(View, frozen=True, kw_only=True):
    """A model that one of the agents may use."""

    name: str  # as a message that is sent names it
    badge: str = ""  # as the answers it gave name it
    context: int = 0  # tokens it can take at once; 0: nobody knows


class AgentList(View, frozen=True, kw_only=True):
    """Agents, the default one first, and the models that they name."""

    agents: list[AgentView]
    models: list[ModelView] = []


class ToolList(View, frozen=True, kw_only=True):
    """Tools, by name."""

    tools: list[ToolView]


# What is set up ---------------------------------------------------------------------------------------------------------


class RuleView(View, frozen=True, kw_only=True):
    """A rule, as it would be written; and why it can never decide, if so."""

    rule: Rule
    text: str
    shadow: str = ""


class ToolRules(View, frozen=True, kw_only=True):
    """What a tool says of itself, where no rule says more."""

    name: str
    origin: str
    group: str
    execute: str
    result: str  # who reads its results before the model does
    effects: str
    is_offered: bool  # False: it is denied outright, and the model is not told of it
    by_hand: bool
    egress: bool
    subjects: dict[str, str]  # the arguments that rules look at, and as what


class RulesView(View, frozen=True, kw_only=True):
    """All that decides on the calls of an agent, beside what people have allowed from then on."""

    agent: str
    rules: list[RuleView]  # the widest layer first
    tools: list[ToolRules]


class CaseView(View, frozen=True, kw_only=True):
    """One of the things that a call would do, judged by itself."""

    case: dict[str, str]
    action: Action
    rule: RuleView | None
    reason: str


class ExplainView(View, frozen=True, kw_only=True):
    """What would become of a call, which rule decides, and what else fits."""

    action: Action
    reason: str
    rule: RuleView | None
    is_final: bool  # False: nothing fits, so that an answer could be remembered
    cases: list[CaseView]
    others: list[RuleView]  # that fit as well, and do not decide
    lines: list[str]  # all of it in words
    problem: str = ""  # why the arguments do not fit the tool: nothing would be asked or run
    by_hand: bool = False  # a person runs it
    review: str = "auto"  # who reads the result before the model does


class GrantedView(View, frozen=True, kw_only=True):
    """A remembered answer, the session it was given in, and the title of the one that it holds in."""

    grant: Grant
    origin: str
    title: str


class GrantedList(View, frozen=True, kw_only=True):
    """What people have allowed from then on, newest first."""

    grants: list[GrantedView]


class McpToolView(View, frozen=True, kw_only=True):
    """A tool of an MCP server."""

    name: str
    description: str
    is_changed: bool  # it is not what was trusted, and cannot be called


McpState = Literal["connecting", "ready", "down", "untrusted", "needs_login", "failed"]


class McpView(View, frozen=True, kw_only=True):
    """An MCP server, as this node sees it. What is below `tools` only operators are told."""

    name: str
    transport: Literal["stdio", "http"]
    state: McpState
    since: float
    title: str
    tools: list[McpToolView]
    reason: str = ""
    problems: list[str] = []
    runs: str = ""  # the program without its arguments, or the address without its query
    variables: list[str] = []  # names of what it is handed over: of variables, or of headers
    changes: list[str] = []
    hash: str = ""  # of all that is trusted by trusting it now
    can_log_in: bool = False
    is_logging_in: bool = False
    login_problem: str = ""


class McpList(View, frozen=True, kw_only=True):
    """MCP servers, as they are configured."""

    servers: list[McpView]


class LoginView(View, frozen=True, kw_only=True):
    """The address at which a person logs in, in a browser on the machine of the server."""

    address: str


class WayIn(View, frozen=True, kw_only=True):
    """A model that could be had: by a key that is in the environment, or from a server on this machine."""

    kind: Literal["key", "server"]
    name: str  # of the variable, or of the server
    address: str  # of the server
    models: list[str]  # those it has; of a vendor, one to begin with
    toml: str  # what to write for the first of them
    needs_restart: bool


class SetupView(View, frozen=True, kw_only=True):
    """Which model answers, and how there could be another."""

    agent: str
    model: str
    is_offline: bool
    file: str  # the configuration that is, or would be, read
    has_file: bool
    has_agent: bool  # whether the agent has a table there already
    ways: list[WayIn]


# The stream ------------------------------------------------------------------------------------------------------------

StreamDelta = TextDelta | ReasoningDelta | CallDelta


class Item(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message of an event stream, `data:` of it; its `id:` is the cursor after it. Exactly one field says what it is.

    `seq` comes with an `event`: its position in the log. `end` is the last: why the stream is closed by the server.
    """

    seq: int = 0
    event: LogEvent | None = None
    delta: StreamDelta | None = None
    progress: CallProgress | None = None
    end: Literal["", "over", "drain", "slow", "revoked", "erased", "lost"] = ""


class InboxItem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message of the stream for a whole tenant: first a snapshot, then what changes. A missed one does no harm: with
    every connection a new snapshot comes.
    """

    snapshot: InboxView | None = None
    session: SessionView | None = None  # it has moved: begun, titled, busy or at rest
    waits: list[GateView] | None = None  # the gates that stand open in `session`, when it has moved
    end: Literal["", "drain", "slow", "revoked"] = ""


class InboxView(View, frozen=True, kw_only=True):
    """What waits for somebody, and what is under way. What is behind `next` comes then, session by session."""

    gates: list[GateView]
    awake: list[SessionView]
    next: str = ""
