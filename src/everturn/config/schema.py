"""Configuration schema: one Struct per table, one field per key. The defaults are those of a server without a file."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from everturn.access.auth.options import OidcOptions
from everturn.access.context.agents import TenantLimits
from everturn.config.secrets import AddressRef, HeaderRef, SecretRef
from everturn.config.server_options import ServerOptions
from everturn.core.context.compaction import CONTEXT_PATTERN
from everturn.core.options import Approval, Budget, LatePolicy, Review, ToolHistory
from everturn.core.rate_limits import Priority, RateLimit
from everturn.core.schedules import CatchUp, Overlap
from everturn.core.tenants.accounts import Role
from everturn.core.webhooks import WEBHOOK_EVENTS, WebhookEvent
from everturn.inbound_hooks.hook import MAX_BYTES, MOST_BYTES, Action
from everturn.inbound_hooks.signatures import Scheme
from everturn.mcp.config import Annotation, Login, TaskUse
from everturn.models.prices import Price
from everturn.models.retry import RetryPolicy

Seconds = Annotated[float, Meta(ge=0)]
NO_SECRET = SecretRef("")
NO_ADDRESS = AddressRef("")


class EncryptionTable(Struct, frozen=True):
    """`[store.encryption]`: encryption of stored content with a key per tenant; off without a keyring or a provider."""

    keyring: AddressRef = NO_ADDRESS  # a folder, or postgresql://…, that is not in the backups of the store
    master_keys: tuple[SecretRef, ...] = ()  # 32 bytes in base64: the first wraps the keys of tenants, all unwrap them
    provider: str = ""  # module:function, which returns a KeyProvider, instead of a keyring
    allow_plaintext: bool = False  # read also what was written before encryption was turned on


class StoreTable(Struct, frozen=True):
    """`[store]`: where sessions are stored."""

    url: AddressRef = NO_ADDRESS  # a file, postgresql://…, or memory; "": a file in the user's data folder
    engine: Literal["", "inline", "postgres"] = ""  # "": postgres with a PostgreSQL URL, where processes share the work
    retention_days: Annotated[float, Meta(ge=0)] = 0.0  # days after which an idle session is erased; 0: never
    migrate: bool = True  # upgrade an older schema at start; false: refuse it, see `everturn migrate`
    encryption: EncryptionTable = EncryptionTable()


class ClusterTable(Struct, frozen=True):
    """`[cluster]`: the addresses of a cluster; used only by servers and workers that are started for one."""

    database: AddressRef = NO_ADDRESS
    restate: AddressRef = NO_ADDRESS
    admin: AddressRef = NO_ADDRESS
    temporal: AddressRef = NO_ADDRESS  # temporal://host:7233, or tls://host:7233
    nats: AddressRef = NO_ADDRESS
    listen: str = ""
    advertise: AddressRef = NO_ADDRESS
    writes: Annotated[int, Meta(ge=0)] = 0
    live_bytes: Annotated[int, Meta(ge=2**20)] = 64 * 2**20  # of live text that NATS keeps for late readers
    nats_ca: str = ""  # files in PEM, for tls://
    nats_certificate: str = ""
    nats_key: str = ""
    identity_key: str = ""  # publickeyv1_…, of the Restate server that calls the workers
    loop_timeout: Annotated[float, Meta(ge=0)] = 5.0  # seconds that a worker's event loop may be blocked; 0: for ever
    temporal_namespace: str = "default"
    temporal_api_key: SecretRef = NO_SECRET  # of Temporal Cloud
    temporal_ca: str = ""  # files in PEM, for tls://
    temporal_certificate: str = ""
    temporal_key: str = ""
    heartbeat_timeout: Annotated[float, Meta(ge=1)] = 10.0  # seconds a worker may be silent; then Temporal takes over


class CellTable(Struct, frozen=True):
    """`[cells.NAME]`: an installation with a database of its own."""

    url: str  # of its HTTP API, as the router reaches it
    database: AddressRef = NO_ADDRESS  # postgresql://…, for `everturn admin tenant`


class RouterTable(Struct, frozen=True):
    """`[router]`: the reverse proxy in front of cells, and the routing table."""

    routes: AddressRef = NO_ADDRESS  # postgresql://…: the database of the routing table
    default: str = ""  # the cell of tenants that the routing table does not name
    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535)] = 8350
    wait: Annotated[float, Meta(ge=0)] = 30.0  # seconds that requests of a tenant wait while it is moved; then 503
    domain: str = ""  # example.com: requests for acme.example.com are those of the tenant acme
    hooks: dict[str, str] = {}  # the tenants of inbound hooks


class RateLimitTable(RateLimit, frozen=True, kw_only=True):
    """`[rate_limits.NAME]`: what may be sent to a provider with one API key."""

    requests_per_minute: Annotated[float, Meta(ge=0)] = 0.0
    tokens_per_minute: Annotated[float, Meta(ge=0)] = 0.0
    input_tokens_per_minute: Annotated[float, Meta(ge=0)] = 0.0
    output_tokens_per_minute: Annotated[float, Meta(ge=0)] = 0.0
    burst_seconds: Annotated[float, Meta(ge=0, le=30)] = 3.0
    max_wait: Seconds = 600.0
    fallback_after: Seconds = 10.0


class LimiterTable(Struct, frozen=True):
    """`[limiter]`: how requests wait for the rate limits of providers."""

    learn: bool = True  # whether limits are learned from the headers of responses
    breaker_failures: Annotated[int, Meta(ge=1)] = 5  # in a row, after which a deployment is left alone
    breaker_seconds: Annotated[float, Meta(gt=0)] = 30.0  # for this long; twice as long each time it fails again


class DeploymentTable(Struct, frozen=True):
    """`[[models.NAME.deployments]]`: a further place where a model can be had; what is left out is as in the model."""

    model: str = ""  # vendor:model
    base_url: str = ""
    api_key: SecretRef = NO_SECRET
    rate_limit: str = ""


class ModelTable(Struct, frozen=True):
    """`[models.NAME]`: a model with a name of its own."""

    model: str  # vendor:model
    base_url: str = ""
    api_key: SecretRef = NO_SECRET  # unset: the vendor's own variable
    price: Price | None = None
    window: Annotated[int, Meta(ge=1)] | None = None
    tool_format: str = ""
    # bytes; larger images and PDF files are uploaded to the vendor once. Unset: every request has them inline.
    upload_above: Annotated[int, Meta(ge=0)] | None = None
    params: dict[str, Any] = {}
    retry: RetryPolicy | None = None
    fallback: tuple[str, ...] = ()  # vendor:model, or names under [models]: asked in this order when it has failed
    rate_limit: str = ""  # a name under [rate_limits]; models and deployments with the same one share it
    deployments: tuple[DeploymentTable, ...] = ()  # further places where it can be had
    instructions: str = ""  # of agents that have none of their own


ContextPolicy = Annotated[str, Meta(pattern=CONTEXT_PATTERN)]
"""How a long conversation is fitted into the context window: auto, off, or last_turns(n)."""


class RuleTable(Struct, frozen=True):
    """`[[permissions]]`: a rule; `permissions.rules_file` validates it."""

    tool: str
    action: Literal["allow", "ask", "deny"]
    match: dict[str, Any] = {}


class PluginEntry(Struct, frozen=True):
    """An entry of `plugins` with arguments: `{ plugin = "module:Class", options = { … } }`."""

    plugin: str  # module:Class or file.py:Class
    options: dict[str, Any] = {}  # arguments of the class; texts may have references to secrets


class InstructionsPart(Struct, frozen=True):
    """An entry of `instructions` that is no text: `{ file = "…" }` or `{ function = "module:name" }`."""

    file: str = ""  # inside the folder of the file that names it
    function: str = ""  # module:function or file.py:function
    each_step: bool = False  # whether the function is called for each step, not once for a turn


class AgentTable(Struct, frozen=True):
    """`[agents.NAME]`: an agent, as `Agent(…)` is in Python. The first agent is the default."""

    description: str = ""
    model: str = ""  # vendor:model, or a name under [models]; "": the default model
    models: tuple[str, ...] = ()
    instructions: str | tuple[str | InstructionsPart, ...] = ()
    system: str = ""  # instructions that are one text
    system_file: str = ""  # inside the folder of the file that names it
    tools: tuple[str, ...] | None = None
    groups: tuple[str, ...] = ()
    subagents: tuple[str, ...] = ()  # agents that are its tools
    handoffs: tuple[str, ...] = ()  # agents that it can hand the conversation to
    deps: str = ""  # the factory of its dependencies: module:function or file.py:function
    output_type: str | dict[str, Any] | None = None  # a JSON Schema, or module:Type
    output_retries: Annotated[int, Meta(ge=0)] = 1
    plugins: tuple[str | PluginEntry, ...] = ()
    permissions: tuple[RuleTable, ...] = ()
    budget: Budget = Budget()
    max_steps: Annotated[int, Meta(ge=1)] = 25
    tool_history: ToolHistory = "full"
    context: ContextPolicy = "auto"
    late: LatePolicy = "inject"
    review: Review = "never"
    manual: tuple[str, ...] = ()
    timeout: Seconds = 0.0
    gate_timeout: Seconds = 0.0
    timezone: str = "local"  # of the date in the system prompt: Europe/Berlin, local, or "" for no date
    reasoning: str = ""  # how much the model thinks first: low, medium, high, …
    params: dict[str, Any] = {}


class PromptTable(Struct, frozen=True):
    """`[prompt]`: texts around the instructions of every agent, in the order in which they are sent."""

    header: str = ""  # before everything else
    workspace: str = ""  # what every agent here should know of the place it works in
    custom: str = ""  # what the person who runs this wants of every agent
    privacy: str = ""  # at the end: what must not be said


class PromptArgumentTable(Struct, frozen=True):
    """`[prompts.NAME.arguments.ARGUMENT]`: an argument of a saved prompt."""

    description: str = ""
    default: str | None = None  # without one, the person has to give a value


class SavedPromptTable(Struct, frozen=True):
    """`[prompts.NAME]`: a text that people use by its name; `{{argument}}` stands for the value of an argument."""

    text: str = ""
    file: str = ""  # inside the folder of the file that names it
    description: str = ""
    arguments: dict[str, PromptArgumentTable] = {}


class FilesTable(Struct, frozen=True):
    """`[tools.files]` with more options than the folder."""

    folder: str  # DIR or DIR:ro
    approval: Approval = "ask"


class ShellTable(Struct, frozen=True):
    """`[tools.shell]` with more options than the folder."""

    folder: str = ""  # DIR or DIR:rw; "": none
    approval: Approval | None = None  # None: "ask"; in a server "always"


class MemoryTable(Struct, frozen=True):
    """`[tools.memory]` with more options than `true`."""

    approval: Approval = "ask"  # of changes
    read_only: bool = False  # only people write


class ToolsTable(Struct, frozen=True):
    """`[tools]`: the available tools. All tenants share them: a folder here is visible to all of them."""

    python: tuple[str, ...] = ()  # module or file.py, or one tool of it after a colon
    files: str | FilesTable = ""  # DIR or DIR:ro
    virtual_files: bool = False
    code: bool = False
    shell: str | bool | ShellTable = False  # true, DIR or DIR:rw
    web: bool = False
    todos: bool = False  # write_todos: the steps of a task, shown to the person
    memory: bool | MemoryTable = False
    recall: bool | Literal["sessions"] = False  # "sessions": also in the user's other sessions, with leave
    search_above: Annotated[int, Meta(ge=0)] = 40  # with more tools, most are found with find_tools; 0: never


class AssistantTable(Struct, frozen=True):
    """`[assistant]`: what `everturn` in a folder may do there."""

    folder: bool = True  # false: `everturn` is a chat without the tools of the folder
    mode: Literal["plan", "ask", "auto_edit"] = "ask"  # the permission mode of new sessions
    max_steps: Annotated[int, Meta(ge=1, le=1000)] = 100  # of a turn; the terminal then asks whether to continue
    shell: bool = True
    git: Literal["ask", "commit", "off"] = "ask"  # whether the shell may change the repository
    network: tuple[str, ...] = ()  # domains that fetch_url may read without asking; "*": it asks for any other
    search: Literal["", "searxng", "brave", "tavily"] = ""  # the service of web_search; "": there is no such tool
    search_url: str = ""  # the address of the SearXNG server


class McpTable(Struct, frozen=True):
    """`[mcp.NAME]`: an MCP server of the operator; `mcp.config` validates it."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str | int | float | bool] = {}
    cwd: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    timeout: Seconds = 60.0
    cancel: Literal["tell", "leave"] = "tell"
    annotations: dict[str, Annotation] = {}
    auth: Literal["none", "oauth"] = "none"
    login: Login = ""  # whose an OAuth login is; "": each person's own on a server, one for all in a terminal
    insecure: bool = False
    login_hosts: tuple[str, ...] = ()
    tasks: dict[str, TaskUse] = {}  # which tools are called as tasks; "*": all
    type: str = ""
    disabled: bool = False


class ScheduleTable(Struct, frozen=True):
    """`[[schedules]]`: a message that is sent to an agent at planned times."""

    id: str
    text: str
    cron: str = ""  # minute hour day month weekday, in wall-clock time of `timezone`
    at: str = ""  # once, at a time with its offset: 2026-12-01T09:00:00+01:00
    timezone: str = "UTC"  # an IANA name
    agent: str = ""  # "": the first one
    session: str = ""  # of all its turns; "": a new one for each
    catch_up: CatchUp = "once"  # of planned times that passed while no process ran
    max_catch_up: Annotated[int, Meta(ge=1, le=100)] = 10  # with catch_up "all"
    overlap: Overlap = "queue"  # while a turn of the session is running
    until: str = ""  # no run is planned after this time; "": for ever
    metadata: dict[str, Any] = {}
    priority: Priority = "background"  # of its turns, where requests wait for a rate limit
    tenant: str = "local"
    by: str = ""  # a user of the tenant, whose authority its turns have; "": nobody's


class WebhookEndpointTable(Struct, frozen=True):
    """`[[webhooks.endpoints]]`: a URL that is told of events."""

    id: str  # letters, digits, - and _
    url: str
    events: tuple[WebhookEvent, ...] = WEBHOOK_EVENTS
    description: str = ""
    tenant: str = "local"


class WebhooksTable(Struct, frozen=True):
    """`[webhooks]`: outbound webhooks."""

    allow: tuple[str, ...] = ()  # receivers that the egress policy would refuse: host:port
    endpoints: tuple[WebhookEndpointTable, ...] = ()


class AudioModelTable(Struct, frozen=True):
    """`[audio.transcription]`: the model that transcribes dictation; a server or a local program."""

    model: str = ""  # vendor:model, a name under [models], or with a base_url the name that the server has for it
    base_url: str = ""  # of an OpenAI-compatible server, up to /v1
    api_key: SecretRef = NO_SECRET  # unset: the vendor's own variable
    params: dict[str, Any] = {}  # of each request, such as language or response_format
    command: tuple[str, ...] = ()  # a local program instead: it reads stdin, and writes to stdout


class SpeechTable(AudioModelTable, frozen=True):
    """`[audio.speech]`: the model that reads messages aloud; a server or a local program."""

    voice: str = ""  # "": alloy


class AudioTable(Struct, frozen=True):
    """`[audio]`: dictation and reading aloud."""

    transcription: AudioModelTable | None = None
    speech: SpeechTable | None = None
    max_seconds: Annotated[float, Meta(ge=1, le=900)] = 120.0  # of a recording
    max_characters: Annotated[int, Meta(ge=100, le=100_000)] = 4096  # of a text that is spoken at once
    timeout: Annotated[float, Meta(gt=0, le=600)] = 60.0  # seconds until the model must have answered
    concurrent: Annotated[int, Meta(ge=1)] = 4  # requests at once, in one process


class HookTable(Struct, frozen=True):
    """`[hooks.NAME]`: an inbound hook, at which another system delivers signed requests."""

    scheme: Scheme  # standard (Standard Webhooks), github or slack
    secret: SecretRef
    old_secret: SecretRef = NO_SECRET  # also accepted, while the secret is being replaced
    action: Action = "send"
    when: dict[str, str | tuple[str, ...]] = {}  # path of the payload = value, or values; "*": any
    max_bytes: Annotated[int, Meta(ge=1, le=MOST_BYTES)] = MAX_BYTES  # of a delivery
    text: str = ""  # the message; {{path}} is a field of the payload
    agent: str = ""  # "": the first one
    session: str = ""  # key of the session, such as {{issue.id}}; "": a new session for each delivery
    fields: tuple[str, ...] = ()  # paths of the payload that the model reads; empty: all of it
    priority: Priority = "background"
    tenant: str = "local"
    by: str = ""  # a user of the tenant, whose authority its turns have; "": nobody's
    token: str = ""  # of action "complete": path of the token
    value: str = ""  # path of the value; "": the whole payload
    answer: str = ""  # of action "answer": path of what the button contains
    user: str = ""  # path of the sender's id of the user
    users: dict[str, str] = {}  # that id = a user of the tenant


class UserTable(Struct, frozen=True):
    """`[tenants.NAME.users.ID]`: a user that is created."""

    name: str = ""
    role: Role = "member"
    origin: str = ""  # the issuer of the user's tokens; "": none


class TenantTable(Struct, frozen=True):
    """`[tenants.NAME]`: a tenant that is created."""

    name: str = ""
    limits: TenantLimits | None = None
    users: dict[str, UserTable] = {}


class OidcTable(OidcOptions, frozen=True):
    """`[auth.oidc]`: the OIDC options, with the secret by reference."""

    client_secret: SecretRef = NO_SECRET  # pyright: ignore[reportIncompatibleVariableOverride]


class AuthTable(Struct, frozen=True):
    """`[auth]`: authentication beside API keys."""

    oidc: OidcTable | None = None
    passwords: bool = False  # people log in with a password that they set when they accept an invitation
    signing_keys: tuple[SecretRef, ...] = ()  # the first signs tokens, all verify; none: keys that the store makes


class ProgramTable(Struct, frozen=True):
    """`[settings.programs.NAME]`: a program that administrators may start as an MCP server, by this name alone."""

    command: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str = ""
    variables: tuple[str, ...] = ()  # environment variables that an administrator gives a value, such as a token


class SettingsTable(Struct, frozen=True):
    """`[settings]`: what administrators may change on the page."""

    editable: bool = True  # false: nothing that is stored applies, and nothing can be changed
    allow: tuple[str, ...] = ()  # model and MCP servers that the egress policy would refuse: host:port
    programs: dict[str, ProgramTable] = {}


class TelemetryTable(Struct, frozen=True):
    """`[telemetry]`: traces, metrics and logs, and where they are sent."""

    otlp: AddressRef = NO_ADDRESS  # the OTLP/HTTP address of an OpenTelemetry collector; "": none
    headers: dict[str, HeaderRef] = {}  # for the collector
    content: bool = False  # whether the content of conversations is sent, too
    ratio: float = 1.0  # the ratio of turns that are traced
    interval: float = 30.0  # seconds between two reports of metrics to the collector
    service: str = "everturn"
    logs: Literal["text", "json"] = "text"
    level: Literal["debug", "info", "warning", "error"] = "info"
    expose: str = ""  # host:port of the metrics of a worker, which has no HTTP server of its own


class Config(Struct, frozen=True):
    """The whole configuration."""

    plugins: tuple[str | PluginEntry, ...] = ()  # module:Class, in the order of their hooks
    small_model: str = ""  # vendor:model, or a name under [models], for summaries and titles
    prompt: PromptTable = PromptTable()
    prompts: dict[str, SavedPromptTable] = {}
    server: ServerOptions = ServerOptions()
    store: StoreTable = StoreTable()
    cluster: ClusterTable = ClusterTable()
    cells: dict[str, CellTable] = {}
    router: RouterTable = RouterTable()
    models: dict[str, ModelTable] = {}
    rate_limits: dict[str, RateLimitTable] = {}
    limiter: LimiterTable = LimiterTable()
    agents: dict[str, AgentTable] = {}
    permissions: tuple[RuleTable, ...] = ()
    tools: ToolsTable = ToolsTable()
    assistant: AssistantTable = AssistantTable()
    mcp: dict[str, McpTable] = {}
    schedules: tuple[ScheduleTable, ...] = ()
    webhooks: WebhooksTable = WebhooksTable()
    hooks: dict[str, HookTable] = {}
    tenants: dict[str, TenantTable] = {}
    limits: TenantLimits = TenantLimits()
    auth: AuthTable = AuthTable()
    audio: AudioTable = AudioTable()
    telemetry: TelemetryTable = TelemetryTable()
    settings: SettingsTable = SettingsTable()


SET_IN_OTHER_TABLE: dict[tuple[str | int, ...], str] = {
    ("server", "oidc"): "a provider of logins is configured under [auth.oidc]"
}
"""Fields that are set from another table."""
