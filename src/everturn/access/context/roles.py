"""Role checks: `@needs` declares the role that a method requires, checks it, and lets routes read it.

It also gives all "unknown" errors one text per kind, whether the object is absent, erased or another tenant's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

from everturn.core.tenants.accounts import Principal, Role, is_at_least
from everturn.errors import (
    EverturnError,
    Forbidden,
    UnknownFile,
    UnknownGate,
    UnknownGrant,
    UnknownKey,
    UnknownLink,
    UnknownMessage,
    UnknownSchedule,
    UnknownServer,
    UnknownSession,
    UnknownSetting,
    UnknownShare,
    UnknownTurn,
    UnknownWebhook,
)

P = ParamSpec("P")
R = TypeVar("R")

UNKNOWN_TEXTS: Final[dict[type[EverturnError], str]] = {
    UnknownSession: "there is no such session",
    UnknownTurn: "there is no such turn in this session",
    UnknownMessage: "there is no such message in this session",
    UnknownGate: "there is no such gate in this session",
    UnknownGrant: "there is no such grant in this session, or it was revoked before",
    UnknownFile: "there is no such file",
    UnknownKey: "there is no such key",
    UnknownServer: "there is no such server",
    UnknownSchedule: "there is no such schedule",
    UnknownWebhook: "there is no such webhook",
    UnknownSetting: "there is no such setting",
    UnknownShare: "there is no such share",
    UnknownLink: "there is no such link, or it has expired or was revoked",
}
"""No id is in these texts: not even its length may reveal more."""


class Scope(Protocol):
    """What a principal may reach."""

    @property
    def principal(self) -> Principal:
        """The principal."""
        ...


class HasScope(Protocol):
    """An object that acts for the principal of its scope."""

    @property
    def scope(self) -> Scope:
        """The scope."""
        ...


S = TypeVar("S", bound=HasScope)


def needs(
    role: Role,
) -> Callable[[Callable[Concatenate[S, P], Awaitable[R]]], Callable[Concatenate[S, P], Awaitable[R]]]:
    """Let a method be called only by a principal with at least this role.

    Raises:
        Forbidden: the principal's role is lower.
    """

    def wrap(method: Callable[Concatenate[S, P], Awaitable[R]]) -> Callable[Concatenate[S, P], Awaitable[R]]:
        @wraps(method)
        async def checked(self: S, *args: P.args, **kwargs: P.kwargs) -> R:
            require_role(self.scope.principal, role)
            try:
                return await method(self, *args, **kwargs)
            except tuple(UNKNOWN_TEXTS) as error:
                # The cause is dropped: it may reveal the owner.
                raise type(error)(UNKNOWN_TEXTS[type(error)]) from None

        checked.__dict__["needs"] = role
        return checked

    return wrap


def require_role(principal: Principal, role: Role, action: str = "this") -> None:
    """Refuse a principal whose role is lower.

    Raises:
        Forbidden: the role is lower.
    """
    if not is_at_least(principal.role, role):
        raise Forbidden(f"{action} needs the role {role!r}; yours is {principal.role!r}")


def role_of(method: Callable[..., Any]) -> Role:
    """The role that a method requires."""
    return method.__dict__["needs"]
