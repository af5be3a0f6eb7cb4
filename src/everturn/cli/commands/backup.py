"""`everturn backup`: copies a store in use, checks a copy, and restores it into an empty place."""

from __future__ import annotations

import argparse
import asyncio
import sys
from datetime import UTC, datetime
from shlex import quote

from everturn.cli.config_options import require_existing_store, resolve_store
from everturn.cli.output import count_nouns, show_slow_operation
from everturn.stores.backup.commands import create_backup, restore_backup, verify_backup
from everturn.stores.backup.manifest import BackupManifest
from everturn.stores.registry import without_password


def backup(options: argparse.Namespace) -> int:
    """Create, verify or restore a backup.

    Raises:
        ConfigError: there is no such store or backup, or the place to restore to is not empty.
        StoreUnavailable: the store cannot be read or written.
        UnreadableLog: the backup is damaged.
    """
    return {"create": _create, "verify": _verify, "restore": _restore}[options.about](options)


def _create(options: argparse.Namespace) -> int:
    store = require_existing_store(resolve_store(options))
    with show_slow_operation("copying the store"):
        manifest = asyncio.run(create_backup(store, options.folder))
    size = sum(file.size for file in manifest.files.values())
    print(f"{options.folder}: {_contents(manifest)}, {_size(size)}")
    print(f"check it with: everturn backup verify {quote(options.folder)}")
    return _print_problems(list(manifest.problems))


def _verify(options: argparse.Namespace) -> int:
    with show_slow_operation("reading the backup"):
        manifest, problems = asyncio.run(verify_backup(options.folder))
    if problems:
        return _print_problems(problems)
    print(f"{options.folder} is whole: {_contents(manifest)}")
    return _print_problems(list(manifest.problems))


def _restore(options: argparse.Namespace) -> int:
    with show_slow_operation("restoring the backup"):
        manifest = asyncio.run(restore_backup(options.folder, options.store))
    print(f"{without_password(options.store)}: {_contents(manifest)}")
    print(
        "what was erased or revoked after the backup is back: erase it and revoke it again before you serve this store"
    )
    return 0


def _print_problems(problems: list[str]) -> int:
    for problem in problems:
        print(f"everturn: {problem}", file=sys.stderr)
    return 1 if problems else 0


def _contents(manifest: BackupManifest) -> str:
    held = manifest.contents
    at = f"{datetime.fromtimestamp(manifest.created, UTC):%Y-%m-%d %H:%M:%S} UTC"
    counts = count_nouns(
        session=held.sessions,
        event=held.events,
        file=held.blobs,
        open_turn=held.open_turns,
        open_gate=held.open_gates,
    )
    return f"{counts}, schema {manifest.schema}, of {at}"


def _size(size: int) -> str:
    return f"{size / 2**20:.1f} MB" if size >= 2**20 else f"{size / 1024:.0f} KB"
