"""Administration routes: rules, grants, MCP servers and the model."""

from __future__ import annotations

from typing import Final

from everturn import api
from everturn.access.admin import AdminAccess
from everturn.server.route import Param, Route
from everturn.server.routes.api import route_for

NAME: Final = {"type": "string", "maxLength": 200}

ROUTES: Final[list[Route]] = [
    route_for(
        "GET",
        "/api/rules",
        AdminAccess.rules,
        "The rules that hold for an agent, and what its tools say of themselves.",
        lambda a: a.access.admin.rules(**a.query),
        answer=api.RulesView,
        query=(Param("agent", NAME, "the first one, if none is named"),),
    ),
    route_for(
        "POST",
        "/api/explain",
        AdminAccess.explain,
        "What would become of a call, and which rule decides. Nothing is run.",
        lambda a: a.access.admin.explain(a.body),
        body=api.ExplainCall,
        answer=api.ExplainView,
    ),
    route_for(
        "GET",
        "/api/grants",
        AdminAccess.grants,
        "What was allowed from then on, in any session.",
        lambda a: a.access.admin.grants(),
        name="tenant_grants",
        answer=api.GrantList,
    ),
    route_for(
        "DELETE",
        "/api/grants/{grant}",
        AdminAccess.revoke_grant,
        "Allow it no more. What holds everywhere takes an owner.",
        lambda a: a.access.admin.revoke_grant(a.ids["grant"]),
        name="revoke_tenant_grant",
        status=204,
    ),
    route_for(
        "GET", "/api/mcp", AdminAccess.servers, "MCP servers.", lambda a: a.access.admin.servers(), answer=api.McpList
    ),
    route_for(
        "POST",
        "/api/mcp/{server}/trust",
        AdminAccess.trust_server,
        "Trust a server as it was shown.",
        lambda a: a.access.admin.trust_server(a.ids["server"], a.body),
        body=api.TrustServer,
        status=204,
    ),
    route_for(
        "POST",
        "/api/mcp/{server}/login",
        AdminAccess.log_in_server,
        "Begin to log in to a server; a person goes on in a browser.",
        lambda a: a.access.admin.log_in_server(a.ids["server"]),
        answer=api.LoginView,
    ),
    route_for(
        "POST",
        "/api/mcp/{server}/retry",
        AdminAccess.retry_server,
        "Try a server now.",
        lambda a: a.access.admin.retry_server(a.ids["server"]),
        status=204,
    ),
    route_for(
        "GET",
        "/api/setup",
        AdminAccess.setup,
        "Which model answers, and which others could be had here.",
        lambda a: a.access.admin.setup(),
        answer=api.SetupView,
    ),
]
