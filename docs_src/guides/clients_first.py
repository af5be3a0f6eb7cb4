import asyncio

from everturn import Chat, ToolClient, tool
from everturn.events import ToolPart
from everturn.testing import ScriptedModel, call, calls, say
from everturn.tools import ClientTool

RING = ClientTool(
    "ring_bell",
    "Ring the bell at the person's door.",
    {"type": "object", "properties": {"times": {"type": "integer", "maximum": 3}}},
    output_schema={"type": "object", "properties": {"heard": {"type": "boolean"}}},
)


@tool(read_only=True)
async def who_is_home() -> str:
    """List who is at home; this tool runs in the process."""
    return "Ada"


async def ring_bell(times: int = 1) -> dict[str, bool]:
    """Run the call on the device at the door."""
    print(" ".join(["ding"] * times))
    return {"heard": True}


model = ScriptedModel(calls(call("ring_bell", times=2)), say("The bell rang twice."))


async def main() -> None:
    async with Chat(model, tools=[who_is_home]) as chat:
        device = ToolClient(chat, {"ring_bell": ring_bell}, name="door-1")
        serving = asyncio.create_task(device.serve())
        result = await (await chat.send("Ring twice", clients=[RING]))
        serving.cancel()
        part = result.messages[-1].parts[0]
        assert isinstance(part, ToolPart)
        assert part.output is not None
        print(f"{part.state}: {part.output.text}, by {part.output.metadata}")


if __name__ == "__main__":
    asyncio.run(main())
