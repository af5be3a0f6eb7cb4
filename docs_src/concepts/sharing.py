import asyncio

from everturn import Chat
from everturn.testing import ScriptedModel, say


async def main() -> None:
    model = ScriptedModel(say("Hello."))
    async with Chat(model, session="one") as one:
        two = Chat(model, session="two", app=one.app)
        for chat in (one, two):
            turn = await chat.send("Hi")
            print(chat.session, (await turn).text)


if __name__ == "__main__":
    asyncio.run(main())
