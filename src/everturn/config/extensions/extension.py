"""Extension: a skill, sub-agent, slash command or MCP server that was found in a file, with the hash that trust is bound to."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Final, Literal

from msgspec import Struct

from everturn.config.extensions.frontmatter import Fields

Kind = Literal["skill", "agent", "command", "mcp"]
Scope = Literal["project", "user"]

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
MAX_DESCRIPTION: Final = 1024  # characters
_HIDDEN: Final = ("Cc", "Cf", "Co", "Cs", "Cn")


class Extension(Struct, frozen=True):
    """An extension as it was read. `path` is relative to the root of the project, or absolute for the user's own."""

    kind: Kind
    name: str
    path: str
    hash: str
    description: str = ""
    text: str = ""  # the body; of an MCP server, its entry as JSON
    scope: Scope = "project"
    fields: Fields = {}
    files: tuple[str, ...] = ()  # files beside a SKILL.md, by their paths in the folder of the skill
    folder: str = ""  # the folder of a skill; the folder that an MCP server is started in

    @property
    def size(self) -> int:
        """Its bytes in UTF-8."""
        return len(self.text.encode(errors="replace"))


class ExtensionProblem(Struct, frozen=True):
    """A file that is not used, or not in full, and why."""

    path: str
    reason: str


def hash_bytes(data: bytes) -> str:
    """Return the SHA-256 of some bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def one_line(text: str, limit: int = MAX_DESCRIPTION) -> str:
    """Return a text as one line, without characters that a person does not see."""
    line = " ".join(visible_text(text).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def visible_text(text: str) -> str:
    """Drop characters that a person does not see: controls, bidirectional and zero-width marks, private use."""
    return "".join(char for char in text if char in "\n\t" or unicodedata.category(char) not in _HIDDEN)
