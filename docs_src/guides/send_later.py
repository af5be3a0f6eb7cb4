import asyncio
from datetime import UTC, datetime, timedelta

from everturn import Chat
from everturn.testing import ScriptedModel, say


async def main() -> None:
    async with Chat(ScriptedModel(say("Good morning."))) as chat:
        when = datetime.now(UTC) + timedelta(seconds=0.1)
        turn = await chat.send("Wish me a good day", at=when, key="wish of May 4")
        print("messages before its time:", len(await chat.messages()))
        print((await turn).text)


if __name__ == "__main__":
    asyncio.run(main())
