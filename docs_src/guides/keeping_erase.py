import asyncio
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from everturn import Chat
from everturn.errors import UnknownSession
from everturn.stores import SqlStore
from everturn.testing import ScriptedModel, say


def is_in_any_file(word: bytes, folder: Path) -> bool:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return any(word in path.read_bytes() for path in files)


async def main() -> None:
    with TemporaryDirectory() as folder:
        store = SqlStore.sqlite(Path(folder) / "talks.db")
        model = ScriptedModel(say("I will keep it secret."))
        async with Chat(model, store=store, session="diary") as chat:
            await (await chat.send("My secret is opalescent"))

        await store.erase("diary")
        try:
            await store.events("diary")
        except UnknownSession as error:
            print(error)

        await store.run_maintenance(time.time(), idle=365 * 86_400)
        print("found in a file:", is_in_any_file(b"opalescent", Path(folder)))
        await store.aclose()


if __name__ == "__main__":
    asyncio.run(main())
