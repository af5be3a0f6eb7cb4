"""Schema migrations, as they are written: the steps of the schema, from which the SQL scripts of the wheel are generated.

    alembic revision --autogenerate --rev-id 0002 -m "What changes"     (then review it, and fix what it could not know)
    python -m tools.migrations.generate                                 (writes 0002.*.sql)

A step is written without knowing the content of the database: it only emits SQL and reads nothing back. A released step
is never edited. The scripts are in `src/everturn/stores/sql/migrations/scripts`. Tests compare them with the steps and
with `schema`, and tests/golden/databases has a database of every schema version.

- `schema`: the tables that result
- `versions`: the steps
- `initial`: the parts of the first step
- `generate`: writes the scripts
- `env`: the environment of the `alembic` command
"""
