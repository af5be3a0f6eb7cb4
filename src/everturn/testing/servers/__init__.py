"""Real servers of a test's own: started on a free port of the loopback, killed at will, gone with the test.

    async with private_postgres(tmp_path) as postgres:
        connect(postgres.url)
        await postgres.restart("immediate")

A server that a test may kill is never the one that others use.
"""

from everturn.testing.servers.nats import Nats, private_nats
from everturn.testing.servers.postgres import Postgres, private_postgres
from everturn.testing.servers.proxy import Cut, Proxy, cutting_proxy

__all__ = ["Cut", "Nats", "Postgres", "Proxy", "cutting_proxy", "private_nats", "private_postgres"]
