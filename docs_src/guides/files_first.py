import asyncio
import tempfile
from pathlib import Path

from everturn import Chat, files
from everturn.events import ToolPart, TurnSuspended
from everturn.testing import ScriptedModel, call, calls, say

model = ScriptedModel(
    calls(
        call("read_file", path="menu.txt"),
        call("read_file", path=".env"),
        call("read_file", path="../menu.txt"),
    ),
    calls(call("edit_file", path="menu.txt", old_text="soup", new_text="cold soup")),
    say("It is on the menu."),
)


def put(root: str) -> None:
    Path(root, "menu.txt").write_text("bread\nsoup\n", encoding="utf-8")


async def main() -> None:
    with tempfile.TemporaryDirectory() as root:
        put(root)
        async with Chat(model, tools=[files(root).enabled()]) as chat:
            turn = await chat.send("Make the soup cold")
            async for event in turn:
                if isinstance(event, TurnSuspended):
                    (gate,) = await chat.gates()
                    print(gate.preview)
                    await turn.answer(gate, allow="once")
            for part in (await turn).messages[-1].parts:
                if isinstance(part, ToolPart) and part.output is not None:
                    print(f"{part.name}: {part.output.text.split(',')[0]}")


if __name__ == "__main__":
    asyncio.run(main())
