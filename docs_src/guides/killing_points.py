import asyncio

from everturn import Chat, failpoints, tool
from everturn.testing import ScriptedModel, call, calls, say


@tool()
async def pay(amount: int) -> str:
    """Pay the rent."""
    return f"paid {amount}"


async def main() -> None:
    reached: list[str] = []
    failpoints.install_plan(reached.append)
    model = ScriptedModel(calls(call("pay", amount=900)), say("Paid."))
    async with Chat(model, tools=[pay]) as chat:
        await (await chat.send("Pay the rent"))
    failpoints.install_plan(None)
    for point in dict.fromkeys(reached):
        if point.startswith("log."):
            print(point)


if __name__ == "__main__":
    asyncio.run(main())
