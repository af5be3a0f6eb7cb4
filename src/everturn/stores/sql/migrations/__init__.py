"""Schema migrations: the steps of the schema in versions/, and the SQL of each for both databases in scripts/.

    alembic revision --autogenerate --rev-id 0002 -m "What changes"     (then review it, and fix what it could not know)
    python -m everturn.stores.sql.migrations.generate                     (writes scripts/0002.*.sql)

A step is written without knowing the content of the database: it only emits SQL and reads nothing back. A released step
is never edited. `schema.py` has the resulting tables, tests compare the three, and tests/golden/databases has a
database of every schema version.

    env        environment of the `alembic` command
    generate   writes the scripts
    versions/  the steps: 0001_first, 0002_tenants, 0003_size
"""
