"""Presence: who looks at a conversation or an approval now. It is never stored, and a look that is not renewed ends by itself.

Pure: a table of looks, each with the time at which it ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from everturn.core.deltas import Viewing

LOOK_SECONDS: Final = 10.0  # for which a look counts; a page that is open renews it every five
MAX_LOOKS: Final = 50_000  # of all tenants on a node; further ones are not shown
MAX_TEXT: Final = 1000  # characters of an id or a name


class _Look(Struct):
    viewing: Viewing
    until: float


class PresenceTable:
    """Who looks at what, as far as this node knows."""

    def __init__(self) -> None:
        self._looks: dict[tuple[str, str], dict[tuple[str, str, str], _Look]] = {}  # (tenant, session) -> looks
        self._count = 0

    def apply(self, viewing: Viewing, now: float) -> None:
        """Begin, renew or end a look of a tab."""
        place, who = (viewing.tenant, viewing.session), (viewing.user, viewing.tab, viewing.gate)
        looks = self._looks.get(place)
        if viewing.has_left:
            if looks is not None and looks.pop(who, None) is not None:
                self._count -= 1
                self._tidy(place)
            return
        if looks is None:
            looks = self._looks[place] = {}
        if who not in looks:
            if self._count >= MAX_LOOKS:
                self.expire(now)
            if self._count >= MAX_LOOKS:
                self._tidy(place)
                return
            self._count += 1
        looks[who] = _Look(viewing, now + LOOK_SECONDS)

    def at(self, tenant: str, session: str, now: float) -> list[Viewing]:
        """The looks at a session and its gates, by user; one that is over is not among them."""
        looks = self._looks.get((tenant, session), {})
        found = [look.viewing for look in looks.values() if look.until > now]
        return sorted(found, key=lambda viewing: (viewing.user, viewing.gate, viewing.tab))

    def expire(self, now: float) -> None:
        """Forget the looks that are over."""
        for place, looks in list(self._looks.items()):
            for who in [who for who, look in looks.items() if look.until <= now]:
                del looks[who]
                self._count -= 1
            self._tidy(place)

    def _tidy(self, place: tuple[str, str]) -> None:
        if not self._looks.get(place):
            self._looks.pop(place, None)


def is_plausible(viewing: Viewing) -> bool:
    """Whether a look from another process is one that a node could have sent."""
    texts: Iterable[str] = (viewing.tenant, viewing.session, viewing.user, viewing.name, viewing.tab, viewing.gate)
    return bool(viewing.session and viewing.user) and all(len(text) <= MAX_TEXT for text in texts)


def presence_channel(tenant: str) -> str:
    """The channel of the bus on which the nodes tell each other who looks at the conversations of a tenant."""
    return f"presence/{tenant}"
