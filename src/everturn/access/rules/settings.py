"""Rule settings access: permission rules that administrators set at run time, with a dry run over past calls.

They are added to the rules of the files, which are fixed: a stored rule revokes no denial of a file. All stored rules
are one setting, so each version is the whole list, and a change of several rules takes effect at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from everturn import api
from everturn.access.context.roles import needs
from everturn.access.context.scope import ScopedAccess
from everturn.access.context.setting_writer import NOT_HERE, SettingWriter
from everturn.access.context.settings_backend import SettingsBackend
from everturn.access.rules.dry_run import RuleDryRun
from everturn.access.rules.explain_view import explain_view, is_idle, rule_view
from everturn.core.rules.loosened_rules import compare_rules
from everturn.core.rules.policy import Rule
from everturn.core.rules.shadowed_rules import find_shadowed_rules
from everturn.core.tenants.settings import RULES, RuleSettings, Setting, StoredRule, decode_body
from everturn.errors import ConfigError, UnknownSetting
from everturn.permissions import command_readers
from everturn.permissions.stored_rules import UNREADABLE_RULE, read_stored_rule, read_stored_rules
from everturn.running.permissions import Permissions

MOST_AUDITED: Final = 20  # rules in an audit record, of those added and of those removed
LONGEST_AUDITED: Final = 300  # characters of one


class RuleSettingsAccess:
    """Access to the permission rules of administrators."""

    __slots__ = ("_writer", "scope")

    def __init__(self, scope: ScopedAccess) -> None:
        self.scope, self._writer = scope, SettingWriter(scope)

    @needs("owner")
    async def get(self) -> api.AllRulesView:
        """The rules of the files, which are fixed, and the stored ones."""
        await self._writer.require_administrator()
        backend = self.scope.server_context.settings
        if backend is None or not backend.is_editable:
            return api.AllRulesView(is_editable=False, problem=NOT_HERE)
        row = await self._writer.find("rules", RULES)
        stored = _body(row)
        fixed = list(backend.fixed_rules())
        shadows = await asyncio.to_thread(_shadows, fixed, stored)
        return api.AllRulesView(
            is_editable=True,
            fixed=[rule_view(self.scope, rule, shadows.get(rule.source, "")) for rule in fixed],
            stored=_view(self.scope, row, backend, shadows),
        )

    @needs("owner")
    async def put(self, request: api.NewRuleSettings) -> api.RuleSettingsView:
        """Replace the stored rules. Calls that are about to start are decided by the new ones, in every process.

        Raises:
            ConfigError: a rule is invalid; nothing changes.
            HashMismatch: another person has changed them meanwhile.
        """
        backend = await self._writer.backend()
        return await self._save(backend, RuleSettings(request.rules), request.version)

    @needs("owner")
    async def versions(self) -> api.RuleVersionList:
        """All versions of the stored rules, newest first."""
        backend = await self._writer.backend()
        rows = await self._writer.store.versions("rules", RULES)
        return api.RuleVersionList(versions=[_view(self.scope, row, backend) for row in rows])

    @needs("owner")
    async def restore(self, request: api.RestoreVersion) -> api.RuleSettingsView:
        """Make an older version of the stored rules the newest one.

        Raises:
            UnknownSetting: there is no such version.
        """
        backend = await self._writer.backend()
        rows = await self._writer.store.versions("rules", RULES)
        old = next((row for row in rows if row.version == request.version), None)
        if old is None:
            raise UnknownSetting("there is no such setting")
        return await self._save(backend, decode_body(old), rows[0].version, restored=request.version)

    @needs("owner")
    async def dry_run(self, request: api.DryRunRules) -> api.DryRunView:
        """Decide the last calls of the tenant by a draft of the stored rules, and by those in effect. Nothing is run.

        The audit log has the rules by which the draft differs: patterns could be used to probe private conversations.

        Raises:
            ConfigError: a rule of the draft is invalid.
        """
        backend = await self._writer.backend()
        before = await self._rules_in_effect(backend)
        after = [*backend.fixed_rules(), *read_stored_rules(RuleSettings(request.rules))]
        await self.scope.audit_action(
            "setting.dry_run", f"rules:{RULES}", calls=request.calls, **_difference(before, after)
        )
        return await RuleDryRun(self.scope, before, after).run(request.calls)

    @needs("owner")
    async def explain(self, request: api.ExplainDraft) -> api.ExplainView:
        """Explain how a draft of the stored rules would decide on a call. Nothing is run.

        Raises:
            UnknownTool: the agent has no tool of this name.
            ConfigError: a rule of the draft is invalid.
        """
        backend = await self._writer.backend()
        rules = [*backend.fixed_rules(), *read_stored_rules(RuleSettings(request.rules))]
        permits = Permissions(rules, *command_readers())
        return await explain_view(self.scope, permits, request.agent, request.tool, request.arguments)

    async def _rules_in_effect(self, backend: SettingsBackend) -> list[Rule]:
        row = await self._writer.find("rules", RULES)
        try:
            return [*backend.fixed_rules(), *(read_stored_rules(decode_body(row)) if row is not None else ())]
        except ConfigError:
            return [*backend.fixed_rules(), UNREADABLE_RULE]

    async def _save(
        self, backend: SettingsBackend, body: RuleSettings, version: int | None, **detail: Any
    ) -> api.RuleSettingsView:
        after = read_stored_rules(body)  # it raises for an invalid one
        before = [rule for rule in await self._rules_in_effect(backend) if rule not in backend.fixed_rules()]
        row = await self._writer.save(backend, "rules", RULES, body, version, **(detail | _difference(before, after)))
        return _view(self.scope, row, backend)


def _body(row: Setting | None) -> RuleSettings:
    """The rules of a version; none where they cannot be read."""
    try:
        return decode_body(row) if row is not None else RuleSettings()
    except ConfigError:
        return RuleSettings()


def _shadows(fixed: Sequence[Rule], stored: RuleSettings) -> dict[str, str]:
    """Why rules can never decide, by their source."""
    try:
        rules = [*fixed, *read_stored_rules(stored)]
    except ConfigError:
        return {}
    return {shadowed.rule.source: shadowed.why for shadowed in find_shadowed_rules(rules)}


def _view(
    scope: ScopedAccess, row: Setting | None, backend: SettingsBackend, shadows: Mapping[str, str] | None = None
) -> api.RuleSettingsView:
    """A version of the rules; with `shadows` it is the one in effect."""
    problem = backend.problems.get(("rules", RULES), "") if row is not None else ""
    return api.RuleSettingsView(
        version=row.version if row is not None else 0,
        by=row.by if row is not None else "",
        at=row.at if row is not None else 0.0,
        problem=problem if shadows is not None else "",
        rules=[_rule_view(scope, rule, number, shadows or {}) for number, rule in enumerate(_body(row).rules, 1)],
    )


def _rule_view(scope: ScopedAccess, rule: StoredRule, number: int, shadows: Mapping[str, str]) -> api.StoredRuleView:
    try:
        read = read_stored_rule(rule, number)
    except ConfigError as error:  # this release is stricter than the one that stored it
        return api.StoredRuleView(rule=rule, text=str(error))
    shadow = shadows.get(read.source, "") if rule.enabled else ""
    return api.StoredRuleView(rule=rule, text=str(read), shadow=shadow, is_idle=is_idle(scope, read))


def _difference(before: Sequence[Rule], after: Sequence[Rule]) -> dict[str, Any]:
    """The rules that a change adds and removes, as they are audited."""
    changes = compare_rules(before, after)
    texts = {
        is_added: [str(change.rule)[:LONGEST_AUDITED] for change in changes if change.is_added == is_added]
        for is_added in (True, False)
    }
    return {"added": texts[True][:MOST_AUDITED], "removed": texts[False][:MOST_AUDITED]}
