"""Test kit: real implementations of the ports that need no other service, contract suites for adapters, and ways to
break them.

An adapter of your own is valid if it passes its contract suite in `everturn.testing.contracts` (which needs pytest).
`everturn.replay` replays a recorded session, offline or on real tools. Besides the modules below, this package exports
the scripted model (`ScriptedModel`, `say`, `think`, `call`, `calls`) and the reference adapters (`MemoryStore`,
`MemoryBus`, `InlineEngine`).

- `doubles`: `FakeClock` and `CountingIds`, time and ids that a test controls
- `crash`: `MortalStore` and `Crash`, a process that dies after any event
- `contracts`: contract suites for stores, buses, engines, accounts and models
- `provider`: a local model server with scripted answers and strict validation
"""

from everturn.bus.memory import MemoryBus
from everturn.engine.inline import InlineEngine
from everturn.models.scripted import ScriptedFailure, ScriptedHang, ScriptedModel, call, calls, say, think
from everturn.stores.memory import MemoryStore
from everturn.testing.crash import Crash, MortalStore
from everturn.testing.doubles import CountingIds, FakeClock

__all__ = [
    "CountingIds",
    "Crash",
    "FakeClock",
    "InlineEngine",
    "MemoryBus",
    "MemoryStore",
    "MortalStore",
    "ScriptedFailure",
    "ScriptedHang",
    "ScriptedModel",
    "call",
    "calls",
    "say",
    "think",
]
