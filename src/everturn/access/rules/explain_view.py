"""Views of rules and explanations, as the caller may see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from everturn import api
from everturn.access.context.scope import ScopedAccess
from everturn.access.rules.explain import agent_warnings, explain_call
from everturn.core.canonical_json import encode_canonical, replace_surrogates_in
from everturn.core.loop_detection import LOOP_RULE_NAME
from everturn.core.options import REVIEWS
from everturn.core.rules.policy import Policy, PolicyDecision, Rule
from everturn.core.tenants.accounts import is_at_least
from everturn.errors import BadArguments, ConfigError, UnknownTool
from everturn.permissions.stored_rules import SOURCE, TENANT_SOURCE
from everturn.running.permissions import Permissions, is_manual

LARGEST: Final = 100_000  # characters of arguments that are explained


def rule_view(scope: ScopedAccess, rule: Rule, shadow: str = "") -> api.RuleView:
    """A rule; the path of its file is shown to operators only."""
    shown = rule if is_operator(scope) else replace(rule, source=rule.source.rpartition("/")[2])
    return api.RuleView(rule=shown, text=str(rule), shadow=shadow, scope=_origin(rule))


def _origin(rule: Rule) -> api.RuleOrigin:
    if rule.layer != "config":
        return ""
    if rule.source.startswith(TENANT_SOURCE):
        return "tenant"
    return "installation" if rule.source.startswith(SOURCE) else "file"


def is_idle(scope: ScopedAccess, rule: Rule) -> bool:
    """Whether no tool has the name that a rule is for: a misspelt denial denies nothing."""
    app, policy = scope.server_context.app, Policy([rule])
    registries = (app.registry, *(app.registry_of(agent.name) for agent in scope.server_context.agents.all))
    names = {LOOP_RULE_NAME, *(name for registry in registries for name in registry.tools)}
    return not any(policy.has_rule_for(name) for name in names)


def is_operator(scope: ScopedAccess) -> bool:
    """Whether the caller runs the server."""
    return is_at_least(scope.principal.role, "operator")


async def explain_view(
    scope: ScopedAccess,
    permits: Permissions,
    agent: str,
    tool_name: str,
    arguments: dict[str, Any],
    granted: Sequence[Rule] = (),
) -> api.ExplainView:
    """Explain how rules would decide on a call of an agent. Nothing is run.

    Raises:
        UnknownTool: the agent has no tool of this name.
        ConfigError: the arguments are too long.
    """
    if len(encode_canonical(arguments)) > LARGEST:
        raise ConfigError(f"the arguments are too long to explain; at most {LARGEST} characters")
    app, spec = scope.server_context.app, scope.server_context.agents.get(agent)
    options, registry = spec.options, app.registry_of(spec.name)
    tools = registry.enabled(options.tools)
    tool = tools.get(tool_name)
    if tool is None:
        raise UnknownTool(f"{spec.name} has no tool of this name; it has: {', '.join(tools) or 'none'}")
    arguments, problem = replace_surrogates_in(arguments), ""
    validated = arguments
    try:
        validated = tool.validate(arguments) or arguments
    except BadArguments as error:
        problem = str(error)
    explanation = await explain_call(permits, tool.spec, arguments, validated, options, granted)
    rule = explanation.decision.rule
    return api.ExplainView(
        action=explanation.decision.action,
        reason="" if rule is not None else explanation.decision.reason,
        rule=None if rule is None else rule_view(scope, rule),
        is_final=explanation.decision.is_final,
        cases=[_case_view(scope, decision) for decision in explanation.case_decisions],
        others=[rule_view(scope, rule) for rule in explanation.other_rules],
        lines=explanation.lines if is_operator(scope) else [],
        problem=problem,
        warnings=agent_warnings(permits, tools, registry.tools, options),
        manual=is_manual(tool.spec, options),
        review=max(tool.spec.review, options.review, key=REVIEWS.index),
    )


def _case_view(scope: ScopedAccess, decision: PolicyDecision) -> api.CaseView:
    rule = decision.rule
    return api.CaseView(
        case=decision.case,
        action=decision.action,
        rule=None if rule is None else rule_view(scope, rule),
        reason="" if rule is not None else decision.reason,
    )
