import asyncio

from everturn import Agent
from everturn.core.parts import ToolPart
from everturn.testing import ScriptedModel, call, calls, say
from everturn.tools import todos

STEPS = [
    {"content": "Find the failing test", "status": "completed"},
    {"content": "Fix it", "status": "in_progress"},
    {"content": "Run all tests", "status": "pending"},
]
model = ScriptedModel(calls(call("write_todos", todos=STEPS)), say("I found it."))
agent = Agent(model, tools=[todos()])


async def main() -> None:
    result = await agent.run("The build is red. Repair it.")
    assert result.message is not None
    for part in result.message.parts:
        if isinstance(part, ToolPart) and part.output is not None:
            print(part.name, part.output.title)
    print(result.output)


if __name__ == "__main__":
    asyncio.run(main())
