"""Account routes: users, API keys, tenants and the audit log."""

from __future__ import annotations

from typing import Final

from everturn import api
from everturn.access.administration.accounts import AccountAccess
from everturn.access.memory import MemoryAccess
from everturn.server.route import Param, Route
from everturn.server.routes.api import LIMIT, route_for

ROUTES: Final[list[Route]] = [
    route_for(
        "GET",
        "/api/users",
        AccountAccess.users,
        "List the users.",
        lambda a: a.access.accounts.users(),
        answer=api.UserList,
    ),
    route_for(
        "PUT",
        "/api/users/{user}",
        AccountAccess.put_user,
        "Create or change a user.",
        lambda a: a.access.accounts.put_user(a.ids["user"], a.body),
        body=api.PutUser,
        answer=api.UserView,
    ),
    route_for(
        "DELETE",
        "/api/users/{user}/memory",
        MemoryAccess.erase_user,
        "Erase all memory files of a user.",
        lambda a: a.access.memory.erase_user(a.ids["user"]),
        name="erase_memory",
        status=204,
    ),
    route_for(
        "GET",
        "/api/keys",
        AccountAccess.keys,
        "List the API keys and logins.",
        lambda a: a.access.accounts.keys(),
        answer=api.KeyList,
    ),
    route_for(
        "POST",
        "/api/keys",
        AccountAccess.create_key,
        "Create an API key. Only this response contains the secret.",
        lambda a: a.access.accounts.create_key(a.body),
        name="make_key",
        body=api.NewKey,
        answer=api.NewKeyView,
        status=201,
    ),
    route_for(
        "DELETE",
        "/api/keys/{key}",
        AccountAccess.revoke_key,
        "Revoke an API key or a login.",
        lambda a: a.access.accounts.revoke_key(a.ids["key"]),
        status=204,
    ),
    route_for(
        "GET",
        "/api/audit",
        AccountAccess.audit,
        "Read the audit log, oldest entries first.",
        lambda a: a.access.accounts.audit(**a.query),
        answer=api.AuditPage,
        query=(Param("after", {"type": "integer", "minimum": 0, "maximum": 2**62}), Param("limit", LIMIT)),
    ),
    route_for(
        "GET",
        "/api/tenants",
        AccountAccess.tenants,
        "List the tenants.",
        lambda a: a.access.accounts.tenants(),
        answer=api.TenantList,
    ),
    route_for(
        "PUT",
        "/api/tenants/{tenant}",
        AccountAccess.put_tenant,
        "Create or change a tenant.",
        lambda a: a.access.accounts.put_tenant(a.ids["tenant"], a.body),
        body=api.PutTenant,
        answer=api.TenantView,
    ),
]
