"""Administration of a server: settings, users, keys, the audit log, usage and quarantined sessions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import quote

from everturn import api
from everturn.client.http import NodeClient, decode_body
from everturn.client.rule_settings import RemoteRuleSettings
from everturn.core.tenants.settings import AgentSettings, ModelSettings

T = TypeVar("T")


class RemoteAdministration:
    """What owners of a tenant and operators of the server change. With several tenants, settings take an operator."""

    def __init__(self, node_client: NodeClient) -> None:
        self._node_client = node_client
        self.rules = RemoteRuleSettings(node_client)

    # Settings --------------------------------------------------------------------------------------------------------

    async def settings(self) -> api.SettingsView:
        """What administrators have set: models, keys (never their values), agents and MCP servers."""
        return await self._get("/api/settings", api.SettingsView)

    async def put_model_key(self, vendor: str, key: str) -> api.ModelKeyView:
        """Store the API key of a vendor."""
        return await self._change("PUT", _path("settings/keys", vendor), api.ModelKeyView, api.NewModelKey(key=key))

    async def delete_model_key(self, vendor: str) -> None:
        """Delete the API key of a vendor."""
        await self._ask("DELETE", _path("settings/keys", vendor))

    async def test_model_key(self, vendor: str) -> api.KeyTestView:
        """Ask a vendor for its models with the stored key."""
        return await self._change("POST", _path("settings/keys", vendor, "test"), api.KeyTestView)

    async def put_model(
        self, name: str, settings: ModelSettings, *, key: str = "", version: int | None = None
    ) -> api.ModelSettingsView:
        """Offer a model, or change one."""
        body = api.NewModelSettings(settings=settings, key=key, version=version)
        return await self._change("PUT", _path("settings/models", name), api.ModelSettingsView, body)

    async def delete_model(self, name: str) -> None:
        """Delete a model that no agent uses."""
        await self._ask("DELETE", _path("settings/models", name))

    async def put_agent(
        self, name: str, settings: AgentSettings, *, version: int | None = None
    ) -> api.AgentSettingsView:
        """Create an agent, or a new version of one."""
        body = api.NewAgentSettings(settings=settings, version=version)
        return await self._change("PUT", _path("settings/agents", name), api.AgentSettingsView, body)

    async def delete_agent(self, name: str) -> None:
        """Delete an agent; its versions stay."""
        await self._ask("DELETE", _path("settings/agents", name))

    async def agent_versions(self, name: str) -> list[api.AgentSettingsView]:
        """The versions of an agent, newest first."""
        return (await self._get(_path("settings/agents", name, "versions"), api.AgentVersionList)).versions

    async def restore_agent(self, name: str, version: int) -> api.AgentSettingsView:
        """Make an older version of an agent the newest one."""
        body = api.RestoreVersion(version=version)
        return await self._change("POST", _path("settings/agents", name, "restore"), api.AgentSettingsView, body)

    async def put_mcp(self, name: str, server: api.NewMcpSettings) -> api.McpSettingsView:
        """Add an MCP server, or change one. Its tools cannot be called before they are trusted."""
        return await self._change("PUT", _path("settings/mcp", name), api.McpSettingsView, server)

    async def delete_mcp(self, name: str) -> None:
        """Delete an MCP server, and disconnect from it."""
        await self._ask("DELETE", _path("settings/mcp", name))

    async def trust_mcp(self, name: str, hash: str) -> api.McpSettingsView:
        """Trust the tools of a stored MCP server as they were shown, by their hash."""
        body = api.TrustServer(hash=hash)
        return await self._change("POST", _path("settings/mcp", name, "trust"), api.McpSettingsView, body)

    async def retry_mcp(self, name: str) -> None:
        """Reconnect to a stored MCP server now."""
        await self._ask("POST", _path("settings/mcp", name, "retry"))

    async def mcp_logins(self, server: str) -> api.McpLogins:
        """The users of the tenant who are logged in to an MCP server."""
        return await self._get(_path("mcp", server, "logins"), api.McpLogins)

    async def revoke_mcp_login(self, server: str, user: str) -> None:
        """End the login of a user of the tenant to an MCP server."""
        await self._ask("DELETE", f"{_path('mcp', server, 'logins')}/{quote(user, safe='')}")

    async def put_hook(self, name: str, hook: api.NewHook) -> api.HookWithSecret:
        """Create an inbound hook, or change one; a secret that was made is in this answer alone."""
        return await self._change("PUT", _path("settings/hooks", name), api.HookWithSecret, hook)

    async def rotate_hook_secret(self, name: str, secret: str = "") -> api.HookWithSecret:
        """Replace the secret of an inbound hook, by the given one or a new one."""
        body = api.NewHookSecret(secret=secret)
        return await self._change("POST", _path("settings/hooks", name, "secret"), api.HookWithSecret, body)

    async def delete_hook(self, name: str) -> None:
        """Delete an inbound hook that an administrator created."""
        await self._ask("DELETE", _path("settings/hooks", name))

    async def hook_calls(self, name: str, limit: int = 100) -> list[api.HookCallView]:
        """The last calls of an inbound hook, newest first."""
        return (await self._get(_path("hooks", name, "calls"), api.HookCallList, {"limit": str(limit)})).calls

    # Users -----------------------------------------------------------------------------------------------------------

    async def users(self) -> list[api.UserView]:
        """The users of the tenant."""
        return (await self._get("/api/users", api.UserList)).users

    async def put_user(self, user: str, change: api.PutUser) -> api.UserView:
        """Create or change a user."""
        return await self._change("PUT", _path("users", user), api.UserView, change)

    async def remove_user(self, user: str) -> None:
        """Remove a user: their keys and logins end; their conversations stay."""
        await self._ask("DELETE", _path("users", user))

    async def set_user_budget(self, user: str, budget: api.PutUserBudget) -> None:
        """Limit what a user may use in a period."""
        await self._ask("PUT", _path("users", user, "budget"), budget)

    async def erase_memory(self, user: str) -> None:
        """Erase all memory files of a user."""
        await self._ask("DELETE", _path("users", user, "memory"))

    async def reset_password(self, user: str) -> api.NewInvitationView:
        """Create a link by which a user sets a new password, once; its secret is in this answer alone."""
        return await self._change("POST", _path("users", user, "password-reset"), api.NewInvitationView)

    async def invitations(self) -> list[api.InvitationView]:
        """The invitations, newest first."""
        return (await self._get("/api/invitations", api.InvitationList)).invitations

    async def invite(self, invitation: api.NewInvitation) -> api.NewInvitationView:
        """Invite a person by a link that works once; its secret is in this answer alone."""
        return await self._change("POST", "/api/invitations", api.NewInvitationView, invitation)

    async def revoke_invitation(self, invitation: str) -> None:
        """Revoke an invitation, or a link that resets a password."""
        await self._ask("DELETE", _path("invitations", invitation))

    async def keys(self) -> list[api.KeyView]:
        """The API keys and logins."""
        return (await self._get("/api/keys", api.KeyList)).keys

    async def create_key(self, key: api.NewKey) -> api.NewKeyView:
        """Create an API key; its secret is in this answer alone."""
        return await self._change("POST", "/api/keys", api.NewKeyView, key)

    async def revoke_key(self, key: str) -> None:
        """Revoke an API key or a login."""
        await self._ask("DELETE", _path("keys", key))

    async def tenants(self) -> list[api.TenantView]:
        """The tenants."""
        return (await self._get("/api/tenants", api.TenantList)).tenants

    async def put_tenant(self, tenant: str, change: api.PutTenant) -> api.TenantView:
        """Create or change a tenant."""
        return await self._change("PUT", _path("tenants", tenant), api.TenantView, change)

    # Audit log, usage and quarantine ---------------------------------------------------------------------------------

    async def audit(self, after: int = 0, limit: int = 100) -> api.AuditPage:
        """The audit log, oldest entries first."""
        return await self._get("/api/audit", api.AuditPage, {"after": str(after), "limit": str(limit)})

    async def search_audit(
        self,
        *,
        by: str = "",
        did: str = "",
        on: str = "",
        since: float = 0.0,
        until: float = 0.0,
        before: int = 0,
        limit: int = 100,
    ) -> api.AuditPage:
        """Entries of the audit log, newest first."""
        query = {"by": by, "did": did, "on": on, "limit": str(limit)}
        query |= {"since": str(since) if since else "", "until": str(until) if until else ""}
        query["before"] = str(before) if before else ""
        return await self._get(
            "/api/audit/search", api.AuditPage, {name: value for name, value in query.items() if value}
        )

    async def user_usage(self, since: float = 0.0) -> api.UserUsageView:
        """The usage by user, model and agent since a time."""
        return await self._get("/api/usage/users", api.UserUsageView, {"since": str(since)})

    async def quarantine(self) -> api.QuarantineList:
        """The quarantined sessions, without their text, and how long sessions are kept."""
        return await self._get("/api/quarantine", api.QuarantineList)

    async def retry_session(self, session: str) -> None:
        """Let a quarantined session be driven again, at once."""
        await self._ask("POST", _path("quarantine", session, "retry"))

    async def cancel_session(self, session: str) -> api.CancelledSession:
        """Cancel the open turns of a session, also of a private one."""
        return await self._change("POST", _path("quarantine", session, "cancel"), api.CancelledSession)

    async def _get(self, path: str, kind: type[T], query: Mapping[str, str] | None = None) -> T:
        return await self._node_client.get(path, kind, query)

    async def _change(self, method: str, path: str, kind: type[T], body: Any = None) -> T:
        return decode_body(await self._node_client.ask(method, path, body=body, may_repeat=False), kind)

    async def _ask(self, method: str, path: str, body: Any = None) -> None:
        await self._node_client.ask(method, path, body=body)


def _path(kind: str, name: str, action: str = "") -> str:
    path = f"/api/{kind}/{quote(name, safe='')}"
    return f"{path}/{action}" if action else path
