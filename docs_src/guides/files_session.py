import asyncio

from everturn import Chat, Message
from everturn.events import FilesPart
from everturn.models import RequestResult
from everturn.testing import ScriptedModel, call, calls, say
from everturn.tools import virtual_files

model = ScriptedModel(
    calls(call("write_file", path="plan.md", content="1. walk\n2. swim\n")),
    calls(call("edit_file", path="plan.md", old_text="swim", new_text="rest")),
    say("There is a plan."),
    calls(call("read_file", path="plan.md")),
    say("I have read it."),
)


def changed(messages: list[Message]) -> list[FilesPart]:
    """Print the changed files of each step."""
    parts = [part for message in messages for part in message.parts]
    return [part for part in parts if isinstance(part, FilesPart)]


async def main() -> None:
    async with Chat(model, tools=[virtual_files().enabled()]) as chat:
        await (await chat.send("Make a plan"))
        written, edited = changed(await chat.messages())
        for part in (written, edited):
            for change in part.changes:
                counts = f"+{change.added} -{change.removed}"
                print(f"step {part.step}: {change.kind} {change.path} {counts}")

        undone = await chat.revert(edited)
        print("reverted:", undone.after == written.after)
        await (await chat.send("What is the plan?"))
        (read,) = model.requests[-1].messages[-1].parts
        assert isinstance(read, RequestResult)
        print(read.text)

        again = await chat.unrevert(undone)
        print("as it was:", again.after == edited.after)


if __name__ == "__main__":
    asyncio.run(main())
