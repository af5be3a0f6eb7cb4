import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from everturn import Chat, tool
from everturn.events import TurnSuspended
from everturn.testing import ScriptedModel, call, calls, say


@tool(approval="always")
async def pay(amount: int) -> str:
    """Pay the rent."""
    return f"paid {amount}"


def open_chat(file: Path) -> Chat:
    model = ScriptedModel(calls(call("pay", amount=900)), say("The rent is paid."))
    return Chat(model, tools=[pay], store=str(file), session="rent")


async def on_monday(file: Path) -> None:
    async with open_chat(file) as chat:
        turn = await chat.send("Pay the rent", key="rent for May")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                return  # the turn waits for a person; the process can end


async def on_tuesday(file: Path) -> None:
    async with open_chat(file) as chat:
        (gate,) = await chat.gates()
        print("to be answered:", gate.tool, gate.arguments)
        await chat.answer(gate, allow="once")
        turn = await chat.send("Pay the rent", key="rent for May")  # the same turn
        print((await turn).text, "Messages:", len(await chat.messages()))


async def main() -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "talks.db"
        await on_monday(file)
        await on_tuesday(file)


if __name__ == "__main__":
    asyncio.run(main())
