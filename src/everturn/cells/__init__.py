"""Cells: installations with a database of their own, a router in front of them, and tenants that move between them.

A tenant is in one cell. The routing table says in which; a move copies the tenant while it works, freezes it in the source,
copies the rest, and switches the route. Decision 0218.

- `connection`: connections to the databases
- `routes`: the routing table, and the state of each move
- `fence`: freezes a tenant in a database
- `tables`: which rows belong to a tenant
- `table_copy`: copies rows between two databases and compares them
- `source_copy`: what is done with the copy that stays behind
- `move`: the steps of a move, each of which can be repeated after a crash
- `cell_connections`: requests to cells over connections that stay open
- `identity`: the tenant of a request
- `router`: the reverse proxy
"""
