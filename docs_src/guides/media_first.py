import asyncio

from everturn import Chat, FilePart, TurnResult, get_model
from everturn.testing.provider import Image, Provider, Say, Speech, Transcription


# --8<-- [start:shown]
def files_of(result: TurnResult) -> list[FilePart]:
    parts = [part for message in result.messages for part in message.parts]
    return [part for part in parts if isinstance(part, FilePart)]


async def make(url: str) -> None:
    draws = get_model("draw-1@image-gen", base_url=url)
    edits = get_model("draw-1@image-edit", base_url=url)
    speaks = get_model("voice-1@audio-tts", base_url=url)
    hears = get_model("ear-1@audio-stt", base_url=url)
    async with Chat(get_model("talk-1", base_url=url)) as chat:
        drawn = await (await chat.send("A red fox", model=draws))
        edited = await (await chat.send("In the snow", model=edits))  # the fox
        spoken = await (await chat.send("A fox in the snow.", model=speaks))
        for file in (*files_of(drawn), *files_of(edited), *files_of(spoken)):
            data = await chat.read(file)
            print(file.name, file.media_type, file.size == len(data))
        heard = await (await chat.send("About foxes", model=hears))  # the voice
        print(heard.text)
        print((await (await chat.send("What did I make?"))).text)


# --8<-- [end:shown]


async def main() -> None:
    async with Provider() as provider:
        provider.script("draw-1", [[Image()]])
        provider.script("voice-1", [[Speech()]])
        provider.script("ear-1", [[Transcription("A fox in the snow.")]])
        provider.script("talk-1", [[Say("A picture, another one, and a voice.")]])
        await make(f"{provider.url}/v1")
        print("The server was asked for:")
        for seen in provider.seen:
            print(" ", seen.format, seen.model)
        print("The last one was shown:")
        for message in provider.seen[-1].body["messages"][1:]:
            said: str | list[dict[str, str]] = message["content"]
            if not isinstance(said, str):
                said = " + ".join(part.get("text", part["type"]) for part in said)
            print(f"  {message['role']}: {said}")


if __name__ == "__main__":
    asyncio.run(main())
