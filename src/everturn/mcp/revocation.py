"""Token revocation (RFC 7009): tells the authorization server that a login has ended, where it offers that."""

from __future__ import annotations

import logging
from typing import Any
from urllib.parse import urlencode

from everturn.egress import FetchLimits
from everturn.errors import EverturnError
from everturn.mcp.config import ServerSpec
from everturn.mcp.token_storage import SavedTokens

TIMEOUT = 10.0  # seconds

log = logging.getLogger(__name__)


async def revoke_tokens(spec: ServerSpec, saved: SavedTokens) -> bool:
    """Revoke the tokens of a login; False if the server has no way to, or it failed. They are deleted here in any case."""
    endpoint: Any = (saved.server or {}).get("revocation_endpoint")
    tokens, client = saved.tokens or {}, saved.client or {}
    token = tokens.get("refresh_token") or tokens.get("access_token")
    if not isinstance(endpoint, str) or not isinstance(token, str):
        return False
    from everturn.mcp.http import login_policy

    hint = "refresh_token" if tokens.get("refresh_token") else "access_token"
    form = {"token": token, "token_type_hint": hint, "client_id": str(client.get("client_id", ""))}
    if client.get("client_secret"):
        form["client_secret"] = str(client["client_secret"])
    headers = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
    try:
        response = await login_policy(spec).request(
            "POST", endpoint, headers, urlencode(form).encode(), limits=FetchLimits(size=65_536, total=TIMEOUT)
        )
    except EverturnError as error:
        log.warning(
            "the login to MCP server %s ended here; its token was not revoked: %s", spec.name, type(error).__name__
        )
        return False
    return response.status < 300
