import asyncio

from everturn import Chat, TurnStatus, tool
from everturn.events import GateOpened, Phase
from everturn.models import ModelRequest
from everturn.testing import ScriptedModel, call, calls, say
from everturn.tools import SubagentTool


@tool(approval="ask")
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


clerk = SubagentTool("clerk", "Pays bills.", tools=["pay"])


def script(request: ModelRequest) -> list[object]:
    first, steps = request.messages[0].text, len(request.messages)
    if steps > 1:
        return [*say("Paid.")]
    if first == "pay it":
        return [*calls(call("pay", amount=5))]
    return [*calls(call("clerk", task="pay it"))]


model = ScriptedModel(script, script)


waits = asyncio.Event()


def listen(turn: TurnStatus) -> None:
    """Receives the status of all turns; `chat.subscribe` is for one session."""
    if turn.phase is Phase.WAITING:
        waits.set()


async def main() -> None:
    async with Chat(model, tools=[clerk, pay]) as chat:
        chat.app.listeners.append(listen)
        turn = await chat.send("Here is a bill")
        await waits.wait()
        (gate,) = await chat.gates()
        print(f"{gate.tool} {gate.arguments} asks, because {gate.why}")
        print("in this session:", gate.session == chat.session)
        await chat.answer(gate, allow="always")
        opened = [event async for event in turn if isinstance(event, GateOpened)]
        print("gates that this turn opened itself:", len(opened))
        print("granted here:", *[grant.rule for grant in await chat.grants()])


if __name__ == "__main__":
    asyncio.run(main())
