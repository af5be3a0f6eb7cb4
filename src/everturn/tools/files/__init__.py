"""File tools: list, read, search, write and edit files, in a folder or in the session itself.

`files(root)` and `virtual_files()` build the tool group. The tools work on a `FileSystem`, of which there are two: a
real folder, and the files that a session keeps in its log. Paths are validated and held against the protected ones
before any gate opens.

- `base`: base classes of the tools; arguments, paths, previews
- `read_tools`: `list_directory` and `read_file`
- `search_tool`: `search_files`
- `matchers`: text and regular expression search
- `grep_worker`: the process that matches regular expressions
- `write_tools`: `write_file` and `edit_file`
- `edits`: idempotent replacement of a piece of text
- `diffs`: unified diffs
- `text_pages`: decoding of text files, and pages of lines
- `paths`: validation of the paths that a model writes
- `protected`: the paths that a model may not read or write
- `file_system`: the `FileSystem` protocol
- `folder`: file system on a real folder
- `openat`: opening directories below a root without following links
- `virtual`: file system on the files of a session
- `trees`: the file tree of a session as JSON
- `errors`: system errors as messages for the model
"""

from __future__ import annotations

import os

from everturn.core.options import Approval
from everturn.core.ports import Tool, ToolContext
from everturn.core.requests import ToolSpec
from everturn.tools.files import read_tools, search_tool, write_tools
from everturn.tools.files.base import FileTool, FileToolScope, PathArguments, WriteFileTool, arguments_schema
from everturn.tools.files.file_system import FileSystem
from everturn.tools.files.folder import Folder
from everturn.tools.files.protected import PROTECTED, UNPROTECTED, ProtectedPaths
from everturn.tools.files.text_pages import MAX_PAGE_LENGTH
from everturn.tools.files.virtual import SessionFileSystem
from everturn.tools.groups import ToolGroup

__all__ = ("PROTECTED", "UNPROTECTED", "Folder", "ProtectedPaths", "SessionFileSystem", "files", "virtual_files")

_SHOWN = MAX_PAGE_LENGTH + 10_000  # characters of a result; a page and its notes are never truncated
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
    protect: ProtectedPaths = PROTECTED,
    hidden: bool = False,
    approval: Approval = "ask",
    untrusted: bool = False,
) -> ToolGroup:
    """Make the tools that list, read, search, write and edit the files of one folder; writing asks for approval.

    A rule about a path applies to the path that a call names; a search leaves out the files that a rule denies to
    `read_file` or `search_files`. Files that no tool may reveal belong into `protect`, which applies to all tools.

    `approval` is about writing, where a person is shown the diff; reading needs no approval. `protect` lists the paths
    that the model may not see: `PROTECTED.but("**/.env.example")` opens some of them,
    `PROTECTED.also(secrets=["data/**"])` adds to them. `hidden` files are searched only on request; .git never is. With
    `untrusted`, file contents count as untrusted input.

    Raises:
        ConfigError: the folder does not exist, or this system cannot open files below one safely.
    """
    folder = Folder(root)
    scope = FileToolScope(lambda context: folder, protect, hidden)
    return _group(name, scope, f"files:{folder.root}", read_only, approval, untrusted)


def virtual_files(
    *,
    read_only: bool = False,
    name: str = "files",
    protect: ProtectedPaths = PROTECTED,
    hidden: bool = False,
    approval: Approval = "auto",
    untrusted: bool = False,
) -> ToolGroup:
    """The same tools for files that the session keeps in its own log: no disk is touched, so no approval is needed."""
    return _group(name, FileToolScope(_virtual, protect, hidden), "files:session", read_only, approval, untrusted)


def _virtual(context: ToolContext) -> FileSystem:
    return SessionFileSystem.for_call(context)


def _group(
    name: str, scope: FileToolScope, origin: str, read_only: bool, approval: Approval, untrusted: bool
) -> ToolGroup:
    def reads(tool: str, about: str, kind: type[PathArguments], timeout: float = 60.0) -> ToolSpec:
        return ToolSpec(
            *(tool, about, arguments_schema(kind)),
            read_only=True,
            timeout=timeout,
            subjects={"path": "path"},
            untrusted=untrusted,
            limit=_SHOWN,
            origin=origin,
        )

    def writes(tool: str, about: str, kind: type[PathArguments]) -> ToolSpec:
        return ToolSpec(
            *(tool, about, arguments_schema(kind)),
            idempotent=True,
            approval=approval,
            subjects={"path": "path"},
            origin=origin,
            echoes=True,
        )

    tools: list[Tool] = [
        FileTool(
            reads("list_directory", "List what is in a directory.", read_tools.ListDirectory),
            read_tools.ListDirectory,
            scope,
            read_tools.list_directory,
        ),
        FileTool(
            reads("read_file", "Read a text file, some lines at a time.", read_tools.ReadFile),
            read_tools.ReadFile,
            scope,
            read_tools.read_file,
        ),
        FileTool(
            reads("search_files", "Find lines in files by a text or a pattern.", search_tool.SearchFiles),
            search_tool.SearchFiles,
            scope,
            search_tool.search_files,
        ),
    ]
    if not read_only:
        tools += [
            WriteFileTool(
                writes("write_file", "Write a whole text file; what it held is gone.", write_tools.WriteFile),
                write_tools.WriteFile,
                scope,
                write_tools.write_file,
                write_tools.preview_write,
            ),
            WriteFileTool(
                writes("edit_file", "Replace a piece of a text file by another.", write_tools.EditFile),
                write_tools.EditFile,
                scope,
                write_tools.edit_file,
                write_tools.preview_edit,
            ),
        ]
    return ToolGroup(name, tools, _RULES_READING if read_only else _RULES)
