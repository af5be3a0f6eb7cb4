"""Test servers: real servers that a test owns, on free ports of the loopback; a test can kill them, and they end with
it.

    async with private_postgres(tmp_path) as postgres:
        connect(postgres.url)
        await postgres.restart("immediate")

A server that a test may kill is never shared with other tests.

- `process`: server processes that never outlive their test
- `postgres`: PostgreSQL
- `nats`: NATS
- `restate`: Restate
- `temporal`: Temporal
- `proxy`: a proxy that cuts PostgreSQL connections at a chosen moment
"""

from tools.servers.nats import Nats, private_nats
from tools.servers.postgres import PostgresServer, private_postgres
from tools.servers.proxy import PlannedCut, Proxy, cutting_proxy

__all__ = ["Nats", "PlannedCut", "PostgresServer", "Proxy", "cutting_proxy", "private_nats", "private_postgres"]
