r"""What a model wrote → a path beneath the root, or a sentence that says how to write it.

Pure: nothing is looked up. A name that another system would read as something else (`C:`, `NUL`, `a.txt:stream`,
`.git.`) is refused on every system, so that what a rule judged is what is opened, wherever that is.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from everturn.errors import BadArguments

LONGEST_PATH = 4096  # bytes
LONGEST_NAME = 255  # bytes
DEEPEST = 64  # directories

_DEVICES: Final = frozenset(
    (
        *("con", "prn", "aux", "nul", "conin$", "conout$", "clock$"),
        *(f"{port}{digit}" for port in ("com", "lpt") for digit in "0123456789¹²³"),
    )
)
_REORDERING: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def read_name(text: str) -> str:
    """The path that is meant, without what means nothing (`./`, `//`); "." is the root itself.

    Raises:
        BadArguments: it leads out of the root, or some system would not take it by its word.
    """
    if trouble := trouble_with(text):
        raise BadArguments(f"{shown(text)} cannot be used as a path: {trouble}")
    return "/".join(part for part in text.split("/") if part not in ("", ".")) or "."


def trouble_with(text: str) -> str:
    """Why this is no path for us; nothing if it is one."""
    if not text:
        return 'it is empty; "." is the root'
    if any(map(_is_unreadable, text)):
        return "it has control characters in it, or such as turn the text around; leave them out"
    if len(text.encode()) > LONGEST_PATH:
        return f"it is longer than {LONGEST_PATH} bytes"
    if text.startswith("/"):
        return "paths are relative to the root; write it without the slash in front"
    if text == "~" or text.startswith("~/"):
        return "there is no home here; paths are relative to the root"
    if "\\" in text:
        return "write `/` between its parts, and no backslash"
    if ":" in text:
        return "a colon names a drive or a stream on some systems; there is none in a path here"
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if len(parts) > DEEPEST:
        return f"it is more than {DEEPEST} directories deep"
    return next((trouble for part in parts if (trouble := _trouble_with_part(part))), "")


def _trouble_with_part(part: str) -> str:
    if part == "..":
        return "write it without `..`, relative to the root"
    if part[-1] in ". ":
        return f"a name ends neither in a dot nor in a space, for some systems drop them; {shown(part)} does"
    if len(part.encode()) > LONGEST_NAME:
        return f"one of its names is longer than {LONGEST_NAME} bytes"
    if part.partition(".")[0].rstrip(" ").casefold() in _DEVICES:
        return f"{shown(part)} is the name of a device on some systems"
    return ""


def _is_unreadable(char: str) -> bool:
    return char in _REORDERING or unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")


def shown(text: str, most: int = 120) -> str:
    """A name as it may stand in a sentence: in quotes, without anything that is not what it looks like."""
    cut = text if len(text) <= most else text[: most - 1] + "…"
    return "'" + "".join(char if char.isprintable() else ascii(char)[1:-1] for char in cut) + "'"


def parent_of(path: str) -> str:
    """The directory it is in."""
    return path.rpartition("/")[0] or "."


def join(directory: str, name: str) -> str:
    """The path of what is in a directory."""
    return name if directory == "." else f"{directory}/{name}"
