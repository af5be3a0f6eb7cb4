"""Tool registry: one namespace for the tools of every origin, in groups and outside of them, and the selection of a
turn.

The registry knows nothing of permissions; the permission rules leave out the tools that they deny.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, Final, cast
from weakref import WeakSet

from msgspec import Struct

from everturn.core.loop_detection import LOOP_RULE_NAME
from everturn.core.ports import Tool, ToolSource
from everturn.errors import ConfigError
from everturn.tools.function import ToolLike, ensure_tool
from everturn.tools.groups import ToolGroup
from everturn.tools.skills import LOAD_SKILL, normalize_name
from everturn.tools.tool_search import FIND_TOOLS

log = logging.getLogger(__name__)

ToolSelection = tuple[str, ...] | None
"""The tools that a turn selects: patterns of names, `@group`, `@group/pattern`; None: all that are enabled by default.
"""

# These names have a meaning in logs, rules or prompts.
RESERVED: Final = ("invalid", LOOP_RULE_NAME, LOAD_SKILL, FIND_TOOLS, "read_result", "list_results", "read_document")
MAX_CACHED_SELECTIONS = 256

ToolItem = ToolLike | ToolGroup | ToolSource
"""What a list of tools may have: a tool or a function, a group, and a source whose tools come and go, as of MCP servers."""


class EnabledTools(Struct, frozen=True):
    """The result of a selection: tools by name, and each group with the names of its selected tools."""

    tools: Mapping[str, Tool]
    groups: tuple[tuple[ToolGroup, tuple[str, ...]], ...]


class ToolRegistry:
    """The tools of a runtime. The tools of one origin can be replaced while turns are running."""

    def __init__(self, tools: Iterable[ToolLike | ToolGroup] = ()) -> None:
        self._homes: dict[str, set[str]] = {}  # origin -> groups that hold its tools, or held them; "" is no group
        self._items: Sequence[Tool | ToolGroup] = ()  # its own, and those that it includes
        self._own: Sequence[Tool | ToolGroup] = ()
        self._included: tuple[ToolRegistry, tuple[str, ...]] | None = None
        self._includers: WeakSet[ToolRegistry] = WeakSet()
        self._looks: dict[ToolSelection, EnabledTools] = {}
        self._groups: dict[str, ToolGroup] = {}
        self.tools: Mapping[str, Tool] = {}
        self._take(item if isinstance(item, ToolGroup) else ensure_tool(item) for item in tools)

    def add(self, tool: Tool, group: str) -> None:
        """Add a tool to a group, which is made (off) if there is none of this name.

        Raises:
            ConfigError: a name collides with another tool's. Nothing was changed.
        """
        if group not in self._groups:
            self._take((*self._own, ToolGroup(group, [tool])))
            return
        self._take(
            item.with_tools((*item.tools, tool)) if isinstance(item, ToolGroup) and item.name == group else item
            for item in self._own
        )

    def include(self, other: ToolRegistry, selection: Iterable[str]) -> None:
        """Have the selected tools of another registry as well, with their groups, as they come and go there.

        Raises:
            ConfigError: a name collides with that of an own tool. Of those that come later, such a tool is left out.
        """
        self._included = other, tuple(selection)
        self._take((*self._own, *self._included_items((), ())), self._own)
        other._includers.add(self)

    def _included_items(self, tools: Collection[str], groups: Collection[str]) -> Iterator[Tool | ToolGroup]:
        """The included tools, in their groups, without those whose names are taken."""
        if self._included is None:
            return
        other, selection = self._included
        enabled = other.select(selection)
        chosen = {name for name in enabled.tools if normalize_name(name) not in tools}
        wanted = {group.name for group, _ in enabled.groups}.difference(groups)
        for item in other._items:
            if not isinstance(item, ToolGroup):
                if item.spec.name in chosen:
                    yield item
            elif item.name in wanted:
                yield item.with_tools(tool for tool in item.tools if tool.spec.name in chosen).enabled()

    def replace(self, origin: str, tools: Iterable[Tool], group: str | None = None) -> None:
        """Replace all tools of one origin, all or none; requests made from now on see the new ones.

        The new tools take the position of the old ones, in their group or outside, even if those were removed long ago;
        `group` overrides it.

        Raises:
            ConfigError: a name collides with another tool's, or a tool has another origin. Nothing was changed.
        """
        fresh = [ensure_tool(tool) for tool in tools]
        for tool in fresh:
            if tool.spec.origin != origin:
                raise ConfigError(
                    f"{tool.spec.name} is of {tool.spec.origin}; only tools of {origin} can be replaced here"
                )
        home = self._home(origin, group)
        items = _swap(self._own, origin, fresh if home == "" else ())
        self._take(
            item.with_tools(_swap(item.tools, origin, fresh if item.name == home else ()))
            if isinstance(item, ToolGroup)
            else item
            for item in items
        )
        self._homes[origin] = {home}

    def _home(self, origin: str, group: str | None) -> str:
        if group is None:
            homes = self._homes.get(origin, {""})
            if len(homes) > 1:
                raise ConfigError(
                    f"tools of {origin} are in several groups; name one: group='…', or '' for tools without a group"
                )
            (group,) = homes
        if group and group not in self._groups:
            raise ConfigError(f"there is no group {group!r}; there are: {', '.join(self._groups) or 'none'}")
        return group

    def _take(self, candidates: Iterable[Tool | ToolGroup], own: Sequence[Tool | ToolGroup] | None = None) -> None:
        """Check all items, and only then replace the registry's content. `own` are those of them that are its own."""
        items = tuple(candidates)
        if own is None:
            own = items
            if self._included is not None:
                taken = {normalize_name(name) for name, _ in _places(own)}
                items += tuple(self._included_items(taken, {item.name for item in own if isinstance(item, ToolGroup)}))
        tools: dict[str, Tool] = {}
        groups: dict[str, ToolGroup] = {}
        names: dict[str, str] = {}
        skills: dict[str, str] = {}
        for item in items:
            if isinstance(item, ToolGroup):
                if item.name in groups:
                    raise ConfigError(f"two groups have the name {item.name!r}; names must be unique")
                groups[item.name] = item
                for skill in item.skills:
                    if normalize_name(skill.name) in skills:
                        where = f"in {skills[normalize_name(skill.name)]!r} and in {item.name!r}"
                        raise ConfigError(f"two skills have the name {skill.name!r}, {where}; names must be unique")
                    skills[normalize_name(skill.name)] = item.name
            for tool in item.tools if isinstance(item, ToolGroup) else (item,):
                _check_name(tool, names, tools)
                tools[tool.spec.name] = tool
                names[normalize_name(tool.spec.name)] = tool.spec.name
        for name, home in _places(items):
            self._homes.setdefault(tools[name].spec.origin, set()).add(home.name if home is not None else "")
        self._items, self._own, self._groups, self.tools = items, own, groups, MappingProxyType(tools)
        self._looks = {}
        for includer in self._includers:
            try:
                includer._take(includer._own)
            except ConfigError as error:
                log.warning("the tools of an agent were not updated: %s", error)

    # The selection of a turn -------------------------------------------------------------------------------------

    def enabled(self, selection: ToolSelection = None) -> Mapping[str, Tool]:
        """The tools of a turn, in the order of registration; the same mapping until something changes."""
        return self.select(selection).tools

    def select(self, selection: ToolSelection = None) -> EnabledTools:
        """The tools of a turn, and their groups. Selected tools that no longer exist are left out."""
        enabled_tools = self._looks.get(selection)
        if enabled_tools is None:
            if len(self._looks) >= MAX_CACHED_SELECTIONS:
                self._looks.clear()
            enabled_tools = self._looks[selection] = self._choose(selection)
        return enabled_tools

    def _choose(self, selection: ToolSelection) -> EnabledTools:
        names = [name for name, home in _places(self._items) if _is_chosen(name, home, selection)]
        chosen = set(names)
        groups: list[tuple[ToolGroup, tuple[str, ...]]] = []
        for group in self._groups.values():
            own = tuple(tool.spec.name for tool in group.tools if tool.spec.name in chosen)
            if own or (self._is_without_tools(group) and _is_on(group, selection)):
                groups.append((group, own))
        return EnabledTools(MappingProxyType({name: self.tools[name] for name in names}), tuple(groups))

    def _is_without_tools(self, group: ToolGroup) -> bool:
        """Whether the group was made with rules and skills only, as opposed to having no tools at the moment."""
        return not any(group.name in homes for homes in self._homes.values())

    def check_selection(self, selection: Iterable[str] | None) -> ToolSelection:
        """Validate a selection, and return it as a tuple.

        Raises:
            ConfigError: an entry matches no tool and no group; the message lists what exists.
        """
        if selection is None:
            return None
        if isinstance(selection, str):
            raise ConfigError(f"tools must be a list of names: tools=[{selection!r}]")
        wanted: list[Any] = list(selection)
        for entry in wanted:
            if not isinstance(entry, str):
                raise ConfigError(f"tools of a turn are named, such as 'read_*' or '@files', not {entry!r}")
            if entry == "*":  # all that there are, which may be none at the moment
                continue
            if not any(_is_chosen(name, home, (entry,)) for name, home in _places(self._items)):
                self._check_group(entry)
        return tuple(wanted)

    def _check_group(self, wanted: str) -> None:
        """Accept an entry that matches no tool if it names a group that has none at the moment; else raise."""
        group, _, pattern = wanted.removeprefix("@").partition("/")
        if wanted.startswith("@") and group in self._groups and not pattern:
            return
        open_to_all = [name for name, home in _places(self._items) if home is None or home.on]
        groups = [f"@{name}" for name in self._groups]
        if wanted.startswith("@") and group in self._groups:
            known = [tool.spec.name for tool in self._groups[group].tools]
        else:
            known = [*groups, *open_to_all] if wanted.startswith("@") else [*open_to_all, *groups]
        raise ConfigError(f"there is no tool or group {wanted!r}; there are: {', '.join(known) or 'none'}")


def split_sources(items: Iterable[ToolItem]) -> tuple[list[Tool | ToolGroup], list[ToolSource]]:
    """Split tools into tools and groups, and tool sources."""
    tools: list[Tool | ToolGroup] = []
    sources: list[ToolSource] = []
    for item in items:
        if is_tool_source(item):
            sources.append(cast(ToolSource, item))
        else:
            tools.append(item if isinstance(item, ToolGroup) else ensure_tool(cast(ToolLike, item)))
    return tools, sources


def is_tool_source(item: object) -> bool:
    """Whether an item of a list of tools is a source of tools."""
    return hasattr(item, "open") and hasattr(item, "aclose") and not inspect.isclass(item)


def _places(items: Iterable[Tool | ToolGroup]) -> Iterator[tuple[str, ToolGroup | None]]:
    """Every tool by its name, with its group."""
    for item in items:
        if isinstance(item, ToolGroup):
            yield from ((tool.spec.name, item) for tool in item.tools)
        else:
            yield item.spec.name, None


def _is_chosen(name: str, home: ToolGroup | None, selection: ToolSelection) -> bool:
    if selection is None:
        return home is None or home.on
    for wanted in selection:
        if wanted.startswith("@"):
            group, _, pattern = wanted[1:].partition("/")
            if home is not None and home.name == group and _fits(name, pattern or "*"):
                return True
        elif (home is None or home.on) and _fits(name, wanted):
            return True
    return False


def _fits(name: str, pattern: str) -> bool:
    return name == pattern or fnmatchcase(name, pattern)  # a name may contain brackets


def _is_on(group: ToolGroup, selection: ToolSelection) -> bool:
    return (group.on and (selection is None or "*" in selection)) or f"@{group.name}" in (selection or ())


def _swap(items: Iterable[Any], origin: str, fresh: Sequence[Tool]) -> list[Any]:
    """The same list with other tools of an origin, at the position of the first one or, where there was none, at the
    end.
    """
    swapped: list[Any] = []
    place: int | None = None
    for item in items:
        if isinstance(item, ToolGroup) or item.spec.origin != origin:
            swapped.append(item)
        elif place is None:
            place = len(swapped)
    at = len(swapped) if place is None else place
    return [*swapped[:at], *fresh, *swapped[at:]]


def _check_name(tool: Tool, names: Mapping[str, str], tools: Mapping[str, Tool]) -> None:
    """Refuse a reserved name, and one that a model or a rule could confuse with another tool's."""
    name, plain = tool.spec.name, normalize_name(tool.spec.name)
    if not name.isprintable() or not plain or name != name.strip() or any(char in "*?\\" for char in name):
        raise ConfigError(f"{name!r} is not a name for a tool: rules or people could confuse it with other syntax")
    for reserved in RESERVED:
        if plain == normalize_name(reserved):
            raise ConfigError(f"the name {reserved!r} is taken; {_rename(tool)}")
    if plain in names:
        other = tools[names[plain]].spec
        description = (
            f"called {name!r}" if other.name == name else f"whose names are alike, {other.name!r} and {name!r}"
        )
        raise ConfigError(
            f"there are two tools {description}: of {other.origin} and of {tool.spec.origin}; {_rename(tool)}"
        )


def _rename(tool: Tool) -> str:
    source = tool.spec.origin.partition(":")[2]
    prefix = source if source.isidentifier() else "my"
    return f'names must be unique: rename_tool(tool, "{prefix}_{tool.spec.name}") gives it another'
