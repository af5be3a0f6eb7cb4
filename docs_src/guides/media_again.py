import asyncio

from everturn import Agent, App, FilePart, get_model
from everturn.models import Model
from everturn.testing.provider import Image, Provider


# --8<-- [start:shown]
async def draw_twice(model: Model) -> None:
    async with App(agents=[Agent(model, name="painter")]) as app:
        chat = app.chat()
        result = await chat.run("A red fox", params={"size": "1024x1536"})
        print(result.usage.output, "tokens")
        first = result.messages[-1]
        await (await chat.rerun(first))
        tree = await chat.tree()
        for version in tree.versions(first.id):
            files = [p for p in tree.get(version).parts if isinstance(p, FilePart)]
            print(tree.get(version).by, [file.name for file in files])


# --8<-- [end:shown]


async def main() -> None:
    async with Provider() as provider:
        provider.script("gpt-image-1", [[Image()]])
        model = get_model("openai:gpt-image-1", base_url=f"{provider.url}/v1")
        await draw_twice(model)


if __name__ == "__main__":
    asyncio.run(main())
