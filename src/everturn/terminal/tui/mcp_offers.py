"""Prompts and resources of MCP servers in the input: `/server:prompt arguments`, and `@server:uri` in a message.

Their texts go with the message as untrusted context, and not as what the person wrote.
"""

from __future__ import annotations

import re
import shlex
import time
from typing import Final, Protocol

from everturn import api
from everturn.config.extensions.extension import one_line
from everturn.core.parts import ContextPart
from everturn.core.tenants.accounts import is_at_least
from everturn.errors import ConfigError, EverturnError
from everturn.terminal.tui.host import Host
from everturn.terminal.tui.texts.folder import get_folder_texts

MAX_ABOUT: Final = 36  # characters of a description
MAX_OFFERED: Final = 50  # resources that are offered at once
MAX_MENTIONS: Final = 8  # resources in one message
REFRESH: Final = 10.0  # seconds after which the lists are requested again
_MENTION: Final = re.compile(r"(?:^|(?<=\s))@([^\s:]+):(\S+)")


class OfferHost(Host, Protocol):
    """The app, as this module sees it."""

    me: api.Me


class McpOfferList:
    """The prompts and resources of the connected MCP servers, as this terminal last saw them."""

    def __init__(self, host: OfferHost) -> None:
        self._host = host
        self._requested = float("-inf")
        self.offers = api.McpOffers(prompts=[], resources=[])

    def is_old(self) -> bool:
        """Return whether to request the lists now; a server may have connected since. Only operators may."""
        now = time.monotonic()
        if now - self._requested < REFRESH or not is_at_least(self._host.me.role, "operator"):
            return False
        self._requested = now
        return True

    async def refresh(self) -> None:
        """Request the lists; those that are known stay if that fails."""
        try:
            self.offers = await self._host.server.mcp_offers()
        except EverturnError:
            pass  # the screen of MCP servers says what is wrong

    def describe_prompts(self) -> dict[str, str]:
        """Return the commands of the prompts, each with its arguments and its description."""
        return {_command(prompt): _describe(prompt) for prompt in self.offers.prompts}

    def match_resources(self, typed: str) -> list[str]:
        """Return the resources that match what was typed after an `@`: those that begin with it first."""
        wanted = typed.lower()
        names = [f"{offer.server}:{offer.uri}" for offer in self.offers.resources]
        matching = [name for name in names if wanted in name.lower()]
        return sorted(matching, key=lambda name: not name.lower().startswith(wanted))[:MAX_OFFERED]

    async def get_prompt(self, word: str, rest: str) -> api.McpContent | None:
        """Return what the prompt of a command contains; None: there is no such prompt.

        Raises:
            ConfigError: its arguments are wrong, or its server refused.
        """
        prompt = next((prompt for prompt in self.offers.prompts if _command(prompt) == word), None)
        if prompt is None:
            return None
        return await self._host.server.mcp_prompt(prompt.server, prompt.name, parse_values(prompt, rest))

    def prompt_message(self, word: str, rest: str) -> str:
        """Return the message that a prompt is sent with."""
        return get_folder_texts(self._host.language).use_prompt.format(command=f"{word} {rest}".strip())

    async def read_mentioned(self, text: str) -> api.McpContent:
        """Read the resources that a message mentions.

        Raises:
            EverturnError: one cannot be read; the text says why.
        """
        servers = {offer.server for offer in self.offers.resources}
        found = dict.fromkeys((match[1], match[2]) for match in _MENTION.finditer(text) if match[1] in servers)
        if len(found) > MAX_MENTIONS:
            raise ConfigError(get_folder_texts(self._host.language).many_resources.format(limit=MAX_MENTIONS))
        contents = [await self._host.server.mcp_resource(server, uri) for server, uri in found]
        return api.McpContent(
            contexts=[context for content in contents for context in content.contexts],
            files=[file for content in contents for file in content.files],
        )


def context_parts(content: api.McpContent) -> list[ContextPart]:
    """Return contexts as parts of a message."""
    return [ContextPart(part.kind, part.text, part.title, part.source, part.untrusted) for part in content.contexts]


def parse_values(prompt: api.McpPromptView, words: str) -> dict[str, str]:
    """Return the values of the arguments: `name=value`, or in order; the last argument takes the remaining words."""
    try:
        parts = shlex.split(words)
    except ValueError:  # a quote that is not closed
        parts = words.split()
    values: dict[str, str] = {}
    names = [argument.name for argument in prompt.arguments]
    for part in parts:
        name, sign, value = part.partition("=")
        if sign and name in names:
            values[name] = value
            continue
        free = next((name for name in names if name not in values), names[-1] if names else "")
        values[free] = f"{values[free]} {part}" if free in values else part
    return values


def _command(prompt: api.McpPromptView) -> str:
    return f"/{prompt.server}:{prompt.name}"


def _describe(prompt: api.McpPromptView) -> str:
    arguments = " ".join(each.name.upper() if each.required else f"[{each.name.upper()}]" for each in prompt.arguments)
    return "  ".join(filter(None, (arguments, one_line(prompt.description, MAX_ABOUT))))
