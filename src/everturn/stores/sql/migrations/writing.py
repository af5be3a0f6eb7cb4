"""Steps → scripts: `python -m everturn.stores.sql.migrations.writing`. Needs Alembic, which a running store does not."""

from __future__ import annotations

import io
from typing import Any

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.script import ScriptDirectory

from everturn.stores.sql.migrating import SCRIPTS, VERSION

DIALECTS = ("postgresql", "sqlite")


def steps() -> ScriptDirectory:
    """The steps as Alembic knows them."""
    config = Config()
    config.set_main_option("script_location", "everturn.stores.sql:migrations")
    config.set_main_option("path_separator", "os")
    return ScriptDirectory.from_config(config)


def write(dialect: str, since: str | None, to: str) -> str:
    """What one step says to a database."""
    found, written = steps(), io.StringIO()

    def missing(version: Any, _context: Any) -> Any:
        return found._upgrade_revs(to, version)  # pyright: ignore[reportPrivateUsage]

    with EnvironmentContext(
        Config(), found, fn=missing, as_sql=True, starting_rev=since, destination_rev=to
    ) as context:
        # The transaction is begun by whoever runs it: it begins with a lock.
        context.configure(dialect_name=dialect, output_buffer=written, transactional_ddl=False, version_table=VERSION)
        context.run_migrations()
    return "\n".join(line.rstrip() for line in written.getvalue().strip().splitlines()) + "\n"


def scripts() -> dict[str, str]:
    """Every script there should be, by the name of its file."""
    written = dict[str, str]()
    for step in reversed(list(steps().walk_revisions())):
        since = step.down_revision
        assert since is None or isinstance(since, str)  # steps stand in one row
        for dialect in DIALECTS:
            written[f"{step.revision}.{dialect}.sql"] = write(dialect, since, step.revision)
    return written


if __name__ == "__main__":
    for name, text in scripts().items():
        (SCRIPTS / name).write_text(text, encoding="utf-8")
