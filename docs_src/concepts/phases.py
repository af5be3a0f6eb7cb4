import asyncio

from everturn import Chat, tool
from everturn.events import TurnSuspended
from everturn.testing import ScriptedModel, call, calls, say


@tool(approval="always")
async def send_mail(to: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


async def main() -> None:
    model = ScriptedModel(calls(call("send_mail", to="Ada")), say("Done."))
    async with Chat(model, tools=[send_mail]) as chat:
        chat.subscribe(lambda turn: print(f"{turn.phase:<10}  step {turn.step}"))
        turn = await chat.send("Write to Ada")
        async for event in turn:
            if isinstance(event, TurnSuspended):  # waits for approval
                for gate in await chat.gates():
                    await turn.answer(gate, allow="once")


if __name__ == "__main__":
    asyncio.run(main())
