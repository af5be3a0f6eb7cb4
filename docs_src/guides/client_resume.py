import asyncio
import sys

from everturn.client import Server
from everturn.events import TextDelta


async def two_halves(url: str, token: str) -> None:
    async with Server(url, token) as server:
        turn = await server.start_session("Hello", key="greeting-1")
        stream = turn.events()
        async for item in stream:
            if isinstance(item.delta, TextDelta):
                print(item.delta.text, end="|")
                break
        cursor = stream.cursor  # a short text that you can store anywhere
        await stream.aclose()

    async with Server(url, token) as elsewhere:
        same = await elsewhere.start_session("Hello", key="greeting-1")  # sent once
        assert same.id == turn.id
        async for item in same.events(after=cursor):
            if isinstance(item.delta, TextDelta):
                print(item.delta.text, end="")
    print()


if __name__ == "__main__":
    asyncio.run(two_halves(sys.argv[1], sys.argv[2]))
