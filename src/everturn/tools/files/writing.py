"""`write_file` and `edit_file`: a change that can be shown before it is made, is made whole or not at all, and once.

Both may be run again after a crash: what already is as it should be is left alone. Where a person was shown a diff, the
file must still be what the diff was made from.
"""

from __future__ import annotations

import asyncio
from typing import Annotated

from msgspec import Meta

from everturn.core.parts import Output
from everturn.core.ports import Preview, ToolContext
from everturn.errors import ToolError
from everturn.tools.files.diffs import count_lines, unified
from everturn.tools.files.edits import edit
from everturn.tools.files.paths import shown
from everturn.tools.files.protected import REPOSITORY
from everturn.tools.files.system import MOST_BYTES, FileSystem, Make, content_hash
from everturn.tools.files.texts import check_text, exact_text
from everturn.tools.files.tooling import PathArguments, Place, missing

_WRITTEN = "{path} already holds just this; nothing was changed"
_EDITED = (
    "{path} already is as this edit makes it (new_text is there, and no old_text beside it); nothing was changed. "
    "If you meant another place, read it again"
)


class WriteFile(PathArguments, forbid_unknown_fields=True, kw_only=True):
    """What `write_file` takes."""

    path: Annotated[str, Meta(description="the file, relative to the root; directories are made as needed")]
    content: Annotated[str, Meta(description="the whole text that it is to hold")]

    def __post_init__(self) -> None:
        if (size := len(_encoded(self.content, "content"))) > MOST_BYTES:
            raise ValueError(f"content has {size:,} bytes; a file has at most {MOST_BYTES // 2**20} MiB")


class EditFile(PathArguments, forbid_unknown_fields=True, kw_only=True):
    """What `edit_file` takes."""

    path: Annotated[str, Meta(description="the file, relative to the root")]
    old_text: Annotated[
        str, Meta(min_length=1, description="the text to replace, exactly as it stands there, with enough around it")
    ]
    new_text: Annotated[str, Meta(description="the text to put in its place")]
    all: Annotated[bool, Meta(description="replace it wherever it stands, instead of the one place")] = False

    def __post_init__(self) -> None:
        _encoded(self.old_text, "old_text")
        _encoded(self.new_text, "new_text")
        if self.old_text == self.new_text:
            raise ValueError("old_text and new_text are the same; there is nothing to change")


async def write_file(place: Place, given: WriteFile, context: ToolContext) -> Output:
    """Let a file hold a text."""
    return await _change(place, place.open(context), given.path, _writes(given), context, _WRITTEN)


async def edit_file(place: Place, given: EditFile, context: ToolContext) -> Output:
    """Replace a piece of a file."""
    system = place.open(context)
    if await system.stat(given.path) is None:
        raise await missing(system, given.path, place.protected)
    return await _change(place, system, given.path, _edits(given), context, _EDITED)


async def show_write(place: Place, given: WriteFile, context: ToolContext) -> Preview:
    """What would be written."""
    return await _show(place, place.open(context), given.path, _writes(given))


async def show_edit(place: Place, given: EditFile, context: ToolContext) -> Preview:
    """What would be edited."""
    return await _show(place, place.open(context), given.path, _edits(given))


def _writes(given: WriteFile) -> Make:
    data = given.content.encode()
    return lambda old: data


def _edits(given: EditFile) -> Make:
    def make(old: bytes | None) -> bytes:
        if old is None:
            raise ToolError(f"there is no {shown(given.path)}; write_file makes one")
        text = exact_text(old, given.path)
        try:
            return edit(text, given.old_text, given.new_text, every=given.all).text.encode()
        except ToolError as error:
            raise ToolError(f"{shown(given.path)} was not changed: {error}") from None

    return make


def _encoded(text: str, name: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{name} has half of a character in it, at {error.start}; leave it out") from None


async def _change(
    place: Place, system: FileSystem, path: str, make: Make, context: ToolContext, already: str
) -> Output:
    """Make the change, unless it has been made, or a person allowed it for another content."""

    def guarded(old: bytes | None) -> bytes | None:
        if context.kept and content_hash(old) == context.kept:
            return old  # an earlier run of this call came as far as this
        stale = bool(context.basis) and content_hash(old) != context.basis
        try:
            new = make(old)
        except ToolError:
            if stale:
                raise _stale(path) from None
            raise
        if stale and new != old:
            raise _stale(path)
        if new != old:
            loop.call_soon_threadsafe(context.keep, content_hash(new))
        return new

    loop = asyncio.get_running_loop()
    old, new = await system.change(path, guarded, lambda exists: place.protected.check_repository(path, exists))
    metadata: dict[str, object] = {"path": path, "hash": content_hash(new), "before": content_hash(old)}
    if new == old:
        return Output(already.format(path=shown(path)), title=path, metadata=metadata)
    added, removed = await asyncio.to_thread(count_lines, old, new)
    done, lines = "written anew" if old is None else "changed", "line" if added == 1 else "lines"
    return Output(
        f"{shown(path)} was {done}: {added:,} {lines} added, {removed:,} removed",
        title=path,
        metadata={**metadata, "added": added, "removed": removed},
    )


def _stale(path: str) -> ToolError:
    return ToolError(
        f"{shown(path)} has changed since the person was shown what would become of it; nothing was written. "
        "Read it again, and make the call anew"
    )


async def _show(place: Place, system: FileSystem, path: str, make: Make) -> Preview:
    """The diff. What could not be done is refused here as it would be there, so that nobody is asked about it."""
    old = None if await system.stat(path) is None else await system.read(path)
    new = await asyncio.to_thread(make, old)
    if new == old:
        return Preview("nothing would change", content_hash(old))
    await _check_repository(place, system, path)
    return Preview(await asyncio.to_thread(_diff, old, new, path), content_hash(old))


async def _check_repository(place: Place, system: FileSystem, path: str) -> None:
    """As it will be checked when it is written, so that nobody is asked about what is refused."""
    parts = path.split("/")
    above = ["/".join(parts[:size]) for size in range(len(parts))]
    asked = [f"{at}/{name}" if at else name for at in above for name in REPOSITORY]
    there = {other for other in asked if await system.stat(other) is not None}
    place.protected.check_repository(path, there.__contains__)


def _diff(old: bytes | None, new: bytes | None, path: str) -> str:
    try:
        for data in (old, new):
            check_text(data or b"", path)
        before = None if old is None else old.decode()
    except (ToolError, UnicodeDecodeError):
        sizes = f"{len(old or b''):,} bytes become {len(new or b''):,}"
        return f"--- a/{path}\n+++ b/{path}\n[what is there is not text: {sizes}]"
    return unified(before, None if new is None else new.decode(), path)
