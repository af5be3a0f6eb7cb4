"""The public test kit: real implementations of the ports that need nothing beside them, and ways to break them.

    ScriptedModel, say, think, call, calls   a model that says what it was told to
    MemoryStore, MemoryBus, InlineEngine     the reference adapters
    FakeClock, CountingIds                   time and names a test owns
    Crash, MortalStore                       a process that dies after any event
    everturn.testing.replay                  a recorded session, played again: offline, or on real tools

The contract suites of Store, Engine and Bus are in `everturn.testing.contracts` (which needs pytest): an adapter of
yours passes them, or it is not one.
"""

from everturn.bus.memory import MemoryBus
from everturn.engine.inline import InlineEngine
from everturn.models.scripted import Fail, Hang, ScriptedModel, call, calls, say, think
from everturn.stores.memory import MemoryStore
from everturn.testing.crash import Crash, MortalStore
from everturn.testing.doubles import CountingIds, FakeClock

__all__ = [
    "CountingIds",
    "Crash",
    "Fail",
    "FakeClock",
    "Hang",
    "InlineEngine",
    "MemoryBus",
    "MemoryStore",
    "MortalStore",
    "ScriptedModel",
    "call",
    "calls",
    "say",
    "think",
]
