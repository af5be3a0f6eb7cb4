"""Skills: instructions for the tools of a group, loaded in full only on demand.

The model sees an index of the skills and loads one with `load_skill`; a pinned skill is always in the prompt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.canonical_json import JsonObject
from everturn.core.parts import Output
from everturn.core.ports import ToolContext
from everturn.core.requests import ToolSpec
from everturn.errors import BadArguments, ConfigError

LOAD_SKILL: Final = "load_skill"


class Skill(Struct, frozen=True):
    """Instructions for one kind of work. `when` says in a few words when to use them."""

    name: str
    description: str
    text: str
    when: str = ""
    pinned: bool = False

    def __post_init__(self) -> None:
        """Refuse a name that cannot be requested, and an empty text."""
        if not self.name.strip() or self.name != " ".join(self.name.split()):
            raise ConfigError(f"{self.name!r} is not a name for a skill: it must be one line, without spaces around it")
        if not self.text.strip():
            raise ConfigError(f"skill {self.name!r} has no text, so there is nothing to load")

    @property
    def entry(self) -> str:
        """The skill's line in the index."""
        when = f" (when: {_line(self.when)})" if self.when else ""
        return f"- {self.name}: {_line(self.description)}{when}"


def _line(text: str) -> str:
    return " ".join(text.split())


LOAD_SKILL_SPEC: Final = ToolSpec(
    LOAD_SKILL,
    "Load a skill: a text that says how something is done. The skills there are stand in the system prompt.",
    {
        "type": "object",
        "properties": {"name": {"type": "string", "description": "The name of the skill, as it stands there."}},
        "required": ["name"],
        "additionalProperties": False,
    },
    read_only=True,
    repeatable=True,
    origin="builtin",
)


_FILE: Final[dict[str, Any]] = {
    "type": "string",
    "description": "A file of the skill, as the skill lists it. Without it, the text of the skill is loaded.",
}
LOAD_SKILL_FILES_SPEC: Final = replace(
    LOAD_SKILL_SPEC,
    schema={
        **LOAD_SKILL_SPEC.schema,
        "properties": {**LOAD_SKILL_SPEC.schema["properties"], "file": _FILE},
    },
)
"""The same tool where skills have files beside them."""


class SkillLibrary(Protocol):
    """Skills that change while the app runs, such as those in the files of a folder. Its index is in the instructions."""

    def names(self) -> list[str]:
        """The names of the skills that there are now."""
        ...

    def load(self, name: str, file: str = "") -> str:
        """Return the text of a skill, or of a file beside it.

        Raises:
            BadArguments: there is no such skill or file.
        """
        ...


class LoadSkillTool:
    """The `load_skill` tool for these skills, and for those of libraries."""

    def __init__(self, skills: Iterable[Skill], libraries: Sequence[SkillLibrary] = ()) -> None:
        self._skills = {skill.name: skill for skill in skills}
        self._libraries = libraries

    @property
    def spec(self) -> ToolSpec:
        """The same for all sets of skills, so that a new skill does not make this another tool."""
        return LOAD_SKILL_FILES_SPEC if self._libraries else LOAD_SKILL_SPEC

    def validate(self, arguments: JsonObject) -> None:
        """Check that the skill exists."""
        if self._library(arguments) is None:
            self._find(arguments)

    def run(self, arguments: JsonObject, context: ToolContext) -> Awaitable[Output]:
        """Return the skill's text, or one of its files."""
        return self._load(arguments)

    async def _load(self, arguments: JsonObject) -> Output:
        if (library := self._library(arguments)) is None:
            skill = self._find(arguments)
            return Output(skill.text, title=skill.name)
        name, file = str(arguments["name"]), str(arguments.get("file", ""))
        text = await asyncio.to_thread(library.load, name, file)
        return Output(text, title=f"{name}/{file}" if file else name)

    def _library(self, arguments: JsonObject) -> SkillLibrary | None:
        """The library that has the skill; None: it is one of the skills that were given."""
        name, file = arguments.get("name"), arguments.get("file", "")
        if not isinstance(name, str) or not isinstance(file, str) or arguments.keys() - {"name", "file"}:
            raise BadArguments(f"{LOAD_SKILL} takes one parameter, `name`: the name of a skill. {self._known()}")
        wanted = normalize_name(name)
        if any(normalize_name(known) == wanted for known in self._skills):
            return None
        for library in self._libraries:
            if any(normalize_name(known) == wanted for known in library.names()):
                return library
        return None

    def _find(self, arguments: JsonObject) -> Skill:
        name = arguments.get("name")
        if not isinstance(name, str) or len(arguments) != 1:
            raise BadArguments(f"{LOAD_SKILL} takes one parameter, `name`: the name of a skill. {self._known()}")
        skill = self._skills.get(name) or next(
            (
                candidate
                for candidate in self._skills.values()
                if normalize_name(candidate.name) == normalize_name(name)
            ),
            None,
        )
        if skill is None:
            raise BadArguments(f"there is no skill called {name[:64]!r}. {self._known()}")
        return skill

    def _known(self) -> str:
        names = [*self._skills, *(name for library in self._libraries for name in library.names())]
        return f"There are: {', '.join(names) or 'none'}"


def normalize_name(name: str) -> str:
    """The form in which names are compared: models confuse case, and leave out `-` and `_`."""
    return name.replace("-", "").replace("_", "").casefold()
