"""Tool groups: tools that are enabled together, with rules of their own in the system prompt."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from everturn.errors import ConfigError
from everturn.tools.function import ToolLike, ensure_tool
from everturn.tools.skills import LOAD_SKILL, Skill, SkillLibrary

GroupRules = str | Callable[[Sequence[str]], str]
"""The rules of a group for the model: a text, or a function of the names of those of its tools that are enabled."""

NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.-]{0,63}")


class ToolGroup:
    """Tools under one name; off until the group is enabled, for all turns or (`@name`) for one."""

    __slots__ = ("is_on_demand", "library", "name", "on", "rules", "skills", "tools")

    def __init__(
        self,
        name: str,
        tools: Iterable[ToolLike] = (),
        rules: GroupRules = "",
        skills: Iterable[Skill] = (),
        on: bool = False,
        library: SkillLibrary | None = None,
    ) -> None:
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(
                f'the first argument of a group is its name: Group("files", [search]), not a {type(name).__name__}'
            )
        if NAME.fullmatch(name) is None:
            raise ConfigError(f"{name!r} is not a name for a group; letters, digits, '_', '.' and '-', at most 64")
        if hasattr(tools, "spec") or callable(tools) or isinstance(skills, Skill):
            raise ConfigError(f"group {name!r}: tools and skills must be lists: Group({name!r}, [search])")
        if not isinstance(rules, str) and not callable(rules):
            raise ConfigError(f"group {name!r}: rules must be a string, or a function of the names of its tools")
        self.name, self.rules, self.skills = name, rules, tuple(skills)
        self.tools = tuple(ensure_tool(item) for item in tools)
        self.on = on is True  # no other value enables it
        self.is_on_demand, self.library = False, library
        for skill in self.skills:
            if not isinstance(skill, Skill):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ConfigError(f"group {name!r}: {skill!r} is not a skill; Skill(name, description, text)")

    def enabled(self) -> ToolGroup:
        """The same group, enabled."""
        return ToolGroup(self.name, self.tools, self.rules, self.skills, on=True, library=self.library)

    def on_demand(self) -> ToolGroup:
        """The same group, off even if an agent is given it, until a message selects it: `send(tools=["@name"])`."""
        group = ToolGroup(self.name, self.tools, self.rules, self.skills, library=self.library)
        group.is_on_demand = True
        return group

    def with_tools(self, tools: Iterable[ToolLike]) -> ToolGroup:
        """The same group with other tools."""
        return ToolGroup(self.name, tools, self.rules, self.skills, self.on, self.library)

    def render_rules(self, names: Sequence[str]) -> str:
        """The group's rules for a model that has these of its tools."""
        text: Any = self.rules if isinstance(self.rules, str) else self.rules(names)
        if not isinstance(text, str):
            raise ConfigError(f"the rules of group {self.name!r} are a {type(text).__name__}, not a text")
        return text.strip()


SKILL_INDEX_HEADING = f"Skills; `{LOAD_SKILL}` loads one, before you do what it is for:"


def render_group_section(group: ToolGroup, names: Sequence[str], has_index: bool) -> str:
    """The system prompt section of a group whose tools of these names a model has; "" if it would be empty."""
    parts = [group.render_rules(names)]
    parts += [f"{skill.name}: {skill.description}\n{skill.text.strip()}" for skill in group.skills if skill.pinned]
    if has_index and (index := [skill.entry for skill in group.skills if not skill.pinned]):
        parts.append("\n".join((SKILL_INDEX_HEADING, *index)))
    # A group's text cannot close its own section: an MCP server's instructions may be in it.
    text = "\n\n".join(part for part in parts if part).replace("</tool-group", "&lt;/tool-group")
    return f'<tool-group name="{group.name}">\n{text}\n</tool-group>' if text else ""
