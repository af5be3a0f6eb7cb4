import asyncio

from msgspec.structs import replace

from everturn import Chat, Gate, tool
from everturn.core.events import TurnParked
from everturn.errors import EverturnError
from everturn.testing import ScriptedModel, call, calls, say


@tool(effects="once", execute="ask")
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


async def attempt(chat: Chat, what: str, gate: Gate, deny: str | None = None) -> None:
    try:
        await chat.answer(gate, allow=None if deny else "once", deny=deny)
        print(f"{what}: taken")
    except EverturnError as error:
        print(f"{what}: {type(error).__name__}")


async def main() -> None:
    async with Chat(ScriptedModel(calls(call("pay", amount=5)), say("Paid.")), tools=[pay]) as chat:
        turn = await chat.send("Pay them")
        async for event in turn:
            if isinstance(event, TurnParked):
                (gate,) = await chat.gates()
                await attempt(chat, "a gate that never opened", replace(gate, id="gate_of_mine"))
                await attempt(chat, "a hash of other arguments", replace(gate, hash="0" * 64))
                await attempt(chat, "what was shown", gate)
                await attempt(chat, "the same again", gate)
                await attempt(chat, "another answer", gate, deny="no, wait")
        print((await turn).text)


if __name__ == "__main__":
    asyncio.run(main())
