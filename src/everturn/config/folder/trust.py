"""Trust in folders: which folders a person lets the assistant work in, and which of their files count, by hash.

The file is the user's own (mode 0600) in the state folder. An instruction file, a skill, an agent, a command or an MCP
server with another hash is asked about again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field

from everturn.config.extensions.discovery import Extensions, find_extensions, select_extensions, trust_key
from everturn.config.extensions.extension import Extension, Kind
from everturn.config.folder.instruction_files import InstructionFile, read_project_files, trusted_files
from everturn.config.folder.project import Project
from everturn.config.tools import state_folder
from everturn.errors import ConfigError
from everturn.mcp.private_file import lock_file, read_private, write_private

TrustedItem = InstructionFile | Extension
ALL_KINDS: Final[tuple[Kind, ...]] = ("skill", "agent", "command", "mcp")
_UNSAVED: Final[dict[Path, _TrustedFolders]] = {}
"""Answers that could not be written, by the file: they are valid in this process (a read-only home)."""


class TrustedFolder(Struct):
    """What a person said about a folder: that it is trusted, and the hashes of its files: used, or declined."""

    is_trusted: bool = False
    files: dict[str, str] = field(default_factory=dict[str, str])
    declined: dict[str, str] = field(default_factory=dict[str, str])


class _TrustedFolders(Struct):
    folders: dict[str, TrustedFolder] = field(default_factory=dict[str, TrustedFolder])


class FolderTrust:
    """The file of trusted folders."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        self.path: Path = state_folder(self._environ) / "folders.json"

    def get(self, project: Project) -> TrustedFolder:
        """Return what was said about a folder.

        Raises:
            ConfigError: the file is damaged, or others could have written it.
        """
        return self._load().folders.get(str(project.root), TrustedFolder())

    def is_trusted(self, project: Project) -> bool:
        """Whether the assistant may work in a folder: a repository of this user, or a folder that was trusted."""
        return project.is_git or self.get(project).is_trusted

    def trust(self, project: Project) -> None:
        """Record that a folder is trusted.

        Raises:
            ConfigError: the answer cannot be stored; it is valid in this process.
        """

        def change(row: TrustedFolder) -> None:
            row.is_trusted = True

        self._change(project, change)

    def answer(self, project: Project, files: Sequence[TrustedItem], is_trusted: bool) -> None:
        """Record that these files are used, or that they are not, as they are now.

        Raises:
            ConfigError: the answer cannot be stored; it is valid in this process.
        """

        def change(row: TrustedFolder) -> None:
            for file in files:
                key = trust_key(file) if isinstance(file, Extension) else file.path
                (row.files if is_trusted else row.declined)[key] = file.hash
                (row.declined if is_trusted else row.files).pop(key, None)

        self._change(project, change)

    def unanswered(self, project: Project) -> list[InstructionFile]:
        """Return the instruction files of a project that are new, or not as they were when somebody was asked."""
        row = self.get(project)
        known = (row.files, row.declined)
        return [
            file
            for file in read_project_files(project)
            if not any(hashes.get(file.path) == file.hash for hashes in known)
        ]

    def instruction_files(self, project: Project) -> list[InstructionFile]:
        """Return the instruction files that count: those with a trusted hash."""
        files = read_project_files(project)
        return trusted_files(files, self.get(project).files) if files else []

    def unanswered_extensions(self, project: Project) -> list[Extension]:
        """Return the extensions that need trust, and are new or not as they were when somebody was asked."""
        row = self.get(project)
        known = (row.files, row.declined)
        return [
            found
            for found in find_extensions(project.root, project.current, self._environ).found
            if (found.scope == "project" or found.kind == "mcp")
            and not any(hashes.get(trust_key(found)) == found.hash for hashes in known)
        ]

    def extensions(self, project: Project, *kinds: Kind) -> Extensions:
        """Return the extensions that count: the user's own, and those of the project with a trusted hash."""
        found = find_extensions(project.root, project.current, self._environ, kinds or ALL_KINDS)
        return select_extensions(found, self.get(project).files)

    def _load(self) -> _TrustedFolders:
        data = read_private(self.path)
        try:
            known = _TrustedFolders() if data is None else msgspec.json.decode(data, type=_TrustedFolders)
            return known if self.path not in _UNSAVED else _TrustedFolders(known.folders | _UNSAVED[self.path].folders)
        except msgspec.MsgspecError:
            raise ConfigError(
                f"{self.path} is damaged; move it away, and Everturn asks about each folder again"
            ) from None

    def _change(self, project: Project, change: Callable[[TrustedFolder], None]) -> None:
        try:
            with lock_file(self.path):
                known = self._load()
                change(known.folders.setdefault(str(project.root), TrustedFolder()))
                write_private(self.path, msgspec.json.format(msgspec.json.encode(known)))
        except ConfigError:
            known = self._load()
            change(row := known.folders.setdefault(str(project.root), TrustedFolder()))
            _UNSAVED.setdefault(self.path, _TrustedFolders()).folders[str(project.root)] = row
            raise
