import asyncio

from msgspec.structs import replace

from everturn import Chat, EverturnError, Gate, tool
from everturn.events import TurnSuspended
from everturn.testing import ScriptedModel, call, calls, say


@tool(approval="always")
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


async def give(chat: Chat, label: str, gate: Gate, deny: str | None = None) -> None:
    try:
        await chat.answer(gate, allow=None if deny else "once", deny=deny)
        print(f"{label}: taken")
    except EverturnError as error:
        print(f"{label}: {type(error).__name__}")


async def main() -> None:
    model = ScriptedModel(calls(call("pay", amount=5)), say("Paid."))
    async with Chat(model, tools=[pay]) as chat:
        turn = await chat.send("Pay them")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                (gate,) = await chat.gates()
                await give(chat, "a gate that never opened", replace(gate, id="mine"))
                await give(chat, "the hash of another", replace(gate, hash="00"))
                await give(chat, "what was shown", gate)
                await give(chat, "the same again", gate)
                await give(chat, "another answer", gate, deny="no, wait")
        print((await turn).text)


if __name__ == "__main__":
    asyncio.run(main())
