"""A secret as it may stand in a file: by reference, `"${env:NAME}"` or `"${file:/run/secrets/name}"`.

What it stands for is read when something is made of it, and shown nowhere: a text that is shown has the reference.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

from everturn.errors import ConfigError

REFERENCE: Final = re.compile(r"\$\{(env|file):([^{}]+)\}")
_LOOSE: Final = re.compile(r"\$\{[^}]*\}?")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SIZE_LIMIT = 64 * 1024  # bytes of a file that holds a secret
LITERAL = 'a secret stands here by reference, "${env:NAME}" or "${file:/run/secrets/name}", and never itself'


class Hidden(str):
    """A text that is not shown by accident: where values are listed it is three stars."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Not the text."""
        return "'***'"


class Written:
    """A text that may hold references. It shows what is written, and never what that stands for."""

    __slots__ = ("written",)

    def __init__(self, written: str) -> None:
        self.written = written
        self._check()

    def _check(self) -> None:
        for loose in _LOOSE.findall(self.written):
            found = REFERENCE.fullmatch(loose)
            if found is None or (found[1] == "env" and _VARIABLE.fullmatch(found[2]) is None):
                raise ConfigError('a reference is "${env:NAME}" or "${file:/run/secrets/name}"')
            if found[1] == "file" and not os.path.isabs(found[2]):
                raise ConfigError("a file that holds a secret is named by its whole path, from / on")

    def __repr__(self) -> str:
        """As it is written."""
        return repr(self.written)

    def __str__(self) -> str:
        """As it is written."""
        return self.written

    def __bool__(self) -> bool:
        """Whether anything is."""
        return bool(self.written)

    def __eq__(self, other: object) -> bool:
        """Written the same, and meant the same."""
        return type(other) is type(self) and getattr(other, "written", None) == self.written

    def __hash__(self) -> int:
        """Of what is written."""
        return hash((type(self), self.written))

    def missing(self, environ: Mapping[str, str]) -> list[str]:
        """The references in it for which there is nothing here."""
        return [
            found[0]
            for found in REFERENCE.finditer(self.written)
            if not (environ.get(found[2]) if found[1] == "env" else os.path.isfile(found[2]))
        ]

    def resolved(self, environ: Mapping[str, str] | None = None) -> str:
        """What it stands for.

        Raises:
            ConfigError: there is no such variable or file; the text has the reference.
        """
        known = os.environ if environ is None else environ
        return Hidden(REFERENCE.sub(lambda found: self._placed(found, _read(found, known)), self.written))

    def _placed(self, found: re.Match[str], value: str) -> str:
        return value


class Secret(Written):
    """A secret: one reference and nothing beside it."""

    __slots__ = ()

    def _check(self) -> None:
        if self.written and REFERENCE.fullmatch(self.written) is None:
            raise ConfigError(LITERAL)
        super()._check()


class Header(Written):
    """The value of a header: a secret by reference, and what stands around it, as in `Bearer ${env:TOKEN}`."""

    __slots__ = ()

    def _check(self) -> None:
        if self.written and REFERENCE.search(self.written) is None:
            raise ConfigError(LITERAL)
        super()._check()


class Address(Written):
    """A file or an address, which may hold references. A password in it must be one."""

    __slots__ = ()

    def _check(self) -> None:
        super()._check()
        try:
            bare = REFERENCE.sub("", self.written)
            # Several servers with commas between them are several addresses.
            secret = any(urlsplit(one).password for one in re.split(r",(?=\s*\w+://)", bare) if "://" in one)
        except ValueError:
            raise ConfigError("this is no address") from None
        if secret:
            raise ConfigError(f"there is a password in this address: {LITERAL}")

    def _placed(self, found: re.Match[str], value: str) -> str:
        """In front of an @ it is a name or a password, whose own @ and / must not be read as those of the address."""
        before, behind = self.written[: found.start()], self.written[found.end() :]
        return quote(value, safe="") if "://" in before and "@" in behind else value


def _read(found: re.Match[str], environ: Mapping[str, str]) -> str:
    kind, name = found[1], found[2]
    if kind == "env":
        if not environ.get(name):
            raise ConfigError(f"{found[0]}: the environment variable {name} is not set")
        return environ[name]
    try:
        with Path(name).open("rb") as file:
            data = file.read(SIZE_LIMIT + 1)
        text = data.decode().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not a text in UTF-8"
        raise ConfigError(f"{found[0]}: the file cannot be read: {why}") from None
    if len(data) > SIZE_LIMIT or not text:
        raise ConfigError(f"{found[0]}: the file is {'empty' if not text else 'too large for a secret'}")
    return text
