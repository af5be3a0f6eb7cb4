import asyncio
import textwrap

from everturn import Agent, App, tool
from everturn.events import ToolPart
from everturn.permissions.rules_file import read_rules
from everturn.testing import ScriptedModel, call, calls, say

RULES = """
[[permissions]]
tool = "write_file"
match = { path = "notes/**" }
action = "allow"

[[permissions]]
tool = "write_file"
match = { path = "**/secret*" }
action = "deny"

[[permissions]]
tool = "write_file"
match = { path = "notes/plan.md" }
action = "ask"
"""


@tool(approval="ask", subjects={"path": "path"})
async def write_file(path: str, text: str) -> str:
    """Write a file."""
    return f"wrote {path}"


PATHS = ["notes/a.md", "notes/../b.md", "notes/secret.md", "notes/plan.md"]
model = ScriptedModel(
    calls(*(call("write_file", path=path, text="…") for path in PATHS)),
    say("That is all."),
)
writer = Agent(model, name="writer", tools=[write_file])


def show(label: str, text: str) -> None:
    print(textwrap.fill(f"{label}: {text}", 84, subsequent_indent="    "))


async def main() -> None:
    rules = read_rules(RULES, "everturn.toml")  # or App(rules="everturn.toml")
    async with App(agents=[writer], rules=rules) as app:
        result = await app.run(writer, "Write the four files")
        for gate in result.gates:
            show("approval requested", gate.why)
            await gate.deny("not now")
        result = await result.resume()
        for part in result.messages[-1].parts:
            if isinstance(part, ToolPart) and part.output is not None:
                show(part.state, part.output.text)


if __name__ == "__main__":
    asyncio.run(main())
