"""A process that tells of one viewer until it is killed: URL of the bus, tenant, session, user."""

from __future__ import annotations

import asyncio
import sys

from everturn.access.context.presence_board import PresenceBoard
from everturn.bus.postgres import PostgresBus
from everturn.clock import SystemClock
from everturn.core.presence import Viewing


async def main(url: str, tenant: str, session: str, user: str) -> None:
    board = PresenceBoard(PostgresBus(url), SystemClock())
    while True:
        board.report(tenant, [Viewing(tenant, session, user, user.title(), "tab")])
        await asyncio.sleep(0.5)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
