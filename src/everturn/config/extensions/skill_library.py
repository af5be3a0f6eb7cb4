"""Skill library: the skills that the model can load in a folder, each read and checked against its hash when it is used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from everturn.config.extensions.discovery import normalize
from everturn.config.extensions.extension import Extension
from everturn.config.extensions.frontmatter import is_set
from everturn.config.extensions.skills import load_skill_file
from everturn.errors import BadArguments, ConfigError

MAX_INDEX: Final = 60_000  # characters of the index in the system prompt


class FolderSkills:
    """The skills of a folder. `find` returns those that count now: trusted, and unchanged since."""

    def __init__(self, find: Callable[[], Sequence[Extension]]) -> None:
        self._find = find

    def list(self) -> Sequence[Extension]:
        """The skills that the model is told of."""
        return [skill for skill in self._find() if not is_set(skill.fields, "disable-model-invocation")]

    def names(self) -> list[str]:
        """The names of the skills."""
        return [skill.name for skill in self.list()]

    def load(self, name: str, file: str = "") -> str:
        """Return the text of a skill with the list of its files, or one of these files.

        Raises:
            BadArguments: there is no such skill or file, or it has changed since it was trusted.
        """
        skills = self.list()
        skill = next((skill for skill in skills if normalize(skill.name) == normalize(name)), None)
        if skill is None:
            known = ", ".join(skill.name for skill in skills) or "none"
            raise BadArguments(f"there is no skill called {name[:64]!r}, or it has changed. There are: {known}")
        if not file:
            return _render(skill)
        try:
            return load_skill_file(skill, file)
        except ConfigError as error:
            raise BadArguments(str(error)) from None


def render_index(skills: Sequence[Extension]) -> str:
    """Write the index of the skills for the system prompt: name, description and hash of each; "" if there are none."""
    lines: list[str] = []
    left = MAX_INDEX
    for skill in skills:
        line = f"- {skill.name}: {_inert(skill.description)} [sha256 {skill.hash[:16]}]"
        left -= len(line)
        if left < 0:
            lines.append(f"- and {len(skills) - len(lines)} more, which are not listed: there are too many")
            break
        lines.append(line)
    if not lines:
        return ""
    return "\n".join(
        (
            "Skills are instructions for one kind of task. `load_skill` loads one; do so before a task that it is for.",
            "<skills>",
            *lines,
            "</skills>",
        )
    )


def _render(skill: Extension) -> str:
    files = ""
    if skill.files:
        listed = "\n".join(f"- {_inert(file)}" for file in skill.files)
        files = f"\n\nFiles of this skill, which load_skill(name, file) reads; folder: {_inert(skill.path)}\n{listed}"
    return f"{skill.text}{files}"


def _inert(text: str) -> str:
    return text.replace("</skills", "<\\/skills")
