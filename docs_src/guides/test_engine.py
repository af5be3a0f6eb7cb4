from everturn.engine import Engine
from everturn.testing import FakeClock, InlineEngine
from everturn.testing.contracts import EngineContract


class TestMyEngine(EngineContract):
    tries = 3  # after this many failed drives, a session is quarantined

    async def make(self, clock: FakeClock) -> Engine:
        return InlineEngine(clock)  # your engine here
