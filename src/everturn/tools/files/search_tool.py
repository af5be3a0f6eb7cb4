"""The tool `search_files`: finds the lines that contain a text or match a pattern. Bounded in time, files, bytes and
lines.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Annotated

from msgspec import Meta, Struct

from everturn.core.parts import Output
from everturn.core.ports import ToolContext
from everturn.core.rules.globs import TextMatcher, compile_path_glob, parse_glob
from everturn.errors import BadArguments, ToolError
from everturn.tools.files import matchers
from everturn.tools.files.base import FileToolScope, PathArguments, missing_path_error
from everturn.tools.files.file_system import FileSystem
from everturn.tools.files.paths import join_path, path_problem
from everturn.tools.files.text_pages import MAX_PAGE_LENGTH, is_binary

MAX_SEARCHED_BYTES = 2 * 2**20  # bytes of one file
MOST_FILES = 20_000
SEARCH_TIMEOUT = 20.0  # seconds for one search
MAX_SEARCH_LENGTH = 1_000  # characters
READ_PERMISSIONS = ("", "read_file")  # this tool, whatever its name is, and the one that would show the whole file


class SearchFiles(PathArguments, forbid_unknown_fields=True, kw_only=True):
    """The arguments of `search_files`."""

    text: Annotated[str, Meta(min_length=1, max_length=MAX_SEARCH_LENGTH, description="what to look for in lines")]
    path: Annotated[str, Meta(description="the directory (or file) to search, relative to the root")] = "."
    regex: Annotated[bool, Meta(description="whether `text` is a regular expression (Python's)")] = False
    ignore_case: bool = False
    glob: Annotated[str, Meta(max_length=300, description="only files that fit it: `*.py`, or `src/**/*.py`")] = ""
    limit: Annotated[int, Meta(ge=1, le=1000, description="how many lines to show at most")] = 100


class _SearchCounts(Struct):
    searched: int = 0
    binary: int = 0
    large: int = 0
    protected: int = 0
    stopped: str = ""


async def search_files(scope: FileToolScope, arguments: SearchFiles, context: ToolContext) -> Output:
    """Search the files."""
    system = scope.open(context)
    if await system.stat(arguments.path) is None:
        raise await missing_path_error(system, arguments.path, scope.protected)
    if not arguments.regex and "\n" in arguments.text:
        raise BadArguments("search_files searches line by line; search for a text without line breaks")
    tally = _SearchCounts()
    rows: list[str] = []
    files = size = 0
    end = time.monotonic() + SEARCH_TIMEOUT
    find_in = matchers.match_regex if arguments.regex else matchers.match_plain_text
    async with find_in(arguments.text, ignore_case=arguments.ignore_case) as find:
        async for path, data in _texts(scope, system, arguments, context, tally, end):
            hits = await find(data, arguments.limit - len(rows))
            files += bool(hits)
            for number, line in hits:
                rows.append(f"{path}:{number}: {line}")
                size += len(rows[-1]) + 1
            if len(rows) >= arguments.limit or size > MAX_PAGE_LENGTH:
                tally.stopped = f"stopped at {len(rows)} lines; there may be more: narrow it by path or glob"
                break
    return Output(
        "\n".join((*rows, _summary(tally, len(rows), files))),
        title=arguments.text[:80],
        metadata={"path": arguments.path, "lines": len(rows), "files": files},
    )


def _summary(tally: _SearchCounts, lines: int, files: int) -> str:
    summary = f"{lines} line{'s' * (lines != 1)} in {files} file{'s' * (files != 1)}"
    notes = [f"{summary}; {tally.searched:,} searched"]
    if tally.protected:
        notes.append(f"{tally.protected} protected ones left out")
    if tally.binary or tally.large:
        notes.append(f"{tally.binary + tally.large} left out that are no text or too large")
    if tally.stopped:
        notes.append(tally.stopped)
    return f"[{'; '.join(notes)}]"


async def _texts(
    scope: FileToolScope,
    system: FileSystem,
    arguments: SearchFiles,
    context: ToolContext,
    tally: _SearchCounts,
    end: float,
) -> AsyncIterator[tuple[str, bytes]]:
    """The files to be searched, and their contents."""
    fits = _glob(arguments.glob) if arguments.glob else None
    async for path, size in _walk(scope, system, arguments.path, tally):
        if time.monotonic() > end:
            tally.stopped = f"stopped after {SEARCH_TIMEOUT:g} seconds; narrow it by path or glob"
            return
        if tally.searched >= MOST_FILES:
            tally.stopped = f"stopped after {MOST_FILES:,} files; narrow it by path or glob"
            return
        if fits is not None and not fits(path):
            continue
        # A file that a rule does not let the model read is not searched either, wherever the search began.
        if scope.protected.matching_pattern(path, writing=False) or not all(
            context.may(name, {"path": path}) for name in READ_PERMISSIONS
        ):
            tally.protected += 1
            continue
        if size > MAX_SEARCHED_BYTES:
            tally.large += 1
            continue
        try:
            data = await system.read(path)
        except ToolError:
            continue  # removed or replaced meanwhile
        if is_binary(data):
            tally.binary += 1
            continue
        tally.searched += 1
        yield path, data


async def _walk(
    scope: FileToolScope, system: FileSystem, begin: str, tally: _SearchCounts
) -> AsyncIterator[tuple[str, int]]:
    """Files by path, depth first. Links are not followed; hidden directories are entered only on request."""
    start = await system.stat(begin)
    if start is not None and start.kind == "file":
        yield begin, start.size
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
            path = join_path(directory, entry.name)
            if path_problem(path) or entry.name.casefold() == ".git" or (entry.name[0] == "." and not scope.hidden):
                continue
            if entry.kind == "file":
                yield path, entry.size
            elif entry.kind == "directory":
                if scope.protected.matching_pattern(path, writing=False) and not scope.protected.exempt:
                    tally.protected += 1
                else:
                    inner.append(path)
        waiting += reversed(inner)


def _glob(pattern: str) -> TextMatcher:
    fits = compile_path_glob(parse_glob(pattern))
    if "/" in pattern:
        return fits
    return lambda path: fits(path.rpartition("/")[2])
