"""Discovery: all extensions of a folder and of the user, and which of two with one name counts.

In a project, the folder nearest to the current one comes first, and in a folder `.agents` before `.claude` before
`.opencode`. What is trusted of a project comes before what is the user's own; what is not trusted hides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from everturn.config.extensions.extension import Extension, ExtensionProblem, Kind, Scope
from everturn.config.extensions.mcp_files import find_servers
from everturn.config.extensions.skills import find_skills
from everturn.config.extensions.slash_commands import find_commands
from everturn.config.extensions.subagents import find_agents

Finder = Callable[[Path, Path, Scope], Iterator[Extension | ExtensionProblem]]

LAYOUTS: Final = (".agents", ".claude", ".opencode")
FINDERS: Final[Mapping[Kind, tuple[Finder, tuple[str, ...]]]] = {
    "skill": (find_skills, ("skills", "skill")),
    "agent": (find_agents, ("agents", "agent")),
    "command": (find_commands, ("commands", "command")),
}
"""How each kind is found, and the folders that it is in: opencode has both the plural and the singular."""


class Extensions(Struct):
    """What was found, in order of precedence, and what is not used."""

    found: list[Extension] = field(default_factory=list[Extension])
    problems: list[ExtensionProblem] = field(default_factory=list[ExtensionProblem])

    def add(self, entries: Iterable[Extension | ExtensionProblem]) -> None:
        """Add what a finder has found."""
        for entry in entries:
            if isinstance(entry, Extension):
                self.found.append(entry)
            else:
                self.problems.append(entry)


def find_extensions(
    root: Path, current: Path, environ: Mapping[str, str], kinds: Iterable[Kind] = ("skill", "agent", "command", "mcp")
) -> Extensions:
    """Find the extensions of a project and of the user."""
    home = Path(environ["HOME"]) if environ.get("HOME") else None
    extensions = Extensions()
    folders = [current, *current.parents]
    folders = folders[: folders.index(root) + 1] if root in folders else [root]
    for kind in kinds:
        if kind == "mcp":
            extensions.add(find_servers(root, home))
            continue
        finder, names = FINDERS[kind]
        for folder in folders:
            for layout in LAYOUTS:
                for name in names:
                    _add(extensions, finder, folder / layout / name, root, "project")
        for folder in _user_folders(home, environ):
            if not folder.is_relative_to(root):  # `everturn` in the home folder: then they are the project's
                for name in names:
                    _add(extensions, finder, folder / name, Path("/"), "user")
    return extensions


def _add(extensions: Extensions, finder: Finder, top: Path, root: Path, scope: Scope) -> None:
    if top.is_dir() or top.is_symlink():
        extensions.add(finder(top, root, scope))


def _user_folders(home: Path | None, environ: Mapping[str, str]) -> list[Path]:
    base = Path(environ["XDG_CONFIG_HOME"]) if environ.get("XDG_CONFIG_HOME") else home and home / ".config"
    folders = [] if base is None else [base / "everturn"]
    folders += [] if home is None else [home / ".agents", home / ".claude"]
    return [*folders, *([] if base is None else [base / "opencode"])]


def select_extensions(extensions: Extensions, trusted: Mapping[str, str]) -> Extensions:
    """Return the extensions that count: trusted ones of the project, the user's own, and of one name only the first.

    An MCP server needs trust even if the user's own file defines it, because it starts a program.
    """
    selected = Extensions(problems=list(extensions.problems))
    taken: dict[tuple[Kind, str], str] = {}
    for extension in extensions.found:
        needs_trust = extension.scope == "project" or extension.kind == "mcp"
        if needs_trust and trusted.get(trust_key(extension)) != extension.hash:
            continue
        key = extension.kind, normalize(extension.name)
        if key in taken:
            selected.problems.append(
                ExtensionProblem(extension.path, f"hidden: {taken[key]} has the name {extension.name!r}")
            )
            continue
        taken[key] = extension.path
        selected.found.append(extension)
    return selected


def trust_key(extension: Extension) -> str:
    """Return the name under which trust in an extension is recorded."""
    return f"{extension.kind}:{extension.path}"


def normalize(name: str) -> str:
    """Return the form in which names are compared: models and people confuse case, `-` and `_`."""
    return name.replace("-", "").replace("_", "").casefold()
