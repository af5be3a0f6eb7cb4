"""Script generator: writes the SQL of each step. `python -m tools.migrations.generate` needs Alembic."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.script import ScriptDirectory

from everturn.stores.sql.migrate import SCRIPTS, VERSION_TABLE

DIALECTS = ("postgresql", "sqlite")


def steps() -> ScriptDirectory:
    """Return the steps as an Alembic script directory."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.set_main_option("path_separator", "os")
    return ScriptDirectory.from_config(config)


def write(dialect: str, since: str | None, to: str) -> str:
    """Return the SQL of one step."""
    directory, output = steps(), io.StringIO()

    def missing(version: Any, _context: Any) -> Any:
        return directory._upgrade_revs(to, version)  # pyright: ignore[reportPrivateUsage]

    with EnvironmentContext(
        Config(), directory, fn=missing, as_sql=True, starting_rev=since, destination_rev=to
    ) as context:
        # The caller that runs the script begins the transaction, with a lock.
        context.configure(
            dialect_name=dialect, output_buffer=output, transactional_ddl=False, version_table=VERSION_TABLE
        )
        context.run_migrations()
    return "\n".join(line.rstrip() for line in output.getvalue().strip().splitlines()) + "\n"


def _compatible(step: Any) -> str:
    """Return the statement that names the oldest schema whose processes can use this one."""
    oldest = getattr(step.module, "compatible_since", None)
    if oldest is None:
        assert step.revision < "0013", f"{step.revision} does not name `compatible_since`"
        return ""
    return f"\nUPDATE {VERSION_TABLE} SET compatible_since='{oldest}';\n"


def scripts() -> dict[str, str]:
    """Return every script by its file name."""
    texts = dict[str, str]()
    for step in reversed(list(steps().walk_revisions())):
        since = step.down_revision
        assert since is None or isinstance(since, str)  # the history is linear
        for dialect in DIALECTS:
            texts[f"{step.revision}.{dialect}.sql"] = write(dialect, since, step.revision) + _compatible(step)
    return texts


if __name__ == "__main__":
    for name, text in scripts().items():
        (SCRIPTS / name).write_text(text, encoding="utf-8")
