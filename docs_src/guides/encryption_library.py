import asyncio
import base64
import os
from pathlib import Path
from tempfile import TemporaryDirectory

from everturn import Chat
from everturn.errors import TenantKeyDestroyed
from everturn.stores import SqlStore, open_keyring
from everturn.testing import ScriptedModel, say


def is_in_any_file(word: bytes, folder: Path) -> bool:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return any(word in path.read_bytes() for path in files)


async def main() -> None:
    with TemporaryDirectory() as folder:
        # In production, read this key from your secret store.
        master_key = base64.b64encode(os.urandom(32)).decode()
        keyring = open_keyring(f"{folder}/keyring", [master_key])
        store = SqlStore.sqlite(f"{folder}/talks.db").encrypt(keyring)
        model = ScriptedModel(say("I will keep it secret."))
        chat = Chat(model, store=store, session="diary", tenant="acme")
        async with chat:
            await (await chat.send("My secret is opalescent"))

        print("found in a file:", is_in_any_file(b"opalescent", Path(folder)))
        print("decrypted:", (await store.info("diary")).title)

        await store.destroy_key("acme")
        try:
            await store.events("diary")
        except TenantKeyDestroyed as error:
            print(str(error).partition(":")[0])
        await store.aclose()


if __name__ == "__main__":
    asyncio.run(main())
