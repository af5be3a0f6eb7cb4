"""Settings of administrators: model keys, models, agents and MCP servers."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from everturn.api.base import Body, View
from everturn.api.mcp import McpView
from everturn.core.tenants.settings import AgentSettings, ModelSettings, SettingKind


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
    login: Literal["", "user", "shared"] = ""  # whose an OAuth login is; "": each person's own
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
    login: Literal["", "user", "shared"] = ""  # whose an OAuth login is; "": each person's own
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
