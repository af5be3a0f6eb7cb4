"""Stores: persist the event logs, the inboxes of commands, the projections of both, and the blobs.

`MemoryStore` is the reference implementation of the `Store` port; `SqlStore` implements it on SQLite and PostgreSQL.
Every store passes the contract suite in `everturn.testing`. Sessions move between stores as exported files, and search
matches the same terms in every store.

    registry         a store by its name or URL
    memory           the reference store, in dictionaries
    memory_session   a session of the reference store: log, inbox and projections
    memory_admission checks of a command before the reference store admits it
    memory_usage     grants and usage totals of the reference store
    accounts         tenants, users, credentials and audit log of the reference store
    user_records     passwords, budgets and invitations of the reference store
    user_memory      memory files of users in the reference store
    schedules        schedules of the reference store
    webhooks         webhooks and outbox of the reference store
    partial          stores that implement only what runs turns
    sql/             the store on SQLite and PostgreSQL
    migration        schema version of a store, and its upgrade as a step of its own
    encryption/      ciphers and keyrings, for content that is encrypted with a key per tenant
    backup/          hot backup of a SQL store, and its restore
    blob_refs        the blobs that an event or a command references
    export           export of a session to a file, and its import
    import_check     validation of an imported log
    import_sanitize  removal of what an imported log must not assert
    import_close     events that end the open turns of an imported log
"""

from typing import TYPE_CHECKING

from everturn.lazy_exports import lazy_exports

if TYPE_CHECKING:  # `_HOMES` says the same
    from everturn.core.store_ports import (
        BlobStore,
        CommandInbox,
        EventLog,
        Receipt,
        SessionClaim,
        SessionDirectory,
        SessionInfo,
        Store,
        TurnStore,
    )
    from everturn.core.tenants.accounts import Accounts
    from everturn.core.tenants.encryption import KeyProvider
    from everturn.stores.backup.commands import create_backup, restore_backup, verify_backup
    from everturn.stores.encryption.keyring import open_keyring
    from everturn.stores.export import (
        export_session,
        import_session,
    )
    from everturn.stores.registry import get_store
    from everturn.stores.sql.store import SqlStore

# Imported when they are first asked for.
_HOMES = {
    "Accounts": "everturn.core.tenants.accounts",
    "KeyProvider": "everturn.core.tenants.encryption",
    "BlobStore": "everturn.core.store_ports",
    "CommandInbox": "everturn.core.store_ports",
    "EventLog": "everturn.core.store_ports",
    "Receipt": "everturn.core.store_ports",
    "SessionClaim": "everturn.core.store_ports",
    "SessionDirectory": "everturn.core.store_ports",
    "SessionInfo": "everturn.core.store_ports",
    "SqlStore": "everturn.stores.sql.store",
    "Store": "everturn.core.store_ports",
    "TurnStore": "everturn.core.store_ports",
    "create_backup": "everturn.stores.backup.commands",
    "export_session": "everturn.stores.export",
    "get_store": "everturn.stores.registry",
    "import_session": "everturn.stores.export",
    "open_keyring": "everturn.stores.encryption.keyring",
    "restore_backup": "everturn.stores.backup.commands",
    "verify_backup": "everturn.stores.backup.commands",
}

__all__ = [
    "Accounts",
    "BlobStore",
    "CommandInbox",
    "EventLog",
    "KeyProvider",
    "Receipt",
    "SessionClaim",
    "SessionDirectory",
    "SessionInfo",
    "SqlStore",
    "Store",
    "TurnStore",
    "create_backup",
    "export_session",
    "get_store",
    "import_session",
    "open_keyring",
    "restore_backup",
    "verify_backup",
]

__getattr__ = lazy_exports(__name__, _HOMES)
