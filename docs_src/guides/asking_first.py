import asyncio
import json
from typing import Any

from everturn import Chat, Question, ToolContext, ToolError, TurnSuspended, tool
from everturn.core.parts import ToolPart
from everturn.errors import AnswerUnfit
from everturn.testing import MemoryStore, ScriptedModel, call, calls, say

COLOUR: dict[str, Any] = {
    "type": "object",
    "properties": {"colour": {"enum": ["red", "blue"]}},
    "required": ["colour"],
}


@tool(idempotent=True)
async def paint(what: str, ctx: ToolContext) -> str:
    """Paint something."""
    print(f"paint begins; it kept {ctx.saved_state!r}")
    ctx.save_state("a clean brush")
    question = Question(f"Which colour for the {what}?", schema=COLOUR)
    resolution = await ctx.ask(question)
    if not resolution.allowed:
        raise ToolError(f"it stays as it is: {resolution.reason}")
    return f"the {what} is {json.loads(resolution.result or '{}')['colour']}"


def process(store: MemoryStore) -> Chat:
    model = ScriptedModel(calls(call("paint", what="door")), say("Done."))
    return Chat(model, tools=[paint], store=store, session="house")


async def main() -> None:
    store = MemoryStore()
    async with process(store) as chat:
        turn = await chat.send("Paint the door")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                break  # and this process ends
    async with process(store) as chat:
        (gate,) = await chat.gates()
        print(f"{gate.kind}: {gate.arguments}")
        try:
            await chat.answer(gate, result='{"colour": "green"}')
        except AnswerUnfit:
            print("green does not fit, and the question stays open")
        await chat.answer(gate, result='{"colour": "blue"}')
        part = (await chat.turn(turn.id)).messages[-1].parts[0]
        assert isinstance(part, ToolPart)
        assert part.output is not None
        print(f"{part.state}: {part.output.text}")


if __name__ == "__main__":
    asyncio.run(main())
