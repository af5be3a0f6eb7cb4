"""The tools `list_directory` and `read_file`, a page at a time."""

from __future__ import annotations

import asyncio
from typing import Annotated

from msgspec import Meta

from everturn.core.parts import Output
from everturn.core.ports import ToolContext
from everturn.errors import ToolError
from everturn.tools.files import text_pages
from everturn.tools.files.base import FileToolScope, PathArguments, missing_path_error
from everturn.tools.files.file_system import MAX_DIRECTORY_ENTRIES, DirectoryEntry, content_hash
from everturn.tools.files.paths import join_path, path_problem, quote_path

ENTRIES = 200  # shown by default
LINES = 1_000
_FEW = 100_000  # bytes that are processed without another thread


class ListDirectory(PathArguments, forbid_unknown_fields=True, kw_only=True):
    """The arguments of `list_directory`."""

    path: Annotated[str, Meta(description="the directory, relative to the root")] = "."
    offset: Annotated[int, Meta(ge=1, description="the first entry to show, from 1")] = 1
    limit: Annotated[int, Meta(ge=1, le=1000)] = ENTRIES


class ReadFile(PathArguments, forbid_unknown_fields=True, kw_only=True):
    """The arguments of `read_file`."""

    path: Annotated[str, Meta(description="the file, relative to the root")]
    offset: Annotated[int, Meta(ge=1, description="the first line to read, from 1")] = 1
    limit: Annotated[int, Meta(ge=1, le=5000, description="how many lines")] = LINES


async def list_directory(scope: FileToolScope, arguments: ListDirectory, context: ToolContext) -> Output:
    """List the entries of a directory."""
    system = scope.open(context)
    status = await system.stat(arguments.path)
    if status is None:
        raise await missing_path_error(system, arguments.path, scope.protected)
    if status.kind == "file":
        raise ToolError(f"{quote_path(arguments.path)} is a file of {status.size:,} bytes; read_file reads it")
    entries = await system.list(arguments.path)
    rows = [
        _row(scope, arguments.path, entry)
        for entry in entries[arguments.offset - 1 : arguments.offset - 1 + arguments.limit]
    ]
    last = arguments.offset - 1 + len(rows)
    if not rows:
        rows = ["(empty)" if not entries else f"(there are {len(entries):,} entries; offset is after the last one)"]
    elif last < len(entries):
        rows.append(f"[entries {arguments.offset}-{last} of {len(entries):,}; go on with offset={last + 1}]")
    if len(entries) == MAX_DIRECTORY_ENTRIES:
        rows.append(f"[there may be more than {MAX_DIRECTORY_ENTRIES:,}; only so many are looked at]")
    return Output("\n".join(rows), title=arguments.path, metadata={"path": arguments.path, "entries": len(entries)})


def _row(scope: FileToolScope, directory: str, entry: DirectoryEntry) -> str:
    if path_problem(entry.name):
        return f"{quote_path(entry.name)} ({entry.kind}; its name cannot be used here)"
    name = entry.name if entry.name.isprintable() else quote_path(entry.name)
    marks = ["protected"] if scope.protected.matching_pattern(join_path(directory, entry.name), writing=False) else []
    if entry.kind == "file":
        marks.insert(0, f"{entry.size:,} bytes")
    elif entry.kind == "link":
        marks.insert(0, "a link, not followed")
    elif entry.kind == "special":
        marks.insert(0, "a pipe, socket or device")
    return name + "/" * (entry.kind == "directory") + (f" ({'; '.join(marks)})" if marks else "")


async def read_file(scope: FileToolScope, arguments: ReadFile, context: ToolContext) -> Output:
    """Show some lines of a file."""
    system = scope.open(context)
    try:
        data = await system.read(arguments.path)
    except ToolError:
        if await system.stat(arguments.path) is None:
            raise await missing_path_error(system, arguments.path, scope.protected) from None
        raise
    if len(data) <= _FEW:
        return _shown(data, arguments)
    return await asyncio.to_thread(_shown, data, arguments)


def _shown(data: bytes, arguments: ReadFile) -> Output:
    text, trouble = text_pages.decode_lossy(data, arguments.path)
    text_page = text_pages.read_text_page(text, arguments.offset, arguments.limit)
    metadata: dict[str, object] = {"path": arguments.path, "hash": content_hash(data), "lines": text_page.total}
    if not text:
        return Output("[the file is empty]", title=arguments.path, metadata=metadata)
    if not text_page.text and text_page.last < text_page.first:
        raise ToolError(
            f"{quote_path(arguments.path)} has {text_page.total:,} lines; offset={arguments.offset} is after the last one"
        )
    notes = [f"lines {text_page.first:,}-{text_page.last:,} of {text_page.total:,}"]
    if text_page.next_line:
        notes.append(f"go on with offset={text_page.next_line}")
    if text_page.truncated_lines:
        notes.append(f"{text_page.truncated_lines:,} of them too long to be shown whole")
    if "\r\n" in text:
        notes.append("its lines end in CR LF")
    if trouble:
        notes.append(trouble)
    return Output(f"[{'; '.join(notes)}]\n{text_page.text}", title=arguments.path, metadata=metadata)
