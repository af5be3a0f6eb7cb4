import asyncio

from everturn import Chat, tool
from everturn.events import TurnSuspended
from everturn.testing import MemoryStore, ScriptedModel, call, calls, say


@tool(approval="always")
async def send_mail(to: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


def open_chat(store: MemoryStore) -> Chat:
    """A new process; it shares only the store with the previous one."""
    model = ScriptedModel(calls(call("send_mail", to="Ada")), say("Ada knows."))
    return Chat(model, tools=[send_mail], store=store, session="lunch")


async def main() -> None:
    store = MemoryStore()

    async with open_chat(store) as chat:  # the first process
        turn = await chat.send("Tell Ada")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                break
        print("the turn waits, and the process ends")

    async with open_chat(store) as chat:  # another process, at any later time
        (gate,) = await chat.gates()
        print(f"still open: {gate.tool} {gate.arguments}")
        await chat.answer(gate, allow="once")
        print((await chat.turn(turn.id)).text)


if __name__ == "__main__":
    asyncio.run(main())
