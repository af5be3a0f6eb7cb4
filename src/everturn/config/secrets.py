"""Secrets by reference: `"${env:NAME}"` or `"${file:/run/secrets/name}"` in a configuration file.

The value is read when it is needed, and never shown: a text that is shown has the reference.
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
SIZE_LIMIT = 64 * 1024  # bytes of a file with a secret
LITERAL = 'give a secret by reference: "${env:NAME}" or "${file:/run/secrets/name}"'


class SecretStr(str):
    """A text that is not shown by accident: its repr is three stars."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Not the text."""
        return "'***'"


class TextWithRefs:
    """A text that may contain references. It shows what is written, never the values."""

    __slots__ = ("written",)

    def __init__(self, written: str) -> None:
        self.written = written
        self._check()

    def _check(self) -> None:
        for loose in _LOOSE.findall(self.written):
            match = REFERENCE.fullmatch(loose)
            if match is None or (match[1] == "env" and _VARIABLE.fullmatch(match[2]) is None):
                raise ConfigError('a reference must be "${env:NAME}" or "${file:/run/secrets/name}"')
            if match[1] == "file" and not os.path.isabs(match[2]):
                raise ConfigError("the path of a file with a secret must be absolute")

    def __repr__(self) -> str:
        """As it is written."""
        return repr(self.written)

    def __str__(self) -> str:
        """As it is written."""
        return self.written

    def __bool__(self) -> bool:
        """Whether the text is not empty."""
        return bool(self.written)

    def __eq__(self, other: object) -> bool:
        """Whether type and text are the same."""
        return type(other) is type(self) and getattr(other, "written", None) == self.written

    def __hash__(self) -> int:
        """Hash of type and text."""
        return hash((type(self), self.written))

    def missing(self, environ: Mapping[str, str]) -> list[str]:
        """Return the references that cannot be resolved here."""
        return [
            match[0]
            for match in REFERENCE.finditer(self.written)
            if not (environ.get(match[2]) if match[1] == "env" else os.path.isfile(match[2]))
        ]

    def resolved(self, environ: Mapping[str, str] | None = None) -> str:
        """Return the text with all references replaced by their values.

        Raises:
            ConfigError: a variable or file does not exist; the message has the reference.
        """
        known = os.environ if environ is None else environ
        return SecretStr(REFERENCE.sub(lambda found: self._placed(found, _read(found, known)), self.written))

    def _placed(self, found: re.Match[str], value: str) -> str:
        return value


class SecretRef(TextWithRefs):
    """A secret: one reference and nothing else."""

    __slots__ = ()

    def _check(self) -> None:
        if self.written and REFERENCE.fullmatch(self.written) is None:
            raise ConfigError(LITERAL)
        super()._check()


class HeaderRef(TextWithRefs):
    """The value of a header: a secret by reference, with text around it, as in `Bearer ${env:TOKEN}`."""

    __slots__ = ()

    def _check(self) -> None:
        if self.written and REFERENCE.search(self.written) is None:
            raise ConfigError(LITERAL)
        super()._check()


class AddressRef(TextWithRefs):
    """A file or a URL, which may contain references. A password in it must be one."""

    __slots__ = ()

    def _check(self) -> None:
        super()._check()
        try:
            bare = REFERENCE.sub("", self.written)
            # Servers separated by commas are several addresses.
            secret = any(
                urlsplit(address).password for address in re.split(r",(?=\s*\w+://)", bare) if "://" in address
            )
        except ValueError:
            raise ConfigError("this is not a valid URL") from None
        if secret:
            raise ConfigError(f"this URL contains a password: {LITERAL}")

    def _placed(self, found: re.Match[str], value: str) -> str:
        """Quote a user name or password in front of an @: its own @ and / must not be parsed as part of the URL."""
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
        reason = error.strerror if isinstance(error, OSError) else "it is not a text in UTF-8"
        raise ConfigError(f"{found[0]}: the file cannot be read: {reason}") from None
    if len(data) > SIZE_LIMIT or not text:
        raise ConfigError(f"{found[0]}: the file is {'empty' if not text else 'too large for a secret'}")
    return text
