"""Presence: who looks at a conversation or an approval now. It is never stored, and a look that is not renewed ends by itself.

Pure: a table of looks, each with the time at which it ends, and the rule which of them the other nodes are told of. The polls
of one tab may reach another node each time, so every node keeps what it hears:

- A look that nobody has heard of for `HEARD_SECONDS` is announced, and asks who else looks. So a page that is alone costs
  one message a minute, however often it polls.
- A node whose own callers look at the same session answers. From then on both sides are shared: each poll is announced.
- A look that is heard ends at the time it has left, so that of a dead process does, and the others are alone again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

LOOK_SECONDS: Final = 10.0  # for which a look counts; a page that is open renews it every five
HEARD_SECONDS: Final = 60.0  # after which a look that is not shared is announced again: a message may have been lost
MAX_LOOKS: Final = 50_000  # of all tenants on a node; further ones are not shown
MAX_TEXT: Final = 1000  # characters of an id or a name


class Viewing(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """A user looks at a session, or at a gate of it, in a tab."""

    tenant: str
    session: str
    user: str
    name: str
    tab: str
    gate: str = ""
    kind: str = ""  # "administrator": opened as such; "outside": an approver who sees the gate alone
    has_left: bool = False


class Announced(Struct, frozen=True, gc=False, omit_defaults=True, repr_omit_defaults=True):
    """A look as the nodes tell each other of it."""

    viewing: Viewing
    seconds: float = LOOK_SECONDS  # that it has left
    asks: bool = False  # who else looks at the session should answer


class _Look(Struct):
    viewing: Viewing
    until: float
    own_until: float  # as far as it was reported on this node
    heard: float  # when the other nodes were last told


class PresenceTable:
    """Who looks at what, as far as this node knows."""

    def __init__(self) -> None:
        self._looks: dict[tuple[str, str], dict[tuple[str, str, str], _Look]] = {}  # (tenant, session) -> looks
        self._count = 0

    def report(self, viewing: Viewing, now: float) -> Announced | None:
        """Begin, renew or end a look of a caller of this node. Returns what to announce, if anything."""
        place, who = (viewing.tenant, viewing.session), (viewing.user, viewing.tab, viewing.gate)
        if viewing.has_left:
            return Announced(viewing, 0.0) if self._remove(place, who) else None
        look = self._looks.get(place, {}).get(who)
        is_known = look is not None and look.viewing == viewing and now - look.heard < HEARD_SECONDS
        until = now + LOOK_SECONDS
        look = self._put(place, who, _Look(viewing, until, until, look.heard if look is not None else 0.0))
        if look is None or (is_known and not self._is_shared(place, viewing.user, now)):
            return None
        look.heard = now
        return Announced(viewing, asks=not is_known)

    def hear(self, announced: Announced, now: float) -> list[Announced]:
        """Begin, renew or end a look of which another node tells. Returns the answer: the looks of this node's callers there."""
        viewing = announced.viewing
        place, who = (viewing.tenant, viewing.session), (viewing.user, viewing.tab, viewing.gate)
        if viewing.has_left:
            self._remove(place, who)
            return []
        known = self._looks.get(place, {}).get(who)
        own_until = known.own_until if known is not None else 0.0
        until = max(own_until, now + min(announced.seconds, LOOK_SECONDS))
        self._put(place, who, _Look(viewing, until, own_until, now))
        answer: list[Announced] = []
        for look in self._looks.get(place, {}).values() if announced.asks else ():
            if look.viewing.user != viewing.user and look.own_until > now:
                look.heard = now
                answer.append(Announced(look.viewing, look.own_until - now))
        return answer

    def at(self, tenant: str, session: str, now: float) -> list[Viewing]:
        """The looks at a session and its gates, by user; one that is over is not among them."""
        looks = self._looks.get((tenant, session), {})
        found = [look.viewing for look in looks.values() if look.until > now]
        return sorted(found, key=lambda viewing: (viewing.user, viewing.gate, viewing.tab))

    def expire(self, now: float) -> None:
        """Forget the looks that are over, and of which no node needs to be told."""
        for place, looks in list(self._looks.items()):
            for who, look in list(looks.items()):
                if look.until <= now and now - look.heard >= HEARD_SECONDS:
                    self._remove(place, who)

    def __len__(self) -> int:
        return self._count

    def _put(self, place: tuple[str, str], who: tuple[str, str, str], look: _Look) -> _Look | None:
        if who not in self._looks.get(place, {}):
            if self._count >= MAX_LOOKS:
                return None
            self._count += 1
        self._looks.setdefault(place, {})[who] = look
        return look

    def _remove(self, place: tuple[str, str], who: tuple[str, str, str]) -> bool:
        looks = self._looks.get(place, {})
        if looks.pop(who, None) is None:
            return False
        self._count -= 1
        if not looks:
            del self._looks[place]
        return True

    def _is_shared(self, place: tuple[str, str], user: str, now: float) -> bool:
        return any(look.viewing.user != user and look.until > now for look in self._looks[place].values())


def is_plausible(announced: Announced, tenant: str) -> bool:
    """Whether a look from another process is one that a node could have sent."""
    viewing = announced.viewing
    texts: Iterable[str] = (viewing.session, viewing.user, viewing.name, viewing.tab, viewing.gate)
    is_bounded = all(len(text) <= MAX_TEXT for text in texts) and 0 <= announced.seconds <= LOOK_SECONDS
    return viewing.tenant == tenant and bool(viewing.session and viewing.user) and is_bounded


def presence_topic(tenant: str) -> str:
    """The topic on which the nodes tell each other who looks at the conversations of a tenant."""
    return f"presence/{tenant}"
