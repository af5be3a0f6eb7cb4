"""`everturn admin`: cancels, retries, exports and erases as the operator of a store."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import time
from pathlib import Path
from typing import Any

from everturn.cli.commands.admin_keys import manage_keys
from everturn.cli.config_options import OPERATOR, open_store, require_existing_store, resolve_store
from everturn.cli.output import confirm, count_nouns, show_slow_operation
from everturn.cli.store.server import find_server, sidecar_path
from everturn.client import Server
from everturn.core.commands import Cancel
from everturn.core.tenants.accounts import AuditRecord
from everturn.errors import ConfigError, StoreBusy, UnknownSession, UnknownTurn
from everturn.postgres.address import is_postgres_url
from everturn.stores.export import export_session
from everturn.stores.sql.owner_erasure import ErasureReport
from everturn.stores.sql.store import SqlStore

SOON = "a process that serves this store acts on it within half a minute; without one, the next that starts"


def admin(options: argparse.Namespace) -> int:
    """Run an admin command.

    Raises:
        ConfigError: there is no such store, user or tenant.
        UnknownSession, UnknownTurn: there is no such session or turn.
        StoreBusy: a store in a file is in use, and would have to be changed below its process.
    """
    if options.about == "tenant":
        from everturn.cli.commands.router import tenant

        return tenant(options)
    name = require_existing_store(resolve_store(options))
    is_final = options.about == "erase" or (options.about == "keys" and options.action == "destroy")
    if is_final and not confirm(_question(options), options.yes):
        return 1
    with show_slow_operation("asking the store"):
        for line in asyncio.run(_run(options, name)):
            print(line)
    return 0


async def _run(options: argparse.Namespace, name: str) -> list[str]:
    store = await open_store(options, name)
    if not isinstance(store, SqlStore):
        raise ConfigError("`everturn admin` works on a file such as talks.db and on postgresql://user@host/database")
    try:
        return await _HANDLERS[options.about](options, store, name)
    finally:
        await store.aclose()


# Sessions ---------------------------------------------------------------------------------------------------------


async def _cancel(options: argparse.Namespace, store: SqlStore, name: str) -> list[str]:
    await _require_session(options, store)
    turns = await store.open_turns(options.session)
    if options.turn and options.turn not in turns:
        raise UnknownTurn(
            f"session {options.session!r} has no open turn {options.turn!r}; open: {', '.join(turns) or 'none'}"
        )
    chosen = [options.turn] if options.turn else turns
    if not chosen:
        return [f"{options.session} has no open turn"]
    await _audit(options, store, "turn.cancel", options.session, turns=chosen)
    server = None if is_postgres_url(name) else await find_server(sidecar_path(name, os.environ))
    if server is not None:  # the process that has the file acts at once
        async with Server(server.address, server.token) as remote:
            for turn in chosen:
                await remote.session(options.session).turn(turn).cancel(hard=options.hard)
        return [f"{options.session}: cancelled {', '.join(chosen)}"]
    for turn in chosen:
        command = Cancel(
            key=f"admin_{secrets.token_hex(8)}",
            session=options.session,
            tenant=options.tenant,
            at=time.time(),
            turn=turn,
            hard=options.hard,
        )
        await store.admit(command)
    await _wake(name, options.session)
    return [f"{options.session}: asked to cancel {', '.join(chosen)}; {SOON}"]


async def _retry(options: argparse.Namespace, store: SqlStore, name: str) -> list[str]:
    await _require_session(options, store)
    if not await store.retry(options.session):
        return [f"{options.session} is not quarantined"]
    await _audit(options, store, "session.retry", options.session)
    await _wake(name, options.session)
    return [f"{options.session} is driven again: {SOON}"]


async def _wake(name: str, session: str) -> None:
    """Wake a session where PostgreSQL is the engine; any other engine finds it when it looks for overdue sessions."""
    if is_postgres_url(name):
        from everturn.shared_database import SharedDatabase

        engine = SharedDatabase(name).engine(drives=False)
        try:
            await engine.wake(session)
        finally:
            await engine.aclose()


async def _require_session(options: argparse.Namespace, store: SqlStore) -> None:
    info = await store.info(options.session)
    if info.tenant != options.tenant:
        raise UnknownSession(
            f"there is no session {options.session!r} in {options.tenant!r}; name its tenant with --tenant"
        )


# Users and tenants ------------------------------------------------------------------------------------------------


async def _export(options: argparse.Namespace, store: SqlStore, name: str) -> list[str]:
    sessions = await store.sessions_of(options.tenant, options.user)
    memory = await store.user_memory.files(options.tenant, options.user)
    if not sessions and not memory and await store.accounts.user(options.tenant, options.user) is None:
        raise ConfigError(
            f"there is no user {options.user!r} in {options.tenant!r}, and no session or memory of one; "
            "`everturn users list` lists the users, and --tenant names another tenant"
        )
    folder = _make_folder(options.output)
    await _audit(options, store, "user.export", options.user)
    for number, session in enumerate(sessions, 1):
        await export_session(store, session, folder / f"{number:04}-{_file_name(session)}.zip")
    files = 0
    for info in memory:
        file = await store.user_memory.file(options.tenant, options.user, info.path)
        if file is not None:
            path = folder / "memory" / info.path.lstrip("/")
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.write_text(file.text, encoding="utf-8")
            files += 1
    return [f"{folder}: {count_nouns(session=len(sessions), memory_file=files)} of {options.user}"]


def _make_folder(name: str) -> Path:
    folder = Path(name)
    try:
        folder.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        raise ConfigError(f"{folder} already exists; name a new folder with --output") from None
    return folder


async def _erase(options: argparse.Namespace, store: SqlStore, name: str) -> list[str]:
    user: str | None = None if options.all_users else options.user
    if not is_postgres_url(name):
        try:
            await store.lock_for_process()
        except StoreBusy as error:
            raise StoreBusy(f"{error}; it has the data to be erased in memory") from None
    target = options.tenant if user is None else user
    # First: a process that dies in between leaves a record.
    await _audit(options, store, "tenant.erase" if user is None else "user.erase", target)
    report = await store.erase_owner(options.tenant, user)
    lines = [_describe(report), _later(name)]
    if user is None and store.key_provider is not None:
        lines.append(f"`everturn admin keys destroy --tenant {options.tenant}` makes them unreadable in backups, too")
    return lines


def _describe(report: ErasureReport) -> str:
    counts = count_nouns(
        session=report.sessions,
        file=report.blobs,
        memory_file=report.memory_files,
        credential=report.credentials,
        user=report.users,
        schedule=report.schedules,
    )
    return f"erased: {counts}"


def _later(name: str) -> str:
    if is_postgres_url(name):
        return (
            "run VACUUM FULL to remove the bytes from its data files; backups and archived write-ahead logs keep theirs"
        )
    return "the file was rewritten; backups keep theirs"


def _question(options: argparse.Namespace) -> str:
    if options.about == "keys":
        return (
            f"Destroy the key of tenant {options.tenant!r}, and with it all that it wrote, also in backups, for good?"
        )
    whom = f"the whole tenant {options.tenant!r}" if options.all_users else f"{options.user!r} of {options.tenant!r}"
    return f"Erase {whom} with every session they took part in? This cannot be undone."


def _file_name(session: str) -> str:
    """Return a session's name as a file name."""
    return "".join(char if char.isalnum() or char in "-_." else "_" for char in session).lstrip(".") or "_"


async def _audit(options: argparse.Namespace, store: SqlStore, action: str, target: str, **detail: Any) -> None:
    text = json.dumps(detail, sort_keys=True) if detail else ""
    await store.accounts.append_audit(AuditRecord(options.tenant, time.time(), OPERATOR, "", action, target, text))


_HANDLERS = {"cancel": _cancel, "retry": _retry, "export": _export, "erase": _erase, "keys": manage_keys}
