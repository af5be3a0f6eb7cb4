"""Parts of the first migration: the schema of release 0.1, in the order in which they run.

sessions          sessions, log, messages, gates, commands, blobs
tenants           accounts, audit log, row security by tenant
search_and_usage  the search index by tenant, usage by day, indexes for counting and paging
"""
