"""The routes for whoever wants to know what is set up: rules, remembered answers, MCP servers, the model."""

from __future__ import annotations

from typing import Final

from everturn import api
from everturn.access.access import Access
from everturn.server.native import route_for
from everturn.server.routing import Param, Route

NAME: Final = {"type": "string", "maxLength": 200}

ROUTES: Final[list[Route]] = [
    route_for(
        "GET",
        "/api/rules",
        Access.rules,
        "The rules that hold for an agent, and what its tools say of themselves.",
        lambda a: a.access.rules(**a.query),
        answer=api.RulesView,
        query=(Param("agent", NAME, "the first one, if none is named"),),
    ),
    route_for(
        "POST",
        "/api/explain",
        Access.explain,
        "What would become of a call, and which rule decides. Nothing is run.",
        lambda a: a.access.explain(a.body),
        body=api.Explain,
        answer=api.ExplainView,
    ),
    route_for(
        "GET",
        "/api/grants",
        Access.granted,
        "What was allowed from then on, in any session.",
        lambda a: a.access.granted(),
        answer=api.GrantedList,
    ),
    route_for(
        "DELETE",
        "/api/grants/{grant}",
        Access.revoke_anywhere,
        "Allow it no more. What holds everywhere takes an owner.",
        lambda a: a.access.revoke_anywhere(a.ids["grant"]),
        status=204,
    ),
    route_for("GET", "/api/mcp", Access.servers, "MCP servers.", lambda a: a.access.servers(), answer=api.McpList),
    route_for(
        "POST",
        "/api/mcp/{server}/trust",
        Access.trust_server,
        "Trust a server as it was shown.",
        lambda a: a.access.trust_server(a.ids["server"], a.body),
        body=api.TrustServer,
        status=204,
    ),
    route_for(
        "POST",
        "/api/mcp/{server}/login",
        Access.log_in_server,
        "Begin to log in to a server; a person goes on in a browser.",
        lambda a: a.access.log_in_server(a.ids["server"]),
        answer=api.LoginView,
    ),
    route_for(
        "POST",
        "/api/mcp/{server}/retry",
        Access.retry_server,
        "Try a server now.",
        lambda a: a.access.retry_server(a.ids["server"]),
        status=204,
    ),
    route_for(
        "GET",
        "/api/setup",
        Access.setup,
        "Which model answers, and which others could be had here.",
        lambda a: a.access.setup(),
        answer=api.SetupView,
    ),
]
