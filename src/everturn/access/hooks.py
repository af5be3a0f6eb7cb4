"""Inbound hook access: the list of the tenant's hooks, without their secrets. Deliveries have a signature, and no login."""

from __future__ import annotations

from everturn import api
from everturn.access.roles import needs
from everturn.access.scope import ScopedAccess
from everturn.inbound_hooks.hook import InboundHook


class HookAccess:
    """Access to inbound hooks. They are configuration: an operator changes them."""

    __slots__ = ("scope",)

    def __init__(self, scope: ScopedAccess) -> None:
        self.scope = scope

    @needs("owner")
    async def list(self) -> api.HookList:
        """The tenant's inbound hooks, by name."""
        found = self.scope.server_context.inbound_hooks.list(tenant=self.scope.principal.tenant)
        return api.HookList(hooks=[hook_view(hook) for hook in found])


def hook_view(hook: InboundHook) -> api.HookView:
    """A hook, as the API shows it: without its secrets."""
    return api.HookView(
        name=hook.name,
        path=f"/api/hooks/{hook.name}",
        scheme=hook.scheme,
        action=hook.action,
        agent=hook.agent,
        session=hook.session,
        text=hook.text,
        by=hook.by,
        priority=hook.priority,
        max_bytes=hook.max_bytes,
    )
