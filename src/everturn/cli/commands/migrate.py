"""`everturn migrate`: shows or upgrades the schema of a store, apart from the start of a server."""

from __future__ import annotations

import argparse
import asyncio
import sys

from everturn.cli.config_options import resolve_store
from everturn.cli.output import show_slow_operation
from everturn.stores.migration import SchemaStatus, migrate_store, schema_status


def migrate(options: argparse.Namespace) -> int:
    """Say which schema a store has, print the SQL of an upgrade, or upgrade it.

    Raises:
        ConfigError: there is no such store, or a newer version of Everturn has upgraded it.
        StoreUnavailable: it does not answer, or a statement failed.
    """
    store = resolve_store(options)
    if options.about == "apply":
        with show_slow_operation("upgrading the store"):
            status = asyncio.run(migrate_store(store, dry_run=options.dry_run))
        return _print_applied(status, options.dry_run)
    with show_slow_operation("asking the store"):
        status = asyncio.run(schema_status(store))
    if options.about == "sql":
        print(status.sql, end="")
        if status.is_current:
            print(f"{status.store} has schema {status.version}, the newest: nothing to run", file=sys.stderr)
        return 0
    if status.is_current:
        print(f"{status.store} has schema {status.version}, the newest")
        return 0
    print(f"{status.store} {_describe(status)}; missing: {', '.join(status.steps)}")
    print("`everturn migrate sql` prints the statements, `everturn migrate apply` runs them")
    return 1


def _print_applied(status: SchemaStatus, dry_run: bool) -> int:
    if status.is_current:
        print(f"{status.store} has schema {status.version}, the newest: nothing was to be done")
    elif dry_run:
        print(
            f"{status.store} {_describe(status)}: {', '.join(status.steps)} ran without an error and were rolled back"
        )
    else:
        print(f"{status.store}: {status.version or 'no tables'} -> {status.newest}")
    return 0


def _describe(status: SchemaStatus) -> str:
    return f"has schema {status.version}" if status.version else "has no tables yet"
