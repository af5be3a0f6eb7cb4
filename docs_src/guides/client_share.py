import asyncio
import sys

from everturn.client import Server


async def share(url: str, token: str) -> None:
    async with Server(url, token) as server:
        turn = await server.start_session("Hello")
        await turn
        sharing = server.session(turn.session).sharing
        made = await sharing.share(role="member", level="write")
        link = await sharing.create_link()
        for one in (await sharing.get()).shares:
            print(one.kind, one.name or "-", one.level)
        await sharing.revoke(made.id)
        await sharing.revoke(link.share.id)
        print(len((await sharing.get()).shares), "shares")


if __name__ == "__main__":
    asyncio.run(share(sys.argv[1], sys.argv[2]))
