import asyncio
import json
from typing import Any

from everturn import Agent, App, Question, ToolContext, ToolError, tool
from everturn.errors import AnswerUnfit
from everturn.events import ToolPart
from everturn.testing import MemoryStore, ScriptedModel, call, calls, say

COLOUR: dict[str, Any] = {
    "type": "object",
    "properties": {"colour": {"enum": ["red", "blue"]}},
    "required": ["colour"],
}


@tool(idempotent=True)
async def paint(what: str, ctx: ToolContext) -> str:
    """Paint something."""
    print(f"paint starts, with the saved state {ctx.saved_state!r}")
    ctx.save_state("a clean brush")
    question = Question(f"Which colour for the {what}?", schema=COLOUR)
    resolution = await ctx.ask(question)
    if not resolution.allowed:
        raise ToolError(f"not painted: {resolution.reason}")
    return f"the {what} is {json.loads(resolution.result or '{}')['colour']}"


def start_process(store: MemoryStore) -> App:
    model = ScriptedModel(calls(call("paint", what="door")), say("Done."))
    painter = Agent(model, name="painter", tools=[paint])
    return App(agents=[painter], store=store)


async def main() -> None:
    store = MemoryStore()
    async with start_process(store) as app:
        result = await app.chat("house").run("Paint the door")
        print(result.status)
    async with start_process(store) as app:  # the first process has ended
        result = await app.turn(result.id).result()
        (gate,) = result.gates
        print(f"{gate.kind}: {gate.arguments}")
        try:
            await gate.submit({"colour": "green"})
        except AnswerUnfit:
            print("green does not match the schema; the question stays open")
        await gate.submit({"colour": "blue"})
        part = (await result.resume()).messages[-1].parts[0]
        assert isinstance(part, ToolPart)
        assert part.output is not None
        print(f"{part.state}: {part.output.text}")


if __name__ == "__main__":
    asyncio.run(main())
