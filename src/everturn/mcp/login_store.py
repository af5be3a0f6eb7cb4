"""Stores of logins: where the OAuth tokens of people are kept, by person and server.

Each row belongs to one person of one tenant. No method sees those of another, and none falls back to a login of the
installation.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from everturn.core.canonical_json import hash_values
from everturn.core.memory.user_memory import (
    LOGIN_OWNER_PREFIX,
    MAX_MEMORY_FILE_BYTES,
    MemoryDelete,
    MemoryPut,
    UserMemory,
)
from everturn.core.tenants.settings import INSTALLATION
from everturn.errors import BadArguments, ConfigError, HashMismatch, ToolError
from everturn.mcp.private_file import lock_file, read_private, write_private

ATTEMPTS: Final = 5  # to write what another process changes at the same time
OPENING: Final = 10.0  # seconds for a process that starts to open its store of logins


class Person(Struct, frozen=True):
    """A user of a tenant: whose login a call uses."""

    tenant: str
    user: str


EVERYBODY: Final = Person(INSTALLATION, "")
"""Owner of what is no login: the kept lists of tools. No user has this id."""


class LoginStore(Protocol):
    """Keeps bytes by person and name. Each method is one transaction."""

    async def read(self, person: Person, name: str) -> bytes | None:
        """Return what was written; None if there is nothing."""
        ...

    async def write(self, person: Person, name: str, data: bytes, *, only_existing: bool = False) -> bool:
        """Write. With `only_existing`, nothing is written where nothing is: a login that has ended does not come back."""
        ...

    async def delete(self, person: Person, name: str) -> bool:
        """Delete what was written; False if there was nothing."""
        ...

    async def erase(self, person: Person) -> None:
        """Delete everything of a person."""
        ...


class FileLogins:
    """Logins in files of this machine that only their owner can read."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder).expanduser()

    def _of(self, person: Person) -> Path:
        return self._folder / hash_values("person", person.tenant, person.user)[:32]

    async def read(self, person: Person, name: str) -> bytes | None:
        """Return what was written."""
        return await asyncio.to_thread(read_private, self._of(person) / name)

    async def write(self, person: Person, name: str, data: bytes, *, only_existing: bool = False) -> bool:
        """Write."""

        def write() -> bool:
            path = self._of(person) / name
            if only_existing and not path.exists():
                return False
            with lock_file(path):
                if only_existing and not path.exists():
                    return False
                write_private(path, data)
                return True

        return await asyncio.to_thread(write)

    async def delete(self, person: Person, name: str) -> bool:
        """Delete what was written."""

        def delete() -> bool:
            path = self._of(person) / name
            if not path.exists():
                return False
            with lock_file(path):
                path.unlink(missing_ok=True)
            return True

        return await asyncio.to_thread(delete)

    async def erase(self, person: Person) -> None:
        """Delete everything of a person."""
        await asyncio.to_thread(shutil.rmtree, self._of(person), ignore_errors=True)


class Cipher(Protocol):
    """Encrypts texts, each bound to a place: copied to another place, it does not decrypt."""

    def encrypt(self, secret: str, place: Sequence[str]) -> bytes:
        """Encrypt."""
        ...

    def decrypt(self, sealed: bytes, place: Sequence[str]) -> str | None:
        """Decrypt; None: its key is gone, or it was changed or moved."""
        ...


class StoredLogins:
    """Logins in the store of the sessions, encrypted: every process of the installation has them.

    They are beside the memory files of users, under owners that no user can have, so no tool of a model reaches them.
    """

    def __init__(self, memory: UserMemory, cipher: Cipher, now: Callable[[], float]) -> None:
        self._memory, self._cipher, self._now = memory, cipher, now

    async def read(self, person: Person, name: str) -> bytes | None:
        """Return what was written."""
        file = await self._memory.file(*_owner(person), name)
        if file is None:
            return None
        try:
            sealed = base64.b64decode(file.text, validate=True)
        except (binascii.Error, ValueError):
            return None
        text = self._cipher.decrypt(sealed, _place(person, name))
        try:
            return None if text is None else base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            return None

    async def write(self, person: Person, name: str, data: bytes, *, only_existing: bool = False) -> bool:
        """Write.

        Raises:
            ConfigError: it is too long.
        """
        sealed = self._cipher.encrypt(base64.b64encode(data).decode(), _place(person, name))
        put = MemoryPut(name, base64.b64encode(sealed).decode())
        if len(put.text) > MAX_MEMORY_FILE_BYTES:
            raise ConfigError(f"what is to be stored for {name} is too long")
        for _ in range(ATTEMPTS):
            base = ""
            if only_existing:
                file = await self._memory.file(*_owner(person), name)
                if file is None:
                    return False
                base = file.info.hash
            try:
                await self._memory.change(*_owner(person), put, at=self._now(), base=base)
            except HashMismatch:
                continue
            except (BadArguments, ToolError) as error:
                raise ConfigError(f"{name} cannot be stored: {error}") from None
            return True
        return False

    async def delete(self, person: Person, name: str) -> bool:
        """Delete what was written."""
        try:
            await self._memory.change(*_owner(person), MemoryDelete(name), at=self._now())
        except ToolError:
            return False
        return True

    async def erase(self, person: Person) -> None:
        """Delete everything of a person."""
        await self._memory.erase(*_owner(person))


class DeferredLogins:
    """Logins of a process that still opens its store: who asks for one waits until there is one.

    A turn that another process left behind may run before the store of logins is open. Without the wait, it would find
    no login, and ask a person who is logged in.
    """

    def __init__(self) -> None:
        self._store: LoginStore | None = None
        self._is_open = asyncio.Event()

    def open(self, store: LoginStore) -> None:
        """Use a store from now on."""
        self._store = store
        self._is_open.set()

    async def _opened(self) -> LoginStore:
        try:
            async with asyncio.timeout(OPENING):
                await self._is_open.wait()
        except TimeoutError:
            raise ToolError("the store of logins is not open yet; try again in a moment") from None
        assert self._store is not None
        return self._store

    async def read(self, person: Person, name: str) -> bytes | None:
        """Return what was written."""
        return await (await self._opened()).read(person, name)

    async def write(self, person: Person, name: str, data: bytes, *, only_existing: bool = False) -> bool:
        """Write."""
        return await (await self._opened()).write(person, name, data, only_existing=only_existing)

    async def delete(self, person: Person, name: str) -> bool:
        """Delete what was written."""
        return await (await self._opened()).delete(person, name)

    async def erase(self, person: Person) -> None:
        """Delete everything of a person."""
        await (await self._opened()).erase(person)


def _owner(person: Person) -> tuple[str, str]:
    return person.tenant, LOGIN_OWNER_PREFIX + person.user


def _place(person: Person, name: str) -> tuple[str, ...]:
    return "mcp login", person.tenant, person.user, name
