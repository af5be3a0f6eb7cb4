"""File hashes for shell approvals: the files of the folder that a command line names, and what they contain.

A person who allows `sh build.sh` has seen that build.sh, and no other. So a gate binds what the files hold that its line
names, and the command is not run if one of them has changed meanwhile, or is there now and was not.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import json

from everturn.core.canonical import canonical
from everturn.core.globs import RUN, escape, text_glob, tokens_of
from everturn.core.patterns import Subject, read_path
from everturn.core.policy import Case
from everturn.core.ports import Preview
from everturn.core.shell_expansion import Expansion
from everturn.errors import ToolError
from everturn.sandbox.bubblewrap_walls import WORK

MOST_NAMES: Final = 2_000
MOST_FOUND: Final = 5_000  # entries of folders that a pattern is held against
MOST_BYTES: Final = 64 * 1024 * 1024  # of one file; of a larger one its size and times are taken
LONGEST: Final = 1_024  # characters of a name
MOST_TOLD: Final = 12
ABSENT: Final = ""
_CHANGING: Final = ("cd", "pushd")


def preview(folder: str, cases: Sequence[Case]) -> Preview:
    """What a person is told of the files that a line names, and what they hold; it blocks.

    Raises:
        ToolError: there are too many of them.
    """
    names = named(cases)
    if len(names) > MOST_NAMES:
        raise ToolError(f"this line may name {len(names):,} files, which is more than {MOST_NAMES:,}; split it")
    states = {name: _state(folder, name) for name in names}
    there = [name for name, state in states.items() if state]
    told = ", ".join(there[:MOST_TOLD]) + (f" and {len(there) - MOST_TOLD} more" if len(there) > MOST_TOLD else "")
    return Preview(f"with these files as they are now: {told}" if there else "", canonical(states))


def changed(folder: str, basis: str) -> list[str]:
    """Which of the files are not any more what they were; it blocks."""
    states = json.decode(basis, type=dict[str, str])
    return [name for name, state in states.items() if _state(folder, name) != state]


def named(cases: Sequence[Case]) -> list[str]:
    """The patterns of all names that a line may mean, beneath the folder."""
    found: dict[str, None] = {}
    bases = [""]
    for subject in (subject for case in cases for subject in case.values() if subject and subject.kind == "command"):
        if subject.words[:1] in [(name,) for name in _CHANGING] and len(subject.words) > 1:
            bases += [f"{base}{escape(subject.words[1])}/" for base in bases[:4]]
        for name in _names_in(subject):
            for base in bases if not name.startswith("/") else ("",):
                if (path := _beneath(base + name)) is not None:
                    found[path] = None
    return list(found)


def _names_in(subject: Subject) -> Iterator[str]:
    expansions: Sequence[Expansion | None] = subject.expansions or (None,) * len(subject.words)
    for word, expansion in zip(subject.words, expansions, strict=True):
        if expansion is None:
            for piece in {word, word.partition("=")[2], word.rpartition("@")[2], word[2:] if word[:1] == "-" else ""}:
                yield escape(piece.removeprefix("file://"))
        elif expansion.count != "any" and expansion.tokens != (RUN,):
            yield "".join(escape(token) if isinstance(token, str) else "*" for token in expansion.tokens)


def _beneath(pattern: str) -> str | None:
    """A path within the folder; None for what is none, or lies outside."""
    if not pattern or len(pattern) > LONGEST or "\n" in pattern:
        return None
    path = read_path(pattern.removeprefix(f"{WORK}/") if pattern.startswith(f"{WORK}/") else pattern)
    return None if path is None or path == "." or path.startswith(("/", "..")) else path


def _state(folder: str, pattern: str) -> str:
    """What a file holds, by its hash; for a pattern, all files that fit it."""
    parts = pattern.split("/")
    if not any(isinstance(token, int) for token in tokens_of(pattern)):
        return _content(folder, os.path.join(folder, *("".join(map(str, tokens_of(part))) for part in parts)))
    left = [MOST_FOUND]
    paths = sorted(_fitting(folder, parts, left))
    held = [[path, _content(folder, path)] for path in paths]
    return hashlib.sha256(canonical(held).encode(errors="surrogateescape")).hexdigest() if held else ABSENT


def _fitting(folder: str, parts: Sequence[str], left: list[int]) -> Iterator[str]:
    fits = text_glob(tokens_of(parts[0]))
    try:
        names = os.listdir(folder)
    except OSError:
        return
    left[0] -= len(names)
    if left[0] < 0:
        raise ToolError(f"a pattern of this line is for more than {MOST_FOUND:,} files; name those that are meant")
    for name in names:
        if fits(name):
            path = os.path.join(folder, name)
            yield from _fitting(path, parts[1:], left) if len(parts) > 1 else (path,)


def _content(folder: str, path: str) -> str:
    """The hash of a file; links count as what they lead to, where that lies within the folder."""
    real = os.path.realpath(path)
    if real != folder and not real.startswith(f"{folder}/"):
        return "outside" if os.path.lexists(path) else ABSENT
    try:
        opened = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except OSError as error:
        return f"closed {error.errno}"
    with os.fdopen(opened, "rb") as file:
        about = os.fstat(opened)
        if not stat.S_ISREG(about.st_mode):
            return ABSENT if stat.S_ISDIR(about.st_mode) else "special"
        if about.st_size > MOST_BYTES:
            return f"{about.st_ino} {about.st_size} {about.st_mtime_ns}"
        return hashlib.file_digest(file, "sha256").hexdigest()
