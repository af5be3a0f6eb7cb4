"""Risk table: reads risk_table.json, which holds the patterns and limits of risk hints. The web UI imports the
same file.

`<NAME>` and similar stand for pieces that many patterns share. The patterns are JavaScript regular expressions; `risks`
gives them the same meaning in Python.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

Level = Literal["high", "look"]


class RiskPattern(Struct, frozen=True, forbid_unknown_fields=True):
    """A pattern, and the code and level of the risk that a match means."""

    code: str
    level: Level
    pattern: str
    is_case_sensitive: bool = False


class ArgumentPatterns(Struct, frozen=True, forbid_unknown_fields=True):
    """Patterns that tell what an argument holds: by its name, by the name of the tool, or by the value."""

    command: str
    shell_tool: str
    path: str
    url: str
    url_value: str


class RiskLimits(Struct, frozen=True, forbid_unknown_fields=True):
    """How much is checked and shown."""

    window: int
    """Characters that are matched together: this bounds the run time of a pattern."""
    window_overlap: int
    """Characters that two windows share."""
    query: int
    """Characters of a query; a longer one could exfiltrate data."""
    value: int
    """Characters of a value that are checked."""
    items: int
    """Values of a list or an object that are checked."""
    excerpt: int
    """Characters of the matching text that are shown."""


class RiskTable(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    pieces: dict[str, str]
    commands: tuple[RiskPattern, ...]
    paths: tuple[RiskPattern, ...]
    urls: tuple[RiskPattern, ...]
    arguments: ArgumentPatterns
    limits: RiskLimits


@cache
def risk_table() -> RiskTable:
    """Return the table; the file is read once."""
    return msgspec.json.decode(Path(__file__).with_name("risk_table.json").read_bytes(), type=RiskTable)
