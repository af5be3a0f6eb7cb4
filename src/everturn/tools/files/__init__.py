"""Tools that list, read, write, edit and search files: beneath a folder, or in the session itself.

`system` is what both are to the tools; `paths` and `protected` say what may be named at all; `beneath` opens it.
"""

from __future__ import annotations

import os

from everturn.core.ports import Tool, ToolContext
from everturn.core.requests import Execute, ToolSpec
from everturn.tools.files import reading, searching, writing
from everturn.tools.files.folder import Folder
from everturn.tools.files.protected import NOTHING, PROTECTED, Protected
from everturn.tools.files.system import FileSystem
from everturn.tools.files.texts import PAGE
from everturn.tools.files.tooling import FileTool, PathArguments, Place, WritingTool, schema_of
from everturn.tools.files.virtual import Virtual
from everturn.tools.groups import Group

__all__ = ("NOTHING", "PROTECTED", "Folder", "Protected", "Virtual", "files", "virtual_files")

_SHOWN = PAGE + 10_000  # characters of a result; a page, and what is said of it, is never cut in its turn
_RULES = (
    "Paths are relative to one root, with `/` and without `..`; links are not followed. Read a file before you change "
    "it. Prefer edit_file to write_file for a file that is there: old_text is exact, and long enough to stand there "
    "once. Some paths are protected (keys, .git, settings that start programs): leave them to the person."
)
_RULES_READING = (
    "Paths are relative to one root, with `/` and without `..`; links are not followed. Nothing is written."
)


def files(
    root: str | os.PathLike[str],
    *,
    read_only: bool = False,
    name: str = "files",
    protect: Protected = PROTECTED,
    hidden: bool = False,
    execute: Execute = "ask_once",
    untrusted: bool = False,
) -> Group:
    """Tools for the files beneath a folder.

    A rule about a path is held against the path that a call names; a search leaves out what a rule denies to
    `read_file` or `search_files`. What no tool shall reveal belongs into `protect`, which holds for all of them.

    `execute` is about writing, of which a person is shown the diff; reading asks nobody. What is kept from the model is
    said by `protect`: `PROTECTED.but("**/.env.example")` opens some of it, `PROTECTED.also(secrets=["data/**"])` adds to
    it. `hidden` files are searched only if that is wanted; .git never is. With `untrusted`, what is read counts as
    written by strangers.

    Raises:
        ConfigError: there is no such folder, or this system cannot open files beneath one safely.
    """
    folder = Folder(root)
    place = Place(lambda context: folder, protect, hidden)
    return _group(name, place, f"files:{folder.root}", read_only, execute, untrusted)


def virtual_files(
    *,
    read_only: bool = False,
    name: str = "files",
    protect: Protected = PROTECTED,
    hidden: bool = False,
    execute: Execute = "auto",
    untrusted: bool = False,
) -> Group:
    """The same tools for files that the session keeps in its own log: no disk is touched, so nobody is asked."""
    return _group(name, Place(_virtual, protect, hidden), "files:session", read_only, execute, untrusted)


def _virtual(context: ToolContext) -> FileSystem:
    return Virtual.of(context)


def _group(name: str, place: Place, origin: str, read_only: bool, execute: Execute, untrusted: bool) -> Group:
    def reads(tool: str, about: str, kind: type[PathArguments], timeout: float = 60.0) -> ToolSpec:
        return ToolSpec(
            *(tool, about, schema_of(kind), "read", "auto", timeout),
            subjects={"path": "path"},
            untrusted=untrusted,
            limit=_SHOWN,
            origin=origin,
        )

    def writes(tool: str, about: str, kind: type[PathArguments]) -> ToolSpec:
        return ToolSpec(
            tool, about, schema_of(kind), "write", execute, subjects={"path": "path"}, origin=origin, echoes=True
        )

    tools: list[Tool] = [
        FileTool(
            reads("list_directory", "List what is in a directory.", reading.ListDirectory),
            reading.ListDirectory,
            place,
            reading.list_directory,
        ),
        FileTool(
            reads("read_file", "Read a text file, some lines at a time.", reading.ReadFile),
            reading.ReadFile,
            place,
            reading.read_file,
        ),
        FileTool(
            reads("search_files", "Find lines in files by a text or a pattern.", searching.SearchFiles),
            searching.SearchFiles,
            place,
            searching.search_files,
        ),
    ]
    if not read_only:
        tools += [
            WritingTool(
                writes("write_file", "Write a whole text file; what it held is gone.", writing.WriteFile),
                writing.WriteFile,
                place,
                writing.write_file,
                writing.show_write,
            ),
            WritingTool(
                writes("edit_file", "Replace a piece of a text file by another.", writing.EditFile),
                writing.EditFile,
                place,
                writing.edit_file,
                writing.show_edit,
            ),
        ]
    return Group(name, tools, _RULES_READING if read_only else _RULES)
