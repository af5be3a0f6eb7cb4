import asyncio

from everturn import Agent, Rule, tool
from everturn.events import ToolPart
from everturn.testing import ScriptedModel, call, calls, say


@tool(approval="ask", subjects={"path": "path"})
async def write_file(path: str) -> str:
    """Write a file."""
    return f"wrote {path}"


rules = [
    Rule("write_file", "allow", {"path": "notes/**"}),
    Rule("write_file", "deny", {"path": "**/secret*"}),
]
PATHS = ["notes/a.md", "notes/secret.md", "plan.md"]
writes = calls(*(call("write_file", path=path) for path in PATHS))
model = ScriptedModel(writes, say("That is all."))
writer = Agent(model, tools=[write_file], rules=rules)


async def main() -> None:
    result = await writer.run("Write the three files")
    for gate in result.gates:
        print("asks:", gate.arguments)
        await gate.approve()
    result = await result.resume()
    for part in result.messages[-1].parts:
        if isinstance(part, ToolPart):
            print(f"{part.state}: {part.arguments}")


if __name__ == "__main__":
    asyncio.run(main())
