"""File hashes for shell approvals: the files of the folder that a command line names, and their contents.

A person who approves `sh build.sh` has seen that build.sh, and no other. So a gate is bound to the contents of the
files that the command line names, and the command is not run if one of them has changed meanwhile, or has been added.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import json

from everturn.core.canonical_json import encode_canonical
from everturn.core.ports import Preview
from everturn.core.rules.globs import ANY_RUN, compile_text_glob, escape_glob, parse_glob
from everturn.core.rules.patterns import Subject, normalize_path
from everturn.core.rules.policy import SubjectCase
from everturn.core.rules.shell_expansion import Expansion
from everturn.errors import ToolError
from everturn.sandbox.bubblewrap_args import WORK

MOST_NAMES: Final = 2_000
MOST_FOUND: Final = 5_000  # directory entries that a pattern is matched against
MOST_BYTES: Final = 64 * 1024 * 1024  # of one file; of a larger one its size and times are used
LONGEST: Final = 1_024  # characters of a name
MOST_TOLD: Final = 12
ABSENT: Final = ""
_CHANGING: Final = ("cd", "pushd")


def preview_files(folder: str, cases: Sequence[SubjectCase], mount: str = WORK) -> Preview:
    """The note about the named files for the person, and their hashes as base version; it blocks.

    Commands see the folder at `mount`.

    Raises:
        ToolError: the command line names too many files.
    """
    names = named_paths(cases, mount)
    if len(names) > MOST_NAMES:
        raise ToolError(f"this line may name {len(names):,} files, which is more than {MOST_NAMES:,}; split it")
    states = {name: _state(folder, name) for name in names}
    existing = [name for name, state in states.items() if state]
    listing = ", ".join(existing[:MOST_TOLD]) + (
        f" and {len(existing) - MOST_TOLD} more" if len(existing) > MOST_TOLD else ""
    )
    return Preview(f"with these files as they are now: {listing}" if existing else "", encode_canonical(states))


def changed_files(folder: str, base_version: str) -> list[str]:
    """The files whose content is no longer that of the base version; it blocks."""
    states = json.decode(base_version, type=dict[str, str])
    return [name for name, state in states.items() if _state(folder, name) != state]


def named_paths(cases: Sequence[SubjectCase], mount: str = WORK) -> list[str]:
    """Patterns for all names that a command line may refer to, relative to the folder."""
    paths: dict[str, None] = {}
    bases = [""]
    for subject in (subject for case in cases for subject in case.values() if subject and subject.kind == "command"):
        if subject.words[:1] in [(name,) for name in _CHANGING] and len(subject.words) > 1:
            bases += [f"{base}{escape_glob(subject.words[1])}/" for base in bases[:4]]
        for name in _names_in(subject):
            for base in bases if not name.startswith("/") else ("",):
                if (path := _beneath(base + name, mount)) is not None:
                    paths[path] = None
    return list(paths)


def _names_in(subject: Subject) -> Iterator[str]:
    expansions: Sequence[Expansion | None] = subject.expansions or (None,) * len(subject.words)
    for word, expansion in zip(subject.words, expansions, strict=True):
        if expansion is None:
            for piece in {word, word.partition("=")[2], word.rpartition("@")[2], word[2:] if word[:1] == "-" else ""}:
                yield escape_glob(piece.removeprefix("file://"))
        elif expansion.count != "any" and expansion.tokens != (ANY_RUN,):
            yield "".join(escape_glob(token) if isinstance(token, str) else "*" for token in expansion.tokens)


def _beneath(pattern: str, mount: str) -> str | None:
    """A path within the folder; None if it is invalid, or outside."""
    if not pattern or len(pattern) > LONGEST or "\n" in pattern:
        return None
    path = normalize_path(pattern.removeprefix(f"{escape_glob(mount)}/"))
    return None if path is None or path == "." or path.startswith(("/", "..")) else path


def _state(folder: str, pattern: str) -> str:
    """The hash of a file; for a pattern, of all files that match it."""
    parts = pattern.split("/")
    if not any(isinstance(token, int) for token in parse_glob(pattern)):
        return _content(folder, os.path.join(folder, *("".join(map(str, parse_glob(part))) for part in parts)))
    remaining = [MOST_FOUND]
    paths = sorted(_fitting(folder, parts, remaining))
    contents = [[path, _content(folder, path)] for path in paths]
    return (
        hashlib.sha256(encode_canonical(contents).encode(errors="surrogateescape")).hexdigest() if contents else ABSENT
    )


def _fitting(folder: str, parts: Sequence[str], remaining: list[int]) -> Iterator[str]:
    fits = compile_text_glob(parse_glob(parts[0]))
    try:
        names = os.listdir(folder)
    except OSError:
        return
    remaining[0] -= len(names)
    if remaining[0] < 0:
        raise ToolError(f"a pattern of this line matches more than {MOST_FOUND:,} files; name the files")
    for name in names:
        if fits(name):
            path = os.path.join(folder, name)
            yield from _fitting(path, parts[1:], remaining) if len(parts) > 1 else (path,)


def _content(folder: str, path: str) -> str:
    """The hash of a file; a link counts as its target, where that is within the folder."""
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
        status = os.fstat(opened)
        if not stat.S_ISREG(status.st_mode):
            return ABSENT if stat.S_ISDIR(status.st_mode) else "special"
        if status.st_size > MOST_BYTES:
            return f"{status.st_ino} {status.st_size} {status.st_mtime_ns}"
        return hashlib.file_digest(file, "sha256").hexdigest()
