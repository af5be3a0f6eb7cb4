"""The routes for whoever sees to users, keys and tenants, and reads what was done."""

from __future__ import annotations

from typing import Final

from everturn import api
from everturn.access.access import Access
from everturn.server.native import LIMIT, route_for
from everturn.server.routing import Param, Route

ROUTES: Final[list[Route]] = [
    route_for("GET", "/api/users", Access.users, "Users.", lambda a: a.access.users(), answer=api.UserList),
    route_for(
        "PUT",
        "/api/users/{user}",
        Access.put_user,
        "Make a user, or change one.",
        lambda a: a.access.put_user(a.ids["user"], a.body),
        body=api.PutUser,
        answer=api.UserView,
    ),
    route_for("GET", "/api/keys", Access.keys, "Credentials.", lambda a: a.access.keys(), answer=api.KeyList),
    route_for(
        "POST",
        "/api/keys",
        Access.make_key,
        "A new API key: its secret is shown this once.",
        lambda a: a.access.make_key(a.body),
        body=api.NewKey,
        answer=api.NewKeyView,
        status=201,
    ),
    route_for(
        "DELETE",
        "/api/keys/{key}",
        Access.revoke_key,
        "Let a key, or a login, hold no more.",
        lambda a: a.access.revoke_key(a.ids["key"]),
        status=204,
    ),
    route_for(
        "GET",
        "/api/audit",
        Access.audit,
        "What was done, oldest first.",
        lambda a: a.access.audit(**a.query),
        answer=api.AuditPage,
        query=(Param("after", {"type": "integer", "minimum": 0, "maximum": 2**62}), Param("limit", LIMIT)),
    ),
    route_for("GET", "/api/tenants", Access.tenants, "Tenants.", lambda a: a.access.tenants(), answer=api.TenantList),
    route_for(
        "PUT",
        "/api/tenants/{tenant}",
        Access.put_tenant,
        "Make a tenant, or change one.",
        lambda a: a.access.put_tenant(a.ids["tenant"], a.body),
        body=api.PutTenant,
        answer=api.TenantView,
    ),
]
