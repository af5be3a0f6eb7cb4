"""Dry run of permission rules: what a draft would have decided about past calls. Nothing is run.

Each call is decided twice by the code that decides calls in turns: by the rules in effect, and by the draft. Both times
the turn's own rules, its mode and the present grants count, so a difference is due to the draft alone.

Of conversations that the caller may not see, only numbers leave this module. A pattern turns even a number into an
answer ("is there a call to bob@example.com?"), so for a tool whose rules have patterns they begin at `HIDDEN_BELOW`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from everturn import api
from everturn.access.context.scope import ScopedAccess
from everturn.access.rules.explain_view import is_idle, rule_view
from everturn.access.rules.past_calls import PastCall, PastCalls
from everturn.core.canonical_json import parse_object
from everturn.core.ports import Tool
from everturn.core.rules.loosened_rules import compare_rules
from everturn.core.rules.policy import STRICTEST_FIRST, PolicyDecision, Rule, RuleAction
from everturn.core.store_ports import SessionInfo
from everturn.errors import BadArguments, ToolError, UnknownSession
from everturn.permissions import command_readers
from everturn.running.permissions import Permissions

HIDDEN_BELOW: Final = 5  # calls
MOST_EXAMPLES: Final = 5  # in a group
LONGEST: Final = 300  # characters of arguments that are shown
YIELD_EVERY: Final = 20  # calls: other requests are served in between


class _Changed(Struct, frozen=True):
    """A call that the draft decides otherwise."""

    call: PastCall
    before: PolicyDecision
    after: PolicyDecision


class RuleDryRun:
    """Compares two lists of rules of the installation over the last calls of a tenant."""

    def __init__(self, scope: ScopedAccess, before: Sequence[Rule], after: Sequence[Rule]) -> None:
        self._scope, self._changes = scope, compare_rules(before, after)
        self._before, self._after = (Permissions(rules, *command_readers()) for rules in (before, after))
        self._grants: dict[tuple[str, str, str], list[Rule]] = {}

    async def run(self, limit: int) -> api.DryRunView:
        """Decide the last calls again."""
        calls = await PastCalls(self._scope, limit).read()
        changed: list[_Changed] = []
        decided = 0
        for number, call in enumerate(calls):
            if number % YIELD_EVERY == 0:
                await asyncio.sleep(0)
            pair = await self._decide_twice(call)
            if pair is None:
                continue
            decided += 1
            if pair[0].action != pair[1].action:
                changed.append(_Changed(call, *pair))
        readable = await self._scope.root_sessions({call.root for call in calls})
        is_hiding = any(call.root not in readable and self._has_patterns(call.tool) for call in calls)
        return api.DryRunView(
            calls=decided,
            skipped=len(calls) - decided,
            since=calls[-1].at if calls else 0.0,
            groups=self._groups(changed, readable),
            changes=[
                api.RuleChangeView(
                    text=str(change.rule),
                    is_added=change.is_added,
                    loosens=change.loosens,
                    is_idle=change.is_added and is_idle(self._scope, change.rule),
                )
                for change in self._changes
            ],
            hidden_below=HIDDEN_BELOW if is_hiding else 0,
        )

    async def _decide_twice(self, call: PastCall) -> tuple[PolicyDecision, PolicyDecision] | None:
        """Both decisions about a call; None: its tool or its arguments are not valid any more."""
        tool, arguments = self._tool(call), parse_object(call.arguments)
        if tool is None or arguments is None:
            return None
        try:
            validated = tool.validate(arguments) or arguments
        except (BadArguments, ToolError):
            return None

        async def granted() -> Sequence[Rule]:
            return await self._granted(call)

        before, after = [
            (await permits.decide(tool.spec, arguments, validated, call.options, granted)).decision
            for permits in (self._before, self._after)
        ]
        return before, after

    def _tool(self, call: PastCall) -> Tool | None:
        return self._scope.server_context.app.registry_of(call.options.agent).tools.get(call.tool)

    async def _granted(self, call: PastCall) -> list[Rule]:
        """The grants that cover the turn of a call now, as rules."""
        options, app = call.options, self._scope.server_context.app
        session = options.lineage.session if options.lineage is not None else call.session
        key = (session, options.by, options.folder)
        if key not in self._grants:
            try:
                with self._scope.tenant_scope(whole=True):
                    grants = await self._scope.store.grants(session, app.clock.now())
            except UnknownSession:
                grants = []
            tools = app.registry_of(options.agent).tools
            self._grants[key] = app.permissions.rules_from_grants(grants, tools.get, options.by, options.folder)
        return self._grants[key]

    def _groups(self, changed: Sequence[_Changed], readable: Mapping[str, SessionInfo]) -> list[api.DryRunGroup]:
        by_kind: dict[tuple[str, RuleAction, RuleAction], list[_Changed]] = {}
        for row in changed:
            by_kind.setdefault((row.call.tool, row.before.action, row.after.action), []).append(row)
        groups: list[api.DryRunGroup] = []
        for (tool, before, after), rows in by_kind.items():
            seen = [row for row in rows if row.call.root in readable]
            private = [row for row in rows if row.call.root not in readable]
            count = 0 if len(private) < HIDDEN_BELOW and self._has_patterns(tool) else len(private)
            if not seen and not count:
                continue
            groups.append(
                api.DryRunGroup(
                    tool=tool,
                    before=before,
                    after=after,
                    count=len(seen) + count,
                    private=count,
                    loosens=STRICTEST_FIRST.index(after) > STRICTEST_FIRST.index(before),
                    examples=[self._example(row, readable) for row in seen[:MOST_EXAMPLES]],
                )
            )
        return sorted(groups, key=lambda group: (not group.loosens, -group.count, group.tool))

    def _has_patterns(self, tool: str) -> bool:
        return any(permits.policy.has_patterns_for(tool) for permits in (self._before, self._after))

    def _example(self, row: _Changed, readable: Mapping[str, SessionInfo]) -> api.DryRunExample:
        call, text = row.call, row.call.arguments
        return api.DryRunExample(
            session=call.session,
            turn=call.turn,
            title=readable[call.root].title,
            at=call.at,
            arguments=text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…",
            recorded=call.recorded,
            rule=None if row.after.rule is None else rule_view(self._scope, row.after.rule),
        )
