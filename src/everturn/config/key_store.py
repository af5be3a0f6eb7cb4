"""Key store: API keys of model vendors that the user has logged in to, in the system's keyring or a private file.

A key in the environment wins. Without a usable keyring the file is `keys.json` beside the configuration, readable by
its owner alone (mode 0600). Keys are looked up by the vendor's environment variable, and are never put into the
environment of this process, which tools and MCP servers would inherit.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from everturn.config.layers import user_file
from everturn.errors import ConfigError
from everturn.models.registry import set_key_source
from everturn.models.vendors import VENDORS

SERVICE: Final = "everturn"
Place = Literal["environment", "keyring", "file"]
KEY_VARIABLES: Final[Mapping[str, str]] = {
    profile.key: vendor for vendor, profile in VENDORS.items() if profile.key and not vendor.endswith("-chat")
}
"""The environment variable of each vendor's key → the vendor."""

PREFIXES: Final[Mapping[str, str]] = {
    "sk-ant-": "anthropic",
    "sk-or-": "openrouter",
    "sk-proj-": "openai",
    "sk-svcacct-": "openai",
    "gsk_": "groq",
    "AIza": "gemini",
}
"""How the keys of vendors begin, for those whose keys can be told apart."""


class KeyStore:
    """The keys of one user."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        config = user_file(self._environ)
        self.file: Path | None = None if config is None else config.with_name("keys.json")
        self._ring: Any = None
        self._has_ring: bool | None = None
        self._known: dict[str, str] | None = None

    def find(self, variable: str) -> str:
        """Return the key for a variable: of the environment, or a stored one; "" if there is none."""
        return self._environ.get(variable, "").strip() or self.stored(variable)

    def stored(self, variable: str) -> str:
        """Return the stored key for a variable; "" if there is none."""
        if key := self._read_file().get(variable, ""):
            return key
        if variable in KEY_VARIABLES and (ring := self._keyring()) is not None:
            with suppress(Exception):  # a locked keyring has no key
                return ring.get_password(SERVICE, variable) or ""
        return ""

    def places(self) -> Iterator[tuple[str, Place]]:
        """Yield the variables that have a key, and where it is."""
        for variable in KEY_VARIABLES:
            if self._environ.get(variable, "").strip():
                yield variable, "environment"
            elif variable in self._read_file():
                yield variable, "file"
            elif self.stored(variable):
                yield variable, "keyring"

    def save(self, variable: str, key: str) -> str:
        """Store a key, and return where.

        Raises:
            ConfigError: the file cannot be written.
        """
        if (ring := self._keyring()) is not None:
            with suppress(Exception):
                ring.set_password(SERVICE, variable, key)
                return "the keyring"
        self._write_file({**self._read_file(), variable: key})
        return str(self.file)

    def remove(self, variable: str) -> bool:
        """Remove a stored key; whether there was one."""
        was_stored = bool(self.stored(variable))
        keys = self._read_file()
        if keys.pop(variable, None) is not None:
            self._write_file(keys)
        if (ring := self._keyring()) is not None:
            with suppress(Exception):
                ring.delete_password(SERVICE, variable)
        return was_stored

    def _keyring(self) -> Any:
        """Return the keyring package, if it is installed and can store something."""
        if self._has_ring is None:
            self._has_ring = False
            with suppress(Exception):  # a broken backend is as good as none
                import keyring  # pyright: ignore[reportMissingImports]

                ring: Any = keyring
                if float(ring.get_keyring().priority) > 0:
                    self._ring, self._has_ring = ring, True
        return self._ring

    def _read_file(self) -> dict[str, str]:
        if self._known is None:
            from everturn.mcp.private_file import read_private

            data = None if self.file is None or not self.file.exists() else read_private(self.file)
            try:
                self._known = {} if data is None else msgspec.json.decode(data, type=dict[str, str])
            except msgspec.MsgspecError:
                raise ConfigError(
                    f"{self.file} is damaged; move it away, and run `everturn auth login` again"
                ) from None
        return dict(self._known)

    def _write_file(self, keys: dict[str, str]) -> None:
        from everturn.mcp.private_file import lock_file, write_private

        if self.file is None:
            raise ConfigError(
                "there is no place to store keys: HOME is not set; set it, or the environment variable of the vendor"
            )
        with lock_file(self.file):
            write_private(self.file, msgspec.json.format(msgspec.json.encode(keys)))
        self._known = dict(keys)


def use_stored_keys(environ: Mapping[str, str] | None = None) -> KeyStore:
    """Let models find stored keys from now on: what a command of the command line does, and a library does not."""
    store = KeyStore(environ)
    set_key_source(store.stored)
    return store


def guess_key_vendor(key: str) -> str:
    """Return the vendor that issues keys of this form; "" if several do."""
    return next((vendor for prefix, vendor in PREFIXES.items() if key.startswith(prefix)), "")


def check_key(key: str) -> str:
    """Return a key without the blanks around it.

    Raises:
        ConfigError: no key looks like this.
    """
    key = key.strip()
    if not key:
        raise ConfigError("no key was entered; paste all of it")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError("this contains blanks or characters that no key has; check that you pasted all of it")
    return key
