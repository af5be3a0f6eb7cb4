import asyncio
import sys

from everturn.client import Server


async def share(url: str, token: str) -> None:
    async with Server(url, token) as server:
        turn = await server.start_session("Hello")
        await turn
        sharing = server.session(turn.session).sharing
        member_share = await sharing.share(role="member", level="write")
        link = await sharing.create_link()
        for share in (await sharing.get()).shares:
            print(share.kind, share.name or "-", share.level)
        await sharing.revoke(member_share.id)
        await sharing.revoke(link.share.id)
        print(len((await sharing.get()).shares), "shares")


if __name__ == "__main__":
    asyncio.run(share(sys.argv[1], sys.argv[2]))
