"""`search_files`: a text or a pattern → the lines in which it stands. Bounded in time, files, bytes and lines."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Annotated

from msgspec import Meta, Struct

from everturn.core.globs import Fits, path_glob, tokens_of
from everturn.core.parts import Output
from everturn.core.ports import ToolContext
from everturn.errors import BadArguments, ToolError
from everturn.tools.files import matchers
from everturn.tools.files.paths import join, trouble_with
from everturn.tools.files.system import FileSystem
from everturn.tools.files.texts import PAGE, is_binary
from everturn.tools.files.tooling import PathArguments, Place, missing

MOST_SEARCHED = 2 * 2**20  # bytes of one file
MOST_FILES = 20_000
PATIENCE = 20.0  # seconds in all
LONGEST_WANTED = 1_000  # characters
READING = ("", "read_file")  # this very tool, whatever it is called, and the one that would show the whole file


class SearchFiles(PathArguments, forbid_unknown_fields=True, kw_only=True):
    """What `search_files` takes."""

    text: Annotated[str, Meta(min_length=1, max_length=LONGEST_WANTED, description="what to look for in lines")]
    path: Annotated[str, Meta(description="the directory (or file) to search, relative to the root")] = "."
    regex: Annotated[bool, Meta(description="whether `text` is a regular expression (Python's)")] = False
    ignore_case: bool = False
    glob: Annotated[str, Meta(max_length=300, description="only files that fit it: `*.py`, or `src/**/*.py`")] = ""
    limit: Annotated[int, Meta(ge=1, le=1000, description="how many lines to show at most")] = 100


class _Tally(Struct):
    searched: int = 0
    binary: int = 0
    large: int = 0
    protected: int = 0
    stopped: str = ""


async def search_files(place: Place, given: SearchFiles, context: ToolContext) -> Output:
    """Look for it."""
    system = place.open(context)
    if await system.stat(given.path) is None:
        raise await missing(system, given.path, place.protected)
    if not given.regex and "\n" in given.text:
        raise BadArguments("search_files looks at one line at a time; look for a text without line breaks")
    tally = _Tally()
    rows: list[str] = []
    files = size = 0
    end = time.monotonic() + PATIENCE
    find_in = matchers.pattern if given.regex else matchers.plain_text
    async with find_in(given.text, ignore_case=given.ignore_case) as find:
        async for path, data in _texts(place, system, given, context, tally, end):
            hits = await find(data, given.limit - len(rows))
            files += bool(hits)
            for number, line in hits:
                rows.append(f"{path}:{number}: {line}")
                size += len(rows[-1]) + 1
            if len(rows) >= given.limit or size > PAGE:
                tally.stopped = f"stopped at {len(rows)} lines; there may be more: narrow it by path or glob"
                break
    return Output(
        "\n".join((*rows, _summary(tally, len(rows), files))),
        title=given.text[:80],
        metadata={"path": given.path, "lines": len(rows), "files": files},
    )


def _summary(tally: _Tally, lines: int, files: int) -> str:
    found = f"{lines} line{'s' * (lines != 1)} in {files} file{'s' * (files != 1)}"
    notes = [f"{found}; {tally.searched:,} searched"]
    if tally.protected:
        notes.append(f"{tally.protected} protected ones left out")
    if tally.binary or tally.large:
        notes.append(f"{tally.binary + tally.large} left out that are no text or too large")
    if tally.stopped:
        notes.append(tally.stopped)
    return f"[{'; '.join(notes)}]"


async def _texts(
    place: Place, system: FileSystem, given: SearchFiles, context: ToolContext, tally: _Tally, end: float
) -> AsyncIterator[tuple[str, bytes]]:
    """The files to be searched, and what is in them."""
    fits = _glob(given.glob) if given.glob else None
    async for path, size in _walk(place, system, given.path, tally):
        if time.monotonic() > end:
            tally.stopped = f"stopped after {PATIENCE:g} seconds; narrow it by path or glob"
            return
        if tally.searched >= MOST_FILES:
            tally.stopped = f"stopped after {MOST_FILES:,} files; narrow it by path or glob"
            return
        if fits is not None and not fits(path):
            continue
        # A rule that lets nobody read a file lets nobody search it, wherever the search began.
        if place.protected.keeps(path, writing=False) or not all(context.may(name, {"path": path}) for name in READING):
            tally.protected += 1
            continue
        if size > MOST_SEARCHED:
            tally.large += 1
            continue
        try:
            data = await system.read(path)
        except ToolError:
            continue  # gone, or something else by now
        if is_binary(data):
            tally.binary += 1
            continue
        tally.searched += 1
        yield path, data


async def _walk(place: Place, system: FileSystem, begin: str, tally: _Tally) -> AsyncIterator[tuple[str, int]]:
    """Files by path, depth first. Links lead nowhere; hidden directories are gone into only if that is wanted."""
    found = await system.stat(begin)
    if found is not None and found.kind == "file":
        yield begin, found.size
        return
    waiting = [begin]
    while waiting:
        directory = waiting.pop()
        try:
            entries = await system.list(directory)
        except ToolError:
            if directory == begin:
                raise
            continue
        inner: list[str] = []
        for entry in entries:
            path = join(directory, entry.name)
            if trouble_with(path) or entry.name.casefold() == ".git" or (entry.name[0] == "." and not place.hidden):
                continue
            if entry.kind == "file":
                yield path, entry.size
            elif entry.kind == "directory":
                if place.protected.keeps(path, writing=False) and not place.protected.open:
                    tally.protected += 1
                else:
                    inner.append(path)
        waiting += reversed(inner)


def _glob(pattern: str) -> Fits:
    fits = path_glob(tokens_of(pattern))
    if "/" in pattern:
        return fits
    return lambda path: fits(path.rpartition("/")[2])
