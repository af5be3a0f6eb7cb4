"""Stores: the log, the inbox and their projections. `memory` is the reference, `sql` is SQLite and PostgreSQL.

`named` finds a store by its name, `portable` carries sessions from one to another, `words` is what search goes by.
"""
