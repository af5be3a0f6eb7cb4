"""Token storage of one server: the mcp library's `TokenStorage`, plus what the library forgets between two processes.

The tokens of the installation are in a file that only its owner can read; those of a person in a `LoginStore`.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from everturn.core.canonical_json import hash_values
from everturn.errors import ConfigError
from everturn.mcp.config import ServerSpec
from everturn.mcp.login_store import LoginStore, Person
from everturn.mcp.private_file import read_private, write_private


class SavedTokens(Struct, omit_defaults=True):
    """What is saved of a login."""

    url: str = ""
    tokens: dict[str, Any] | None = None
    expires: float = 0.0  # 0: unknown
    client: dict[str, Any] | None = None
    server: dict[str, Any] | None = None  # metadata of the authorization server: where tokens are refreshed
    since: float = 0.0  # when the person logged in


def login_name(spec: ServerSpec) -> str:
    """Return the name of the logins to a server: a token is only for the address that it was issued for."""
    return f"{spec.name}-{hash_values(spec.url)[:12]}.json"


class TokenStorage:
    """Token storage, as the library uses it. The subclasses say where it is."""

    async def load(self) -> SavedTokens:
        """Return the saved tokens; none if they are for another address."""
        raise NotImplementedError

    async def save(self, **changed: Any) -> None:
        """Replace the saved values of these names."""
        raise NotImplementedError

    async def delete(self) -> None:
        """Delete the saved tokens."""
        raise NotImplementedError

    async def get_tokens(self) -> Any:
        """Return the tokens, in the type of the library."""
        from mcp.shared.auth import OAuthToken

        saved = await self.load()
        return None if saved.tokens is None else OAuthToken.model_validate(saved.tokens)

    async def set_tokens(self, tokens: Any) -> None:
        """Save the tokens, and when they expire."""
        expires = time.time() + tokens.expires_in if tokens.expires_in else 0.0
        await self.save(tokens=tokens.model_dump(mode="json", exclude_none=True), expires=expires)

    async def get_client_info(self) -> Any:
        """Return the client registration."""
        from mcp.shared.auth import OAuthClientInformationFull

        saved = await self.load()
        return None if saved.client is None else OAuthClientInformationFull.model_validate(saved.client)

    async def set_client_info(self, client_info: Any) -> None:
        """Save the client registration."""
        await self.save(client=client_info.model_dump(mode="json", exclude_none=True))


class TokenFile(TokenStorage):
    """Tokens of the installation, in a file."""

    def __init__(self, spec: ServerSpec, folder: str | Path) -> None:
        self._url = spec.url
        self.path = Path(folder).expanduser() / login_name(spec)

    def read(self) -> SavedTokens:
        """Return the saved tokens; none if they are for another address."""
        saved = _decode(read_private(self.path), str(self.path))
        return saved if saved.url == self._url else SavedTokens()

    def write(self, **changed: Any) -> None:
        """Replace the saved values of these names."""
        write_private(self.path, _changed(self.read(), self._url, changed))

    async def load(self) -> SavedTokens:
        """Return the saved tokens."""
        return await asyncio.to_thread(self.read)

    async def save(self, **changed: Any) -> None:
        """Replace the saved values of these names."""
        await asyncio.to_thread(self.write, **changed)

    async def delete(self) -> None:
        """Delete the saved tokens."""
        await asyncio.to_thread(self.path.unlink, missing_ok=True)


class PersonTokens(TokenStorage):
    """Tokens of a person. Only a login makes them (`begin`); a renewal does not bring back a login that has ended."""

    def __init__(self, spec: ServerSpec, store: LoginStore, person: Person, *, begin: bool = False) -> None:
        self._url, self._name = spec.url, login_name(spec)
        self._store, self._person, self._begin = store, person, begin

    async def load(self) -> SavedTokens:
        """Return the saved tokens."""
        saved = _decode(await self._store.read(self._person, self._name), f"the login of {self._person.user}")
        return saved if saved.url == self._url else SavedTokens()

    async def save(self, **changed: Any) -> None:
        """Replace the saved values of these names."""
        data = _changed(await self.load(), self._url, changed)
        await self._store.write(self._person, self._name, data, only_existing=not self._begin)

    async def delete(self) -> None:
        """Delete the saved tokens."""
        await self._store.delete(self._person, self._name)


def _decode(data: bytes | None, where: str) -> SavedTokens:
    try:
        return msgspec.json.decode(data, type=SavedTokens) if data else SavedTokens()
    except msgspec.DecodeError:
        raise ConfigError(f"{where} cannot be read; delete it, and log in again") from None


def _changed(saved: SavedTokens, url: str, changed: dict[str, Any]) -> bytes:
    for name, value in changed.items():
        setattr(saved, name, value)
    saved.url = url
    return msgspec.json.encode(saved)
