"""Arguments of the commands for operators: backup, migrate and admin."""

from __future__ import annotations

from typing import Any, Final

from everturn.cli.args.cells import add_tenant
from everturn.cli.args.parser import add_command
from everturn.cli.args.server import FILE

SIGNED: Final = (
    "callbacks, csrf, files, oidc, push, webhooks"  # core.tenants.signing_keys, which a parser does not import
)
WHERE: Final = "store: a file such as talks.db, or a database URL (default: the configured store)"
BACKUP: Final = """\
Back up a store while it is in use, check a backup, or restore one. A backup is a folder with all data of the store:
conversations, files, users, API keys and the audit log. Protect it like the store itself.
"""
CREATE: Final = """\
Copy a store into a new folder, as one snapshot. Running turns continue during the copy. The backup has every message that was
acknowledged before the command started. The folder appears when the backup is complete.
"""
RESTORE: Final = """\
Restore a backup to a new file, or to a database or schema without a store. The command first checks the hashes of the backup,
and upgrades an older schema. Then start `everturn serve` on the new store: pending approvals can be answered, and unfinished
turns continue.
"""
MIGRATE: Final = """\
Show or upgrade the schema of a store. `everturn serve` and workers upgrade a store when they open it; with
`migrate = false` under [store] they refuse an older store, and you upgrade it with this command when you choose.
"""
ADMIN: Final = """\
Manage a store as its operator, while servers and workers use it. `everturn ps` and `everturn sessions` list its sessions. The
audit log of the tenant records every action of this command.
"""
KEYS: Final = """\
List or replace the keys with which the server signs tokens. The newest key of each name signs, and all of its keys verify. To
replace a key, rotate it, wait until tokens of the old key are no longer in use, and then retire the old key. Servers and workers
need no restart: they use new keys within ten seconds.

With [store.encryption], `list` also counts the encryption keys of tenants for each master key. To replace the master key, put
a new one in front of master_keys, restart the servers, run `rewrap`, and then remove the old one.
"""
DESTROY: Final = """\
Destroy the encryption key of a tenant permanently. After that, nobody can read what the tenant wrote, neither in the store nor in any
backup of it; running processes notice within ten seconds. This also removes the schedules and webhooks of the tenant. Session
ids, accounts, usage totals and the audit log remain.
"""
ERASE: Final = """\
Erase a user or a whole tenant permanently, after a confirmation. This erases every session that the user started, wrote in or
answered in, also sessions with open turns; files that no other session has; memory, schedules, API keys, logins and the account.
Session ids, usage totals, the audit log and, unless the whole tenant is erased, settings of the tenant remain. If the store is
a file, no other process may use it during the command.
"""


def add_operation_commands(commands: Any) -> None:
    """Add backup, migrate and admin to the command line."""
    _add_backup(commands)
    _add_migrate(commands)
    _add_admin(commands)


def _add_backup(commands: Any) -> None:
    lines = (
        "everturn backup create /backups/2026-11-18 --store talks.db",
        "everturn backup verify /backups/2026-11-18",
        "everturn backup restore /backups/2026-11-18 --store restored.db",
    )
    backup = add_command(
        commands, "backup", "back up a store while it is in use, check a backup, restore it", BACKUP, examples=lines
    )
    kinds = backup.add_subparsers(dest="about", metavar="create|verify|restore", required=True)
    create = add_command(
        kinds,
        "create",
        "copy a store into a new folder while it is in use",
        CREATE,
        examples=(lines[0], "everturn backup create /backups/today --store postgresql://user@host/database"),
        codes="exit codes: 0 done, 1 done, but some files of the store were already damaged, 2 error; there is no backup",
    )
    create.add_argument("folder", metavar="FOLDER", help="folder of the backup; it must not exist yet")
    create.add_argument("--store", metavar="FILE", default="", help=WHERE)
    create.add_argument("--config", metavar="FILE", help=FILE)
    verify = add_command(
        kinds,
        "verify",
        "check every file of a backup, and read every log in it",
        examples=lines[1:2],
        codes="exit codes: 0 the backup is complete, 1 it is damaged, 2 it is not a backup",
    )
    verify.add_argument("folder", metavar="FOLDER", help="backup that `everturn backup create` made")
    restore = add_command(
        kinds,
        "restore",
        "restore a backup to a new store",
        RESTORE,
        examples=(
            lines[2],
            "everturn backup restore /backups/today --store 'postgresql://user@host/database?schema=restored'",
        ),
        codes="exit codes: 0 done, 2 error, and nothing was changed; stderr has the reason",
    )
    restore.add_argument("folder", metavar="FOLDER", help="backup that `everturn backup create` made")
    restore.add_argument(
        "--store",
        metavar="FILE",
        required=True,
        help="new store: a file that does not exist, or the URL of a database without a store",
    )


def _add_migrate(commands: Any) -> None:
    lines = (
        "everturn migrate status",
        "everturn migrate sql",
        "everturn migrate apply --dry-run",
        "everturn migrate apply",
    )
    migrate = add_command(commands, "migrate", "show or upgrade the schema of a store", MIGRATE, examples=lines)
    kinds = migrate.add_subparsers(dest="about", metavar="status|sql|apply", required=True)
    status = add_command(
        kinds,
        "status",
        "show the schema version of a store, and the required version",
        examples=lines[:1],
        codes="exit codes: 0 up to date, 1 older, 2 error; stderr has the reason",
    )
    sql = add_command(kinds, "sql", "print the SQL that an upgrade would run", examples=lines[1:2])
    apply = add_command(
        kinds,
        "apply",
        "upgrade the schema of a store in one transaction",
        examples=lines[2:],
        codes="exit codes: 0 up to date, 2 error, and nothing was changed; stderr has the reason",
    )
    apply.add_argument(
        "--dry-run", action="store_true", help="run every statement, then roll back; locks are held until then"
    )
    for command in (status, sql, apply):
        command.add_argument("--store", metavar="FILE", default="", help=WHERE)
        command.add_argument("--config", metavar="FILE", help=FILE)


def _add_admin(commands: Any) -> None:
    lines = (
        "everturn admin cancel SESSION",
        "everturn admin retry SESSION",
        "everturn admin export anna --output anna/",
        "everturn admin erase --user anna --tenant acme",
        "everturn admin erase --tenant acme --all-users",
        "everturn admin keys list",
        "everturn admin keys rotate",
        "everturn admin keys retire csrf files",
        "everturn admin keys rewrap",
        "everturn admin keys destroy --tenant acme",
        "everturn admin tenant move acme --to b --config cells.toml",
    )
    done = "exit codes: 0 done, 2 error; stderr has the reason"
    admin = add_command(
        commands,
        "admin",
        "manage a store as its operator: cancel, retry, export, erase, replace signing keys, move tenants",
        ADMIN,
        examples=lines,
    )
    kinds = admin.add_subparsers(dest="about", metavar="cancel|retry|export|erase|keys|tenant", required=True)
    cancel = add_command(kinds, "cancel", "cancel the open turns of a session", examples=lines[:1], codes=done)
    cancel.add_argument("--turn", metavar="ID", default="", help="cancel only this turn (default: all open turns)")
    cancel.add_argument("--hard", action="store_true", help="also cancel running tools")
    retry = add_command(kinds, "retry", "run a quarantined session again now", examples=lines[1:2], codes=done)
    for command in (cancel, retry):
        command.add_argument("session", metavar="SESSION", help="session id, as `everturn ps` shows it")
    export = add_command(kinds, "export", "write all sessions of a user to a folder", examples=lines[2:3], codes=done)
    export.add_argument("user", metavar="USER", help="user id, as `everturn users list` shows it")
    export.add_argument(
        "-o", "--output", metavar="FOLDER", required=True, help="new folder; it gets one file per session"
    )
    erase = add_command(
        kinds,
        "erase",
        "erase a user or a whole tenant permanently, after a confirmation",
        ERASE,
        examples=lines[3:5],
        codes="exit codes: 0 erased, 1 you declined, 2 error; stderr has the reason",
    )
    whom = erase.add_mutually_exclusive_group(required=True)
    whom.add_argument("--user", metavar="ID", help="user id, as `everturn users list` shows it")
    whom.add_argument("--all-users", action="store_true", help="erase the whole tenant")
    erase.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    for command in (cancel, retry, export, erase):
        command.add_argument("--tenant", metavar="ID", default="local", help="tenant (default: local)")
        command.add_argument("--store", metavar="FILE", default="", help=WHERE)
        command.add_argument("--config", metavar="FILE", help=FILE)
    _add_keys(kinds, lines[5:-1], done)
    add_tenant(kinds, done)


def _add_keys(kinds: Any, lines: tuple[str, ...], done: str) -> None:
    about = "list or replace the keys that sign tokens, and the keys that encrypt"
    keys = add_command(kinds, "keys", about, KEYS, examples=lines, codes=done)
    actions = keys.add_subparsers(dest="action", metavar="list|rotate|retire|rewrap|destroy", required=True)
    listing = add_command(actions, "list", "list the stored keys without their values", examples=lines[:1], codes=done)
    rotate = add_command(actions, "rotate", "add a new key, which signs from now on", examples=lines[1:2], codes=done)
    retire = add_command(
        actions,
        "retire",
        "delete all keys except the newest; tokens that they signed become invalid",
        examples=lines[2:3],
        codes=done,
    )
    retire.add_argument(
        "--all", action="store_true", help="also delete the newest key; use this if the configuration has signing_keys"
    )
    for command in (listing, rotate, retire):
        command.add_argument("names", metavar="NAME", nargs="*", help=f"name of a key: {SIGNED} (default: all)")
    rewrap = add_command(
        actions, "rewrap", "wrap the tenants' keys with the first master key", examples=lines[3:4], codes=done
    )
    destroy = add_command(
        actions,
        "destroy",
        "destroy the encryption key of a tenant, which also makes its backups unreadable",
        DESTROY,
        examples=lines[4:],
        codes="exit codes: 0 done, 1 you declined, 2 error; stderr has the reason",
    )
    destroy.add_argument("--tenant", metavar="ID", required=True, help="id of the tenant")
    destroy.add_argument("--yes", action="store_true", help="do not ask for a confirmation")
    for command in (listing, rotate, retire, rewrap, destroy):
        command.add_argument("--store", metavar="FILE", default="", help=WHERE)
        command.add_argument("--config", metavar="FILE", help=FILE)
