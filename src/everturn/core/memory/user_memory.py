"""User memory: text files of a user that outlive a session, the changes that can be made to them, and their port. Pure.

The changes are the commands of Anthropic's memory tool. A change is computed here from the files as they are, and a
store writes its result in one transaction, together with the key of the call that made it: a call that is run again
after a crash gets the receipt of its first run, and nothing is changed a second time.

A file keeps the marks of the conversation that wrote it: untrusted text stays untrusted when another session reads it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct

from everturn.core.canonical_json import hash_values
from everturn.errors import BadArguments, ToolError

MEMORY_ROOT: Final = "/memories"
PROMPT_OWNER_PREFIX: Final = "prompts:"  # owners of saved prompts and instructions, which no user can have
LOGIN_OWNER_PREFIX: Final = "mcp:"  # owners of logins to MCP servers, the same
OWNER_PREFIXES: Final = (PROMPT_OWNER_PREFIX, LOGIN_OWNER_PREFIX)
MAX_MEMORY_FILES = 200
MAX_MEMORY_FILE_BYTES = 64 * 1024
MAX_MEMORY_BYTES = 1024 * 1024  # all files of a user
MAX_MEMORY_PATH_BYTES = 240
MAX_MEMORY_DEPTH = 8  # names in a path
NO_FILE: Final = "none"  # the hash of a file that does not exist
_TEXT_CONTROLS: Final = frozenset("\t\n\r")
# Letters and marks that Unicode calls printable and that are drawn as nothing: two names would look the same.
_INVISIBLE: Final = frozenset(
    (
        *"\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0",
        *map(chr, range(0xFE00, 0xFE10)),
        *map(chr, range(0xE0100, 0xE01F0)),
    )
)


class MemoryMarks(Struct, frozen=True):
    """What a conversation contained when it wrote a file: text of third parties, values computed from private ones."""

    untrusted: bool = False
    sensitive: bool = False

    def __or__(self, other: MemoryMarks) -> MemoryMarks:
        return MemoryMarks(self.untrusted or other.untrusted, self.sensitive or other.sensitive)


NO_MARKS: Final = MemoryMarks()


class MemoryFileInfo(Struct, frozen=True):
    """A file in a list. `path` is relative to `MEMORY_ROOT`."""

    path: str
    size: int  # bytes
    hash: str
    updated: float = 0.0
    marks: MemoryMarks = NO_MARKS


class MemoryFile(Struct, frozen=True):
    """A file with its text."""

    info: MemoryFileInfo
    text: str


class MemoryCreate(Struct, frozen=True):
    """Create a file; one that exists is not overwritten."""

    path: str
    text: str


class MemoryReplace(Struct, frozen=True):
    """Replace a piece of text that occurs once in a file."""

    path: str
    old: str
    new: str


class MemoryInsert(Struct, frozen=True):
    """Insert text after a line; 0 is the beginning."""

    path: str
    line: int
    text: str


class MemoryDelete(Struct, frozen=True):
    """Delete a file, or a directory with all its files."""

    path: str


class MemoryRename(Struct, frozen=True):
    """Give a file or a directory another path, at which there is nothing yet."""

    path: str
    to: str


class MemoryPut(Struct, frozen=True):
    """A person writes a whole file. `untrusted` None: the mark stays as it is."""

    path: str
    text: str
    untrusted: bool | None = None


MemoryChange = MemoryCreate | MemoryReplace | MemoryInsert | MemoryDelete | MemoryRename | MemoryPut


class MemoryReceipt(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """What a change has done: a call that is run again gets the same receipt."""

    path: str
    hash: str = NO_FILE  # after the change
    before: str = NO_FILE
    count: int = 1  # files
    line: int = 0  # the first line that changed


class MemoryEdit(Struct, frozen=True):
    """A change, computed: what a store writes."""

    receipt: MemoryReceipt
    written: MemoryFile | None = None
    removed: tuple[str, ...] = ()
    moved: tuple[tuple[str, str], ...] = ()
    old_text: str | None = None


class MemoryOrigin(Struct, frozen=True):
    """The call that makes a change; the key is the same for every attempt of the call."""

    session: str
    key: str


class UserMemory(Protocol):
    """The port for memory files. Every file belongs to one user of one tenant; no method sees those of another."""

    async def files(self, tenant: str, user: str) -> list[MemoryFileInfo]:
        """All files of a user, by path."""
        ...

    async def file(self, tenant: str, user: str, path: str) -> MemoryFile | None:
        """One file; None if there is none."""
        ...

    async def change(
        self,
        tenant: str,
        user: str,
        change: MemoryChange,
        *,
        at: float,
        marks: MemoryMarks = NO_MARKS,
        base: str = "",
        origin: MemoryOrigin | None = None,
    ) -> MemoryReceipt:
        """Make a change, in one transaction. `base` is the `memory_base` that the change was made for; "": any.

        A change of an origin that has made one before is not made again: its receipt is returned.

        Raises:
            ToolError: the change cannot be made; the text says what to do.
            HashMismatch: the files are not those of `base` any more.
        """
        ...

    async def erase(self, tenant: str, user: str) -> int:
        """Erase all files of a user, and return their number."""
        ...


# Paths and texts ---------------------------------------------------------------------------------------------------


def normalize_memory_path(text: str) -> str:
    """A path relative to the root, without the root in front; "" is the root itself.

    Raises:
        BadArguments: it is no path of a memory file; the text says how to write one.
    """
    if problem := memory_path_problem(text):
        raise BadArguments(f"{quote_memory_path(text)} cannot be used as a path of memory: {problem}")
    return "/".join(part for part in _below_root(text).split("/") if part)


def memory_path_problem(text: str) -> str:
    """Why a path is invalid, or ""."""
    if not text:
        return f"it is empty; {MEMORY_ROOT} is the root"
    if any(_is_unreadable(char) for char in text):
        return "it has control or invisible characters in it, or such as turn the text around; leave them out"
    if unicodedata.normalize("NFC", text) != text:
        return "write its letters and accents as one character each (NFC)"
    if len(text.encode()) > MAX_MEMORY_PATH_BYTES:
        return f"it is longer than {MAX_MEMORY_PATH_BYTES} bytes"
    if any(char in text for char in '\\:*?"<>|%'):
        return r"it has one of \ : * ? \" < > | % in it; use letters, digits, spaces, '-', '_' and '.'"
    if text.startswith("/") and text != MEMORY_ROOT and not text.startswith(f"{MEMORY_ROOT}/"):
        return f"paths begin with {MEMORY_ROOT}/"
    parts = [part for part in _below_root(text).split("/") if part]
    if len(parts) > MAX_MEMORY_DEPTH:
        return f"it is more than {MAX_MEMORY_DEPTH} names deep"
    for part in parts:
        if part in (".", ".."):
            return "write it without `.` and `..`"
        if part != part.strip() or part[-1] == "." or part[0] == "~":
            return "a name begins neither with ~ nor with a space, and ends neither in a dot nor in a space"
    return ""


def _below_root(text: str) -> str:
    return text[len(MEMORY_ROOT) :] if text == MEMORY_ROOT or text.startswith(f"{MEMORY_ROOT}/") else text


def _is_unreadable(char: str) -> bool:
    return not char.isprintable() or char in _INVISIBLE


def shown_memory_path(path: str) -> str:
    """A path as a model writes it."""
    return f"{MEMORY_ROOT}/{path}" if path else MEMORY_ROOT


def quote_memory_path(text: str, most: int = 120) -> str:
    """A path for a message: in quotes, with unprintable characters escaped."""
    cut = text if len(text) <= most else text[: most - 1] + "…"
    return "'" + "".join(ascii(char)[1:-1] if _is_unreadable(char) else char for char in cut) + "'"


def check_memory_text(text: str, name: str) -> None:
    """Refuse what is not text, and what is too long for any file.

    Raises:
        BadArguments: the text says what to change.
    """
    if len(text) > MAX_MEMORY_FILE_BYTES:
        raise BadArguments(f"{name} has {len(text):,} characters; {_FILE_LIMIT}")
    for char in text:
        if char not in _TEXT_CONTROLS and unicodedata.category(char) in ("Cc", "Cs"):
            raise BadArguments(f"{name} contains the character {char!a}; memory stores only text: leave it out")
    if (size := len(text.encode())) > MAX_MEMORY_FILE_BYTES:
        raise BadArguments(f"{name} has {size:,} bytes; {_FILE_LIMIT}")


_FILE_LIMIT: Final = (
    f"a memory file has at most {MAX_MEMORY_FILE_BYTES:,} bytes: keep what will be needed again, or use several files"
)


# Changes -----------------------------------------------------------------------------------------------------------


def memory_hash(text: str | None) -> str:
    """The hash of a file's text; None: it does not exist."""
    return NO_FILE if text is None else hash_values("memory", text)[:32]


def memory_base(files: Mapping[str, MemoryFileInfo], path: str) -> str:
    """The hash of a file, or of all files in a directory: what a change was previewed for."""
    if path in files:
        return files[path].hash
    inside = sorted(other for other in files if other.startswith(f"{path}/"))
    return hash_values("directory", *(f"{other}\0{files[other].hash}" for other in inside))[:32] if inside else NO_FILE


def apply_memory_change(
    change: MemoryChange,
    files: Mapping[str, MemoryFileInfo],
    text: str | None,
    *,
    at: float = 0.0,
    marks: MemoryMarks = NO_MARKS,
) -> MemoryEdit:
    """Compute a change. `text` is what the file at `change.path` holds.

    Raises:
        ToolError: it cannot be made; the text says what to do.
    """
    if isinstance(change, MemoryDelete):
        return _delete(change.path, files, text)
    if isinstance(change, MemoryRename):
        return _rename(change, files, text)
    path = change.path
    if not path:
        raise ToolError(f"{MEMORY_ROOT} is the directory of all files; name a file in it")
    _check_place(files, path)
    new = _new_text(change, text)
    check_memory_text(new, f"{quote_memory_path(path)} as it would be")
    size = len(new.encode())
    _check_room(files, path, size)
    old = files.get(path)
    # A new text has the marks of who writes it; one that keeps a part of the old text keeps its marks as well.
    kept = NO_MARKS if old is None else old.marks
    if isinstance(change, MemoryPut) and change.untrusted is not None:
        kept = MemoryMarks(change.untrusted, kept.sensitive)
    info = MemoryFileInfo(path, size, memory_hash(new), at, kept | marks)
    receipt = MemoryReceipt(path, info.hash, memory_hash(text), line=_first_change(text or "", new))
    return MemoryEdit(receipt, MemoryFile(info, new), old_text=text)


def _new_text(change: MemoryCreate | MemoryReplace | MemoryInsert | MemoryPut, text: str | None) -> str:
    path = quote_memory_path(shown_memory_path(change.path))
    if isinstance(change, MemoryPut):
        return change.text
    if isinstance(change, MemoryCreate):
        if text is not None:
            raise ToolError(
                f"{path} exists already; change it with memory_str_replace or memory_insert, or delete it first"
            )
        return change.text
    if text is None:
        raise ToolError(f"there is no file {path}; memory_view({MEMORY_ROOT!r}) lists those there are")
    if isinstance(change, MemoryInsert):
        return _inserted(text, change, path)
    count = text.count(change.old) if change.old else 0
    if not count:
        raise ToolError(f"old_str does not occur in {path}; it must be exact, with its spaces and line breaks")
    if count > 1 or text.find(change.old, text.find(change.old) + 1) >= 0:
        raise ToolError(f"old_str occurs more than once in {path}; give more of the text around the place you mean")
    return text.replace(change.old, change.new)


def _inserted(text: str, change: MemoryInsert, path: str) -> str:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if change.line > len(lines):
        raise ToolError(f"{path} has {len(lines)} lines: insert_line is 0 to {len(lines)}, not {change.line}")
    added = change.text.removesuffix("\n").split("\n")
    whole = "\n".join((*lines[: change.line], *added, *lines[change.line :]))
    is_last = change.line == len(lines)
    return whole + "\n" if (text.endswith("\n") if lines and not is_last else change.text.endswith("\n")) else whole


def _first_change(old: str, new: str) -> int:
    """The number of the first line that differs."""
    before, after = old.split("\n"), new.split("\n")
    same = next(
        (at for at, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after))
    )
    return same + 1


def _delete(path: str, files: Mapping[str, MemoryFileInfo], text: str | None) -> MemoryEdit:
    if not path:
        raise ToolError(f"{MEMORY_ROOT} itself cannot be deleted; delete the files in it")
    removed = _at(files, path)
    receipt = MemoryReceipt(path, before=memory_base(files, path), count=len(removed))
    return MemoryEdit(receipt, removed=removed, old_text=text)


def _rename(change: MemoryRename, files: Mapping[str, MemoryFileInfo], text: str | None) -> MemoryEdit:
    path, to = change.path, change.to
    if not path or not to:
        raise ToolError(f"{MEMORY_ROOT} itself cannot be renamed")
    moved = _at(files, path)
    if to in files or any(other.startswith(f"{to}/") for other in files):
        raise ToolError(f"there is a {quote_memory_path(shown_memory_path(to))} already; choose another name")
    if to.startswith(f"{path}/"):
        raise ToolError("a directory cannot be moved into itself")
    targets = tuple((other, to + other[len(path) :]) for other in moved)
    rest = {other: info for other, info in files.items() if other not in moved}
    for _, target in targets:
        if problem := memory_path_problem(target):
            raise ToolError(f"{quote_memory_path(target)} cannot be used as a path of memory: {problem}")
        _check_place(rest, target)
    base = memory_base(files, path)
    return MemoryEdit(MemoryReceipt(to, base, base, count=len(moved)), moved=targets, old_text=text)


def _at(files: Mapping[str, MemoryFileInfo], path: str) -> tuple[str, ...]:
    """The file at a path, or all files in the directory there."""
    found = (path,) if path in files else tuple(sorted(other for other in files if other.startswith(f"{path}/")))
    if not found:
        raise ToolError(
            f"there is no {quote_memory_path(shown_memory_path(path))}; memory_view({MEMORY_ROOT!r}) lists what there is"
        )
    return found


def _check_place(files: Mapping[str, MemoryFileInfo], path: str) -> None:
    parts = path.split("/")
    for size in range(1, len(parts)):
        if (above := "/".join(parts[:size])) in files:
            raise ToolError(f"{quote_memory_path(shown_memory_path(above))} is a file, and not a directory")
    if any(other.startswith(f"{path}/") for other in files):
        raise ToolError(f"{quote_memory_path(shown_memory_path(path))} is a directory; name a file in it")


def _check_room(files: Mapping[str, MemoryFileInfo], path: str, size: int) -> None:
    if path not in files and len(files) >= MAX_MEMORY_FILES:
        raise ToolError(f"memory has {MAX_MEMORY_FILES} files, which is the limit; delete some, or add to one of them")
    total = sum(info.size for other, info in files.items() if other != path) + size
    if total > MAX_MEMORY_BYTES:
        raise ToolError(
            f"memory would have {total:,} bytes; all files together have at most {MAX_MEMORY_BYTES:,}: delete or shorten "
            "some that are no longer needed"
        )


def list_memory(files: Sequence[MemoryFileInfo], path: str) -> list[MemoryFileInfo]:
    """The files in a directory, at any depth, by path; all of them for the root."""
    return sorted((info for info in files if not path or info.path.startswith(f"{path}/")), key=lambda info: info.path)
