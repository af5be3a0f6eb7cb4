"""Requests for prompts and resources on the connection of one server: lists them, and gets one for a person."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final, Protocol

from everturn.core.canonical_json import JsonObject
from everturn.errors import ConfigError, ToolError
from everturn.mcp.config import ServerSpec
from everturn.mcp.in_flight_calls import error_text
from everturn.mcp.offers import (
    OfferedContent,
    ServerOffers,
    check_values,
    convert_prompt,
    convert_resource,
    is_uri,
)

if TYPE_CHECKING:
    from everturn.mcp.session import McpSession

OFFERS_AGE: Final = 10.0  # seconds for which a list of prompts and resources is used
OFFER_TIMEOUT: Final = 30.0  # seconds in which a server returns a prompt or a resource


class SessionOwner(Protocol):
    """The connection, as this module sees it."""

    spec: ServerSpec
    session: McpSession | None


class OfferRequests:
    """The prompts and resources of one server. A server that is not trusted has no session, and offers nothing."""

    def __init__(self, connection: SessionOwner) -> None:
        self._connection = connection
        self._listed: tuple[float, McpSession | None, ServerOffers] = (0.0, None, ServerOffers())

    async def list(self) -> ServerOffers:
        """Return the prompts and resources of the server; they are listed again after `OFFERS_AGE` seconds.

        Raises:
            ToolError: the server is not connected, or did not say which it has.
        """
        at, known_session, offers = self._listed
        session = self._ready_session()
        if known_session is session and time.monotonic() - at < OFFERS_AGE:
            return offers
        try:
            offers = await session.offers()
        except Exception as error:
            raise self._failed(error) from None
        self._listed = (time.monotonic(), session, offers)
        return offers

    async def prompt(self, name: str, values: Mapping[str, str]) -> OfferedContent:
        """Return the text of a prompt that the server lists.

        Raises:
            ToolError: the server is not connected, or refused.
            ConfigError: there is no such prompt, or its arguments are wrong.
        """
        prompt = next((prompt for prompt in (await self.list()).prompts if prompt.name == name), None)
        if prompt is None:
            raise ConfigError("this server has no prompt of this name")
        given = check_values(prompt, values)
        return convert_prompt(await self._ask(lambda session: session.prompt(name, given, self._timeout)))

    async def resource(self, uri: str) -> OfferedContent:
        """Return the content of a resource. The URI goes to the server as it is; nothing is opened here.

        Raises:
            ToolError: the server is not connected, or refused.
            ConfigError: it is no URI.
        """
        if not is_uri(uri):
            raise ConfigError("this is not the URI of a resource")
        result = await self._ask(lambda session: session.resource(uri, self._timeout))
        return await asyncio.to_thread(convert_resource, result)  # it may decode megabytes

    async def _ask(self, ask: Callable[[McpSession], Awaitable[JsonObject]]) -> JsonObject:
        session = self._ready_session()
        try:
            result = await ask(session)
        except Exception as error:
            raise self._failed(error) from None
        if result.get("resultType") == "input_required":
            raise ToolError(f"server {self._connection.spec.name} asks a question first; only its tools can do that")
        return result

    def _ready_session(self) -> McpSession:
        session = self._connection.session
        if session is None:
            raise ToolError(f"server {self._connection.spec.name} is not connected")
        return session

    def _failed(self, error: Exception) -> ToolError:
        return ToolError(f"server {self._connection.spec.name}: {error_text(error)[:500]}")

    @property
    def _timeout(self) -> float:
        return min(self._connection.spec.timeout, OFFER_TIMEOUT)
