"""The events in the log of a session: all of them, and those that are still to come."""

from __future__ import annotations

from typing import TypeVar

from everturn.core.events import Event
from everturn.core.store_ports import Store
from tests.helpers.waiting import wait_until

E = TypeVar("E", bound=Event)


async def events_of(store: Store, session: str) -> list[Event]:
    """What is in the log."""
    return [entry.event for entry in await store.events(session)]


async def wait_for_event(
    store: Store, session: str, kind: type[E], times: int = 1, seconds: float = 60.0, pause: float = 0.02
) -> E:
    """The last event of a kind, once there are so many of it."""

    async def find() -> list[E]:
        found = [event for event in await events_of(store, session) if isinstance(event, kind)]
        return found if len(found) >= times else []

    return (await wait_until(find, seconds, pause))[-1]
