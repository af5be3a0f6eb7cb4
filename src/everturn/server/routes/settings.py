"""Settings routes: models and their keys, agents and MCP servers, for owners; with several tenants, for operators."""

from __future__ import annotations

from typing import Final

from everturn import api
from everturn.access.mcp_settings import McpSettingsAccess
from everturn.access.settings import SettingsAccess
from everturn.server.route import Route
from everturn.server.routes.api import route_for

KEY: Final = "/api/settings/keys/{vendor}"
MODEL: Final = "/api/settings/models/{model}"
AGENT: Final = "/api/settings/agents/{agent}"
MCP: Final = "/api/settings/mcp/{server}"

ROUTES: Final[list[Route]] = [
    route_for(
        "GET",
        "/api/settings",
        SettingsAccess.list,
        "List what administrators have set: models, keys (never their values) and agents.",
        lambda a: a.access.settings.list(),
        name="settings",
        answer=api.SettingsView,
    ),
    route_for(
        "PUT",
        KEY,
        SettingsAccess.put_key,
        "Store the API key of a vendor. No response ever contains it.",
        lambda a: a.access.settings.put_key(a.ids["vendor"], a.body),
        name="put_model_key",
        body=api.NewModelKey,
        answer=api.ModelKeyView,
    ),
    route_for(
        "DELETE",
        KEY,
        SettingsAccess.delete_key,
        "Delete the API key of a vendor.",
        lambda a: a.access.settings.delete_key(a.ids["vendor"]),
        name="delete_model_key",
        status=204,
    ),
    route_for(
        "POST",
        f"{KEY}/test",
        SettingsAccess.test_key,
        "Ask a vendor for its models with the stored key.",
        lambda a: a.access.settings.test_key(a.ids["vendor"]),
        name="test_model_key",
        answer=api.KeyTestView,
    ),
    route_for(
        "PUT",
        MODEL,
        SettingsAccess.put_model,
        "Offer a model, or change one.",
        lambda a: a.access.settings.put_model(a.ids["model"], a.body),
        name="put_model",
        body=api.NewModelSettings,
        answer=api.ModelSettingsView,
    ),
    route_for(
        "DELETE",
        MODEL,
        SettingsAccess.delete_model,
        "Delete a model that no agent uses.",
        lambda a: a.access.settings.delete_model(a.ids["model"]),
        name="delete_model",
        status=204,
    ),
    route_for(
        "PUT",
        AGENT,
        SettingsAccess.put_agent,
        "Create an agent, or a new version of one.",
        lambda a: a.access.settings.put_agent(a.ids["agent"], a.body),
        name="put_agent",
        body=api.NewAgentSettings,
        answer=api.AgentSettingsView,
    ),
    route_for(
        "DELETE",
        AGENT,
        SettingsAccess.delete_agent,
        "Delete an agent; its versions stay.",
        lambda a: a.access.settings.delete_agent(a.ids["agent"]),
        name="delete_agent",
        status=204,
    ),
    route_for(
        "GET",
        f"{AGENT}/versions",
        SettingsAccess.agent_versions,
        "List the versions of an agent, newest first.",
        lambda a: a.access.settings.agent_versions(a.ids["agent"]),
        name="agent_versions",
        answer=api.AgentVersionList,
    ),
    route_for(
        "POST",
        f"{AGENT}/restore",
        SettingsAccess.restore_agent,
        "Make an older version of an agent the newest one.",
        lambda a: a.access.settings.restore_agent(a.ids["agent"], a.body),
        name="restore_agent",
        body=api.RestoreVersion,
        answer=api.AgentSettingsView,
    ),
    route_for(
        "PUT",
        MCP,
        McpSettingsAccess.put,
        "Add an MCP server, or change one. Its tools cannot be called before they are trusted.",
        lambda a: a.access.mcp_settings.put(a.ids["server"], a.body),
        name="put_mcp",
        body=api.NewMcpSettings,
        answer=api.McpSettingsView,
    ),
    route_for(
        "DELETE",
        MCP,
        McpSettingsAccess.delete,
        "Delete an MCP server, and disconnect from it.",
        lambda a: a.access.mcp_settings.delete(a.ids["server"]),
        name="delete_mcp",
        status=204,
    ),
    route_for(
        "POST",
        f"{MCP}/trust",
        McpSettingsAccess.trust,
        "Trust the tools of an MCP server as they were shown.",
        lambda a: a.access.mcp_settings.trust(a.ids["server"], a.body),
        name="trust_mcp",
        body=api.TrustServer,
        answer=api.McpSettingsView,
    ),
    route_for(
        "POST",
        f"{MCP}/login",
        McpSettingsAccess.log_in,
        "Start a login to an MCP server.",
        lambda a: a.access.mcp_settings.log_in(a.ids["server"]),
        name="log_in_mcp",
        answer=api.LoginView,
    ),
    route_for(
        "POST",
        f"{MCP}/retry",
        McpSettingsAccess.retry,
        "Reconnect to an MCP server now.",
        lambda a: a.access.mcp_settings.retry(a.ids["server"]),
        name="retry_mcp",
        status=204,
    ),
]
