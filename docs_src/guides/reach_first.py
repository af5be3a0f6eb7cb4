import asyncio
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import fill
from typing import Any

from everturn import Chat, ToolGroup, files, get_model
from everturn.events import FilesPart, GateOpened, ToolPart
from everturn.mcp import McpServers, ServerSpec
from everturn.plugins import FileSnapshots
from everturn.replay import Recording, normalize_recording, replay
from everturn.testing.provider import Call, Item, Provider, Say, Step
from everturn.tools import Tool, ToolSource, run_javascript

# --8<-- [start:task]
TASK = {
    "README.md": "Write total.md: March in euros, rates of 2026-03-31.\n",
    "march.csv": "for,paid,unit\ntrain,54,EUR\nhotel,216,USD\nlunch,24,CHF\n",
}
RATES = Path(__file__).with_name("reach_rates.py")


def lay_out(folder: Path) -> Path:
    folder.mkdir()
    for name, text in TASK.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder.resolve()


def tools(folder: Path) -> list[Tool | ToolGroup | ToolSource]:
    rates = ServerSpec("rates", command=sys.executable, args=(str(RATES),))
    servers = McpServers([rates], timeout=30)  # seconds for the first turn
    return [files(folder).enabled(), run_javascript(), servers]


# --8<-- [end:task]
# --8<-- [start:script]
def read(body: dict[str, Any]) -> list[str]:
    """All tool results in the request, as the model reads them."""
    return [item["output"] for item in body["input"] if "output" in item]


def code(body: dict[str, Any]) -> list[Item]:
    """The model has read the table and the rates; JavaScript computes the sum."""
    _, table, rates = read(body)
    rows = [line.split(",")[1:] for line in table.splitlines()[2:]]
    sum_up = "rows.reduce((sum, [paid, unit]) => sum + paid / rates[unit], 0)"
    known = f"const rates = {rates}\nconst rows = {json.dumps(rows)}\n"
    return [called("run_javascript", 4, code=f"{known}{sum_up}.toFixed(2)")]


def write(body: dict[str, Any]) -> list[Item]:
    """The model has read the result of the code, and writes it to a file."""
    total = json.loads(read(body)[-1].removeprefix("[value] "))
    content = f"March cost {total} euros.\n"
    return [called("write_file", 5, path="total.md", content=content)]


def called(name: str, number: int, **arguments: str) -> Call:
    return Call(name, json.dumps(arguments), id=f"call_{number}")


SCRIPT: list[Step] = [
    [
        Say("I look at what is there."),
        called("read_file", 1, path="README.md"),
        called("read_file", 2, path="march.csv"),
    ],
    [called("rates_rates", 3, day="2026-03-31")],
    code,
    write,
    [Say("total.md says what March cost.")],
]
# --8<-- [end:script]


# --8<-- [start:talk]
def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def solve(folder: Path, store_dir: Path) -> Recording:
    async with Provider() as provider:
        provider.script("demo", SCRIPT)
        model = get_model("openai:demo", base_url=f"{provider.url}/v1", key="k")
        keeper = FileSnapshots(folder, store_dir=store_dir)
        async with Chat(model, tools=tools(folder), plugins=[keeper]) as chat:
            turn = await chat.send("Do what README.md says.")
            async for event in turn:
                if isinstance(event, GateOpened):
                    gate = event.gate
                    print(f"May {gate.tool} run?\n{gate.preview or gate.arguments}")
                    await turn.answer(gate, allow="once")
            result = await turn
            assert result.message is not None
            parts = result.message.parts
            for part in parts:
                if isinstance(part, ToolPart) and part.output is not None:
                    print(f"{part.name}: {part.output.text!r}")
            print(result.text)

            [changed] = [part for part in parts if isinstance(part, FilesPart)]
            changes = [f"{change.kind} {change.path}" for change in changed.changes]
            print("changed:", changes)
            undone = await chat.revert(changed)
            print("reverted:", names(folder))
            await chat.unrevert(undone)
            print("taken back:", names(folder))
            assert provider.refusals == []  # OpenAI would accept it too
            return await Recording.from_log(chat.app.store, chat.session)


# --8<-- [end:talk]
# --8<-- [start:again]
KEPT = Path(__file__).with_name("reach_first.jsonl")
THERE = "/home/ada/expenses"  # the path of the folder in the recording
# The tools' identity includes the folder; the engine has a version.
IGNORE = ("identity", "sandbox")


async def again(folder: Path, store_dir: Path) -> list[str]:
    recording = Recording.read(KEPT).with_paths_replaced({THERE: str(folder)})
    plugins = [FileSnapshots(folder, store_dir=store_dir)]
    return await replay(recording, tools=tools(folder), plugins=plugins, ignore=IGNORE)


async def main() -> None:
    with TemporaryDirectory() as name:
        place = Path(name)
        project = lay_out(place / "expenses")
        happened = await solve(project, place / "snapshots")
        moved = happened.with_paths_replaced({str(project): THERE})
        recorded = normalize_recording(Recording.read(KEPT), IGNORE)
        print("as recorded:", normalize_recording(moved, IGNORE) == recorded)

        print("differences:", await again(lay_out(place / "b"), place / "b-snapshots"))

        folder = lay_out(place / "c")
        (folder / "march.csv").write_text("for,paid,unit\n", encoding="utf-8")
        for line in await again(folder, place / "c-snapshots"):
            print(fill(line, 80, initial_indent="- ", subsequent_indent="  "))


# --8<-- [end:again]
if __name__ == "__main__":
    asyncio.run(main())
