import asyncio

from everturn import Chat
from everturn.testing import ScriptedModel, say


async def main() -> None:
    async with Chat(ScriptedModel(say("A table for four is booked."))) as chat:
        await chat.run("Please book a table for four on Friday")
        await chat.update(title="Friday dinner", pinned=True, labels=["private"])
        [session] = await chat.app.store.session_page("local")
        print(session.title, session.pinned, session.labels)


if __name__ == "__main__":
    asyncio.run(main())
