import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from everturn import Chat
from everturn.stores import SqlStore
from everturn.testing import ScriptedModel, say


async def talk(store: SqlStore, session: str, message: str, answer: str) -> None:
    async with Chat(ScriptedModel(say(answer)), store=store, session=session) as chat:
        await (await chat.send(message))


async def main() -> None:
    with TemporaryDirectory() as folder:
        store = SqlStore.sqlite(Path(folder) / "talks.db")
        await talk(store, "food", "When is lunch?", "Lunch is at noon.")
        await talk(store, "work", "今天的午饭在哪里", "In the canteen.")

        for query in ("lun", "NOON lunch", "午饭", "unch"):
            found = await store.search(query)
            print(query, [(session, message.text) for session, message in found])
        await store.aclose()


if __name__ == "__main__":
    asyncio.run(main())
