"""Sharing of a session on a server: who may see it, and links to it."""

from __future__ import annotations

from urllib.parse import quote

from everturn import api
from everturn.client.http import NodeClient, decode_body
from everturn.core.tenants.accounts import Role
from everturn.core.tenants.sharing import ShareLevel


class RemoteSharing:
    """The shares of one session. Only its author changes them."""

    def __init__(self, node_client: NodeClient, path: str) -> None:
        self._node_client, self._path = node_client, path

    async def get(self) -> api.SharingView:
        """Who may see the session, and what the caller may do in it. The author sees all shares."""
        return await self._node_client.get(f"{self._path}/sharing", api.SharingView)

    async def share(
        self, *, user: str = "", role: Role | None = None, level: ShareLevel = "read", expires: float = 0.0
    ) -> api.ShareView:
        """Share the session with a user, or with everybody who has at least a role, until a Unix time or (0) for good.

        Sharing it with the same user or role again changes that share.
        """
        body = api.NewShare(user=user, role=role, level=level, expires=expires)
        return decode_body(await self._node_client.ask("POST", f"{self._path}/shares", body=body), api.ShareView)

    async def revoke(self, share: str) -> None:
        """Revoke a share or a link, by its id. Open streams of those who lose access end."""
        await self._node_client.ask("DELETE", f"{self._path}/shares/{quote(share, safe='')}")

    async def create_link(self, *, expires: float = 0.0) -> api.LinkView:
        """Create a read-only link for users of the tenant. Its secret is in this answer, and nowhere else."""
        body = api.NewLink(expires=expires)
        answer = await self._node_client.ask("POST", f"{self._path}/links", body=body, may_repeat=False)
        return decode_body(answer, api.LinkView)

    async def open_as_administrator(self, reason: str, *, minutes: int = 15) -> api.ShareView:
        """Read a private session as an owner of the tenant. It is audited, and the author is told the reason."""
        body = api.OpenAsAdministrator(reason=reason, minutes=minutes)
        answer = await self._node_client.ask("POST", f"{self._path}/admin-access", body=body, may_repeat=False)
        return decode_body(answer, api.ShareView)
