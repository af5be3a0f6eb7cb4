import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from everturn import Chat, tool
from everturn.stores import create_backup, restore_backup, verify_backup
from everturn.testing import ScriptedModel, call, calls, say


@tool(approval="always")
async def book(table: str) -> str:
    """Book a table."""
    return f"booked {table}"


def open_chat(store: Path) -> Chat:
    model = ScriptedModel(calls(call("book", table="four")), say("Booked."))
    return Chat(model, tools=[book], store=str(store), session="lunch")


async def main() -> None:
    with TemporaryDirectory() as folder:
        talks, copy = Path(folder) / "talks.db", Path(folder) / "backup"
        async with open_chat(talks) as chat:
            await chat.run("A table for four, please")  # needs approval
            await create_backup(str(talks), copy)  # the store is in use

        manifest, problems = await verify_backup(copy)
        print("open gates:", manifest.contents.open_gates, "problems:", problems)

        restored = Path(folder) / "restored.db"
        await restore_backup(copy, str(restored))
        async with open_chat(restored) as chat:
            (gate,) = await chat.gates()
            await chat.answer(gate, allow="once", by="ada")
            print((await chat.turn(gate.turn)).text)


if __name__ == "__main__":
    asyncio.run(main())
