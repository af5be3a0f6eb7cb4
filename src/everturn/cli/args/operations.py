"""Arguments of the commands for operators: backup, migrate and admin."""

from __future__ import annotations

from typing import Any, Final

from everturn.cli.args.parser import add_command
from everturn.cli.args.server import FILE

SIGNED: Final = "callbacks, csrf, files, oidc, webhooks"  # core.signing_keys, which a parser does not import
WHERE: Final = "store: a file such as talks.db, or a database URL"
BACKUP: Final = """\
Copy a store while it is in use, check a copy, or restore one into an empty place. A backup is a folder with everything
in it: conversations, files, users, keys and the audit log. Keep it as safe as the store itself.
"""
CREATE: Final = """\
Copy a store into a new folder, in one snapshot: turns go on meanwhile, and what was acknowledged before the command
began is in the copy. The folder appears when it is complete.
"""
RESTORE: Final = """\
Restore a backup to a file that does not exist, or to a database or schema without a store. The hashes of its files are
checked first, and an older schema is upgraded. Then start `everturn serve` on the new store: open questions can be answered, and turns
that were under way continue.
"""
MIGRATE: Final = """\
Show or upgrade the schema of a store. `everturn serve` and workers upgrade a store when they open it; with
`migrate = false` under [store] they refuse an older one, and this command upgrades it at a moment of your choice.
"""
ADMIN: Final = """\
Act on a store as its operator, beside the processes that use it. `everturn ps` and `everturn sessions` list what is there.
Everything that is done here is in the audit log of the tenant.
"""
KEYS: Final = """\
Show or replace the keys that the server signs tokens with. The newest key of a name signs, and all of them verify. Rotate, wait
until what the old key signed is no longer needed, then retire it. Servers and workers need no restart: within ten seconds
each uses the new keys.
"""
ERASE: Final = """\
Erase a user or a whole tenant, for good: the sessions that they began, wrote in or answered in, also with open turns; files
that no other session has; memory, keys, logins and the account. Names of sessions, numbers of usage and the audit log
stay. A store in a file must not be in use.
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
    backup = add_command(commands, "backup", "copy a store in use, check a copy, restore it", BACKUP, examples=lines)
    kinds = backup.add_subparsers(dest="about", metavar="create|verify|restore", required=True)
    create = add_command(
        kinds,
        "create",
        "copy a store into a new folder, while it is in use",
        CREATE,
        examples=(lines[0], "everturn backup create /backups/today --store postgresql://user@host/database"),
        codes="exit codes: 0 it is done, 1 it is done and files were damaged in the store already, 2 it is not done",
    )
    create.add_argument("folder", metavar="FOLDER", help="the backup; it must not exist")
    create.add_argument("--store", metavar="FILE", default="", help=WHERE)
    create.add_argument("--config", metavar="FILE", help=FILE)
    verify = add_command(
        kinds,
        "verify",
        "check every file of a backup, and that every log in it can be read",
        examples=lines[1:2],
        codes="exit codes: 0 it is whole, 1 it is damaged, 2 it is no backup",
    )
    verify.add_argument("folder", metavar="FOLDER", help="as `everturn backup create` made it")
    restore = add_command(
        kinds,
        "restore",
        "restore a backup into an empty place",
        RESTORE,
        examples=(
            lines[2],
            "everturn backup restore /backups/today --store 'postgresql://user@host/database?schema=restored'",
        ),
        codes="exit codes: 0 it is done, 2 it is not, and nothing was changed: one line says why",
    )
    restore.add_argument("folder", metavar="FOLDER", help="as `everturn backup create` made it")
    restore.add_argument(
        "--store", metavar="FILE", required=True, help="where to: a new file, or a database without a store"
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
        "say which schema a store has, and which one is needed",
        examples=lines[:1],
        codes="exit codes: 0 it is the newest, 1 it is older, 2 it cannot be said",
    )
    sql = add_command(kinds, "sql", "print the SQL that an upgrade would run", examples=lines[1:2])
    apply = add_command(
        kinds,
        "apply",
        "upgrade a store, in one transaction",
        examples=lines[2:],
        codes="exit codes: 0 it has the newest schema, 2 it was not changed: one line says why",
    )
    apply.add_argument(
        "--dry-run", action="store_true", help="run every statement, then roll back; its locks are held until then"
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
    )
    done = "exit codes: 0 it is done, 2 it is not: one line says why"
    admin = add_command(
        commands,
        "admin",
        "cancel, retry, export, erase and replace keys as the operator of a store",
        ADMIN,
        examples=lines,
    )
    kinds = admin.add_subparsers(dest="about", metavar="cancel|retry|export|erase|keys", required=True)
    cancel = add_command(kinds, "cancel", "cancel the open turns of a session", examples=lines[:1], codes=done)
    cancel.add_argument("--turn", metavar="ID", default="", help="this one alone (default: all open turns)")
    cancel.add_argument("--hard", action="store_true", help="cancel its tools, too")
    retry = add_command(kinds, "retry", "drive a quarantined session again, now", examples=lines[1:2], codes=done)
    for command in (cancel, retry):
        command.add_argument("session", metavar="SESSION", help="its id, as `everturn ps` shows it")
    export = add_command(kinds, "export", "write all sessions of a user to a folder", examples=lines[2:3], codes=done)
    export.add_argument("user", metavar="USER", help="see `everturn users list`")
    export.add_argument(
        "-o", "--output", metavar="FOLDER", required=True, help="a new folder, with a file for each session"
    )
    erase = add_command(
        kinds,
        "erase",
        "erase a user, or a whole tenant, for good; you are asked first",
        ERASE,
        examples=lines[3:5],
        codes="exit codes: 0 it is done, 1 you did not agree, 2 it is not done: one line says why",
    )
    whom = erase.add_mutually_exclusive_group(required=True)
    whom.add_argument("--user", metavar="ID", help="see `everturn users list`")
    whom.add_argument("--all-users", action="store_true", help="the whole tenant")
    erase.add_argument("--yes", action="store_true", help="do not ask")
    for command in (cancel, retry, export, erase):
        command.add_argument("--tenant", metavar="ID", default="local", help="tenant (default: local)")
        command.add_argument("--store", metavar="FILE", default="", help=WHERE)
        command.add_argument("--config", metavar="FILE", help=FILE)
    _add_keys(kinds, lines[5:], done)


def _add_keys(kinds: Any, lines: tuple[str, ...], done: str) -> None:
    keys = add_command(kinds, "keys", "show or replace the keys that sign tokens", KEYS, examples=lines, codes=done)
    actions = keys.add_subparsers(dest="action", metavar="list|rotate|retire", required=True)
    listing = add_command(actions, "list", "list the stored keys, without their values", examples=lines[:1], codes=done)
    rotate = add_command(actions, "rotate", "add a key that signs from now on", examples=lines[1:2], codes=done)
    retire = add_command(
        actions, "retire", "delete all keys but the newest; what they signed is refused", examples=lines[2:], codes=done
    )
    retire.add_argument(
        "--all", action="store_true", help="delete the newest key, too: the configuration has signing_keys"
    )
    for command in (listing, rotate, retire):
        command.add_argument("names", metavar="NAME", nargs="*", help=f"{SIGNED} (default: all)")
        command.add_argument("--store", metavar="FILE", default="", help=WHERE)
        command.add_argument("--config", metavar="FILE", help=FILE)
