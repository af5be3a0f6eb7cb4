"""Backup: copies a store while it is in use, checks the copy, and restores it into an empty place.

A backup is a folder: a manifest, and either a SQLite file with its blobs or one compressed COPY file per PostgreSQL
table. It is one snapshot of the whole store, taken in one read transaction, so writers do not wait for it.

    commands         create, verify and restore a backup of any store
    manifest         the list of the files of a backup, with their hashes
    tables           the tables of a schema version, from the migration scripts
    log_check        the check that every log of a backup has no gap and folds
    sqlite_backup    SQLite: the file and its blob folder
    postgres_backup  PostgreSQL: COPY of every table
    copy_format      reads rows of PostgreSQL's binary COPY format
"""
