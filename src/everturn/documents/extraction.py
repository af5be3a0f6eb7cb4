"""Extraction: reads the text of a document in a process of its own, with limits of time, memory and text.

The file is hostile until proven otherwise: it may be a zip bomb, ask for a million pages, or use a bug of its parser. So
it is parsed in a process that has no files, no network and no children, and that is killed when its time is over. What was
read until then is kept. A file that cannot be read is no error: its text says why, for the model and the person.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Struct

from everturn.core.context.documents import DOCUMENT_KINDS, SectionText, dump_document
from everturn.sandbox.seccomp import interpreter_filter

INSTALL: Final = "its text was not read: pip install 'everturn[documents]'"
TOO_LONG: Final = "reading its text took too long"
BROKEN: Final = "its text could not be read: it is damaged, or needs too much memory"
TOO_LARGE: Final = "its text was not read: it has more than {most} MB"
NO_PROCESS: Final = "its text was not read: no process can be started here ({error})"

MIB: Final = 1024 * 1024
AT_ONCE: Final = 2  # files that are read at the same time
UID: Final = 65_533  # the user of the process where the server is root


class ExtractionLimits(Struct, frozen=True):
    """Limits for one file."""

    seconds: float = 20.0  # after them the process stops between two pages
    grace: float = 3.0  # seconds after these, after which it is killed
    memory: int = 768 * MIB  # of the process
    file: int = 64 * MIB
    sections: int = 2_000  # pages, slides or sheets
    text: int = 2_000_000  # characters
    xml: int = 150 * MIB  # unpacked, of an Office file


class ExtractedLine(Struct):
    """A line that the process writes: a section, the number of sections, or why it stops."""

    text: str | None = None
    title: str = ""
    count: int = 0
    problem: str = ""
    end: bool = False


_decode = msgspec.json.Decoder(ExtractedLine).decode
_SLOTS: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


async def extract_text(data: bytes, media_type: str, limits: ExtractionLimits | None = None) -> bytes:
    """Read the text of a document, and return it as `core.context.documents` stores it."""
    limits, kind = limits or ExtractionLimits(), DOCUMENT_KINDS[media_type]
    package = importlib.util.find_spec("pypdf") if kind == "pdf" else None
    if kind == "pdf" and package is None:
        return dump_document(kind, (), problem=INSTALL)
    if len(data) > limits.file:
        return dump_document(kind, (), problem=TOO_LARGE.format(most=limits.file // MIB))
    slots = _SLOTS.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE))
    async with slots:
        try:
            process = await _start(package.origin if package is not None else None)
        except OSError as error:
            return dump_document(kind, (), problem=NO_PROCESS.format(error=error.strerror or error))
        try:
            return await _read(process, kind, data, limits)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            if process.stdin is not None:
                process.stdin.close()
            await process.wait()


async def _start(package: str | None) -> asyncio.subprocess.Process:
    # The folders of everturn and pypdf, and not the environment: nothing else is imported.
    folders = [str(Path(__file__).parents[2]), *([str(Path(package).parents[1])] if package else [])]
    program = f"import sys; sys.path[:0] = {folders!r}; from everturn.documents.worker import main; main()"
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", "-c", program),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=None if sys.platform == "win32" else {},
        cwd=os.sep,
        start_new_session=True,
        limit=16 * MIB,
    )


async def _read(process: asyncio.subprocess.Process, kind: str, data: bytes, limits: ExtractionLimits) -> bytes:
    request = {
        "kind": kind, "size": len(data), "seconds": limits.seconds, "memory": limits.memory, "uid": UID,
        "sections": limits.sections, "text": limits.text, "xml": limits.xml,
        "filter": (interpreter_filter() or b"").hex() if sys.platform.startswith("linux") else "",
    }  # fmt: skip
    sections: list[SectionText] = []
    count, size, problem = 0, 0, BROKEN
    sending = asyncio.create_task(_send(process, msgspec.json.encode(request) + b"\n", data))
    try:
        async with asyncio.timeout(limits.seconds + limits.grace):
            async for line in _lines(process):
                count = max(count, line.count)
                if line.text is not None:
                    size += len(line.text)
                    if len(sections) >= limits.sections or size > limits.text:
                        break
                    sections.append(SectionText(line.text, line.title))
                if line.end:
                    problem = line.problem
                    break
    except TimeoutError:
        problem = TOO_LONG
    finally:
        sending.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sending
    if problem and sections:
        problem = f"{problem}; what follows what is here is missing"
    return dump_document(kind, sections, min(count, 1_000_000), problem[:500])


async def _send(process: asyncio.subprocess.Process, head: bytes, data: bytes) -> None:
    assert process.stdin is not None  # it is a pipe
    with contextlib.suppress(ConnectionError):
        process.stdin.write(head)
        for at in range(0, len(data), MIB):
            process.stdin.write(data[at : at + MIB])
            await process.stdin.drain()


async def _lines(process: asyncio.subprocess.Process) -> AsyncGenerator[ExtractedLine]:
    assert process.stdout is not None  # it is a pipe
    while True:
        try:
            line = await process.stdout.readline()
            yield _decode(line)
        except (ValueError, msgspec.MsgspecError, RecursionError):  # it ended, or what it wrote is not of our making
            return
