import asyncio

from everturn import Budget, Chat, Rule, TurnOptions, tool
from everturn.events import ToolPart
from everturn.models import ModelRequest
from everturn.testing import ScriptedModel, call, calls, say
from everturn.tools import SubagentTool


@tool(read_only=True, subjects={"place": "text"})
async def look(place: str) -> str:
    """Look somewhere."""
    return f"keys in {place}"


@tool(idempotent=True)
async def tidy(place: str) -> str:
    """Tidy up."""
    return "tidy"


finder = SubagentTool(
    "finder",
    "Finds things. Say what to find, and where it was seen.",
    system="You find things.",
    tools=["look"],
    rules=[Rule("look", "deny", {"place": "safe"})],
    budget=Budget(calls=5),
)


TASK = "find the keys"


def script(request: ModelRequest) -> list[object]:
    """Both agents use this model; the first message identifies the conversation."""
    is_below, is_first = request.messages[0].text == TASK, len(request.messages) == 1
    if is_below and is_first:
        return [*calls(call("look", place="hall"), call("look", place="safe"))]
    if is_first:
        return [*calls(call("finder", task=TASK))]
    return [*say("They are in the hall." if is_below else "Found.")]


model = ScriptedModel(script, script)


async def main() -> None:
    options = TurnOptions(budget=Budget(calls=10))
    async with Chat(model, tools=[finder, look, tidy], options=options) as chat:
        turn = await chat.send("Where are my keys?")
        result = await turn
        part = result.messages[-1].parts[0]
        assert isinstance(part, ToolPart)
        assert part.output is not None
        print(f"{part.name}: {part.output.text}")

        session = str((part.output.metadata or {})["session"])
        child = Chat(model, app=chat.app, session=session)
        for message in await child.messages():
            print(f"  {message.role}: {message.text}")
            for child_part in message.parts:
                if isinstance(child_part, ToolPart):
                    print(f"    {child_part.arguments}: {child_part.state}")
        spent = (await turn.state()).spent
        print(f"{result.text} All in all {spent.calls} calls in {spent.steps} steps.")
    for request in model.requests[:2]:
        print("offered:", ", ".join(spec.name for spec in request.tools))


if __name__ == "__main__":
    asyncio.run(main())
