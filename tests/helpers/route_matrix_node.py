"""A node with the world of the matrix in it, as a process of its own: its first line is where it is and whose key opens it.

python -m tests.helpers.route_matrix_node [drain]
"""

from __future__ import annotations

import asyncio
import json
import sys

from everturn.config.server_options import ServerOptions
from everturn.server.serve import serve
from tests.helpers.route_matrix import a_world


async def main(drain: float) -> None:
    """Serve until told to leave."""
    async with a_world() as world:
        things = world.things["ours"].ids()

        def ready(address: str) -> None:
            keys = {f"{tenant}/{role}": key for (tenant, role), key in world.keys.items()}
            print(json.dumps({"url": address, "keys": keys, "things": things}), flush=True)

        options = ServerOptions(port=0, drain=drain)
        await serve(world.house, world.app.authenticator, options, ready)
    print("left", flush=True)


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else 5.0))
