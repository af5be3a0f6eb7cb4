import asyncio
import json

from everturn import Chat, tool
from everturn.events import GateOpened, TurnSuspended
from everturn.plugins import GateContext
from everturn.testing import ScriptedModel, call, calls, say


@tool(approval="always")
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


class SmallChange:
    """Approves small payments; a person decides about the others."""

    name = "small_change"

    def on_gate(self, ctx: GateContext) -> None:
        gate = ctx.gate
        if gate.tool == "pay" and json.loads(gate.arguments)["amount"] < 10:
            ctx.allow()


async def main() -> None:
    model = ScriptedModel(
        calls(call("pay", amount=3), call("pay", amount=500)),
        say("Paid."),
    )
    async with Chat(model, tools=[pay], plugins=[SmallChange()]) as chat:
        turn = await chat.send("Pay both")
        async for event in turn:
            if isinstance(event, GateOpened):
                print("opened:", event.gate.arguments)
            if isinstance(event, TurnSuspended):
                for gate in await chat.gates():
                    print("waits: ", gate.arguments)
                    await turn.answer(gate, allow="once")
        print((await turn).text)


if __name__ == "__main__":
    asyncio.run(main())
