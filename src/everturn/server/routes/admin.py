"""Administration routes: rules, grants, MCP servers and the model."""

from __future__ import annotations

from typing import Final

from everturn import api
from everturn.access.administration.admin import AdminAccess
from everturn.access.mcp.logins import McpLoginAccess
from everturn.access.mcp.offers import McpOfferAccess
from everturn.server.route import HttpRequestContext, Param, Route
from everturn.server.routes.api import route_for

NAME: Final = {"type": "string", "maxLength": 200}

LOGIN_CALLBACK: Final = "/mcp/login"


def _return_to(context: HttpRequestContext) -> str:
    """The page to which a browser comes back after a login. Only browsers send an Origin, which the middleware checked."""
    origin = context.request.headers.get("origin", "")
    return f"{origin}{LOGIN_CALLBACK}" if origin.startswith(("https://", "http://")) else ""


ROUTES: Final[list[Route]] = [
    route_for(
        "GET",
        "/api/rules",
        AdminAccess.rules,
        "Get the permission rules of an agent, and the declarations of its tools.",
        lambda a: a.access.admin.rules(**a.query),
        answer=api.RulesView,
        query=(Param("agent", NAME, "the first one, if none is named"),),
    ),
    route_for(
        "POST",
        "/api/explain",
        AdminAccess.explain,
        "Explain whether a call would be allowed, and which rule decides. Nothing is run.",
        lambda a: a.access.admin.explain(a.body),
        body=api.ExplainCall,
        answer=api.ExplainView,
    ),
    route_for(
        "GET",
        "/api/grants",
        AdminAccess.grants,
        'List the grants ("always allow") of all sessions.',
        lambda a: a.access.admin.grants(),
        name="tenant_grants",
        answer=api.GrantList,
    ),
    route_for(
        "DELETE",
        "/api/grants/{grant}",
        AdminAccess.revoke_grant,
        "Revoke a grant. A grant that applies to all sessions needs the role owner.",
        lambda a: a.access.admin.revoke_grant(a.ids["grant"]),
        name="revoke_tenant_grant",
        status=204,
    ),
    route_for(
        "GET",
        "/api/mcp",
        AdminAccess.servers,
        "List the MCP servers.",
        lambda a: a.access.admin.servers(),
        answer=api.McpList,
    ),
    route_for(
        "POST",
        "/api/mcp/{server}/trust",
        AdminAccess.trust_server,
        "Trust an MCP server as it was shown.",
        lambda a: a.access.admin.trust_server(a.ids["server"], a.body),
        body=api.TrustServer,
        status=204,
    ),
    route_for(
        "POST",
        "/api/mcp/{server}/login",
        McpLoginAccess.log_in_server,
        "Start the login to an MCP server, of the caller, or of the installation where it is shared (operator; owner for a "
        "stored server). A person completes it in a browser.",
        lambda a: a.access.mcp_logins.log_in_server(a.ids["server"], _return_to(a)),
        answer=api.LoginView,
    ),
    route_for(
        "DELETE",
        "/api/mcp/{server}/login",
        McpLoginAccess.log_out_server,
        "End the caller's login to an MCP server, or that of the installation where it is shared.",
        lambda a: a.access.mcp_logins.log_out_server(a.ids["server"]),
        status=204,
    ),
    route_for(
        "POST",
        "/api/mcp/login",
        McpLoginAccess.finish_login,
        "Complete a login of the caller to an MCP server.",
        lambda a: a.access.mcp_logins.finish_login(a.body),
        name="finish_mcp_login",
        body=api.FinishMcpLogin,
        answer=api.McpLoginEnd,
    ),
    route_for(
        "GET",
        "/api/mcp/{server}/logins",
        McpLoginAccess.server_logins,
        "List the users of the tenant who are logged in to an MCP server.",
        lambda a: a.access.mcp_logins.server_logins(a.ids["server"]),
        name="mcp_logins",
        answer=api.McpLogins,
    ),
    route_for(
        "DELETE",
        "/api/mcp/{server}/logins/{user}",
        McpLoginAccess.revoke_login,
        "End the login of a user of the tenant to an MCP server.",
        lambda a: a.access.mcp_logins.revoke_login(a.ids["server"], a.ids["user"]),
        name="revoke_mcp_login",
        status=204,
    ),
    route_for(
        "POST",
        "/api/mcp/{server}/retry",
        AdminAccess.retry_server,
        "Reconnect to an MCP server now.",
        lambda a: a.access.admin.retry_server(a.ids["server"]),
        status=204,
    ),
    route_for(
        "GET",
        "/api/mcp/offers",
        McpOfferAccess.list,
        "List the prompts and resources of the MCP servers that are connected.",
        lambda a: a.access.mcp.list(),
        name="mcp_offers",
        answer=api.McpOffers,
    ),
    route_for(
        "POST",
        "/api/mcp/{server}/prompt",
        McpOfferAccess.prompt,
        "Get a prompt of an MCP server, as context for a message.",
        lambda a: a.access.mcp.prompt(a.ids["server"], a.body),
        name="mcp_prompt",
        body=api.GetMcpPrompt,
        answer=api.McpContent,
    ),
    route_for(
        "POST",
        "/api/mcp/{server}/resource",
        McpOfferAccess.resource,
        "Read a resource of an MCP server, as context and files for a message.",
        lambda a: a.access.mcp.resource(a.ids["server"], a.body),
        name="mcp_resource",
        body=api.ReadMcpResource,
        answer=api.McpContent,
    ),
    route_for(
        "GET",
        "/api/setup",
        AdminAccess.setup,
        "Get the current model, and the other models that are available here.",
        lambda a: a.access.admin.setup(),
        answer=api.SetupView,
    ),
]
