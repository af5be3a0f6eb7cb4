"""Rule settings access: permission rules that administrators set at run time, with a dry run over past calls.

They are added to the rules of the files, which are fixed: a stored rule revokes no denial of a file. An operator sets rules for
the installation, an owner for the own tenant. All stored rules of a scope are one setting, so each version is the whole list, and a change of several rules takes effect at once.
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
from everturn.access.rules.explain_view import explain_view, is_idle, is_operator, rule_view
from everturn.core.rules.loosened_rules import compare_rules
from everturn.core.rules.policy import Rule
from everturn.core.rules.shadowed_rules import find_shadowed_rules
from everturn.core.tenants.settings import INSTALLATION, RULES, RuleSettings, Setting, StoredRule, decode_body
from everturn.errors import ConfigError, Forbidden, UnknownSetting
from everturn.permissions import command_readers
from everturn.permissions.stored_rules import (
    SOURCE,
    TENANT_SOURCE,
    read_stored_rule,
    read_stored_rules,
    rule_for_unreadable,
)
from everturn.running.permissions import Permissions

MOST_AUDITED: Final = 20  # rules in an audit record, of those added and of those removed
LONGEST_AUDITED: Final = 300  # characters of one
SOURCES: Final[Mapping[api.RuleScope, str]] = {"installation": SOURCE, "tenant": TENANT_SOURCE}


class RuleSettingsAccess:
    """Access to the permission rules of administrators: those of the installation, and those of the caller's tenant.

    A tenant's rules decide calls of its conversations only, together with those of the installation: the strictest
    decision counts, so neither list widens what the other denies or asks about.
    """

    __slots__ = ("_writer", "scope")

    def __init__(self, scope: ScopedAccess) -> None:
        self.scope, self._writer = scope, SettingWriter(scope)

    @needs("owner")
    async def get(self, scope: api.RuleScope | None = None) -> api.AllRulesView:
        """The stored rules, and those that are fixed. Without a scope: of the installation, or of the tenant if the caller
        may change only those.
        """
        scopes = await self._scopes()
        scope = scope or scopes[0]
        if scope == "installation":
            await self._writer.require_administrator()
        backend = self.scope.server_context.settings
        if backend is None or not backend.is_editable:
            return api.AllRulesView(is_editable=False, problem=NOT_HERE, scope=scope, scopes=scopes)
        layers = await self._layers(backend)
        row = await self._find(scope)
        fixed = [*layers["file"], *(layers["installation"] if scope == "tenant" else ())]
        body = _body(row)
        shadows = await asyncio.to_thread(_shadows, fixed, body, SOURCES[scope])
        return api.AllRulesView(
            is_editable=True,
            scope=scope,
            scopes=scopes,
            fixed=[rule_view(self.scope, rule, shadows.get(rule.source, "")) for rule in fixed],
            stored=self._view(row, scope, backend, shadows),
        )

    @needs("owner")
    async def put(self, request: api.NewRuleSettings, scope: api.RuleScope = "installation") -> api.RuleSettingsView:
        """Replace the stored rules. Calls that are about to start are decided by the new ones, in every process.

        Raises:
            ConfigError: a rule is invalid; nothing changes.
            HashMismatch: another person has changed them meanwhile.
        """
        backend = await self._backend(scope)
        return await self._save(backend, scope, RuleSettings(request.rules), request.version)

    @needs("owner")
    async def versions(self, scope: api.RuleScope = "installation") -> api.RuleVersionList:
        """All versions of the stored rules, newest first."""
        backend = await self._backend(scope)
        rows = await self._writer.store.versions("rules", RULES, self._stored_scope(scope))
        return api.RuleVersionList(versions=[self._view(row, scope, backend) for row in rows])

    @needs("owner")
    async def restore(self, request: api.RestoreVersion, scope: api.RuleScope = "installation") -> api.RuleSettingsView:
        """Make an older version of the stored rules the newest one.

        Raises:
            UnknownSetting: there is no such version.
        """
        backend = await self._backend(scope)
        rows = await self._writer.store.versions("rules", RULES, self._stored_scope(scope))
        old = next((row for row in rows if row.version == request.version), None)
        if old is None:
            raise UnknownSetting("there is no such setting")
        return await self._save(backend, scope, decode_body(old), rows[0].version, restored=request.version)

    @needs("owner")
    async def dry_run(self, request: api.DryRunRules, scope: api.RuleScope = "installation") -> api.DryRunView:
        """Decide the last calls of the tenant by a draft of the stored rules, and by those in effect. Nothing is run.

        The audit log has the rules by which the draft differs: patterns could be used to probe private conversations.

        Raises:
            ConfigError: a rule of the draft is invalid.
        """
        backend = await self._backend(scope)
        layers = await self._layers(backend)
        before, after = _joined(layers), _joined(layers | {scope: _read(request.rules, scope)})
        detail = {"scope": scope} if scope == "tenant" else {}
        await self.scope.audit_action(
            "setting.dry_run", f"rules:{RULES}", calls=request.calls, **detail, **_difference(before, after)
        )
        return await RuleDryRun(self.scope, before, after).run(request.calls)

    @needs("owner")
    async def explain(self, request: api.ExplainDraft, scope: api.RuleScope = "installation") -> api.ExplainView:
        """Explain how a draft of the stored rules would decide on a call. Nothing is run.

        Raises:
            UnknownTool: the agent has no tool of this name.
            ConfigError: a rule of the draft is invalid.
        """
        backend = await self._backend(scope)
        layers = await self._layers(backend) | {scope: _read(request.rules, scope)}
        permits = Permissions(_joined(layers), *command_readers())
        return await explain_view(self.scope, permits, request.agent, request.tool, request.arguments)

    async def _scopes(self) -> list[api.RuleScope]:
        """The scopes whose rules the caller may change; with one tenant the same people have both, and one is enough."""
        if not await self._writer.has_several_tenants():
            return ["installation", "tenant"] if await self._find("tenant") is not None else ["installation"]
        return ["installation", "tenant"] if is_operator(self.scope) else ["tenant"]

    async def _backend(self, scope: api.RuleScope) -> SettingsBackend:
        if scope == "tenant":
            return self._writer.backend_of_tenant()
        try:
            return await self._writer.backend()
        except Forbidden as error:
            raise Forbidden(f"{error}; rules for your own tenant are changed with scope=tenant") from None

    def _stored_scope(self, scope: api.RuleScope) -> str:
        return self.scope.principal.tenant if scope == "tenant" else INSTALLATION

    async def _find(self, scope: api.RuleScope) -> Setting | None:
        return await self._writer.find("rules", RULES, self._stored_scope(scope))

    async def _layers(self, backend: SettingsBackend) -> dict[str, list[Rule]]:
        """The rules that decide calls of the tenant, by where they were set."""
        layers = {"file": list(backend.fixed_rules())}
        for scope, source in SOURCES.items():
            row = await self._find(scope)
            try:
                layers[scope] = read_stored_rules(decode_body(row), source) if row is not None else []
            except ConfigError:
                layers[scope] = [rule_for_unreadable(source)]
        return layers

    async def _save(
        self, backend: SettingsBackend, scope: api.RuleScope, body: RuleSettings, version: int | None, **detail: Any
    ) -> api.RuleSettingsView:
        after = read_stored_rules(body, SOURCES[scope])  # it raises for an invalid one
        before = (await self._layers(backend))[scope]
        row = await self._writer.save(
            backend,
            "rules",
            RULES,
            body,
            version,
            scope=self._stored_scope(scope),
            **(detail | _difference(before, after)),
        )
        return self._view(row, scope, backend)

    def _view(
        self,
        row: Setting | None,
        scope: api.RuleScope,
        backend: SettingsBackend,
        shadows: Mapping[str, str] | None = None,
    ) -> api.RuleSettingsView:
        """A version of the rules; with `shadows` it is the one in effect."""
        problem = ""
        if row is not None and shadows is not None:
            tenant = self.scope.principal.tenant
            problem = (
                backend.tenant_problems.get(tenant, "")
                if scope == "tenant"
                else backend.problems.get(("rules", RULES), "")
            )
        return api.RuleSettingsView(
            version=row.version if row is not None else 0,
            by=row.by if row is not None else "",
            at=row.at if row is not None else 0.0,
            problem=problem,
            rules=[
                _rule_view(self.scope, rule, number, SOURCES[scope], shadows or {})
                for number, rule in enumerate(_body(row).rules, 1)
            ],
        )


def _joined(layers: Mapping[str, Sequence[Rule]]) -> list[Rule]:
    return [rule for rules in layers.values() for rule in rules]


def _read(rules: tuple[StoredRule, ...], scope: api.RuleScope) -> list[Rule]:
    return read_stored_rules(RuleSettings(rules), SOURCES[scope])


def _body(row: Setting | None) -> RuleSettings:
    """The rules of a version; none where they cannot be read."""
    try:
        return decode_body(row) if row is not None else RuleSettings()
    except ConfigError:
        return RuleSettings()


def _shadows(fixed: Sequence[Rule], stored: RuleSettings, source: str) -> dict[str, str]:
    """Why rules can never decide, by their source."""
    try:
        rules = [*fixed, *read_stored_rules(stored, source)]
    except ConfigError:
        return {}
    return {shadowed.rule.source: shadowed.why for shadowed in find_shadowed_rules(rules)}


def _rule_view(
    scope: ScopedAccess, rule: StoredRule, number: int, source: str, shadows: Mapping[str, str]
) -> api.StoredRuleView:
    try:
        read = read_stored_rule(rule, number, source)
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
