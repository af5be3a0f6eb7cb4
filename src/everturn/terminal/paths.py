"""What a person or a model calls a file → a path that leads where it should, or a line that says what to do.

A person's paths may lead anywhere, and are pasted in any form a terminal has for them. A name from a model leads
nowhere: it is the name of a file in a folder that the person has chosen, and of a file that is not there yet.
"""

from __future__ import annotations

import contextlib
import itertools
import mimetypes
import os
import re
import shlex
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from everturn.core.parts import FilePart
from everturn.errors import ConfigError

SIZE_LIMIT = 50_000_000  # bytes; no provider takes more in one message
STEM, SUFFIX = 48, 12  # characters of a model's name; with four bytes each they still fit where names have 255 bytes
_NOT_IN_NAMES: Final = re.compile(r'[/\\:*?"<>|]')


def given(text: str) -> list[Path]:
    """The paths in what a person typed, pasted or dropped: blanks may be quoted, escaped, or neither if it is one."""
    if os.path.lexists(_home(text)):
        return [Path(_home(text))]
    try:
        words = shlex.split(text)
    except ValueError:  # a quote without its other half: a part of the name
        words = [text]
    return [Path(_home(word)) for word in words if word]


def dropped(line: str) -> list[Path]:
    """The files of a line that is nothing but their whole paths: somebody has dropped them on the terminal."""
    if not line.startswith(("/", "'/", '"/', "file:///")):
        return []
    paths = given(line)
    return paths if all(path.is_absolute() and os.path.isfile(path) for path in paths) else []


def _home(word: str) -> str:
    if word.startswith("file://"):
        with contextlib.suppress(ValueError):
            return unquote(urlsplit(word).path, errors="surrogateescape")
    return os.path.expanduser(word)


def named(words: Iterable[str]) -> list[Path]:
    """The paths on a command line, where the shell has read the quotes, if they lead to files that can be sent."""
    paths = [Path(os.path.expanduser(word)) for word in words]
    for path in paths:
        check(path)
    return paths


def check(path: Path) -> None:
    """See that a file can be sent.

    Raises:
        ConfigError: it cannot, and the text says why and what to do.
    """
    try:
        found = path.stat()
    except (OSError, ValueError) as error:
        missing = f"there is no file {path}; is the path right? One with blanks needs quotes, as in 'my file.png'"
        raise ConfigError(missing if _is_missing(error) else _unreadable(path, error)) from None
    if stat.S_ISDIR(found.st_mode):
        raise ConfigError(f"{path} is a folder; name the files in it that you want to send")
    if not stat.S_ISREG(found.st_mode):
        raise ConfigError(f"{path} is not a plain file; copy what is in it to one, and send that")
    if not found.st_size:
        raise ConfigError(f"{path} is empty; there is nothing to send")
    if found.st_size > SIZE_LIMIT:
        most = size(SIZE_LIMIT)
        raise ConfigError(f"{path} is too large: {size(found.st_size)}, and {most} can be sent; send a part of it")
    if not os.access(path, os.R_OK):
        raise ConfigError(f"{path} cannot be read: Permission denied")


def _is_missing(error: Exception) -> bool:
    return isinstance(error, FileNotFoundError | NotADirectoryError | ValueError)  # the last: a zero byte in it


def _unreadable(path: Path, error: Exception) -> str:
    return f"{path} cannot be read: {getattr(error, 'strerror', None) or error}"


def safe_name(file: FilePart) -> str:
    """The name a model's file has here: one that can be shown and written, and leads nowhere else."""
    name = file.name.replace("\\", "/").rpartition("/")[2]
    name = "".join(c if c.isprintable() else "_" for c in _NOT_IN_NAMES.sub("_", name))
    name = name.lstrip(" .-~").rstrip(" .")  # none that is hidden, an option, or a home
    stem, suffix = os.path.splitext(name)
    if not suffix or len(suffix) > SUFFIX:
        stem, suffix = name, mimetypes.guess_extension(file.media_type) or ""
    return (stem[:STEM].rstrip(" .") or "file") + suffix


def folder(path: Path) -> Path:
    """A folder to write to, made if it is not there.

    Raises:
        ConfigError: it is none, or not to be written to.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        why = "it is not a folder" if isinstance(error, FileExistsError) else getattr(error, "strerror", None) or error
        raise ConfigError(f"files cannot be saved in {path}: {why}; name another folder") from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise ConfigError(f"files cannot be saved in {path}: Permission denied; name another folder")
    return path


def target(text: str, file: FilePart) -> Path:
    """Where a person wants a file: in a folder, or under a name of its own."""
    found = given(text) if text else []
    path = found[0] if len(found) == 1 else Path(_home(text))
    if os.path.isdir(path) or text.rstrip("'\"").endswith(os.sep):
        return folder(path) / safe_name(file)
    name = path if path.suffix else path.with_name(path.name + os.path.splitext(safe_name(file))[1])
    if not os.path.isdir(path.parent):
        raise ConfigError(f"there is no folder {path.parent}; /save {path.parent}{os.sep} makes it")
    return name


def write(data: bytes, path: Path) -> Path:
    """Write a new file and say which: nothing that is there is written over.

    Raises:
        ConfigError: it could not be written; nothing is left of it.
    """
    for free in _free(path):
        try:
            out = free.open("xb")
        except FileExistsError:
            continue
        except (OSError, ValueError) as error:
            raise ConfigError(f"{free} cannot be written: {getattr(error, 'strerror', None) or error}") from None
        try:
            with out:
                out.write(data)
        except OSError as error:
            free.unlink(missing_ok=True)
            raise ConfigError(f"{free} cannot be written: {error.strerror}") from None
        return free
    raise AssertionError("numbers do not end")


def _free(path: Path) -> Iterator[Path]:
    yield path
    for number in itertools.count(2):
        yield path.with_name(f"{path.stem}-{number}{path.suffix}")


def about(name: str, file: FilePart) -> str:
    """A file in a row: its name, what it is and how large."""
    return f"{name}  {file.media_type}, {size(file.size)}"


def size(count: int) -> str:
    """Bytes, as people say it."""
    amount, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if amount < 999.5:
            break
        amount, unit = amount / 1000, larger
    digits = f"{amount:.1f}" if amount < 99.95 else f"{amount:.0f}"
    return f"{digits.removesuffix('.0')} {unit}"
