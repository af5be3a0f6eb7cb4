"""MCP servers, their tools, prompts and resources."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from everturn.api.base import Body, View
from everturn.api.sessions import AttachedContext, FileView


class TrustServer(Body, frozen=True, kw_only=True):
    """Trust an MCP server as it was shown: `hash` is the hash of its `McpView`."""

    hash: Annotated[str, Meta(min_length=1, max_length=200)]


class McpToolView(View, frozen=True, kw_only=True):
    """A tool of an MCP server."""

    name: str
    description: str
    is_changed: bool  # it differs from what was trusted, and cannot be called


McpState = Literal["connecting", "ready", "down", "untrusted", "needs_login", "failed"]


class McpView(View, frozen=True, kw_only=True):
    """An MCP server, as this node sees it. Of the fields after `tools`, users below operator see only the
    state of their own login."""

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
    login: Literal["", "user", "shared"] = ""  # each person's own, or the installation's; "": it needs none
    is_logged_in: bool = False  # the caller, or the installation where it is shared
    logged_in_as: str = ""  # the user whose turns use the login
    logged_in_since: float = 0.0


class McpList(View, frozen=True, kw_only=True):
    """MCP servers, as they are configured."""

    servers: list[McpView]


class FinishMcpLogin(Body, frozen=True, kw_only=True):
    """What the authorization server of an MCP server gave to the caller's browser."""

    state: Annotated[str, Meta(min_length=1, max_length=1000)]
    code: Annotated[str, Meta(max_length=4000)] = ""
    error: Annotated[str, Meta(max_length=200)] = ""
    iss: Annotated[str, Meta(max_length=2000)] | None = None


class McpLoginEnd(View, frozen=True, kw_only=True):
    """The server that the caller is now logged in to; "": another process completes the login."""

    server: str = ""


class McpLogins(View, frozen=True, kw_only=True):
    """Who of the tenant is logged in to an MCP server: ids of users, and nothing else of their logins."""

    login: Literal["user", "shared"]
    users: list[str]


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
