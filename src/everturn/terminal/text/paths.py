"""File paths in a chat: the paths that people type, paste or drop, and safe names for files that models make.

A person's path may point anywhere, in any form in which a terminal pastes it. A name from a model never selects a
place: the file goes into the folder that the person chose, under a name that does not exist yet.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import mimetypes
import os
import re
import shlex
import stat
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from everturn.core.parts import FilePart
from everturn.errors import ConfigError

SIZE_LIMIT = 50_000_000  # bytes; no provider takes more in one message
STEM, SUFFIX = (
    48,
    12,
)  # characters of a file name from a model; at four bytes each they fit into the 255 bytes of most file systems
_IMAGE_URL: Final = re.compile(r"data:image/(png|jpeg|gif|webp);base64,")
_IMAGE_STARTS: Final = {"png": b"\x89PNG", "jpeg": b"\xff\xd8\xff", "gif": b"GIF8", "webp": b"RIFF"}
_NOT_IN_NAMES: Final = re.compile(r'[/\\:*?"<>|]')


def parse_paths(text: str) -> list[Path]:
    """Return the paths in typed, pasted or dropped text. Blanks are quoted or escaped; a single path needs neither."""
    if os.path.lexists(_home(text)):
        return [Path(_home(text))]
    try:
        words = shlex.split(text)
    except ValueError:  # an unmatched quote is a part of the name
        words = [text]
    return [Path(_home(word)) for word in words if word]


def parse_dropped_paths(line: str) -> list[Path]:
    """Return the paths of a line that is nothing but absolute paths of files: they were dropped on the terminal."""
    if not line.startswith(("/", "'/", '"/', "file:///")):
        return []
    paths = parse_paths(line)
    return paths if all(path.is_absolute() and os.path.isfile(path) for path in paths) else []


def parse_pasted_images(text: str) -> list[Path]:
    """Return the paths of pasted text that is nothing but paths of images: they are attached beside what is written."""
    paths = parse_dropped_paths(text)
    return paths if all((mimetypes.guess_type(path.name)[0] or "").startswith("image/") for path in paths) else []


def save_pasted_image(text: str) -> Path | None:
    """Write an image that was pasted as a data URL to a temporary file of this user; None if the text is not one."""
    match = _IMAGE_URL.match(text[:64]) if len(text) <= SIZE_LIMIT * 4 // 3 + 64 else None
    if match is None:
        return None
    try:
        data = base64.b64decode("".join(text[match.end() :].split()), validate=True)
    except ValueError:
        return None
    if not data.startswith(_IMAGE_STARTS[match[1]]):
        return None
    number, name = tempfile.mkstemp(prefix="everturn-", suffix=f".{match[1]}")
    with os.fdopen(number, "wb") as file:
        file.write(data)
    return Path(name)


def _home(word: str) -> str:
    if word.startswith("file://"):
        with contextlib.suppress(ValueError):
            return unquote(urlsplit(word).path, errors="surrogateescape")
    return os.path.expanduser(word)


def check_paths(words: Iterable[str]) -> list[Path]:
    """Return the paths of command-line arguments, if each can be sent; the shell has removed their quotes."""
    paths = [Path(os.path.expanduser(word)) for word in words]
    for path in paths:
        check_sendable(path)
    return paths


def check_sendable(path: Path) -> None:
    """Check that a file can be sent.

    Raises:
        ConfigError: the file cannot be sent; the message says why and what to do.
    """
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        missing = f"there is no file {path}; is the path right? One with blanks needs quotes, as in 'my file.png'"
        raise ConfigError(missing if _is_missing(error) else _unreadable(path, error)) from None
    if stat.S_ISDIR(status.st_mode):
        raise ConfigError(f"{path} is a folder; name the files in it that you want to send")
    if not stat.S_ISREG(status.st_mode):
        raise ConfigError(f"{path} is not a regular file; copy its content to one, and send that")
    if not status.st_size:
        raise ConfigError(f"{path} is empty; there is nothing to send")
    if status.st_size > SIZE_LIMIT:
        limit = format_size(SIZE_LIMIT)
        raise ConfigError(
            f"{path} is too large: {format_size(status.st_size)}, and {limit} can be sent; send a part of the file"
        )
    if not os.access(path, os.R_OK):
        raise ConfigError(f"{path} cannot be read: Permission denied")


def _is_missing(error: Exception) -> bool:
    return isinstance(
        error, FileNotFoundError | NotADirectoryError | ValueError
    )  # ValueError: the path contains a zero byte


def _unreadable(path: Path, error: Exception) -> str:
    return f"{path} cannot be read: {getattr(error, 'strerror', None) or error}"


def safe_name(file: FilePart) -> str:
    """Return a name for a file from a model that is safe to show and to write, without folders."""
    name = file.name.replace("\\", "/").rpartition("/")[2]
    name = "".join(c if c.isprintable() else "_" for c in _NOT_IN_NAMES.sub("_", name))
    name = name.lstrip(" .-~").rstrip(" .")  # not a hidden file, an option, or a home folder
    stem, suffix = os.path.splitext(name)
    if not suffix or len(suffix) > SUFFIX:
        stem, suffix = name, mimetypes.guess_extension(file.media_type) or ""
    return (stem[:STEM].rstrip(" .") or "file") + suffix


def ensure_folder(path: Path) -> Path:
    """Return a folder to write to, and create it if it does not exist.

    Raises:
        ConfigError: the path is not a folder, or is not writable.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = (
            "it is not a folder" if isinstance(error, FileExistsError) else getattr(error, "strerror", None) or error
        )
        raise ConfigError(f"files cannot be saved in {path}: {reason}; name another folder") from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise ConfigError(f"files cannot be saved in {path}: Permission denied; name another folder")
    return path


def save_path(text: str, file: FilePart) -> Path:
    """Return the path to save a file to: inside the folder that the person names, or under the name that they give."""
    paths = parse_paths(text) if text else []
    path = paths[0] if len(paths) == 1 else Path(_home(text))
    if os.path.isdir(path) or text.rstrip("'\"").endswith(os.sep):
        return ensure_folder(path) / safe_name(file)
    name = path if path.suffix else path.with_name(path.name + os.path.splitext(safe_name(file))[1])
    if not os.path.isdir(path.parent):
        raise ConfigError(f"there is no folder {path.parent}; /save {path.parent}{os.sep} creates it")
    return name


def write_new_file(data: bytes, path: Path) -> Path:
    """Write a new file and return its path; existing files are never overwritten.

    Raises:
        ConfigError: the file could not be written; no part of it is left.
    """
    for candidate in _candidates(path):
        try:
            stream = candidate.open("xb")
        except FileExistsError:
            continue
        except (OSError, ValueError) as error:
            raise ConfigError(f"{candidate} cannot be written: {getattr(error, 'strerror', None) or error}") from None
        try:
            with stream:
                stream.write(data)
        except OSError as error:
            candidate.unlink(missing_ok=True)
            raise ConfigError(f"{candidate} cannot be written: {error.strerror}") from None
        return candidate
    raise AssertionError("numbers do not end")


def _candidates(path: Path) -> Iterator[Path]:
    yield path
    for number in itertools.count(2):
        yield path.with_name(f"{path.stem}-{number}{path.suffix}")


def describe_file(name: str, file: FilePart) -> str:
    """Describe a file: its name, media type and size."""
    return f"{name}  {file.media_type}, {format_size(file.size)}"


def format_size(count: int) -> str:
    """Format a number of bytes for people."""
    amount, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if amount < 999.5:
            break
        amount, unit = amount / 1000, larger
    digits = f"{amount:.1f}" if amount < 99.95 else f"{amount:.0f}"
    return f"{digits.removesuffix('.0')} {unit}"
