"""Permission of provider tools: decides before a request which of them the model is offered.

The provider runs their calls, so the decision is about the tool as a whole. What would open a gate for a tool of ours
(a rule that asks, or private data beside untrusted text in an egress tool) leaves it out of the request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from everturn.core.modality import SEARCHES, provider_tool_mix, provider_tools_of
from everturn.core.requests import ToolSpec
from everturn.core.rules.policy import Rule
from everturn.running.active_turn import ActiveTurn

NOT_SUPPORTED: Final = "{tool} is not offered: {model} has no such tool that its provider runs"
NOT_MIXED: Final = (
    "{tool} is not offered: {model} takes a tool that its provider runs only in a request without other tools"
)
NOT_BESIDE_SEARCHES: Final = (
    "{tool} is not offered: {model} takes it only in a request without other tools that its provider runs"
)
NOT_ALLOWED: Final = (
    "{tool} is not offered: {reason}; its provider runs it, so nobody can be asked about a call: allow it with the rule "
    "{rule}, or with provider_tool(…, approval='auto')"
)
DENIED: Final = "{tool} is not offered: {reason}"
TAINTED: Final = (
    "{tool} is not offered: this conversation has private data and untrusted text, and the provider's calls cannot be "
    "approved one by one"
)


async def judge_provider_tools(
    run: ActiveTurn, specs: Sequence[ToolSpec], has_other_tools: bool
) -> tuple[list[ToolSpec], list[str]]:
    """The tools that the model is offered, and a sentence for each that it is not."""
    supported = provider_tools_of(run.model)
    mix = provider_tool_mix(run.model)
    is_lonely = has_other_tools and mix != "mixed"
    allowed: list[ToolSpec] = []
    left_out: list[str] = []
    for spec in specs:
        if spec.name not in supported:
            left_out.append(NOT_SUPPORTED.format(tool=spec.name, model=run.model.name))
            continue
        if is_lonely:
            left_out.append(NOT_MIXED.format(tool=spec.name, model=run.model.name))
            continue
        decision = (await run.setup.permissions.decide(spec, {}, {}, run.state.options, run.grants)).decision
        if decision.action == "deny" or (decision.action == "ask" and decision.rule is not None):
            left_out.append(DENIED.format(tool=spec.name, reason=decision.reason))
        elif decision.action == "ask":
            rule = Rule(spec.name, "allow")
            left_out.append(NOT_ALLOWED.format(tool=spec.name, reason=decision.reason, rule=rule))
        elif all(await run.taint()):
            left_out.append(TAINTED.format(tool=spec.name))
        else:
            allowed.append(spec)
    if mix == "searches" and any(spec.name in SEARCHES for spec in allowed):
        others = [spec for spec in allowed if spec.name not in SEARCHES]
        left_out += [NOT_BESIDE_SEARCHES.format(tool=spec.name, model=run.model.name) for spec in others]
        allowed = [spec for spec in allowed if spec.name in SEARCHES]
    return allowed, left_out
