"""Sub-agents as Markdown files: a description, a prompt, and the tools that each may have.

The tools of other assistants are mapped to ours. A file can only take tools away: a name that we do not have gives
nothing, and `permissionMode`, `allow` and the like are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from everturn.config.extensions.extension import Extension, ExtensionProblem, Scope
from everturn.config.extensions.frontmatter import Fields, Value, is_set, list_field
from everturn.config.extensions.slash_commands import find_markdown
from everturn.errors import ConfigError

MAX_AGENTS: Final = 50
MAX_STEPS: Final = 100
DEFAULT_STEPS: Final = 50
TOOL_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "read": ("read_file", "list_directory"),
    "notebookread": ("read_file",),
    "ls": ("list_directory",),
    "list": ("list_directory",),
    "glob": ("list_directory", "search_files"),
    "grep": ("search_files",),
    "write": ("write_file",),
    "edit": ("edit_file",),
    "multiedit": ("edit_file",),
    "patch": ("edit_file", "write_file"),
    "notebookedit": ("edit_file",),
    "bash": ("run_shell",),
    "shell": ("run_shell",),
    "webfetch": ("fetch_url",),
    "fetch": ("fetch_url",),
    "websearch": ("web_search",),
    "skill": ("load_skill",),
    "todowrite": ("write_todos",),
}
"""The names of other assistants, in lower case, and our tools for them."""

WRITERS: Final = frozenset({"write_file", "edit_file"})  # without one of them, an agent has neither
IGNORED: Final = ("hooks", "isolation", "mcpServers", "memory", "permissionMode", "model", "temperature", "background")


class ToolChoice(Struct, frozen=True):
    """The tools that an agent has: those of `names` (None: all), without `denied`, and with `only_reads` only readers."""

    names: frozenset[str] | None = None
    denied: frozenset[str] = frozenset()
    only_reads: bool = False

    def allows(self, tool: str, *, read_only: bool) -> bool:
        """Whether the agent has a tool."""
        if tool in self.denied or (self.only_reads and not read_only):
            return False
        return self.names is None or tool in self.names


def find_agents(top: Path, root: Path, scope: Scope) -> Iterator[Extension | ExtensionProblem]:
    """Find the agents below a folder such as `.claude/agents`."""
    for found in find_markdown(top, root, scope, "agent", MAX_AGENTS):
        if isinstance(found, ExtensionProblem):
            yield found
            continue
        if is_set(found.fields, "disable"):
            continue
        try:
            choose_tools(found.fields)
        except ConfigError as error:
            yield ExtensionProblem(found.path, str(error))
            continue
        if not found.description:
            yield ExtensionProblem(
                found.path, "it has no description; without one, the model cannot know when to use it"
            )
            continue
        yield found


def choose_tools(fields: Fields) -> ToolChoice:
    """Return the tools that the frontmatter of an agent leaves it.

    Raises:
        ConfigError: a field has a form that is not known: nothing is guessed about permissions.
    """
    names: frozenset[str] | None = None
    denied: set[str] = set()
    tools = fields.get("tools")
    if isinstance(tools, dict):  # opencode: {write: false}
        denied.update(_mapped(name for name, value in tools.items() if value not in ("true", "True")))
        if tools.get("*") in ("false", "False"):
            names = frozenset(_mapped(name for name, value in tools.items() if value in ("true", "True")))
    elif tools is not None and tools != "*":
        names = frozenset(_mapped(list_field(fields, "tools") or ()))
    denied.update(_mapped(list_field(fields, "disallowedTools") or ()))
    denied.update(_denied_by(fields.get("permission", {})))
    if denied & WRITERS:
        denied |= WRITERS
    return ToolChoice(names, frozenset(denied), fields.get("permissionMode") == "plan")


def _denied_by(permission: Value) -> Iterator[str]:
    """Yield the tools that a `permission` of opencode denies, or denies for some arguments."""
    if isinstance(permission, str):
        if permission not in ("allow", "ask", ""):
            yield from _mapped(TOOL_NAMES)
        return
    if not isinstance(permission, dict):
        raise ConfigError("permission must be a map of tools to allow, ask or deny")
    for name, value in permission.items():
        patterns = value.values() if isinstance(value, dict) else (value,)
        if any(action not in ("allow", "ask") for action in patterns):
            yield from _mapped(TOOL_NAMES if name == "*" else (name,))


def _mapped(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        bare = name.partition("(")[0].strip()  # Bash(git:*): the rules of the folder decide about arguments
        yield from TOOL_NAMES.get(bare.lower(), (bare,))


def step_limit(fields: Fields) -> int:
    """Return the limit of steps that an agent states, at most ours."""
    for key in ("maxTurns", "maxSteps", "steps"):
        value = fields.get(key)
        if isinstance(value, str) and value.isascii() and value.isdigit() and 0 < len(value) < 6 and int(value) > 0:
            return min(int(value), MAX_STEPS)
    return DEFAULT_STEPS


def ignored_fields(fields: Fields) -> list[str]:
    """Return the fields of an agent that have no effect here."""
    return [name for name in IGNORED if name in fields and fields[name] not in ("inherit", "plan", "default")]
