"""What every adapter of a port has to keep: derive from a suite, say how to make yours, and pytest does the rest.

    class TestMyStore(StoreContract):
        async def make(self) -> Store:
            return await MyStore.connect(...)

`make` is awaited in every test, inside its event loop, and gives an empty adapter; what has to be closed afterwards goes
into a fixture of your class. `ModelContract` asks for a `connect` in its place. The tests are async: run them with pytest-asyncio in auto mode, or mark your class. For readable
failures call `pytest.register_assert_rewrite("everturn.testing.contracts")` in your conftest.py.
"""

from everturn.testing.contracts.accounts import AccountsContract
from everturn.testing.contracts.bus import BusContract
from everturn.testing.contracts.claims import ClaimContract
from everturn.testing.contracts.clients import ClientContract
from everturn.testing.contracts.door import DoorContract
from everturn.testing.contracts.engine import EngineContract
from everturn.testing.contracts.erasing import ErasureContract
from everturn.testing.contracts.files import FilesContract
from everturn.testing.contracts.grants import GrantContract
from everturn.testing.contracts.listing import ListContract
from everturn.testing.contracts.log import LogContract
from everturn.testing.contracts.model import ModelContract
from everturn.testing.contracts.pagination import PageContract
from everturn.testing.contracts.spending import SpendingContract


class StoreContract(
    DoorContract,
    LogContract,
    ListContract,
    PageContract,
    ClaimContract,
    ClientContract,
    FilesContract,
    GrantContract,
    SpendingContract,
    ErasureContract,
):
    """Log, inbox and projections; every write one transaction; the checks at the door; who drives; what is remembered."""


__all__ = ["AccountsContract", "BusContract", "EngineContract", "ModelContract", "StoreContract"]
