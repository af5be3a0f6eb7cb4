"""Configuration schema: one Struct per table, one field per key. The defaults are those of a server without a file."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from everturn.access.agents import TenantLimits
from everturn.access.auth_options import OidcOptions
from everturn.config.secrets import AddressRef, HeaderRef, SecretRef
from everturn.config.server_options import ServerOptions
from everturn.core.accounts import Role
from everturn.core.options import Approval, Budget, LatePolicy, Review, ToolHistory
from everturn.mcp.config import Annotation
from everturn.models.prices import Price

Seconds = Annotated[float, Meta(ge=0)]
NO_SECRET = SecretRef("")
NO_ADDRESS = AddressRef("")


class StoreTable(Struct, frozen=True):
    """`[store]`: where sessions are stored."""

    url: AddressRef = NO_ADDRESS  # a file, postgresql://…, or memory; "": a file in the user's data folder
    retention_days: Annotated[float, Meta(ge=0)] = 0.0  # days after which an idle session is erased; 0: never


class ClusterTable(Struct, frozen=True):
    """`[cluster]`: the addresses of a cluster; used only by servers and workers that are started for one."""

    database: AddressRef = NO_ADDRESS
    restate: AddressRef = NO_ADDRESS
    admin: AddressRef = NO_ADDRESS
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


class ModelTable(Struct, frozen=True):
    """`[models.NAME]`: a model with a name of its own."""

    model: str  # vendor:model
    base_url: str = ""
    api_key: SecretRef = NO_SECRET  # unset: the vendor's own variable
    price: Price | None = None
    window: Annotated[int, Meta(ge=1)] | None = None
    tool_format: str = ""
    params: dict[str, Any] = {}


class RuleTable(Struct, frozen=True):
    """`[[permissions]]`: a rule; `permissions.rules_file` validates it."""

    tool: str
    action: Literal["allow", "ask", "deny"]
    match: dict[str, Any] = {}


class AgentTable(Struct, frozen=True):
    """`[agents.NAME]`: an agent, the default options of its turns. The first agent is the default."""

    description: str = ""
    model: str = ""  # vendor:model, or a name under [models]; "": the default model
    models: tuple[str, ...] = ()
    system: str = ""
    system_file: str = ""  # inside the folder of the file that names it
    tools: tuple[str, ...] | None = None
    groups: tuple[str, ...] = ()
    permissions: tuple[RuleTable, ...] = ()
    budget: Budget = Budget()
    max_steps: Annotated[int, Meta(ge=1)] = 10
    tool_history: ToolHistory = "full"
    late: LatePolicy = "inject"
    review: Review = "never"
    manual: tuple[str, ...] = ()
    timeout: Seconds = 0.0
    gate_timeout: Seconds = 0.0
    params: dict[str, Any] = {}


class FilesTable(Struct, frozen=True):
    """`[tools.files]` with more options than the folder."""

    folder: str  # DIR or DIR:ro
    approval: Approval = "ask"


class ShellTable(Struct, frozen=True):
    """`[tools.shell]` with more options than the folder."""

    folder: str = ""  # DIR or DIR:rw; "": none
    approval: Approval | None = None  # None: "ask"; in a server "always"


class ToolsTable(Struct, frozen=True):
    """`[tools]`: the available tools. All tenants share them: a folder here is visible to all of them."""

    python: tuple[str, ...] = ()  # module or file.py, or one tool of it after a colon
    files: str | FilesTable = ""  # DIR or DIR:ro
    virtual_files: bool = False
    code: bool = False
    shell: str | bool | ShellTable = False  # true, DIR or DIR:rw
    web: bool = False


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
    insecure: bool = False
    login_hosts: tuple[str, ...] = ()
    type: str = ""
    disabled: bool = False


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

    server: ServerOptions = ServerOptions()
    store: StoreTable = StoreTable()
    cluster: ClusterTable = ClusterTable()
    models: dict[str, ModelTable] = {}
    agents: dict[str, AgentTable] = {}
    permissions: tuple[RuleTable, ...] = ()
    tools: ToolsTable = ToolsTable()
    mcp: dict[str, McpTable] = {}
    tenants: dict[str, TenantTable] = {}
    limits: TenantLimits = TenantLimits()
    auth: AuthTable = AuthTable()
    telemetry: TelemetryTable = TelemetryTable()


SET_IN_OTHER_TABLE: dict[tuple[str | int, ...], str] = {
    ("server", "oidc"): "a provider of logins is configured under [auth.oidc]"
}
"""Fields that are set from another table."""
