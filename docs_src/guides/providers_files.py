import asyncio
from pathlib import Path
from tempfile import NamedTemporaryFile

from everturn import Agent, App, TextPart, get_model
from everturn.models import Model
from everturn.testing.provider import Provider, Say


# --8<-- [start:shown]
async def ask(model: Model | str, picture: Path) -> None:
    async with App(agents=[Agent(model, name="viewer")]) as app:
        chat = app.chat()
        image = await chat.attach(picture)
        notes = await chat.attach(b"Taken in May.", "text/plain", "notes.txt")
        video = await chat.attach(b"...", "video/mp4", "clip.mp4")
        result = await chat.run([TextPart("What is this?"), image, notes, video])
        print(result.output)


# --8<-- [end:shown]


async def main() -> None:
    async with Provider() as provider:
        provider.script("claude-opus-5", [[Say("A cat, in May.")]])
        model = get_model("anthropic:claude-opus-5", base_url=f"{provider.url}/v1")
        with NamedTemporaryFile(suffix=".png") as picture:
            picture.write(b"\x89PNG")
            picture.flush()
            await ask(model, Path(picture.name))
        print("The model received:")
        for block in provider.seen[0].body["messages"][0]["content"]:
            print(f"  {block['type']:<5}", repr(block.get("text", "…"))[:75])


if __name__ == "__main__":
    asyncio.run(main())
