"""Stores: persist the event logs, the inboxes of commands, the projections of both, and the blobs.

`MemoryStore` is the reference implementation of the `Store` port; `SqlStore` implements it on SQLite and PostgreSQL.
Every store passes the contract suite in `everturn.testing`. Sessions move between stores as exported files, and search
matches the same terms in every store.

    registry         a store by its name or URL
    memory           the reference store, in dictionaries
    memory_usage     grants and usage totals of the reference store
    accounts         tenants, users, credentials and audit log of the reference store
    partial          stores that implement only what runs turns
    sql/             the store on SQLite and PostgreSQL
    blob_refs        the blobs that an event or a command references
    search_terms     the terms of a text and of a search query
    export           export of a session to a file, and its import
    import_check     validation of an imported log
    import_sanitize  removal of what an imported log must not assert
    import_close     events that end the open turns of an imported log
"""
