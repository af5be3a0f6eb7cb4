import asyncio
from collections.abc import Sequence

from everturn import Agent, App, ToolGroup, tool
from everturn.models import ModelRequest
from everturn.testing import ScriptedModel, call, calls, say
from everturn.tools import Skill


@tool(read_only=True)
async def clock() -> str:
    """Get the current time."""
    return "noon"


@tool(read_only=True)
async def read_file(path: str) -> str:
    """Read a file."""
    return "…"


@tool(idempotent=True, approval="always")
async def write_file(path: str, text: str) -> str:
    """Write a file."""
    return "written"


def rules(names: Sequence[str]) -> str:
    if "write_file" in names:
        return "Paths are relative. Read a file before you write it."
    return "Paths are relative."


release = Skill(
    "release-notes",
    "how to write release notes",
    "One line for each change. Start with what users see.",
    when="a version is released",
)
files = ToolGroup("files", [read_file, write_file], rules, skills=[release])

model = ScriptedModel(
    say("Hello."),
    calls(call("load_skill", name="release-notes")),
    say("I know how."),
    say("I can only read."),
)


def show(request: ModelRequest) -> None:
    print("tools:", ", ".join(spec.name for spec in request.tools))
    start = request.system.find("<tool-group")
    if start >= 0:
        print(request.system[start:].partition("</tool-group>")[0] + "</tool-group>")


async def main() -> None:
    agent = Agent(model, name="writer", tools=[clock, files.on_demand()])
    async with App(agents=[agent]) as app:
        chat = app.chat(agent=agent)
        await chat.run("Hello")
        show(model.requests[-1])
        await chat.run("Write the notes", tools=["clock", "@files"])
        show(model.requests[-1])
        await chat.run("Just read", tools=["@files/read_*"])
        show(model.requests[-1])


if __name__ == "__main__":
    asyncio.run(main())
