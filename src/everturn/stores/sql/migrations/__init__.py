"""How an older schema becomes the present one: a step in versions/, and what it says to each database in scripts/.

    alembic revision --autogenerate --rev-id 0002 -m "What changes"     (then read it, and mend what it could not know)
    python -m everturn.stores.sql.migrations.writing                     (writes scripts/0002.*.sql)

A step is written down before it is known what is in the database: it says what to do in SQL and reads nothing back. One
that has been released is never edited. `schema.py` says what comes out, tests hold the three together, and a database of
every schema there ever was is kept in tests/golden/databases.
"""
