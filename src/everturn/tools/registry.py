"""All the tools there are → those that a turn has: one namespace for tools of every origin, in and outside of groups.

It knows nothing of permissions: what is denied is for others to leave out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct

from everturn.core.ports import Tool
from everturn.errors import ConfigError
from everturn.tools.groups import Group
from everturn.tools.skills import LOAD_SKILL, spelling

Selection = tuple[str, ...] | None
"""What a turn was told to have: patterns of names, `@group`, `@group/pattern`; None: whatever is on."""

RESERVED: Final = ("invalid", "doom_loop", LOAD_SKILL, "read_result")  # they mean something in logs, rules or prompts
REMEMBERED_SELECTIONS = 256


class Enabled(Struct, frozen=True):
    """What a selection comes to: tools by name, and the groups some of them are of, with these names."""

    tools: Mapping[str, Tool]
    groups: tuple[tuple[Group, tuple[str, ...]], ...]


class Registry:
    """The tools of a runtime. Those of one origin may be replaced while turns are under way."""

    def __init__(self, tools: Iterable[Tool | Group] = ()) -> None:
        self._homes: dict[str, set[str]] = {}  # origin -> the groups its tools stand in, or stood; "" is outside
        self._items: Sequence[Tool | Group] = ()
        self._looks: dict[Selection, Enabled] = {}
        self._groups: dict[str, Group] = {}
        self.tools: Mapping[str, Tool] = {}
        self._take(tools)

    def replace(self, origin: str, tools: Iterable[Tool], group: str | None = None) -> None:
        """Put these in the place of all tools of one origin, all or none; requests made from now on see them.

        They stand where the others stood, in their group or outside, though it was long ago; `group` says it otherwise.

        Raises:
            ConfigError: they cannot be told from others, or are of another origin. Nothing was changed.
        """
        fresh = list(tools)
        for tool in fresh:
            _check_tool(tool)
            if tool.spec.origin != origin:
                raise ConfigError(f"{tool.spec.name} is of {tool.spec.origin}; only tools of {origin} are replaced now")
        home = self._home(origin, group)
        items = _swap(self._items, origin, fresh if home == "" else ())
        self._take(
            item.holding(_swap(item.tools, origin, fresh if item.name == home else ()))
            if isinstance(item, Group)
            else item
            for item in items
        )
        self._homes[origin] = {home}

    def _home(self, origin: str, group: str | None) -> str:
        if group is None:
            homes = self._homes.get(origin, {""})
            if len(homes) > 1:
                raise ConfigError(f"tools of {origin} stand in several places; say which: group='…', or '' for outside")
            (group,) = homes
        if group and group not in self._groups:
            raise ConfigError(f"there is no group {group!r}; there are: {', '.join(self._groups) or 'none'}")
        return group

    def _take(self, given: Iterable[Tool | Group]) -> None:
        """Check everything, and only then let it be."""
        items = tuple(given)
        tools: dict[str, Tool] = {}
        groups: dict[str, Group] = {}
        names: dict[str, str] = {}
        skills: dict[str, str] = {}
        for item in items:
            if isinstance(item, Group):
                if item.name in groups:
                    raise ConfigError(f"there are two groups called {item.name!r}; names must be unique")
                groups[item.name] = item
                for skill in item.skills:
                    if spelling(skill.name) in skills:
                        where = f"in {skills[spelling(skill.name)]!r} and in {item.name!r}"
                        raise ConfigError(f"there are two skills called {skill.name!r}, {where}; names must be unique")
                    skills[spelling(skill.name)] = item.name
            for tool in item.tools if isinstance(item, Group) else (item,):
                _check_tool(tool)
                _check_name(tool, names, tools)
                tools[tool.spec.name] = tool
                names[spelling(tool.spec.name)] = tool.spec.name
        for name, home in _places(items):
            self._homes.setdefault(tools[name].spec.origin, set()).add(home.name if home is not None else "")
        self._items, self._groups, self.tools = items, groups, MappingProxyType(tools)
        self._looks = {}

    # What a turn has ----------------------------------------------------------------------------------------------

    def enabled(self, selection: Selection = None) -> Mapping[str, Tool]:
        """The tools of a turn, in the order in which they were given; the same mapping until something changes."""
        return self.look(selection).tools

    def look(self, selection: Selection = None) -> Enabled:
        """The tools of a turn, and their groups. What is not there any more is merely missing."""
        found = self._looks.get(selection)
        if found is None:
            if len(self._looks) >= REMEMBERED_SELECTIONS:
                self._looks.clear()
            found = self._looks[selection] = self._choose(selection)
        return found

    def _choose(self, selection: Selection) -> Enabled:
        names = [name for name, home in _places(self._items) if _is_chosen(name, home, selection)]
        chosen = set(names)
        groups: list[tuple[Group, tuple[str, ...]]] = []
        for group in self._groups.values():
            own = tuple(tool.spec.name for tool in group.tools if tool.spec.name in chosen)
            if own or (self._is_without_tools(group) and _is_on(group, selection)):
                groups.append((group, own))
        return Enabled(MappingProxyType({name: self.tools[name] for name in names}), tuple(groups))

    def _is_without_tools(self, group: Group) -> bool:
        """Whether it has rules and skills only, and not merely no tools at the moment."""
        return not any(group.name in homes for homes in self._homes.values())

    def check(self, selection: Iterable[str] | None) -> Selection:
        """A selection as it is kept, or refused because there is no such thing.

        Raises:
            ConfigError: and it says what there is.
        """
        if selection is None:
            return None
        if isinstance(selection, str):
            raise ConfigError(f"tools is a list of names: tools=[{selection!r}]")
        wanted: list[Any] = list(selection)
        for one in wanted:
            if not isinstance(one, str):
                raise ConfigError(f"a turn has tools by their names, such as 'read_*' or '@files', not {one!r}")
            if not any(_is_chosen(name, home, (one,)) for name, home in _places(self._items)):
                self._check_group(one)
        return tuple(wanted)

    def _check_group(self, wanted: str) -> None:
        """Something that chooses no tool: it may still be a group that has none at the moment."""
        group, _, one = wanted.removeprefix("@").partition("/")
        if wanted.startswith("@") and group in self._groups and not one:
            return
        open_to_all = [name for name, home in _places(self._items) if home is None or home.on]
        groups = [f"@{name}" for name in self._groups]
        if wanted.startswith("@") and group in self._groups:
            there = [tool.spec.name for tool in self._groups[group].tools]
        else:
            there = [*groups, *open_to_all] if wanted.startswith("@") else [*open_to_all, *groups]
        raise ConfigError(f"there is no tool or group {wanted!r}; there are: {', '.join(there) or 'none'}")


def _places(items: Iterable[Tool | Group]) -> Iterator[tuple[str, Group | None]]:
    """Every tool by its name, with the group it stands in."""
    for item in items:
        if isinstance(item, Group):
            yield from ((tool.spec.name, item) for tool in item.tools)
        else:
            yield item.spec.name, None


def _is_chosen(name: str, home: Group | None, selection: Selection) -> bool:
    if selection is None:
        return home is None or home.on
    for wanted in selection:
        if wanted.startswith("@"):
            group, _, one = wanted[1:].partition("/")
            if home is not None and home.name == group and _fits(name, one or "*"):
                return True
        elif (home is None or home.on) and _fits(name, wanted):
            return True
    return False


def _fits(name: str, pattern: str) -> bool:
    return name == pattern or fnmatchcase(name, pattern)  # a name may have brackets in it


def _is_on(group: Group, selection: Selection) -> bool:
    return group.on if selection is None else f"@{group.name}" in selection


def _swap(items: Iterable[Any], origin: str, fresh: Sequence[Tool]) -> list[Any]:
    """The same list with other tools of an origin, where the first of them stood or, where none did, at its end."""
    swapped: list[Any] = []
    place: int | None = None
    for item in items:
        if isinstance(item, Group) or item.spec.origin != origin:
            swapped.append(item)
        elif place is None:
            place = len(swapped)
    at = len(swapped) if place is None else place
    return [*swapped[:at], *fresh, *swapped[at:]]


def _check_tool(tool: Tool) -> None:
    if not hasattr(tool, "spec"):
        what = getattr(tool, "__name__", repr(tool))
        raise ConfigError(f"{what} is not a tool; put @tool above the function, or give an object with a spec")


def _check_name(tool: Tool, names: Mapping[str, str], tools: Mapping[str, Tool]) -> None:
    """Two names that a model, or a rule, may take for each other are one too many."""
    name, plain = tool.spec.name, spelling(tool.spec.name)
    if not name.isprintable() or not plain or name != name.strip() or any(char in "*?\\" for char in name):
        raise ConfigError(f"{name!r} is not a name for a tool: rules, or people, could take it for something else")
    for reserved in RESERVED:
        if plain == spelling(reserved):
            raise ConfigError(f"the name {reserved!r} is taken; {_rename(tool)}")
    if plain in names:
        other = tools[names[plain]].spec
        what = f"called {name!r}" if other.name == name else f"whose names are alike, {other.name!r} and {name!r}"
        raise ConfigError(f"there are two tools {what}: of {other.origin} and of {tool.spec.origin}; {_rename(tool)}")


def _rename(tool: Tool) -> str:
    source = tool.spec.origin.partition(":")[2]
    prefix = source if source.isidentifier() else "my"
    return f'names must be unique: renamed(tool, "{prefix}_{tool.spec.name}") gives it another'
