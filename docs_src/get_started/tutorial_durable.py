import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from everturn import Agent, App, tool
from everturn.testing import ScriptedModel, call, calls, say


@tool(approval="ask")
async def refund(order: int, cents: int) -> str:
    """Pay money back to the customer."""
    return f"{cents} cents were paid back"


model = ScriptedModel(
    calls(call("refund", order=4512, cents=2900)),
    say("You get 29.00 EUR back."),
)
support = Agent(model, name="support", tools=[refund])


async def monday(store: str) -> str:
    async with App(agents=[support], store=store) as app:
        chat = app.chat("ada", agent=support)
        result = await chat.run("My lamp is broken, order 4512")
        print("Monday:", result.status)
        return result.id  # the process may end here, or be killed


async def tuesday(store: str, turn: str) -> None:
    async with App(agents=[support], store=store) as app:
        result = await app.turn(turn).result()
        for gate in result.gates:
            await gate.approve()
        result = await result.resume()
        print("Tuesday:", result.output)


async def main() -> None:
    with TemporaryDirectory() as folder:
        store = str(Path(folder) / "support.db")
        turn = await monday(store)
        await tuesday(store, turn)


if __name__ == "__main__":
    asyncio.run(main())
