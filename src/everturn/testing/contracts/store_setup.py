"""Store setup: how the store suites make a store."""

from __future__ import annotations

from everturn.core.store_ports import Store
from everturn.testing.contracts.samples import gate_opened_events, send_message, turn_started_events


class StoreSetup:
    """Makes the stores of a suite; `make` is implemented by the tests of an adapter."""

    async def make(self) -> Store:
        """An empty store."""
        raise NotImplementedError

    async def make_waiting(self, expires: float = 0.0) -> Store:
        """A store with a turn that waits for a person."""
        store = await self.make()
        await store.admit(send_message())
        await store.append("s", 0, [*turn_started_events(), *gate_opened_events(expires=expires)])
        return store
