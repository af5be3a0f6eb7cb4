"""Provider tools: tools that the provider of a model runs on its own machines, such as a web search.

They are offered as a whole: no call of one passes through this process, so no rule sees its arguments, no gate can open
for it, and no result is reviewed. A rule that does not allow the tool keeps it out of the request.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Final, NoReturn

from everturn.core.canonical_json import JsonObject
from everturn.core.options import Approval
from everturn.core.parts import Output
from everturn.core.ports import ToolContext
from everturn.core.requests import ToolSpec
from everturn.errors import ConfigError, ToolError

ORIGIN: Final = "provider"
DESCRIPTIONS: Final = {
    "web_search": "Search the web, by the provider of the model.",
    "web_fetch": "Read web pages, by the provider of the model.",
    "code_execution": "Run code in a container of the provider of the model.",
    "file_search": "Search files that were uploaded to the provider of the model.",
    "image_generation": "Make images, by the provider of the model.",
    "mcp": "Use an MCP server, to which the provider of the model connects.",
}
_READ_ONLY: Final = ("web_search", "web_fetch", "file_search")
_APPROVALS: Final = ("auto", "ask", "deny")
VENDORS: Final = ("anthropic", "openai", "google")


class ProviderTool:
    """A tool that the provider of the model runs."""

    def __init__(self, spec: ToolSpec) -> None:
        self._spec = spec
        self.before = self.after = None

    @property
    def spec(self) -> ToolSpec:
        """The tool's specification."""
        return self._spec

    def validate(self, arguments: JsonObject) -> None:
        """Accept any arguments: the provider checks them."""

    def run(self, arguments: JsonObject, context: ToolContext) -> Awaitable[Output]:
        """Refuse: a model that calls it like one of ours is told."""
        return self._refuse()

    async def _refuse(self) -> NoReturn:
        raise ToolError(f"{self._spec.name} is run by the provider of the model, so it cannot be called here")


def provider_tool(
    name: str,
    *,
    approval: Approval = "ask",
    anthropic: dict[str, Any] | None = None,
    openai: dict[str, Any] | None = None,
    google: dict[str, Any] | None = None,
) -> ProviderTool:
    """Make a tool that the provider of the model runs: `web_search`, `web_fetch`, `code_execution` and others.

    It is offered if a rule allows it, or with `approval="auto"`; nobody can be asked about a single call. `anthropic`,
    `openai` and `google` are options of the tool as that vendor writes them, and are sent to no other.

    Raises:
        ConfigError: there is no such tool, or an option is invalid.
    """
    if name not in DESCRIPTIONS:
        raise ConfigError(f"there is no provider tool {name!r}; there are: {', '.join(DESCRIPTIONS)}")
    if approval not in _APPROVALS:
        raise ConfigError(
            f"provider_tool({name!r}, approval={approval!r}): there are: {', '.join(_APPROVALS)}; Everturn cannot "
            "ask about a call that the provider runs"
        )
    options: JsonObject = {}
    for vendor, vendor_options in zip(VENDORS, (anthropic, openai, google), strict=True):
        if vendor_options is not None and not isinstance(vendor_options, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"provider_tool({name!r}, {vendor}={vendor_options!r}): must be a dict of options")
        if name == "mcp" and vendor_options and vendor_options.get("require_approval", "never") != "never":
            raise ConfigError(
                f"provider_tool('mcp', {vendor}={{'require_approval': …}}): must be 'never'. Rules decide whether "
                "the server can be used; to approve single calls, use mcp_servers instead"
            )
        if vendor_options:
            options[vendor] = vendor_options
    schema: JsonObject = {"type": "object", "properties": {}}
    return ProviderTool(
        ToolSpec(
            name,
            DESCRIPTIONS[name],
            schema,
            read_only=name in _READ_ONLY,
            approval=approval,
            repeatable=True,
            egress=True,
            untrusted=True,
            origin=ORIGIN,
            provider=options,
        )
    )
