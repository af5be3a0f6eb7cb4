"""`list_directory` and `read_file`: what is there, a page at a time."""

from __future__ import annotations

import asyncio
from typing import Annotated

from msgspec import Meta

from everturn.core.parts import Output
from everturn.core.ports import ToolContext
from everturn.errors import ToolError
from everturn.tools.files import texts
from everturn.tools.files.paths import join, shown, trouble_with
from everturn.tools.files.system import MOST_ENTRIES, Entry, content_hash
from everturn.tools.files.tooling import PathArguments, Place, missing

ENTRIES = 200  # that are shown, unless others are asked for
LINES = 1_000
_FEW = 100_000  # bytes that are read without another thread


class ListDirectory(PathArguments, forbid_unknown_fields=True, kw_only=True):
    """What `list_directory` takes."""

    path: Annotated[str, Meta(description="the directory, relative to the root")] = "."
    offset: Annotated[int, Meta(ge=1, description="the first entry to show, from 1")] = 1
    limit: Annotated[int, Meta(ge=1, le=1000)] = ENTRIES


class ReadFile(PathArguments, forbid_unknown_fields=True, kw_only=True):
    """What `read_file` takes."""

    path: Annotated[str, Meta(description="the file, relative to the root")]
    offset: Annotated[int, Meta(ge=1, description="the first line to read, from 1")] = 1
    limit: Annotated[int, Meta(ge=1, le=5000, description="how many lines")] = LINES


async def list_directory(place: Place, given: ListDirectory, context: ToolContext) -> Output:
    """Say what is in a directory."""
    system = place.open(context)
    found = await system.stat(given.path)
    if found is None:
        raise await missing(system, given.path, place.protected)
    if found.kind == "file":
        raise ToolError(f"{shown(given.path)} is a file of {found.size:,} bytes; read_file reads it")
    entries = await system.list(given.path)
    rows = [_row(place, given.path, entry) for entry in entries[given.offset - 1 : given.offset - 1 + given.limit]]
    last = given.offset - 1 + len(rows)
    if not rows:
        rows = ["(empty)" if not entries else f"(there are {len(entries):,} entries; offset is beyond them)"]
    elif last < len(entries):
        rows.append(f"[entries {given.offset}-{last} of {len(entries):,}; go on with offset={last + 1}]")
    if len(entries) == MOST_ENTRIES:
        rows.append(f"[there may be more than {MOST_ENTRIES:,}; only so many are looked at]")
    return Output("\n".join(rows), title=given.path, metadata={"path": given.path, "entries": len(entries)})


def _row(place: Place, directory: str, entry: Entry) -> str:
    if trouble_with(entry.name):
        return f"{shown(entry.name)} ({entry.kind}; its name cannot be used here)"
    name = entry.name if entry.name.isprintable() else shown(entry.name)
    marks = ["protected"] if place.protected.keeps(join(directory, entry.name), writing=False) else []
    if entry.kind == "file":
        marks.insert(0, f"{entry.size:,} bytes")
    elif entry.kind == "link":
        marks.insert(0, "a link, not followed")
    elif entry.kind == "special":
        marks.insert(0, "a pipe, socket or device")
    return name + "/" * (entry.kind == "directory") + (f" ({'; '.join(marks)})" if marks else "")


async def read_file(place: Place, given: ReadFile, context: ToolContext) -> Output:
    """Show some lines of a file."""
    system = place.open(context)
    try:
        data = await system.read(given.path)
    except ToolError:
        if await system.stat(given.path) is None:
            raise await missing(system, given.path, place.protected) from None
        raise
    if len(data) <= _FEW:
        return _shown(data, given)
    return await asyncio.to_thread(_shown, data, given)


def _shown(data: bytes, given: ReadFile) -> Output:
    text, trouble = texts.shown_text(data, given.path)
    found = texts.page(text, given.offset, given.limit)
    metadata: dict[str, object] = {"path": given.path, "hash": content_hash(data), "lines": found.total}
    if not text:
        return Output("[the file is empty]", title=given.path, metadata=metadata)
    if not found.text and found.last < found.first:
        raise ToolError(f"{shown(given.path)} has {found.total:,} lines; offset={given.offset} is beyond them")
    notes = [f"lines {found.first:,}-{found.last:,} of {found.total:,}"]
    if found.following:
        notes.append(f"go on with offset={found.following}")
    if found.cut:
        notes.append(f"{found.cut:,} of them too long to be shown whole")
    if "\r\n" in text:
        notes.append("its lines end in CR LF")
    if trouble:
        notes.append(trouble)
    return Output(f"[{'; '.join(notes)}]\n{found.text}", title=given.path, metadata=metadata)
