"""MCP offers access: the prompts and resources of MCP servers, as context that a person attaches to a message.

Nothing is read for a model by itself: a person chooses a prompt or a resource. All tenants share the servers, and no rule of an
agent covers what a resource contains; so these methods need an operator, as trusting a server does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from everturn import api
from everturn.access.context.roles import needs
from everturn.access.context.scope import ScopedAccess
from everturn.access.conversations.files import FileAccess
from everturn.access.mcp.logins import mcp_sources, named_server
from everturn.access.mcp.views import caller_of
from everturn.errors import ConfigError, ToolError

if TYPE_CHECKING:
    from everturn.mcp.offers import OfferedContent

EMPTY = "[it is empty]"


class McpOfferAccess:
    """Access to the prompts and resources of MCP servers."""

    __slots__ = ("_files", "scope")

    def __init__(self, scope: ScopedAccess, files: FileAccess) -> None:
        self.scope, self._files = scope, files

    @needs("operator")
    async def list(self) -> api.McpOffers:
        """The prompts and resources of the servers that are connected."""
        prompts: list[api.McpPromptView] = []
        resources: list[api.McpResourceView] = []
        for source in mcp_sources(self.scope):
            for server, offers in (await source.offers(caller_of(self.scope))).items():
                prompts += [
                    api.McpPromptView(
                        server=server,
                        name=prompt.name,
                        description=prompt.description,
                        arguments=[
                            api.McpPromptArgument(
                                name=argument.name, description=argument.description, required=argument.required
                            )
                            for argument in prompt.arguments
                        ],
                    )
                    for prompt in offers.prompts
                ]
                resources += [
                    api.McpResourceView(
                        server=server,
                        uri=resource.uri,
                        name=resource.name,
                        description=resource.description,
                        media_type=resource.media_type,
                    )
                    for resource in offers.resources
                ]
        return api.McpOffers(prompts=prompts, resources=resources)

    @needs("operator")
    async def prompt(self, server: str, request: api.GetMcpPrompt) -> api.McpContent:
        """The text of a prompt, as context of a message.

        Raises:
            UnknownServer: there is no server of this name.
            ConfigError: the server has no such prompt, or refused.
        """
        source, _ = named_server(self.scope, server)
        try:
            content = await source.get_prompt(server, request.name, request.arguments, caller_of(self.scope))
        except ToolError as error:
            raise ConfigError(str(error)) from None
        return await self._content(content, "prompt", f"{server}:{request.name}", f"mcp:{server}")

    @needs("operator")
    async def resource(self, server: str, request: api.ReadMcpResource) -> api.McpContent:
        """The content of a resource, as context and files of a message.

        Raises:
            UnknownServer: there is no server of this name.
            ConfigError: the server has no such resource, or refused.
        """
        source, _ = named_server(self.scope, server)
        try:
            content = await source.read_resource(server, request.uri, caller_of(self.scope))
        except ToolError as error:
            raise ConfigError(str(error)) from None
        return await self._content(content, "resource", f"{server}:{request.uri}", request.uri)

    async def _content(self, content: OfferedContent, kind: str, title: str, source: str) -> api.McpContent:
        files = [await self._files.upload(file.data, file.media_type, file.name) for file in content.files]
        text = content.text or ("" if files else EMPTY)
        context = api.AttachedContext(kind=kind, text=text, title=title[:500], source=source[:2_000]) if text else None
        return api.McpContent(contexts=[] if context is None else [context], files=files)
