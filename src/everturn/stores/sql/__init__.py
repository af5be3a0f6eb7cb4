"""SQL store: one schema and one set of operations for SQLite and PostgreSQL.

An operation does no I/O: it is a generator that yields queries and is sent rows. So it is written once, runs in a
thread on SQLite and on the event loop on PostgreSQL, and can be run again when it is unknown whether it was committed.

    store             the `Store` port: each method runs an operation
    database          the `Database` port: statements, queries and operations
    statements/       SQL of the sessions, in both dialects
    queries           operations that read
    admission         the operation that checks a command and stores it in the inbox
    append            operations that claim sessions and append events
    projections       rows that an append changes beside the log; pure
    grants            remembered answers
    usage             usage by turn, account and day
    search            full-text search over messages
    blobs             blobs, in rows or files
    blob_folder       a folder of blob files
    accounts          tenants, users, credentials and audit log
    user_records      passwords, budgets and invitations of users, and audit searches
    user_memory       memory files of users
    webhooks          webhooks, and the outbox that appends write
    schedules         schedules, and the claim of those that are due
    erasure           erasure of sessions
    owner_erasure     erasure of a user or a tenant
    retention         the maintenance job: idle sessions, old commands, unreferenced blobs
    body_compression  compression of events and messages; pure
    event_packs       the events of an append as one compressed row; pure
    event_partitions  partitions of the log on PostgreSQL, which retention drops
    sqlite            runs operations on SQLite
    file_lock         a lock that lets one process drive a SQLite file
    encrypted_database encrypts and decrypts between an operation and its database
    sealed_columns    which columns of which statements are encrypted
    encrypted_blobs   blobs that are encrypted, each for one tenant
    postgres          runs operations on PostgreSQL
    postgres_pool     connections to PostgreSQL
    group_commit      runs many operations in lockstep in one transaction
    single_statement  merges a group of appends into one statement
    row_security      row-level security between tenants on PostgreSQL
    errors            classification of driver errors
    migrate           upgrades a database to the current schema
    migrations/       the steps of the schema, as SQL scripts
"""
