"""A process with a call that waits for a login: it says where, and is killed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from everturn.config.secret_box import SecretBox
from everturn.mcp.login_store import StoredLogins
from everturn.stores.registry import get_store
from tests.helpers.oauth_server import Authority
from tests.helpers.protected_mcp_server import Drive
from tests.mcp_login.world import world


async def main(port: int, base: str, folder: Path) -> None:
    giver = Authority()
    giver.base = base
    served = Drive(giver)
    served.port = port
    store = get_store(str(folder / "a.db"))
    logins = StoredLogins(store.user_memory, SecretBox([b"k" * 32]), lambda: 1.0)
    async with world(served, folder / "one", store, logins=logins) as node:
        await node.log_in("bob")
        sent = await node.say("ada", "note 1")
        await node.gate("ada", sent.session)
        print(sent.session, sent.turn, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])))
