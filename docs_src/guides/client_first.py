import asyncio
import sys

from everturn.client import Server
from everturn.events import GateOpened, TextDelta


async def talk(url: str, token: str) -> None:
    async with Server(url, token) as server:
        turn = await server.start_session("Note that lunch is at noon")
        async for event in turn:
            match event:
                case TextDelta(text=text):
                    print(text, end="")
                case GateOpened(gate=gate):
                    (pending,) = await turn.gates()
                    print(f"[{gate.tool} {gate.arguments}: allowed]")
                    await server.answer(pending, allow="once")
                case _:
                    pass
        print()

        session = server.session(turn.session)
        again = await (await session.send("What did I say?"))
        print(again.phase, len(await session.messages()), "messages")


if __name__ == "__main__":
    asyncio.run(talk(sys.argv[1], sys.argv[2]))
