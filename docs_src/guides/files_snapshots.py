import asyncio
import tempfile
from pathlib import Path

from everturn import Chat, tool
from everturn.events import FilesPart
from everturn.plugins import FileSnapshots
from everturn.testing import ScriptedModel, call, calls, say

folder, snapshot_dir = tempfile.TemporaryDirectory(), tempfile.TemporaryDirectory()
notes = Path(folder.name, "notes.txt")
notes.write_text("call Ada\n", encoding="utf-8")


@tool(idempotent=True)
def tidy() -> str:
    """Tidy up; this could be any tool, for example a shell."""
    notes.unlink()
    Path(folder.name, "done.txt").write_text("tidy\n", encoding="utf-8")
    return "tidy"


model = ScriptedModel(calls(call("tidy")), say("All tidy."))


def file_names() -> list[str]:
    return sorted(path.name for path in Path(folder.name).iterdir())


def content() -> str:
    return notes.read_text(encoding="utf-8").strip()


async def main() -> None:
    snapshots = FileSnapshots(folder.name, store_dir=snapshot_dir.name)
    async with Chat(model, tools=[tidy], plugins=[snapshots]) as chat:
        result = await (await chat.send("Tidy up"))
        parts = result.messages[-1].parts
        (files,) = [part for part in parts if isinstance(part, FilesPart)]
        print([f"{change.kind} {change.path}" for change in files.changes])
        undone = await chat.revert(files)
        print(file_names(), content())
        await chat.unrevert(undone)
        print(file_names())
    folder.cleanup()
    snapshot_dir.cleanup()


if __name__ == "__main__":
    asyncio.run(main())
