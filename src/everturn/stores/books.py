"""The books of the reference store: which answers are remembered, and what turns have used.

Both are read off the logs of many sessions at once, and outlive some of them: what was used stays when a session is
erased. They are written when an append has gone well, so there is nothing in them to be rewound.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from everturn.core.asking import Grant
from everturn.core.events import (
    CallStarted,
    Event,
    GateAnswered,
    GrantRevoked,
    StepFinished,
    StepInterrupted,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
)
from everturn.core.options import Spent
from everturn.errors import UnknownGrant

NEWS: frozenset[type[Event]] = frozenset(
    (TurnStarted, StepFinished, StepInterrupted, CallStarted, TurnCompleted, TurnFailed, TurnCancelled)
)
"""What changes how much a turn has used, or when it last did."""

DAY = 86_400


class Used(Struct):
    """What a turn has used, and on whose account: its own session's, or that of the turn at its top."""

    tenant: str
    home: str  # the session at the top; its own where there is none above
    top: str = ""  # the turn at the top
    at: float = 0.0  # when it last ended a step, or ended
    spent: Spent = Spent()
    agent: str = ""


class Books:
    """Grants and spending of all sessions. A restored log grants nothing, and nothing that it says was used here."""

    def __init__(self) -> None:
        self._grants: dict[tuple[str, str], tuple[str, Grant]] = {}  # origin, id -> tenant, grant
        self._used: dict[tuple[str, str], Used] = {}  # session, turn

    def take(self, session: str, tenant: str, events: Iterable[Event], is_restored: bool = False) -> None:
        """Enter what was appended to a session."""
        for event in events:
            kind = type(event)
            if kind in NEWS:
                self._count(session, tenant, event, is_restored)
            elif is_restored:  # a log may come from anybody: it must not allow anything
                continue
            elif isinstance(event, GateAnswered) and event.grant is not None:
                self._grants[session, event.grant.id] = (tenant, event.grant)
            elif isinstance(event, GrantRevoked):
                self._revoke(session, tenant, event.grant)

    # Grants -----------------------------------------------------------------------------------------------------------

    def grants(self, session: str, tenant: str, now: float) -> list[Grant]:
        """Those that hold in a session, oldest first."""
        found = [
            grant
            for whose, grant in self._grants.values()
            if whose == tenant and grant.session in ("", session) and (not grant.expires or now < grant.expires)
        ]
        return sorted(found, key=lambda grant: (grant.at, grant.id))

    def granted(self, tenant: str, now: float) -> list[tuple[str, Grant]]:
        """Those of a tenant that hold somewhere, with the sessions they were given in, newest first."""
        found = [
            (origin, grant)
            for (origin, _), (whose, grant) in self._grants.items()
            if whose == tenant and (not grant.expires or now < grant.expires)
        ]
        return sorted(found, key=lambda held: (-held[1].at, held[1].id, held[0]))

    def revoke(self, session: str, tenant: str, grant: str) -> None:
        """Let one hold no more that was made in this session, or holds in it.

        Raises:
            UnknownGrant: there is none, or it was revoked before.
        """
        if not self._revoke(session, tenant, grant):
            raise UnknownGrant(f"there is no grant {grant!r} in this session")

    def _revoke(self, session: str, tenant: str, grant: str) -> bool:
        gone = [
            (origin, name)
            for (origin, name), (whose, held) in self._grants.items()
            if name == grant and whose == tenant
            if origin == session or held.session in ("", session)
        ]
        for place in gone:
            del self._grants[place]
        return bool(gone)

    def erase(self, session: str) -> None:
        """Forget the grants that were made in a session or hold in it. What was used stays."""
        self._grants = {
            place: held for place, held in self._grants.items() if session not in (place[0], held[1].session)
        }

    # Spending ---------------------------------------------------------------------------------------------------------

    def below(self, session: str) -> list[str]:
        """The sessions of its sub-turns, as it was written when they began: unlike a name no log can make that up."""
        homes = {(used.tenant, used.home) for (name, _), used in self._used.items() if name == session}
        return sorted({name for (name, _), used in self._used.items() if (used.tenant, used.home) in homes} - {session})

    def spent(self, *, session: str = "", top: str = "", tenant: str = "", since: float = 0.0) -> Spent:
        """What was used on an account."""
        whose = account(session, top, tenant)
        used = (row for row in self._used.values() if getattr(row, whose) == (session or top or tenant))
        return sum((row.spent for row in used if not tenant or row.at >= since), Spent())

    def used(self, tenant: str, since: float) -> list[tuple[int, str, Spent]]:
        """What a tenant has used, by day and agent."""
        found: dict[tuple[int, str], Spent] = {}
        for row in self._used.values():
            if row.tenant == tenant and row.at >= since:
                place = (int(row.at // DAY), row.agent)
                found[place] = found.get(place, Spent()) + row.spent
        return [(day, agent, spent) for (day, agent), spent in sorted(found.items()) if spent != Spent()]

    def _count(self, session: str, tenant: str, event: Any, is_restored: bool) -> None:
        if type(event) is TurnStarted:
            above = None if is_restored else event.options.above
            home, top = (session, "") if above is None else (above.session, above.turn)
            self._used[session, event.turn] = Used(tenant, home, top, event.at, agent=event.options.agent)
            return
        used = self._used.get((session, event.turn))
        if used is None or is_restored:  # a log may come from anybody: it could say that less than nothing was used
            return
        if type(event) is CallStarted:
            used.spent += Spent(calls=1)
            return
        used.at = event.at
        if type(event) in (StepFinished, StepInterrupted):
            used.spent += Spent(steps=1, usage=event.usage)


def account(session: str, top: str, tenant: str) -> str:
    """By what to add up: the session at the top, the turn at the top, or the tenant.

    Raises:
        TypeError: not exactly one was asked for.
    """
    asked = [name for name, given in (("home", session), ("top", top), ("tenant", tenant)) if given]
    if len(asked) != 1:
        raise TypeError("say whose: spent(session=…), spent(top=…), or spent(tenant=…, since=…)")
    return asked[0]
