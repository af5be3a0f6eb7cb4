"""What may stand in a file: one Struct per table, one field per key. Defaults are those of a server without a file."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from everturn.access.agents import TenantLimits
from everturn.access.options import OidcOptions
from everturn.config.options import ServerOptions
from everturn.config.secrets import Address, Header, Secret
from everturn.core.accounts import Role
from everturn.core.events import Effects
from everturn.core.options import Budget, HistoryPolicy, LatePolicy, ResultPolicy
from everturn.models.prices import Price

Seconds = Annotated[float, Meta(ge=0)]
NO_SECRET = Secret("")
NOWHERE = Address("")


class StoreTable(Struct, frozen=True):
    """`[store]`: where sessions are kept."""

    url: Address = NOWHERE  # a file, postgresql://…, or memory; "": a file among the data of whoever runs it
    keep: Annotated[float, Meta(ge=0)] = 0.0  # days after which a session in which nothing happens is erased; 0: never


class ClusterTable(Struct, frozen=True):
    """`[cluster]`: where the parts of a cluster are; meant only when a server or worker is told to be in one."""

    database: Address = NOWHERE
    restate: Address = NOWHERE
    admin: Address = NOWHERE
    nats: Address = NOWHERE
    listen: str = ""
    advertise: Address = NOWHERE
    writes: Annotated[int, Meta(ge=0)] = 0
    live_bytes: Annotated[int, Meta(ge=2**20)] = 64 * 2**20  # of live text that NATS keeps for readers that come late
    nats_ca: str = ""  # files in PEM, for tls://
    nats_certificate: str = ""
    nats_key: str = ""
    identity_key: str = ""  # publickeyv1_…, of the Restate that workers obey
    loop_timeout: Annotated[float, Meta(ge=0)] = 5.0  # seconds a worker's event loop may stand still; 0: for ever


class ModelTable(Struct, frozen=True):
    """`[models.NAME]`: a model under a name of one's own."""

    model: str  # vendor:model
    base_url: str = ""
    api_key: Secret = NO_SECRET  # none: the vendor's own variable
    price: Price | None = None
    window: Annotated[int, Meta(ge=1)] | None = None
    paradigm: str = ""
    params: dict[str, Any] = {}


class RuleTable(Struct, frozen=True):
    """`[[permissions]]`: a rule; `permissions.reading` says what makes sense in it."""

    tool: str
    action: Literal["allow", "ask", "deny"]
    match: dict[str, Any] = {}


class AgentTable(Struct, frozen=True):
    """`[agents.NAME]`: what a turn is told when it begins. The first agent is the default."""

    description: str = ""
    model: str = ""  # vendor:model, or a name under [models]; "": the model of the installation
    models: tuple[str, ...] = ()
    system: str = ""
    system_file: str = ""  # beneath the folder of the file that names it
    tools: tuple[str, ...] | None = None
    groups: tuple[str, ...] = ()
    permissions: tuple[RuleTable, ...] = ()
    budget: Budget = Budget()
    max_steps: Annotated[int, Meta(ge=1)] = 10
    history: HistoryPolicy = "full"
    late: LatePolicy = "inject"
    result: ResultPolicy = "auto"
    by_hand: tuple[str, ...] = ()
    timeout: Seconds = 0.0
    gate_timeout: Seconds = 0.0
    params: dict[str, Any] = {}


Approval = Literal["always", "ask", "auto", "deny"]
"""Who decides on a call: a person every time; a person unless a rule or a remembered answer allows it; nobody."""


class FilesTable(Struct, frozen=True):
    """`[tools.files]`, where more is to be said than the folder."""

    folder: str  # DIR or DIR:ro
    approval: Approval = "ask"


class ShellTable(Struct, frozen=True):
    """`[tools.shell]`, where more is to be said than the folder."""

    folder: str = ""  # DIR or DIR:rw; "": none
    approval: Approval | None = None  # None: "ask"; in a server "always"


class ToolsTable(Struct, frozen=True):
    """`[tools]`: what agents may be given. All tenants share it: a folder here is seen by every one of them."""

    python: tuple[str, ...] = ()  # module or file.py, or one tool of it behind a colon
    files: str | FilesTable = ""  # DIR or DIR:ro
    virtual_files: bool = False
    code: bool = False
    shell: str | bool | ShellTable = False  # true, DIR or DIR:rw
    web: bool = False


class McpTable(Struct, frozen=True):
    """`[mcp.NAME]`: an MCP server of the operator's; `mcp.config` says what makes sense in it."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str | int | float | bool] = {}
    cwd: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    timeout: Seconds = 60.0
    cancel: Literal["tell", "leave"] = "tell"
    effects: dict[str, Effects] = {}
    auth: Literal["none", "oauth"] = "none"
    insecure: bool = False
    login_hosts: tuple[str, ...] = ()
    type: str = ""
    disabled: bool = False


class UserTable(Struct, frozen=True):
    """`[tenants.NAME.users.ID]`: somebody who is to be there."""

    name: str = ""
    role: Role = "member"
    origin: str = ""  # the issuer whose tokens speak of them; "": none does


class TenantTable(Struct, frozen=True):
    """`[tenants.NAME]`: a tenant that is to be there."""

    name: str = ""
    limits: TenantLimits | None = None
    users: dict[str, UserTable] = {}


class OidcTable(OidcOptions, frozen=True):
    """`[auth.oidc]`: as the door has it, but with the secret by reference."""

    client_secret: Secret = NO_SECRET  # pyright: ignore[reportIncompatibleVariableOverride]


class AuthTable(Struct, frozen=True):
    """`[auth]`: who is let in beside the holders of keys."""

    oidc: OidcTable | None = None


class TelemetryTable(Struct, frozen=True):
    """`[telemetry]`: what is told of the server, and to whom."""

    otlp: Address = NOWHERE  # where an OpenTelemetry collector takes OTLP over HTTP; "": nowhere
    headers: dict[str, Header] = {}  # for the collector
    content: bool = False  # whether what is said in conversations goes there too
    ratio: float = 1.0  # the part of all turns that is traced
    interval: float = 30.0  # seconds between two reports of metrics to the collector
    service: str = "everturn"
    logs: Literal["text", "json"] = "text"
    level: Literal["debug", "info", "warning", "error"] = "info"
    expose: str = ""  # host:port at which a worker, which has no HTTP of its own, shows its counts


class Config(Struct, frozen=True):
    """Everything that can be configured."""

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


ELSEWHERE: dict[tuple[str | int, ...], str] = {
    ("server", "oidc"): "a provider of logins is configured under [auth.oidc]"
}
"""Fields that are filled from another table."""
