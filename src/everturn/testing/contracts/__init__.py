"""Contract suites: the tests that every adapter of a port must pass.

Derive from a suite and implement `make`; pytest does the rest::

    class TestMyStore(StoreContract):
        async def make(self) -> Store:
            return await MyStore.connect(...)

`make` is awaited in every test, inside its event loop, and returns an empty adapter; what has to be closed afterwards
goes into a fixture of your class. A store that implements only the ports that run turns passes `TurnStoreContract`; its
`make` returns `complete_store(…)` of `everturn.stores.partial`. `make` of a
`ModelContract` is not async, and `ProviderModelContract` needs a `connect` instead. The tests are async: run them with
pytest-asyncio in auto mode, or mark your class. For readable failures call
`pytest.register_assert_rewrite("everturn.testing.contracts")` in your conftest.py.

- `samples`: the commands and events that the store suites use
- `store_setup`: how the store suites make a store
- `log`: log and projections
- `admission`: admission of commands and answers
- `claims`: claims of drivers
- `clients`: calls that clients run
- `files`: file trees and reverts
- `grants`: grants (remembered answers)
- `usage`: usage accounting
- `directory`: lists of sessions, tenants, blobs
- `session_updates`: sessions that people rename, pin, archive and label
- `pagination`: pages of gates, branches and sessions
- `erasure`: erasure of sessions
- `accounts`: accounts (tenants, users, credentials, audit log)
- `user_memory`: memory files of users
- `schedules`: schedules
- `sharing`: shares of conversations
- `settings`: settings with their versions
- `webhooks`: webhooks and their outbox
- `bus`: bus
- `engine`: engine
- `model`: any model, and models that speak a wire format, against the provider of `everturn.testing.provider`
"""

from everturn.testing.contracts.accounts import AccountsContract
from everturn.testing.contracts.admission import AdmissionContract
from everturn.testing.contracts.bus import BusContract
from everturn.testing.contracts.claims import ClaimContract, ClaimDirectoryContract
from everturn.testing.contracts.clients import ClientContract, ClientDirectoryContract
from everturn.testing.contracts.directory import DirectoryContract
from everturn.testing.contracts.engine import EngineContract
from everturn.testing.contracts.erasure import ErasureContract
from everturn.testing.contracts.files import FilesContract, FilesDirectoryContract
from everturn.testing.contracts.grants import GrantContract, GrantDirectoryContract
from everturn.testing.contracts.log import BlobStoreContract, LogContract, LogDirectoryContract
from everturn.testing.contracts.model import ModelContract, ProviderModelContract
from everturn.testing.contracts.pagination import PaginationContract
from everturn.testing.contracts.schedules import ScheduleStoreContract
from everturn.testing.contracts.session_updates import OrganizingContract
from everturn.testing.contracts.settings import SettingStoreContract
from everturn.testing.contracts.sharing import SharingStoreContract
from everturn.testing.contracts.usage import UsageContract, UsageDirectoryContract
from everturn.testing.contracts.user_memory import UserMemoryContract
from everturn.testing.contracts.webhooks import WebhookStoreContract


class EventLogContract(LogContract, ClaimContract, FilesContract, GrantContract, UsageContract):
    """`EventLog`: atomic appends, claims, and the projections that turns read: branches, gates, grants, usage."""


class CommandInboxContract(AdmissionContract, ClientContract):
    """`CommandInbox`: admission of commands and answers, each at most once."""


class SessionDirectoryContract(
    DirectoryContract,
    OrganizingContract,
    PaginationContract,
    ErasureContract,
    LogDirectoryContract,
    ClaimDirectoryContract,
    FilesDirectoryContract,
    GrantDirectoryContract,
    UsageDirectoryContract,
    ClientDirectoryContract,
):
    """`SessionDirectory`: lists, pages, search and usage over many sessions; import and erasure."""


class TurnStoreContract(EventLogContract, CommandInboxContract):
    """`TurnStore`: the two ports that are enough to run turns."""


class StoreContract(TurnStoreContract, SessionDirectoryContract, BlobStoreContract):
    """`Store`: all of its ports but the accounts, the memory files, the schedules, the webhooks and the settings."""


__all__ = [
    "AccountsContract",
    "BlobStoreContract",
    "BusContract",
    "CommandInboxContract",
    "EngineContract",
    "EventLogContract",
    "ModelContract",
    "ProviderModelContract",
    "ScheduleStoreContract",
    "SessionDirectoryContract",
    "SettingStoreContract",
    "SharingStoreContract",
    "StoreContract",
    "TurnStoreContract",
    "UserMemoryContract",
    "WebhookStoreContract",
]
