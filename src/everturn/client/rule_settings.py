"""Stored permission rules on a server: of the installation, or of the caller's tenant."""

from __future__ import annotations

from collections.abc import Sequence

from everturn import api
from everturn.client.http import NodeClient, decode_body
from everturn.core.canonical_json import JsonObject
from everturn.core.tenants.settings import StoredRule

RULES = "/api/settings/rules"


class RemoteRuleSettings:
    """The permission rules that administrators have stored. With several tenants, those of the installation take an operator."""

    def __init__(self, node_client: NodeClient) -> None:
        self._node_client = node_client

    async def get(self, scope: api.RuleScope | None = None) -> api.AllRulesView:
        """The stored rules, and those that are fixed; without a scope, those that the caller may change."""
        return await self._node_client.get(RULES, api.AllRulesView, {"scope": scope} if scope else None)

    async def put(
        self, rules: Sequence[StoredRule], *, scope: api.RuleScope = "installation", version: int | None = None
    ) -> api.RuleSettingsView:
        """Replace all rules of a scope. With the `version` that was seen, only if nobody has changed them since."""
        body = api.NewRuleSettings(rules=tuple(rules), version=version)
        answer = await self._node_client.ask("PUT", RULES, body=body, query={"scope": scope}, may_repeat=False)
        return decode_body(answer, api.RuleSettingsView)

    async def versions(self, *, scope: api.RuleScope = "installation") -> list[api.RuleSettingsView]:
        """All versions of the rules, newest first."""
        return (await self._node_client.get(f"{RULES}/versions", api.RuleVersionList, {"scope": scope})).versions

    async def restore(self, version: int, *, scope: api.RuleScope = "installation") -> api.RuleSettingsView:
        """Make an older version of the rules the newest one."""
        body = api.RestoreVersion(version=version)
        path = f"{RULES}/restore"
        answer = await self._node_client.ask("POST", path, body=body, query={"scope": scope}, may_repeat=False)
        return decode_body(answer, api.RuleSettingsView)

    async def dry_run(
        self, rules: Sequence[StoredRule], *, scope: api.RuleScope = "installation", calls: int = 200
    ) -> api.DryRunView:
        """What a draft of the rules would have decided about the last calls of the tenant. Nothing is run."""
        body = api.DryRunRules(rules=tuple(rules), calls=calls)
        answer = await self._node_client.ask("POST", f"{RULES}/dry-run", body=body, query={"scope": scope})
        return decode_body(answer, api.DryRunView)

    async def explain(
        self,
        rules: Sequence[StoredRule],
        tool: str,
        arguments: JsonObject,
        *,
        scope: api.RuleScope = "installation",
        agent: str = "",
    ) -> api.ExplainView:
        """What a draft of the rules would decide about a call. Nothing is run."""
        body = api.ExplainDraft(rules=tuple(rules), tool=tool, arguments=arguments, agent=agent)
        answer = await self._node_client.ask("POST", f"{RULES}/explain", body=body, query={"scope": scope})
        return decode_body(answer, api.ExplainView)
