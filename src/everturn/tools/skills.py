"""Skills: how something is done with the tools of a group, told in full only when it is wanted.

A model sees an index of them and loads one with `load_skill`; one that is pinned it always sees.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import Final

from msgspec import Struct

from everturn.core.canonical import JsonObject
from everturn.core.parts import Output
from everturn.core.ports import ToolContext
from everturn.core.requests import ToolSpec
from everturn.errors import BadArguments, ConfigError

LOAD_SKILL: Final = "load_skill"


class Skill(Struct, frozen=True):
    """A text that says how something is done. `when` says what for, in a few words."""

    name: str
    description: str
    text: str
    when: str = ""
    pinned: bool = False

    def __post_init__(self) -> None:
        """Refuse one that nobody could ask for, or that would say nothing."""
        if not self.name.strip() or self.name != " ".join(self.name.split()):
            raise ConfigError(f"{self.name!r} is not a name for a skill: one line, without blanks around it")
        if not self.text.strip():
            raise ConfigError(f"skill {self.name!r} has no text; there would be nothing to load")

    @property
    def entry(self) -> str:
        """Its line in the index."""
        when = f" (when: {_line(self.when)})" if self.when else ""
        return f"- {self.name}: {_line(self.description)}{when}"


def _line(text: str) -> str:
    return " ".join(text.split())


SPEC: Final = ToolSpec(
    LOAD_SKILL,
    "Load a skill: a text that says how something is done. The skills there are stand in the system prompt.",
    {
        "type": "object",
        "properties": {"name": {"type": "string", "description": "The name of the skill, as it stands there."}},
        "required": ["name"],
        "additionalProperties": False,
    },
    effects="read",
    repeatable=True,
    origin="builtin",
)


class LoadSkill:
    """The tool that loads one of these skills."""

    def __init__(self, skills: Iterable[Skill]) -> None:
        self._skills = {skill.name: skill for skill in skills}

    @property
    def spec(self) -> ToolSpec:
        """What it is; the same whatever the skills are, so that a new one does not make it another tool."""
        return SPEC

    def validate(self, arguments: JsonObject) -> None:
        """Check that there is such a skill."""
        self._find(arguments)

    def run(self, arguments: JsonObject, context: ToolContext) -> Awaitable[Output]:
        """Give its text."""
        return self._load(self._find(arguments))

    async def _load(self, skill: Skill) -> Output:
        return Output(skill.text, title=skill.name)

    def _find(self, arguments: JsonObject) -> Skill:
        name = arguments.get("name")
        if not isinstance(name, str) or len(arguments) != 1:
            raise BadArguments(f"{LOAD_SKILL} takes one parameter, `name`: the name of a skill. {self._known()}")
        skill = self._skills.get(name) or next(
            (one for one in self._skills.values() if spelling(one.name) == spelling(name)), None
        )
        if skill is None:
            raise BadArguments(f"there is no skill called {name[:64]!r}. {self._known()}")
        return skill

    def _known(self) -> str:
        return f"There are: {', '.join(self._skills)}"


def spelling(name: str) -> str:
    """A name as it is compared: models confuse case, and leave out `-` and `_`."""
    return name.replace("-", "").replace("_", "").casefold()
