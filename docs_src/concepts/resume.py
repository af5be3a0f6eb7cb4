import asyncio

from everturn import Chat
from everturn.events import TextDelta
from everturn.testing import ScriptedModel, say


async def main() -> None:
    model = ScriptedModel(say("Every character is seen exactly once."))
    async with Chat(model) as chat:
        turn = await chat.send("Say it")

        seen = ""
        stream = turn.events()
        async for shown in stream:
            if isinstance(shown, TextDelta):
                seen += shown.text
                if seen.endswith("is "):
                    break  # the connection is lost here
        await stream.aclose()
        cursor = str(stream.cursor)  # the only thing to store, here or in a browser
        print(f"{seen!r} at {cursor}")

        async for shown in turn.events(after=cursor):
            if isinstance(shown, TextDelta):
                seen += shown.text
        print(f"{seen!r}")


if __name__ == "__main__":
    asyncio.run(main())
