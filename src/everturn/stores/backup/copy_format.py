"""Binary COPY format of PostgreSQL: reads the rows of a file that COPY wrote."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from struct import unpack

from everturn.errors import UnreadableLog

SIGNATURE = b"PGCOPY\n\xff\r\n\0"
CopyRow = tuple[bytes | None, ...]


def read_rows(path: Path) -> Iterator[CopyRow]:
    """Yield the rows of a compressed COPY file: each value in PostgreSQL's binary form, None for NULL.

    Raises:
        UnreadableLog: the file is damaged, or ends too soon.
    """
    try:
        with gzip.open(path, "rb") as file:
            yield from _read_rows(file, path)
    except (OSError, EOFError, zlib.error) as error:
        raise UnreadableLog(f"{path.name} is damaged: {error}") from error


def _read_rows(file: gzip.GzipFile, path: Path) -> Iterator[CopyRow]:
    if _exactly(file, len(SIGNATURE), path) != SIGNATURE:
        raise UnreadableLog(f"{path.name} is not a COPY file of PostgreSQL")
    _, extension = unpack("!II", _exactly(file, 8, path))
    _exactly(file, extension, path)
    while (count := unpack("!h", _exactly(file, 2, path))[0]) >= 0:
        yield tuple(_value(file, path) for _ in range(count))


def _value(file: gzip.GzipFile, path: Path) -> bytes | None:
    size = unpack("!i", _exactly(file, 4, path))[0]
    return _exactly(file, size, path) if size >= 0 else None


def _exactly(file: gzip.GzipFile, size: int, path: Path) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise UnreadableLog(f"{path.name} ends too soon")
    return data


def read_int(value: bytes | None) -> int:
    """Return an integer of 2, 4 or 8 bytes."""
    return int.from_bytes(value or b"", "big", signed=True)


def read_text(value: bytes | None) -> str:
    """Return a text."""
    return (value or b"").decode()
