from everturn.core.ports import Engine
from everturn.testing import FakeClock, InlineEngine
from everturn.testing.contracts import EngineContract


class TestMyEngine(EngineContract):
    tries = 3  # a session whose drives fail this often is left alone

    async def make(self, clock: FakeClock) -> Engine:
        return InlineEngine(clock)  # yours here
