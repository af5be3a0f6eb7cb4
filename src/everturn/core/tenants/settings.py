"""Settings that administrators change at run time: models and their keys, agents, MCP servers, rules and inbound hooks. Pure.

Each change is a new version; the newest one counts, and none is changed later. What a version says is limited to the
types here: it can name no module, no file and no variable of the environment, because whoever changes a setting is not
the person who runs the server. A secret is encrypted before it gets here, and only the newest version has it.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal, Protocol, get_args

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from everturn.core.options import Budget, Review, ToolHistory
from everturn.core.rate_limits import Priority
from everturn.core.rules.policy import RuleAction
from everturn.errors import ConfigError

SettingKind = Literal["key", "model", "agent", "mcp", "rules", "hook"]
SETTING_KINDS: Final[tuple[SettingKind, ...]] = get_args(SettingKind)
INSTALLATION: Final = "*"
"""The scope of settings that all tenants share. No tenant has this id."""

RULES: Final = "permissions"
"""The name of the one setting with all rules: they are changed, compared and restored as a whole."""

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
MAX_TEXT: Final = 200_000  # characters of instructions
_REFERENCE: Final = re.compile(r"\$\{")

Words = Annotated[tuple[Annotated[str, Meta(max_length=200)], ...], Meta(max_length=200)]
Line = Annotated[str, Meta(max_length=2000)]


class Setting(Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True):
    """One version of a setting."""

    scope: str = INSTALLATION  # or a tenant
    kind: SettingKind
    name: str
    version: int  # from 1
    body: bytes = b"{}"  # JSON of the type of its kind
    secret: bytes = b""  # encrypted; of the newest version only
    is_deleted: bool = False
    by: str = ""
    at: float = 0.0


class KeySettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The API key of a vendor, as it is shown: never the key itself."""

    last_four: str = ""
    fingerprint: str = ""


class ModelSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """A model that is offered. With a `base_url`, a server that is compatible with OpenAI, with a key of its own."""

    model: Annotated[str, Meta(min_length=1, max_length=200)]  # vendor:model
    base_url: Line = ""
    window: Annotated[int, Meta(ge=1)] | None = None
    tool_format: Literal["", "json", "xml", "blocks"] = ""
    offered: bool = True  # people can choose it for a message
    key: KeySettings | None = None  # that of `base_url`, as it is shown


class AgentSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """An agent. The fields are those of `[agents.NAME]` that load no code and read no file."""

    description: Line = ""
    instructions: Annotated[str, Meta(max_length=MAX_TEXT)] = ""
    model: Annotated[str, Meta(max_length=200)] = ""
    models: Words = ()
    tools: Words | None = None
    groups: Words = ()
    subagents: Words = ()
    handoffs: Words = ()
    manual: Words = ()
    budget: Budget = Budget()
    max_steps: Annotated[int, Meta(ge=1, le=1000)] = 10
    context: Annotated[str, Meta(max_length=40)] = "auto"
    tool_history: ToolHistory = "full"
    review: Review = "never"
    timeout: Annotated[float, Meta(ge=0)] = 0.0
    gate_timeout: Annotated[float, Meta(ge=0)] = 0.0
    timezone: Annotated[str, Meta(max_length=64)] = "local"
    reasoning: Annotated[str, Meta(max_length=40)] = ""


class TrustedTool(Struct, omit_defaults=True, repr_omit_defaults=True):
    """A tool of an MCP server as it was trusted: its hash, and its texts, to describe what changed."""

    hash: str
    description: str = ""
    schema: str = ""
    annotations: str = ""
    cut: dict[str, str] = {}  # parts that were too long to be kept → hash of the whole text


class McpTrust(Struct, frozen=True, forbid_unknown_fields=True):
    """What an administrator has trusted of an MCP server."""

    launch: str = ""  # hash of what is started or connected to, without its secrets
    tools: dict[str, TrustedTool] = {}


class McpSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, repr_omit_defaults=True):
    """An MCP server: an address, or a program that the configuration file offers by name, never a command."""

    url: Line = ""
    program: Annotated[str, Meta(max_length=64)] = ""  # a name under [settings.programs]
    auth: Literal["none", "oauth"] = "none"
    login: Literal["", "user", "shared"] = ""  # whose an OAuth login is; "": each person's own
    values: Annotated[tuple[Annotated[str, Meta(max_length=200)], ...], Meta(max_length=20)] = ()
    """Names of the headers or variables that it gets; their values are the secret of the setting."""
    trust: McpTrust = McpTrust()


class StoredRule(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, repr_omit_defaults=True):
    """A permission rule, with the fields of `[[permissions]]`."""

    tool: Annotated[str, Meta(min_length=1, max_length=200)]
    action: RuleAction
    match: Annotated[
        dict[Annotated[str, Meta(min_length=1, max_length=200)], Annotated[str, Meta(max_length=2000)]],
        Meta(max_length=20),
    ] = {}
    enabled: bool = True  # a rule that is not enabled decides nothing, and stays in the list
    note: Annotated[str, Meta(max_length=500)] = ""  # why it is there


class RuleSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The permission rules of administrators, in the order in which they are listed."""

    rules: Annotated[tuple[StoredRule, ...], Meta(max_length=500)] = ()


class HookSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """An inbound hook that starts turns. The secret of its deliveries is the secret of the setting."""

    tenant: Annotated[str, Meta(min_length=1, max_length=200)]
    scheme: Literal["standard", "github", "slack"]
    text: Annotated[str, Meta(min_length=1, max_length=20_000)]  # the message; {{path}} is a field of the payload
    agent: Annotated[str, Meta(max_length=200)] = ""
    session: Line = ""  # key of the conversation; "": a new one for each delivery
    when: Annotated[dict[Annotated[str, Meta(min_length=1, max_length=200)], Words], Meta(max_length=50)] = {}
    fields: Words = ()
    by: Annotated[str, Meta(max_length=200)] = ""  # the user whose authority its turns have
    priority: Priority = "background"


SettingBody = KeySettings | ModelSettings | AgentSettings | McpSettings | RuleSettings | HookSettings
BODIES: Final[dict[SettingKind, type[SettingBody]]] = {
    "key": KeySettings,
    "model": ModelSettings,
    "agent": AgentSettings,
    "mcp": McpSettings,
    "rules": RuleSettings,
    "hook": HookSettings,
}


def check_setting_name(name: str) -> str:
    """Return the name of a setting.

    Raises:
        ConfigError: it cannot be one.
    """
    if NAME.fullmatch(name) is None:
        raise ConfigError(
            "a name must have letters, digits, '.', '_' and '-', begin with a letter or digit, and have at most 64"
        )
    return name


def encode_body(body: SettingBody) -> bytes:
    """Return a body as JSON.

    Raises:
        ConfigError: it has a reference to a variable or a file: those of the server are not for settings.
    """
    data = msgspec.json.encode(body)
    checked = data if not isinstance(body, McpSettings) else msgspec.json.encode(replace(body, trust=McpTrust()))
    is_text = isinstance(
        body, AgentSettings | RuleSettings | HookSettings
    )  # instructions and patterns are never resolved
    if not is_text and _REFERENCE.search(checked.decode()):
        raise ConfigError("a setting cannot refer to variables or files of the server (${…}); enter the value itself")
    return data


def decode_body(setting: Setting) -> Any:
    """Return the body of a setting, in the type of its kind.

    Raises:
        ConfigError: a later release wrote it, or it was changed in the database.
    """
    try:
        return msgspec.json.decode(setting.body, type=BODIES[setting.kind])
    except (msgspec.MsgspecError, KeyError) as error:
        raise ConfigError(f"setting {setting.kind} {setting.name!r}, version {setting.version}: {error}") from None


class SettingStore(Protocol):
    """Stores settings with all their versions. Each method is one transaction."""

    async def revision(self) -> int:
        """Return a number that grows with every change of any scope."""
        ...

    async def current(self, scope: str = INSTALLATION) -> list[Setting]:
        """Return the newest version of each setting that is not deleted, the oldest setting first."""
        ...

    async def of_tenants(self, kind: SettingKind) -> list[Setting]:
        """Return the newest version of each setting of this kind that belongs to a tenant and is not deleted, by tenant."""
        ...

    async def versions(self, kind: SettingKind, name: str, scope: str = INSTALLATION) -> list[Setting]:
        """Return all versions of a setting, newest first."""
        ...

    async def add(self, setting: Setting) -> bool:
        """Add the next version, and erase the secrets of those before; False, and nothing changes, if it exists or one is missing."""
        ...
