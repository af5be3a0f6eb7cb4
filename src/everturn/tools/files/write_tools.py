"""The tools `write_file` and `edit_file`: changes that are previewed as a diff, atomic and idempotent.

Both may be run again after a crash: a file that already has the new content is left alone. Where a person approved a
diff, the file must still have the content that the diff was made from.
"""

from __future__ import annotations

import asyncio
from typing import Annotated

from msgspec import Meta

from everturn.core.parts import Output
from everturn.core.ports import Preview, ToolContext
from everturn.errors import ToolError
from everturn.tools.files.base import FileToolScope, PathArguments, missing_path_error
from everturn.tools.files.diffs import count_lines, make_unified_diff
from everturn.tools.files.edits import apply_edit
from everturn.tools.files.file_system import MAX_FILE_BYTES, ContentChange, FileSystem, content_hash
from everturn.tools.files.paths import quote_path
from everturn.tools.files.protected import REPOSITORY_MARKERS
from everturn.tools.files.text_pages import check_is_text, decode_exact

_WRITTEN = "{path} already holds just this; nothing was changed"
_EDITED = (
    "{path} already is as this edit makes it (new_text is there, and no old_text beside it); nothing was changed. "
    "If you meant another place, read it again"
)


class WriteFile(PathArguments, forbid_unknown_fields=True, kw_only=True):
    """The arguments of `write_file`."""

    path: Annotated[str, Meta(description="the file, relative to the root; directories are made as needed")]
    content: Annotated[str, Meta(description="the whole text that it is to hold")]

    def __post_init__(self) -> None:
        if (size := len(_encoded(self.content, "content"))) > MAX_FILE_BYTES:
            raise ValueError(f"content has {size:,} bytes; a file has at most {MAX_FILE_BYTES // 2**20} MiB")


class EditFile(PathArguments, forbid_unknown_fields=True, kw_only=True):
    """The arguments of `edit_file`."""

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


async def write_file(scope: FileToolScope, arguments: WriteFile, context: ToolContext) -> Output:
    """Write a whole file."""
    return await _change(scope, scope.open(context), arguments.path, _writes(arguments), context, _WRITTEN)


async def edit_file(scope: FileToolScope, arguments: EditFile, context: ToolContext) -> Output:
    """Replace a piece of a file."""
    system = scope.open(context)
    if await system.stat(arguments.path) is None:
        raise await missing_path_error(system, arguments.path, scope.protected)
    return await _change(scope, system, arguments.path, _edits(arguments), context, _EDITED)


async def preview_write(scope: FileToolScope, arguments: WriteFile, context: ToolContext) -> Preview:
    """Preview of a write."""
    return await _show(scope, scope.open(context), arguments.path, _writes(arguments))


async def preview_edit(scope: FileToolScope, arguments: EditFile, context: ToolContext) -> Preview:
    """Preview of an edit."""
    return await _show(scope, scope.open(context), arguments.path, _edits(arguments))


def _writes(arguments: WriteFile) -> ContentChange:
    data = arguments.content.encode()
    return lambda old: data


def _edits(arguments: EditFile) -> ContentChange:
    def make(old: bytes | None) -> bytes:
        if old is None:
            raise ToolError(f"there is no {quote_path(arguments.path)}; write_file creates it")
        text = decode_exact(old, arguments.path)
        try:
            return apply_edit(text, arguments.old_text, arguments.new_text, every=arguments.all).text.encode()
        except ToolError as error:
            raise ToolError(f"{quote_path(arguments.path)} was not changed: {error}") from None

    return make


def _encoded(text: str, name: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{name} has an incomplete character (a lone surrogate) at {error.start}; remove it") from None


async def _change(
    scope: FileToolScope, system: FileSystem, path: str, make: ContentChange, context: ToolContext, already: str
) -> Output:
    """Make the change, unless it was made before, or a person approved it for another content."""

    def guarded(old: bytes | None) -> bytes | None:
        if context.saved_state and content_hash(old) == context.saved_state:
            return old  # an earlier run of this call wrote it
        stale = bool(context.base_version) and content_hash(old) != context.base_version
        try:
            new = make(old)
        except ToolError:
            if stale:
                raise _stale(path) from None
            raise
        if stale and new != old:
            raise _stale(path)
        if new != old:
            loop.call_soon_threadsafe(context.save_state, content_hash(new))
        return new

    loop = asyncio.get_running_loop()
    old, new = await system.change(path, guarded, lambda exists: scope.protected.check_repository(path, exists))
    metadata: dict[str, object] = {"path": path, "hash": content_hash(new), "before": content_hash(old)}
    if new == old:
        return Output(already.format(path=quote_path(path)), title=path, metadata=metadata)
    added, removed = await asyncio.to_thread(count_lines, old, new)
    done, lines = "created" if old is None else "changed", "line" if added == 1 else "lines"
    return Output(
        f"{quote_path(path)} was {done}: {added:,} {lines} added, {removed:,} removed",
        title=path,
        metadata={**metadata, "added": added, "removed": removed},
    )


def _stale(path: str) -> ToolError:
    return ToolError(
        f"{quote_path(path)} has changed since the user saw the preview of this call; nothing was written. "
        "Read it again, and call the tool again"
    )


async def _show(scope: FileToolScope, system: FileSystem, path: str, make: ContentChange) -> Preview:
    """The diff. An impossible change is refused here as it would be later, so that no person is asked about it."""
    old = None if await system.stat(path) is None else await system.read(path)
    new = await asyncio.to_thread(make, old)
    if new == old:
        return Preview("nothing would change", content_hash(old))
    await _check_repository(scope, system, path)
    return Preview(await asyncio.to_thread(_diff, old, new, path), content_hash(old))


async def _check_repository(scope: FileToolScope, system: FileSystem, path: str) -> None:
    """The same check as before the write, so that no person is asked about a change that is refused."""
    parts = path.split("/")
    above = ["/".join(parts[:size]) for size in range(len(parts))]
    candidates = [f"{at}/{name}" if at else name for at in above for name in REPOSITORY_MARKERS]
    existing = {other for other in candidates if await system.stat(other) is not None}
    scope.protected.check_repository(path, existing.__contains__)


def _diff(old: bytes | None, new: bytes | None, path: str) -> str:
    try:
        for data in (old, new):
            check_is_text(data or b"", path)
        before = None if old is None else old.decode()
    except (ToolError, UnicodeDecodeError):
        sizes = f"{len(old or b''):,} bytes become {len(new or b''):,}"
        return f"--- a/{path}\n+++ b/{path}\n[what is there is not text: {sizes}]"
    return make_unified_diff(before, None if new is None else new.decode(), path)
