"""Tool calling: a plugin that offers tools before a request and runs the calls after it.

It uses the hooks that every plugin has, including long waits: while a person is asked it returns `SUSPEND`, and is
called again, in this or another process, when the answer has arrived.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Iterable, Mapping, Sequence, Set

from msgspec import Struct

from everturn.calls.output import OutputLimits
from everturn.calls.pipeline import run_calls
from everturn.calls.private_values import PRIVACY_RULE
from everturn.calls.provider_tools import judge_provider_tools
from everturn.calls.references import REFERENCES_RULE, has_truncated_result
from everturn.calls.results import load_results
from everturn.core.hooks import RequestContext, StepContext, Suspend
from everturn.core.modality import provider_tool_mix
from everturn.core.options import TurnOptions
from everturn.core.ports import Tool
from everturn.core.requests import ToolSpec
from everturn.errors import ConfigError
from everturn.running.active_turn import ActiveTurn
from everturn.running.drive_setup import DriveSetup
from everturn.running.hook_contexts import RequestHookContext, StepHookContext
from everturn.running.permissions import is_selected
from everturn.tools.client import ClientRunTool
from everturn.tools.groups import ToolGroup, render_group_section
from everturn.tools.read_document import ReadDocumentTool
from everturn.tools.read_result import ListResultsTool, ReadResultTool
from everturn.tools.registry import EnabledTools, ToolRegistry
from everturn.tools.skills import LoadSkillTool
from everturn.tools.tool_search import (
    DeferredTool,
    FindToolsTool,
    found_tools,
    is_deferrable,
    render_search_section,
    server_of,
)

DOCUMENT_TOOLS: dict[str, Tool] = {(READ_DOCUMENT := ReadDocumentTool()).spec.name: READ_DOCUMENT}
READ_RESULT, LIST_RESULTS = ReadResultTool(), ListResultsTool()
RESULT_TOOLS: dict[str, Tool] = {tool.spec.name: tool for tool in (READ_RESULT, LIST_RESULTS)}
log = logging.getLogger(__name__)

NOT_IN_PARENT = (
    "a sub-agent has at most the tools of the turn that calls it; give them to that turn as well (send(tools=[…]), or "
    "Group(…).enabled() for tools of a group), or leave `tools` of the agent out"
)
DENIED = "rules deny {names}; `everturn permissions explain` names the rule"
GROUPS_OFF = (
    "they are in groups, and a group is off until it is switched on: Group(…).enabled(), files(folder).enabled(), or "
    "send(tools=['@group']) for one turn"
)
CACHED_OFFERS = 1024


class ToolOffer(Struct, frozen=True):
    """The tools of a turn and their part of the system prompt. It is the same for every step, until tools change."""

    key: object  # the cache key: the options, or the enabled tools if the options add nothing
    enabled: EnabledTools
    tools: Mapping[str, Tool]
    specs: tuple[ToolSpec, ...]
    read_result_specs: tuple[ToolSpec, ...]  # also offered once a result was truncated or cleared
    document_specs: tuple[ToolSpec, ...]  # also offered once a document is attached
    prompt: str
    warning: str = ""  # tools that the turn was to have and has not
    deferred: Mapping[str, DeferredTool] = {}  # offered once they were found
    provider_specs: tuple[ToolSpec, ...] = ()  # run by the provider of the model, if it has them and rules allow them


class ToolCalling:
    """Lets a model call these tools."""

    name = "tool_calling"
    writes_first = True  # no call runs before its event is written, and nothing is done with results
    has_pure_requests = True  # what it adds to a request has no other effect

    def __init__(self, tools: ToolRegistry | Iterable[Tool | ToolGroup], limits: OutputLimits | None = None) -> None:
        self._limits = limits or OutputLimits()
        self._registry = tools if isinstance(tools, ToolRegistry) else ToolRegistry(tools)
        self._offers: dict[int, ToolOffer] = {}
        self._warned: set[str] = set()

    def on_system_prompt(self, ctx: RequestContext) -> None:
        """Add the prompt sections of the enabled groups, also to the closing request of a turn."""
        assert isinstance(ctx, RequestHookContext), "call this with the context the hook was given"
        offer = self._offer(ctx.run.setup, ctx.options)
        if offer.prompt:
            ctx.system.append(offer.prompt)
        if offer.specs and has_truncated_result(ctx.run):
            ctx.system.append(REFERENCES_RULE)

    def on_before_request(self, ctx: RequestContext) -> Awaitable[None] | None:
        """Offer the tools, except in the closing request of a turn."""
        if not ctx.closing:
            assert isinstance(ctx, RequestHookContext), "call this with the context the hook was given"
            offer = self._offer(ctx.run.setup, ctx.options)
            ctx.body.tools, ctx.run.warning = [*offer.specs], offer.warning
            if offer.deferred:
                ctx.body.tools += found_tools(ctx.body.messages, offer.deferred)
            if offer.read_result_specs and has_truncated_result(ctx.run):
                ctx.body.tools += offer.read_result_specs
            if self._offers_documents(ctx.run, offer):
                ctx.body.tools += offer.document_specs
            if offer.provider_specs:
                return self._offer_provider_tools(ctx, offer.provider_specs)
        return None

    @staticmethod
    def _offers_documents(run: ActiveTurn, offer: ToolOffer) -> bool:
        """Whether a turn can read documents: one is attached, no rule denies it, and it costs no tool of the provider."""
        if not offer.document_specs or not run.branch_has_documents:
            return False
        return bool(offer.specs) or not offer.provider_specs or provider_tool_mix(run.model) == "mixed"

    async def _offer_provider_tools(self, ctx: RequestHookContext, specs: Sequence[ToolSpec]) -> None:
        """Offer tools of the provider that rules allow: there is no call that a gate could stop later."""
        allowed, left_out = await judge_provider_tools(ctx.run, specs, bool(ctx.body.tools))
        ctx.body.provider_tools = allowed
        ctx.run.warning = "; ".join(filter(None, (ctx.run.warning, *left_out)))

    async def on_after_request(self, ctx: StepContext) -> Suspend | None:
        """Take every call of the step to its result."""
        if not ctx.calls:
            return None
        assert isinstance(ctx, StepHookContext), "call this with the context the hook was given"
        offer = self._offer(ctx.run.setup, ctx.options)
        tools = offer.tools
        if ctx.run.history is None:  # this process has taken over the turn, and sent no request yet
            await load_results(ctx.run)
        if offer.specs and has_truncated_result(ctx.run):
            tools = {**tools, **RESULT_TOOLS}
        if self._offers_documents(ctx.run, offer):
            tools = {**tools, **DOCUMENT_TOOLS}
        return await run_calls(ctx, tools, self._limits)

    def _offer(self, setup: DriveSetup, options: TurnOptions) -> ToolOffer:
        """The offer for a turn with these options, cached until tools change.

        Most turns have no rules of their own, and so share one offer.
        """
        enabled = self._registry.select(options.tools)
        is_own = options.rules or options.clients or options.mode == "plan" or options.lineage is not None
        key = options if is_own else enabled
        known = self._offers.get(id(key))
        if known is not None and known.key is key and known.enabled is enabled:
            return known
        if len(self._offers) >= CACHED_OFFERS:
            self._offers.clear()
        offer = self._offers[id(key)] = self._make(setup, options, enabled, key)
        return offer

    def _make(self, setup: DriveSetup, options: TurnOptions, enabled: EnabledTools, key: object) -> ToolOffer:
        permits, tools = setup.permissions, dict(enabled.tools)
        for parent in options.lineage.ancestors if options.lineage is not None else ():
            parent_tools = self._registry.enabled(parent.tools)  # a sub-agent has at most the tools of its parents
            tools = {name: tool for name, tool in tools.items() if name in parent_tools}
        for declared in options.clients:  # a tool that was registered since then keeps the name
            if declared.name not in self._registry.tools and _is_in_selection(declared.name, options):
                tools[declared.name] = ClientRunTool(declared)
        specs = permits.offered_tools(tools, options)
        denied = tools.keys() - {spec.name for spec in specs}
        provider_specs = tuple(spec for spec in specs if spec.provider is not None)
        specs = [spec for spec in specs if spec.provider is None]
        deferred = _defer(specs, options, enabled) if 0 < setup.settings.tool_search_above < len(specs) else {}
        if deferred:
            find = FindToolsTool(deferred.values())
            if finding := permits.offered_tools({find.spec.name: find}, options):
                tools[find.spec.name] = find
                specs = [*(spec for spec in specs if spec.name not in deferred), *finding]
            else:  # a rule denies it: then all tools are offered
                deferred = {}
        groups = _groups_for_prompt(enabled, {spec.name for spec in specs}, deferred)
        loadable = [skill for group, _ in groups for skill in group.skills if not skill.pinned]
        libraries = [group.library for group, _ in groups if group.library is not None]
        loading: list[ToolSpec] = []
        if loadable or libraries:
            load = LoadSkillTool(loadable, libraries)
            tools[load.spec.name] = load
            loading = permits.offered_tools({load.spec.name: load}, options)
        sections = [render_group_section(group, names, bool(loading)) for group, names in groups]
        if deferred:
            sections.append(render_search_section(list(deferred.values())))
        if any(spec.private for spec in (*specs, *(tool.spec for tool in deferred.values()))):
            sections.append(PRIVACY_RULE)
        prompt = "\n\n".join(text for text in sections if text)
        offered = (*specs, *loading)
        has_tools = bool(self._registry.tools)
        names = {spec.name for spec in (*offered, *provider_specs)} | deferred.keys()
        warning = _missing_tools_warning(options, names, denied) if has_tools else ""
        if warning and warning not in self._warned:  # the offer of a turn with rules of its own is made each time
            log.warning("%s", warning)
            self._warned.add(warning)
        reading = permits.offered_tools(RESULT_TOOLS, options) if offered else ()
        if READ_RESULT.spec not in reading:  # then a list of them is of no use
            reading = ()
        documents = () if options.tools == () else tuple(permits.offered_tools(DOCUMENT_TOOLS, options))
        return ToolOffer(
            key, enabled, tools, offered, tuple(reading), documents, prompt, warning, deferred, provider_specs
        )


def _defer(specs: Sequence[ToolSpec], options: TurnOptions, enabled: EnabledTools) -> dict[str, DeferredTool]:
    """The tools that the model has to find first, except those that the turn names one by one.

    The rules of a group come with the first of its tools that is found. A group with skills is an exception: its section
    of the system prompt lists them.
    """
    groups = {name: group for group, names in enabled.groups for name in names}
    deferred: dict[str, DeferredTool] = {}
    rules: dict[str, str] = {}
    for spec in specs:
        group = groups.get(spec.name)
        label = group.name if group is not None else server_of(spec)
        if not is_deferrable(spec, label) or spec.name in (options.tools or ()):
            continue
        if group is not None and not group.skills and label not in rules:
            rules[label] = group.render_rules([name for name, home in groups.items() if home is group])
        deferred[spec.name] = DeferredTool(spec, label, rules.get(label, ""))
    return deferred


def _missing_tools_warning(options: TurnOptions, names: Set[str], denied: Set[str]) -> str:
    """The warning for a turn that lacks the tools it should have; "" if it lacks none.

    Raises:
        ConfigError: a sub-agent can use none of its tools; its call fails with this error.
    """
    if options.tools == ():
        return ""
    refused = DENIED.format(names=", ".join(sorted(denied))) if denied else ""
    if options.lineage is not None and options.needs_agent and not names:
        raise ConfigError(f"agent {options.agent!r} cannot use any of its tools here: {refused or GROUPS_OFF}")
    if options.lineage is None or options.tools is None:
        return "" if names else f"a turn is offered no tools, though there are some: {refused or GROUPS_OFF}"
    if not names:
        selection = ", ".join(options.tools)
        raise ConfigError(
            f"this sub-agent should have the tools {selection}, and none of them is available: {refused or NOT_IN_PARENT}"
        )
    missing = sorted(name for name in options.tools if not any(char in "@*?[" for char in name) and name not in names)
    return f"a sub-agent was to have {', '.join(missing)} and has not: {refused or NOT_IN_PARENT}" if missing else ""


def _is_in_selection(name: str, options: TurnOptions) -> bool:
    """Whether the tool selection of a turn and its parents includes this client tool."""
    within = options.lineage.ancestors if options.lineage is not None else ()
    return all(
        tools is None or is_selected(name, tools)
        for tools in (options.tools, *(authority.tools for authority in within))
    )


def _groups_for_prompt(
    enabled: EnabledTools, offered: Set[str], deferred: Mapping[str, DeferredTool]
) -> list[tuple[ToolGroup, list[str]]]:
    """The groups for the system prompt, with those of their tools that are offered, without denied ones."""
    groups: list[tuple[ToolGroup, list[str]]] = []
    for group, names in enabled.groups:
        available = [name for name in names if name in offered or (group.skills and name in deferred)]
        if available or not names:
            groups.append((group, available))
    return groups
