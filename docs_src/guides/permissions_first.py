import asyncio
import textwrap

from everturn import Chat, GateOpened, tool
from everturn.core.parts import ToolPart
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


def show(what: str, text: str) -> None:
    print(textwrap.fill(f"{what}: {text}", 84, subsequent_indent="    "))


model = ScriptedModel(
    calls(*(call("write_file", path=path, text="…") for path in PATHS)),
    say("That is all."),
)


async def main() -> None:
    rules = read_rules(RULES, "everturn.toml")  # or rules="everturn.toml"
    async with Chat(model, tools=[write_file], rules=rules) as chat:
        turn = await chat.send("Write them")
        async for event in turn:
            if isinstance(event, GateOpened):
                show("asked", event.gate.why)
                await turn.answer(event.gate, deny="not now")
        for part in (await turn).messages[-1].parts:
            if isinstance(part, ToolPart) and part.output is not None:
                show(part.state, part.output.text)


if __name__ == "__main__":
    asyncio.run(main())
