r"""Validation of the paths that a model writes: normalizes a path, or says how to write it.

Pure: the disk is not touched. A name that another system would read differently (`C:`, `NUL`, `a.txt:stream`, `.git.`)
is refused on every system, so that the path that a rule allowed is the path that is opened, on any system.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from everturn.errors import BadArguments

MAX_PATH_BYTES = 4096  # bytes
MAX_NAME_BYTES = 255  # bytes
MAX_PATH_DEPTH = 64  # directories

_DEVICES: Final = frozenset(
    (
        *("con", "prn", "aux", "nul", "conin$", "conout$", "clock$"),
        *(f"{port}{digit}" for port in ("com", "lpt") for digit in "0123456789¹²³"),
    )
)
_REORDERING: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def normalize_path(text: str) -> str:
    """The normalized path, without `./` and `//`; "." is the root itself.

    Raises:
        BadArguments: the path leads out of the root, or some system would read it differently.
    """
    if trouble := path_problem(text):
        raise BadArguments(f"{quote_path(text)} cannot be used as a path: {trouble}")
    return "/".join(part for part in text.split("/") if part not in ("", ".")) or "."


def path_problem(text: str) -> str:
    """Why a path is invalid, or ""."""
    if not text:
        return 'it is empty; "." is the root'
    if any(map(_is_unreadable, text)):
        return "it has control characters in it, or such as turn the text around; leave them out"
    if len(text.encode()) > MAX_PATH_BYTES:
        return f"it is longer than {MAX_PATH_BYTES} bytes"
    if text.startswith("/"):
        return "paths are relative to the root; write it without the slash in front"
    if text == "~" or text.startswith("~/"):
        return "there is no home here; paths are relative to the root"
    if "\\" in text:
        return "write `/` between its parts, and no backslash"
    if ":" in text:
        return "a colon names a drive or a stream on some systems; there is none in a path here"
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if len(parts) > MAX_PATH_DEPTH:
        return f"it is more than {MAX_PATH_DEPTH} directories deep"
    return next((trouble for part in parts if (trouble := _trouble_with_part(part))), "")


def _trouble_with_part(part: str) -> str:
    if part == "..":
        return "write it without `..`, relative to the root"
    if part[-1] in ". ":
        return f"a name ends neither in a dot nor in a space, for some systems drop them; {quote_path(part)} does"
    if len(part.encode()) > MAX_NAME_BYTES:
        return f"one of its names is longer than {MAX_NAME_BYTES} bytes"
    if part.partition(".")[0].rstrip(" ").casefold() in _DEVICES:
        return f"{quote_path(part)} is the name of a device on some systems"
    return ""


def _is_unreadable(char: str) -> bool:
    return char in _REORDERING or unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")


def quote_path(text: str, most: int = 120) -> str:
    """A name for a message: in quotes, with non-printable characters escaped."""
    cut = text if len(text) <= most else text[: most - 1] + "…"
    return "'" + "".join(char if char.isprintable() else ascii(char)[1:-1] for char in cut) + "'"


def parent_path(path: str) -> str:
    """The directory of a path."""
    return path.rpartition("/")[0] or "."


def join_path(directory: str, name: str) -> str:
    """The path of an entry of a directory."""
    return name if directory == "." else f"{directory}/{name}"
