import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from everturn import Chat
from everturn.stores import SqlStore, export_session, import_session
from everturn.testing import MemoryStore, ScriptedModel, say


async def main() -> None:
    with TemporaryDirectory() as folder:
        source = SqlStore.sqlite(Path(folder) / "talks.db")
        file = Path(folder) / "food.zip"
        model = ScriptedModel(say("Lunch is at noon."), say("At eight."))
        async with Chat(model, store=source, session="food") as chat:
            await (await chat.send("When is lunch?"))
        await export_session(source, "food", file)
        await source.aclose()

        target = MemoryStore()
        name = await import_session(target, file, session="food-again")
        async with Chat(model, store=target, session=name) as chat:
            await (await chat.send("And dinner?"))
            for message in await chat.messages():
                print(f"{message.role}: {message.text}")


if __name__ == "__main__":
    asyncio.run(main())
