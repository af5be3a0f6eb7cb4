import asyncio
import textwrap

from everturn import Agent, App, get_model
from everturn.errors import MissingInput
from everturn.models import Model
from everturn.testing.provider import Provider


# --8<-- [start:shown]
async def edit(model: Model) -> None:
    async with App(agents=[Agent(model, name="editor")]) as app:
        chat = app.chat()
        try:
            await chat.run("In the snow, please")
        except MissingInput as missing:
            print(textwrap.fill(str(missing), 80))
        print(len(await chat.messages()), "messages")


# --8<-- [end:shown]


async def main() -> None:
    async with Provider() as provider:
        await edit(get_model("picture@image-edit", base_url=f"{provider.url}/v1"))
        print(len(provider.seen), "requests")


if __name__ == "__main__":
    asyncio.run(main())
