import asyncio

from everturn import Chat
from everturn.events import TurnSuspended
from everturn.plugins import SUSPEND, StepContext, Suspend
from everturn.testing import MemoryStore, ScriptedModel, say


class PlanFirst:
    """Asks a person to approve the plan before the model continues."""

    name = "plan_first"

    async def on_after_request(self, ctx: StepContext) -> Suspend | None:
        if ctx.step > 1 or ctx.calls:
            return None
        resolution = await ctx.ask(f"Shall I carry out this plan? {ctx.message.text}")
        if resolution is None:
            return SUSPEND  # suspends the turn; called again with the answer
        if resolution.allowed:
            await ctx.append_and_request("Approved. Carry it out.", role="notice")
        elif resolution.reason:
            await ctx.append_and_request(f"No: {resolution.reason}", role="notice")
        return None


def open_chat(store: MemoryStore) -> Chat:
    model = ScriptedModel(say("First soup, then bread."), say("Dinner is ready."))
    return Chat(model, plugins=[PlanFirst()], store=store, session="dinner")


async def main() -> None:
    store = MemoryStore()

    async with open_chat(store) as chat:
        turn = await chat.send("Make dinner")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                break
    print("the turn waits, and no process runs")

    async with open_chat(store) as chat:
        (gate,) = await chat.gates()
        print(gate.arguments)
        await chat.answer(gate, allow="once")
        result = await chat.turn(turn.id)
    for message in result.messages:
        print(f"{message.role}: {message.text}")


if __name__ == "__main__":
    asyncio.run(main())
