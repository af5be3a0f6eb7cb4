"""SQL statements about sessions, in the dialects of SQLite and PostgreSQL.

conditions  what is awake, due or live, as the partial indexes have it
sessions    sessions, their lists and counts
log         events, inbox, turns and messages of a session
gates       open gates
admission   the check of a command, and its row in the inbox
claims      claim of a session by a driver
append      events, and the rows that change beside them
"""
