import asyncio
import json
from typing import Any

from everturn import Chat, Question, ToolContext, ToolError, TurnParked, tool
from everturn.core.parts import ToolPart
from everturn.errors import AnswerUnfit
from everturn.testing import MemoryStore, ScriptedModel, call, calls, say

COLOUR: dict[str, Any] = {
    "type": "object",
    "properties": {"colour": {"enum": ["red", "blue"]}},
    "required": ["colour"],
}


@tool(effects="write")
async def paint(what: str, ctx: ToolContext) -> str:
    """Paint something."""
    print(f"paint begins; it kept {ctx.kept!r}")
    ctx.keep("a clean brush")
    verdict = await ctx.ask(Question(f"Which colour for the {what}?", schema=COLOUR))
    if not verdict.allowed:
        raise ToolError(f"it stays as it is: {verdict.reason}")
    return f"the {what} is {json.loads(verdict.result or '{}')['colour']}"


def process(store: MemoryStore) -> Chat:
    model = ScriptedModel(calls(call("paint", what="door")), say("Done."))
    return Chat(model, tools=[paint], store=store, session="house")


async def main() -> None:
    store = MemoryStore()
    async with process(store) as chat:
        turn = await chat.send("Paint the door")
        async for event in turn:
            if isinstance(event, TurnParked):
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
