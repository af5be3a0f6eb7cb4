"""A method → the role that it takes, written where it is kept and checked, so that routes can be held to it.

Whatever is not there is said to be so in the same words, whether it is absent, erased or somebody else's: only here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

from everturn.core.accounts import Principal, Role, is_at_least
from everturn.errors import (
    EverturnError,
    Forbidden,
    UnknownFile,
    UnknownGate,
    UnknownGrant,
    UnknownKey,
    UnknownMessage,
    UnknownServer,
    UnknownSession,
    UnknownTurn,
)

P = ParamSpec("P")
R = TypeVar("R")

ABSENT: Final[dict[type[EverturnError], str]] = {
    UnknownSession: "there is no such session",
    UnknownTurn: "there is no such turn in this session",
    UnknownMessage: "there is no such message in this session",
    UnknownGate: "there is no such gate in this session",
    UnknownGrant: "there is no such grant in this session, or it was revoked before",
    UnknownFile: "there is no such file",
    UnknownKey: "there is no such key",
    UnknownServer: "there is no such server",
}
"""No id is in these: not even by its length does an answer say more than that."""


class HasPrincipal(Protocol):
    """Whoever acts for somebody."""

    principal: Principal


S = TypeVar("S", bound=HasPrincipal)


def needs(
    role: Role,
) -> Callable[[Callable[Concatenate[S, P], Awaitable[R]]], Callable[Concatenate[S, P], Awaitable[R]]]:
    """Let a method be called only for a principal who has at least this role.

    Raises:
        Forbidden: they have less.
    """

    def wrap(method: Callable[Concatenate[S, P], Awaitable[R]]) -> Callable[Concatenate[S, P], Awaitable[R]]:
        @wraps(method)
        async def checked(self: S, *args: P.args, **kwargs: P.kwargs) -> R:
            refuse_less(self.principal, role)
            try:
                return await method(self, *args, **kwargs)
            except tuple(ABSENT) as error:
                # The cause is dropped: it may say whose it is.
                raise type(error)(ABSENT[type(error)]) from None

        checked.__dict__["needs"] = role
        return checked

    return wrap


def refuse_less(principal: Principal, role: Role, what: str = "this") -> None:
    """Refuse somebody whose role is not enough.

    Raises:
        Forbidden: it is not.
    """
    if not is_at_least(principal.role, role):
        raise Forbidden(f"{what} takes the role {role!r}, and yours is {principal.role!r}")


def role_of(method: Callable[..., Any]) -> Role:
    """The role that a method takes."""
    return method.__dict__["needs"]
