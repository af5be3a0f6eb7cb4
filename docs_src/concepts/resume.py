import asyncio

from everturn import Chat, TextDelta
from everturn.core.deltas import Reader
from everturn.testing import ScriptedModel, say


async def main() -> None:
    model = ScriptedModel(say("Every character is seen exactly once."))
    async with Chat(model) as chat:
        turn = await chat.send("Say it")

        seen = ""
        reader = Reader(turn.id)
        async for shown in chat.runtime.follow(chat.session, reader):
            if isinstance(shown, TextDelta):
                seen += shown.text
                if seen.endswith("is "):
                    break  # the connection is lost here
        cursor = str(reader.cursor)  # all that has to be kept, here or in a browser
        print(f"{seen!r} at {cursor}")

        async for shown in turn.events(after=cursor):
            if isinstance(shown, TextDelta):
                seen += shown.text
        print(f"{seen!r}")


if __name__ == "__main__":
    asyncio.run(main())
