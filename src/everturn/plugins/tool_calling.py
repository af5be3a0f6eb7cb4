"""Tool calling, as a plugin: it offers the tools before a request and settles the calls after it.

It uses the hooks every plugin has, waiting for days included: while a person is asked it returns `PENDING`, and is
called again, here or in another process, when the answer has come.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Set

from msgspec import Struct

from everturn.core.hooks import Pending, RequestContext, StepContext
from everturn.core.options import TurnOptions
from everturn.core.ports import Tool
from everturn.core.requests import ToolSpec
from everturn.errors import ConfigError
from everturn.tools.client import ByClient
from everturn.tools.groups import Group, section
from everturn.tools.reading import ReadResult
from everturn.tools.registry import Enabled, Registry
from everturn.tools.skills import LoadSkill
from everturn.turn.contexts import OneRequest, OneStep
from everturn.turn.passing import REFERENCES_RULE, has_cut
from everturn.turn.permit import Permits, is_selected
from everturn.turn.privacy import PRIVACY_RULE
from everturn.turn.results import read_branch
from everturn.turn.shaping import Limits
from everturn.turn.tools import settle_calls

READ_RESULT = ReadResult()
log = logging.getLogger(__name__)

NOT_ABOVE = (
    "a sub-agent has at most the tools of the turn that calls it; give them to that turn as well (send(tools=[…]), or "
    "Group(…).enabled() for tools of a group), or leave `tools` of the agent out"
)
DENIED = "rules deny {names}; `everturn permissions explain` names the rule"
ALL_OFF = (
    "they are in groups, and a group is off until it is switched on: Group(…).enabled(), files(folder).enabled(), or "
    "send(tools=['@group']) for one turn"
)
REMEMBERED_TURNS = 1024


class Offer(Struct, frozen=True):
    """What a turn may call, and what it is told of that. It is the same for every step, until tools change."""

    key: object  # what it was worked out for: the options, or what is enabled where they say no more than that
    enabled: Enabled
    tools: Mapping[str, Tool]
    specs: tuple[ToolSpec, ...]
    reading: tuple[ToolSpec, ...]  # offered as well, once there is a result that was cut
    prompt: str


class ToolCalling:
    """Lets a model call these tools."""

    name = "tool_calling"
    writes_first = True  # no call runs that is not written down, and nothing is done with their results

    def __init__(self, tools: Registry | Iterable[Tool | Group], limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._registry = tools if isinstance(tools, Registry) else Registry(tools)
        self._offers: dict[int, Offer] = {}
        self._warned: set[str] = set()

    def on_system_prompt(self, ctx: RequestContext) -> None:
        """Say what there is to say of the groups that are on; to the request that closes a turn as to the others."""
        assert isinstance(ctx, OneRequest), "call this with the context the hook was given"
        offer = self._offer(ctx.run.setup.permits, ctx.options)
        if offer.prompt:
            ctx.system.append(offer.prompt)
        if offer.specs and has_cut(ctx.run):
            ctx.system.append(REFERENCES_RULE)

    def on_before_request(self, ctx: RequestContext) -> None:
        """Offer the tools, unless this is the request that closes a turn."""
        if not ctx.closing:
            assert isinstance(ctx, OneRequest), "call this with the context the hook was given"
            offer = self._offer(ctx.run.setup.permits, ctx.options)
            ctx.body.tools = [*offer.specs]
            if offer.reading and has_cut(ctx.run):
                ctx.body.tools += offer.reading

    async def on_after_request(self, ctx: StepContext) -> Pending | None:
        """Bring every call of the step to its result."""
        if not ctx.calls:
            return None
        assert isinstance(ctx, OneStep), "call this with the context the hook was given"
        offer = self._offer(ctx.run.setup.permits, ctx.options)
        tools = offer.tools
        if ctx.run.history is None:  # this process has taken the turn over, and made no request yet
            await read_branch(ctx.run)
        if offer.specs and has_cut(ctx.run):
            tools = {**tools, READ_RESULT.spec.name: READ_RESULT}
        return await settle_calls(ctx, tools, self._limits)

    def _offer(self, permits: Permits, options: TurnOptions) -> Offer:
        """What a turn with these options has: worked out once, and again when tools have changed.

        Most turns have no rules of their own, and so the same as others.
        """
        enabled = self._registry.look(options.tools)
        key = options if options.rules or options.clients or options.above is not None else enabled
        known = self._offers.get(id(key))
        if known is not None and known.key is key and known.enabled is enabled:
            return known
        if len(self._offers) >= REMEMBERED_TURNS:
            self._offers.clear()
        offer = self._offers[id(key)] = self._make(permits, options, enabled, key)
        return offer

    def _make(self, permits: Permits, options: TurnOptions, enabled: Enabled, key: object) -> Offer:
        tools = dict(enabled.tools)
        for above in options.above.within if options.above is not None else ():
            had = self._registry.enabled(above.tools)  # it has at most what those above it have
            tools = {name: tool for name, tool in tools.items() if name in had}
        for declared in options.clients:  # one that came since then may have its name, and keeps it
            if declared.name not in self._registry.tools and _is_had(declared.name, options):
                tools[declared.name] = ByClient(declared)
        specs = permits.offered(tools, options)
        denied = tools.keys() - {spec.name for spec in specs}
        groups = _told_of(enabled, {spec.name for spec in specs})
        loadable = [skill for group, _ in groups for skill in group.skills if not skill.pinned]
        loading: list[ToolSpec] = []
        if loadable:
            load = LoadSkill(loadable)
            tools[load.spec.name] = load
            loading = permits.offered({load.spec.name: load}, options)
        sections = [section(group, names, bool(loading)) for group, names in groups]
        if any(spec.private for spec in specs):
            sections.append(PRIVACY_RULE)
        prompt = "\n\n".join(text for text in sections if text)
        offered = (*specs, *loading)
        if self._registry.tools and (warning := _lack(options, {spec.name for spec in offered}, denied)):
            if warning not in self._warned:  # a turn with rules of its own is looked at anew each time
                log.warning("%s", warning)
            self._warned.add(warning)
        reading = permits.offered({READ_RESULT.spec.name: READ_RESULT}, options) if offered else ()
        return Offer(key, enabled, tools, offered, tuple(reading), prompt)


def _lack(options: TurnOptions, names: Set[str], denied: Set[str]) -> str:
    """What to say when a turn has none of the tools that it was to have; "" if it has them, or was to have none.

    Raises:
        ConfigError: a sub-agent was given tools, and can use none of them. Its call fails, and says so.
    """
    if options.tools == ():
        return ""
    refused = DENIED.format(names=", ".join(sorted(denied))) if denied else ""
    if options.above is None or options.tools is None:
        return "" if names else f"a turn is offered no tools, though there are some: {refused or ALL_OFF}"
    if not names:
        wanted = ", ".join(options.tools)
        raise ConfigError(f"this sub-agent was to have the tools {wanted} and has none of them: {refused or NOT_ABOVE}")
    missing = sorted(one for one in options.tools if not any(char in "@*?[" for char in one) and one not in names)
    return f"a sub-agent was to have {', '.join(missing)} and has not: {refused or NOT_ABOVE}" if missing else ""


def _is_had(name: str, options: TurnOptions) -> bool:
    """Whether a turn that was told which tools it has, has this one of a client's."""
    within = options.above.within if options.above is not None else ()
    return all(tools is None or is_selected(name, tools) for tools in (options.tools, *(one.tools for one in within)))


def _told_of(enabled: Enabled, offered: set[str]) -> list[tuple[Group, list[str]]]:
    """The groups a model is told of, with those of their tools that it has: of what is denied it does not hear."""
    found: list[tuple[Group, list[str]]] = []
    for group, names in enabled.groups:
        had = [name for name in names if name in offered]
        if had or not names:
            found.append((group, had))
    return found
