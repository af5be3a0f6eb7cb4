"""PostgreSQL, as stores, engine and bus share it.

- `address`: parses the URL of a database
- `link`: the connections of engine and bus: one that listens, and a few for statements
"""
