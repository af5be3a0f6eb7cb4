import asyncio
import sys
from pathlib import Path

from everturn import Chat, McpServers
from everturn.events import GateOpened, ToolPart
from everturn.mcp import ServerSpec
from everturn.testing import ScriptedModel, call, calls, say

HOTEL = Path(__file__).with_name("mcp_hotel.py")
hotel = ServerSpec("hotel", command=sys.executable, args=(str(HOTEL),))
model = ScriptedModel(
    calls(call("hotel_free_rooms")),
    calls(call("hotel_book_room", guest="Ada")),
    say("Ada has a room."),
)


async def main() -> None:
    servers = McpServers([hotel], timeout=30)
    async with Chat(model, tools=[servers]) as chat:
        turn = await chat.send("Book a room for Ada")
        (status,) = servers.status()
        print(status.name, status.state, *status.tools)
        async for event in turn:
            if isinstance(event, GateOpened):
                gate = event.gate
                if gate.kind == "form":
                    print(gate.arguments)
                    await turn.answer(gate, result='{"nights": 2}')
                else:
                    print(f"may {gate.tool} run?")
                    await turn.answer(gate, allow="once")
        for part in (await turn).messages[-1].parts:
            if isinstance(part, ToolPart) and part.output is not None:
                print(f"{part.name} {part.state}: {part.output.text}")


if __name__ == "__main__":
    asyncio.run(main())
