"""Sessions in a database: one schema and one set of operations, on SQLite and on PostgreSQL.

    schema.py      the tables                          statements.py  what is said to a database, in both languages
    changes.py     events → rows, pure                 reading.py     operations that read
    admitting.py   the door: a command → a receipt     writing.py     claims and appends
    store.py       the verbs of the `Store` port       blobs.py, searching.py, keeping.py, erasing.py: the rest of them
    sqlite.py      how operations run on SQLite        holding.py     one process per file
    postgres.py    how they run on PostgreSQL          grouping.py, connecting.py, trouble.py: many in one transaction
    migrating.py   an older database → this one        migrations/    how

An operation does no I/O: it is a generator that yields queries and is sent rows. So it is written once, runs in a
thread on SQLite and on the event loop on PostgreSQL, and can be run again when nobody knows whether it was committed.
"""
