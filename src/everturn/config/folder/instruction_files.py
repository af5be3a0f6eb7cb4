"""Instruction files of a folder: AGENTS.md, or CLAUDE.md where there is none.

The user's own file comes first, then those of the project from its root down to the current folder, so that the nearest
one has the last word. Files further below are listed, and the model reads one before it works there. A project's file
counts only if a person trusts its hash (`trust`): a cloned repository does not instruct the model by being there.
"""

from __future__ import annotations

import hashlib
import os
import stat
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from everturn.config.folder.project import Project

NAMES: Final = ("AGENTS.override.md", "AGENTS.md", "CLAUDE.md")
"""The first of these that a folder has counts."""

SIZE_LIMIT: Final = 32 * 1024  # bytes of all of them together
LARGEST_FILE: Final = 1_000_000  # bytes; a larger file is no instruction
MAX_NESTED: Final = 20
DEEPEST: Final = 4
MAX_FOLDERS: Final = 2_000
SKIPPED: Final = frozenset({"node_modules", "vendor", "venv", "target", "dist", "build", "__pycache__"})


class InstructionFile(Struct, frozen=True):
    """A file as it was read. `path` is relative to the root of the project, or absolute for the user's own."""

    path: str
    text: str
    hash: str
    is_nested: bool = False  # below the current folder: listed, not included

    @property
    def size(self) -> int:
        """Its bytes in UTF-8."""
        return len(self.text.encode())


def read_project_files(project: Project) -> list[InstructionFile]:
    """Read the instruction files of a project: root first, then those on the way to the current folder, then nested."""
    folders = [project.root]
    for part in project.current.relative_to(project.root).parts:
        folders.append(folders[-1] / part)
    found = [file for folder in folders if (file := _first_of(folder, project.root)) is not None]
    nested = (_first_of(folder, project.root, is_nested=True) for folder in _folders_below(project.current))
    return [*found, *[file for file in nested if file is not None][:MAX_NESTED]]


def read_user_file(environ: Mapping[str, str]) -> InstructionFile | None:
    """Read the user's own instructions: AGENTS.md beside the configuration, else ~/.claude/CLAUDE.md."""
    home = environ.get("HOME", "")
    base = environ.get("XDG_CONFIG_HOME") or (f"{home}/.config" if home else "")
    paths = [f"{base}/everturn/AGENTS.md"] if base else []
    paths += [f"{home}/.claude/CLAUDE.md"] if home else []
    for path in paths:
        if (text := _read(Path(path), follows=True)) is not None:
            return InstructionFile(path, text, _hash(text))
    return None


def render_files(files: Sequence[InstructionFile]) -> str:
    """Write files as instructions: each with its path and hash, together at most SIZE_LIMIT bytes, cut at a line end."""
    left, parts = SIZE_LIMIT, list[str]()
    for file in files:
        if file.is_nested:
            continue
        text = file.text.strip()
        if len(text.encode()) > left:
            kept = text.encode()[:left].decode(errors="ignore")
            text = f"{kept[: kept.rfind(chr(10)) + 1]}[cut: the instruction files have more than {SIZE_LIMIT} bytes]"
        left = max(0, left - len(text.encode()))
        fence = _tag_free(file.path)
        parts.append(f'<instructions file="{fence}" sha256="{file.hash[:16]}">\n{_inert(text)}\n</instructions>')
    if nested := [file.path for file in files if file.is_nested]:
        parts.append(
            "Folders below have instructions of their own. Read a file before you work in its folder: "
            + ", ".join(map(_tag_free, nested))
        )
    if not parts:
        return ""
    return "\n\n".join(
        ("Instructions from files, the most specific last. The person's own messages come first.", *parts)
    )


def trusted_files(files: Sequence[InstructionFile], trusted: Mapping[str, str]) -> list[InstructionFile]:
    """Return the files whose hashes are trusted."""
    return [file for file in files if trusted.get(file.path) == file.hash]


def _first_of(folder: Path, root: Path, is_nested: bool = False) -> InstructionFile | None:
    for name in NAMES:
        if (text := _read(folder / name)) is not None:
            return InstructionFile((folder / name).relative_to(root).as_posix(), text, _hash(text), is_nested)
    return None


def _read(path: Path, follows: bool = False) -> str | None:
    """Read a regular file; None if there is none, or it is a link, too large or empty."""
    flags = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        opened = os.open(path, flags | (0 if follows else getattr(os, "O_NOFOLLOW", 0)))
    except OSError:
        return None
    with os.fdopen(opened, "rb") as file:
        status = os.fstat(opened)
        if not stat.S_ISREG(status.st_mode) or not 0 < status.st_size <= LARGEST_FILE:
            return None
        return file.read(LARGEST_FILE).decode(errors="replace")


def _folders_below(top: Path, skipped: Collection[str] = SKIPPED) -> Iterator[Path]:
    """Yield the folders below, breadth first; hidden ones, links and those of dependencies are left out."""
    waiting, seen = [(top, 0)], 0
    for folder, depth in waiting:  # it grows
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            if entry.name.startswith(".") or entry.name in skipped or not entry.is_dir(follow_symlinks=False):
                continue
            seen += 1
            if seen > MAX_FOLDERS:
                return
            yield Path(entry.path)
            if depth + 1 < DEEPEST:
                waiting.append((Path(entry.path), depth + 1))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _inert(text: str) -> str:
    """Drop characters that a person does not see, and keep the text from closing its own tag."""
    seen = "".join(
        char for char in text if char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cf", "Co", "Cs")
    )
    return seen.replace("</instructions", "<\\/instructions")


def _tag_free(text: str) -> str:
    return "".join(char if char.isprintable() and char not in '<>"' else "?" for char in text)
