"""Restore of a folder: makes it hold exactly the files of a listing, and leaves alone what is not recorded.

`plan_restore` computes what there is to do, or why it cannot be done, before anything is touched; `apply_restore` does it and can
be repeated wherever it was interrupted. Nothing is written in place: a hard link to a file elsewhere keeps its content.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from bisect import bisect_left
from collections.abc import Collection, Generator
from contextlib import contextmanager, suppress

from msgspec import Struct

from everturn import failpoints
from everturn.errors import CommandRefused
from everturn.tools.snapshots.git_objects import EXECUTABLE, LINK, Listing, ObjectRepository, read_object
from everturn.tools.snapshots.git_process import GitConversation
from everturn.tools.snapshots.large_files import moved_away_path
from everturn.tools.snapshots.walk import WalkResult, parent_folders

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_IN_USE = (errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY)
NAMED = 5  # paths in an error


class RestorePlan(Struct, frozen=True):
    """The steps that turn a folder into the wanted one."""

    move_away: tuple[tuple[bytes, bytes], ...]  # from, to: large files, whose content is in no snapshot
    remove: tuple[bytes, ...]
    clear: tuple[bytes, ...]  # folders without files, in the place of a file
    write: tuple[tuple[bytes, int, str], ...]  # path, mode, blob
    move_back: tuple[tuple[bytes, bytes, int], ...]  # from, to, mode: large files that were moved away before
    folders: frozenset[bytes]  # folders that stay, or are created


def plan_restore(walked: WalkResult, wanted: Listing, large: Collection[str] = ()) -> RestorePlan:
    """Compute the steps; `large` are the blobs that are placeholders.

    Raises:
        CommandRefused: a file that is in no snapshot is in the way, and would be lost; or is wanted, and does not
            exist.
    """
    fixed = sorted(path for path, why in walked.skipped.items() if path not in walked.folders and why != "unfinished")
    kept = set(fixed)
    in_the_way = [path for path in wanted if path in kept or any(above in kept for above in parent_folders(path))]
    in_the_way += [path for path in wanted if path in walked.folders and _has_beneath(fixed, path)]
    going = {
        path: moved_away_path(path, file.name)
        for path, file in walked.files.items()
        if file.name in large and wanted.get(path, (0, ""))[1] != file.name
    }
    in_the_way += [path for path, to in going.items() if to in walked.files or to in walked.skipped or to in wanted]
    in_the_way += [above for path in going for above in parent_folders(path) if above in wanted]
    if in_the_way:
        named = ", ".join(repr(decode_path(path)) for path in sorted(set(in_the_way))[:NAMED])
        raise CommandRefused(
            f"the content of {named} is in no snapshot (it is ignored, too large, or not a file) and would be "
            "lost: move it "
            "away, then revert again; nothing was changed"
        )
    unfinished = [path for path, why in walked.skipped.items() if why == "unfinished"]
    extra = [path for path in walked.files if path not in wanted and path not in going]
    differing = [
        (path, mode, name)
        for path, (mode, name) in wanted.items()
        if (old := walked.files.get(path)) is None or (old.mode, old.name) != (mode, name)
    ]
    write = tuple(row for row in differing if row[2] not in large)
    back = tuple((_source(walked, path, name), path, mode) for path, mode, name in differing if name in large)
    clear = (path for path in wanted if path in walked.folders)
    folders = frozenset(above for path in wanted for above in parent_folders(path))
    remove = tuple(sorted(unfinished + extra, reverse=True))
    return RestorePlan(tuple(going.items()), remove, tuple(clear), write, back, folders)


def _source(walked: WalkResult, path: bytes, name: str) -> bytes:
    """Where the content of a large file is: in its place, or where it was moved to."""
    if (old := walked.files.get(path)) is not None and old.name == name:
        return path
    if (source := moved_away_path(path, name)) in walked.skipped and source not in walked.folders:
        return source
    raise CommandRefused(
        f"{decode_path(path)!r} was too large then to be kept in a snapshot, and it is not at "
        f"{decode_path(source)!r} either: revert "
        "to a time before it grew; nothing was changed"
    )


def apply_restore(repository: ObjectRepository, folder: str, todo: RestorePlan) -> None:
    """Carry out a plan.

    Raises:
        OSError: something in the folder cannot be changed, or was changed meanwhile.
    """
    top = os.open(folder, _FOLDER)
    try:
        for source, path in todo.move_away:
            _move(top, source, path)
            failpoints.hit_failpoint("snapshot.aside")
        for path in todo.remove:
            _remove(top, path, todo.folders)
            failpoints.hit_failpoint("snapshot.removed")
        for path in todo.clear:
            _clear(top, path)
            failpoints.hit_failpoint("snapshot.cleared")
        with repository.open_cat_file() as talk:
            for path, mode, name in todo.write:
                _write(top, path, mode, name, talk)
                failpoints.hit_failpoint("snapshot.written")
        for source, path, mode in todo.move_back:
            _move(top, source, path)
            _mark(top, path, mode == EXECUTABLE)
            failpoints.hit_failpoint("snapshot.back")
    finally:
        os.close(top)


def decode_path(path: bytes) -> str:
    """A path for people and logs."""
    return path.decode("utf-8", "backslashreplace")


@contextmanager
def _opened(top: int, folders: list[bytes], make: bool = False) -> Generator[list[int]]:
    """The folders on the way to a file, each opened relative to its parent."""
    handles = [os.dup(top)]
    try:
        for folder in folders:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(folder, dir_fd=handles[-1])
            handles.append(os.open(folder, _FOLDER, dir_fd=handles[-1]))
        yield handles
    finally:
        for handle in handles:
            os.close(handle)


def _remove(top: int, path: bytes, stay: frozenset[bytes]) -> None:
    """Remove a file, and the folders that are empty without it."""
    *folders, name = path.split(b"/")
    with suppress(FileNotFoundError), _opened(top, folders) as handles:
        os.unlink(name, dir_fd=handles[-1])
        for folder, above in zip(parent_folders(path), handles[-2::-1], strict=True):
            if folder in stay:
                break
            try:
                os.rmdir(folder.rpartition(b"/")[2], dir_fd=above)
            except OSError as error:
                if error.errno not in _IN_USE:
                    raise
                break


def _move(top: int, source: bytes, path: bytes) -> None:
    """Rename a file within its folder."""
    *folders, name = path.split(b"/")
    with _opened(top, folders) as handles:
        os.rename(source.rpartition(b"/")[2], name, src_dir_fd=handles[-1], dst_dir_fd=handles[-1])


def _mark(top: int, path: bytes, is_executable: bool) -> None:
    """Set or clear the executable bits of a file."""
    *folders, name = path.split(b"/")
    with _opened(top, folders) as handles:
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=handles[-1])
        try:
            bits = stat.S_IMODE(os.fstat(handle).st_mode)
            os.fchmod(handle, bits | (bits & 0o444) >> 2 | stat.S_IXUSR if is_executable else bits & ~0o111)
        finally:
            os.close(handle)


def _clear(top: int, path: bytes) -> None:
    """Remove a folder that contains only folders."""
    *folders, name = path.split(b"/")
    with suppress(FileNotFoundError), _opened(top, folders) as handles:
        _clear_in(handles[-1], name)


def _clear_in(at: int, name: bytes) -> None:
    handle = os.open(name, _FOLDER, dir_fd=at)
    try:
        for inner in os.listdir(handle):
            _clear_in(handle, os.fsencode(inner))
    finally:
        os.close(handle)
    os.rmdir(name, dir_fd=at)


def _write(top: int, path: bytes, mode: int, blob: str, talk: GitConversation) -> None:
    """Write a file atomically."""
    *folders, name = path.split(b"/")
    data = read_object(talk, blob)
    with _opened(top, folders, make=True) as handles:
        at, unfinished = handles[-1], f".everturn-{secrets.token_hex(8)}.tmp".encode()
        try:
            if mode == LINK:
                os.symlink(data, unfinished, dir_fd=at)
            else:
                _fill(at, unfinished, data, _allowed(at, name), mode == EXECUTABLE)
            failpoints.hit_failpoint("snapshot.unfinished")
            os.rename(unfinished, name, src_dir_fd=at, dst_dir_fd=at)
        except BaseException:
            with suppress(OSError):
                os.unlink(unfinished, dir_fd=at)
            raise


def _fill(at: int, name: bytes, data: bytes, allowed: int | None, is_executable: bool) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(name, flags, 0o666 if allowed is None else 0o600, dir_fd=at)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        bits = stat.S_IMODE(os.fstat(handle).st_mode) if allowed is None else allowed
        if is_executable:
            bits |= (bits & 0o444) >> 2 | stat.S_IXUSR
        os.fchmod(handle, bits)


def _allowed(at: int, name: bytes) -> int | None:
    """The permissions of the file that is replaced: the new one gets the same."""
    try:
        old = os.stat(name, dir_fd=at, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    return old & 0o666 if stat.S_ISREG(old) else None


def _has_beneath(ordered: list[bytes], folder: bytes) -> bool:
    at = bisect_left(ordered, folder + b"/")
    return at < len(ordered) and ordered[at].startswith(folder + b"/")
