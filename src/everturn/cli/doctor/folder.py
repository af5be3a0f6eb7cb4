"""Folder checks: whether the assistant works in the current folder, and which files of it that it would use or skip."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from typing import Final

from everturn.cli.doctor.checks import DoctorCheck, make_printable
from everturn.config.extensions.extension import Kind
from everturn.config.folder.project import Project, find_project
from everturn.config.folder.trust import FolderTrust
from everturn.config.load import LoadedConfig
from everturn.errors import ConfigError

SECTION: Final = "Folder"
MAX_SKIPPED: Final = 10  # files that are listed one by one
NOUNS: Final[Mapping[Kind, tuple[str, str]]] = {
    "skill": ("skill", "skills"),
    "agent": ("agent", "agents"),
    "command": ("command", "commands"),
    "mcp": ("MCP server", "MCP servers"),
}


def check_folder(loaded: LoadedConfig, environ: Mapping[str, str]) -> list[DoctorCheck]:
    """Check the current folder as `everturn` would find it."""
    if not loaded.config.assistant.folder:
        return [DoctorCheck(SECTION, "tools", "absent", "folder = false in [assistant]: no files and no shell")]
    try:
        project, trust = find_project(os.getcwd()), FolderTrust(environ)
        is_trusted = trust.is_trusted(project)
    except (ConfigError, OSError) as error:
        return [DoctorCheck(SECTION, "trust", "broken", make_printable(str(error)))]
    return [_trust(project, is_trusted), *(_files(project, trust) if is_trusted else [])]


def _trust(project: Project, is_trusted: bool) -> DoctorCheck:
    label = make_printable(project.label)
    if project.breadth == "root":
        return DoctorCheck(SECTION, "trust", "absent", "/ is no project", "start `everturn` in the folder of a project")
    if not is_trusted:
        return DoctorCheck(SECTION, "trust", "note", f"{label} is not trusted yet", "`everturn` asks once")
    return DoctorCheck(SECTION, "trust", "ok", f"{label}{', a git repository' if project.is_git else ''}")


def _files(project: Project, trust: FolderTrust) -> list[DoctorCheck]:
    used, waiting = trust.instruction_files(project), trust.unanswered(project)
    extensions, open_extensions = trust.extensions(project), trust.unanswered_extensions(project)
    counts = Counter(extension.kind for extension in extensions.found)
    checks: list[DoctorCheck] = []
    if used:
        paths = ", ".join(make_printable(file.path) for file in used)
        checks.append(DoctorCheck(SECTION, "instructions", "ok", paths))
    if counts:
        listed = ", ".join(
            f"{counts[kind]} {singular if counts[kind] == 1 else plural}"
            for kind, (singular, plural) in NOUNS.items()
            if counts[kind]
        )
        checks.append(DoctorCheck(SECTION, "extensions", "ok", listed))
    if waiting or open_extensions:
        paths = [file.path for file in (*waiting, *open_extensions)]
        detail = f"new or changed, and not used: {', '.join(map(make_printable, paths[:MAX_SKIPPED]))}"
        detail += f" and {len(paths) - MAX_SKIPPED} more" if len(paths) > MAX_SKIPPED else ""
        checks.append(DoctorCheck(SECTION, "to be trusted", "note", detail, "`everturn` asks about them at its start"))
    for problem in extensions.problems[:MAX_SKIPPED]:
        detail = f"{make_printable(problem.path)}: {make_printable(problem.reason)}"
        checks.append(DoctorCheck(SECTION, "skipped", "note", detail))
    if len(extensions.problems) > MAX_SKIPPED:
        checks.append(DoctorCheck(SECTION, "skipped", "note", f"{len(extensions.problems) - MAX_SKIPPED} more files"))
    return checks
