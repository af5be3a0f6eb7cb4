import asyncio

from everturn import Agent, App, FilePart, RunResult, get_model
from everturn.testing.provider import Image, Provider, Say, Speech, Transcription


# --8<-- [start:shown]
def files_of(result: RunResult) -> list[FilePart]:
    parts = [part for message in result.messages for part in message.parts]
    return [part for part in parts if isinstance(part, FilePart)]


async def make(url: str) -> None:
    image_gen = get_model("draw-1@image-gen", base_url=url)
    image_edit = get_model("draw-1@image-edit", base_url=url)
    tts = get_model("voice-1@audio-tts", base_url=url)
    stt = get_model("ear-1@audio-stt", base_url=url)
    agent = Agent(get_model("talk-1", base_url=url), name="studio")
    async with App(agents=[agent]) as app:
        chat = app.chat(agent=agent)
        image = await chat.run("A red fox", model=image_gen)
        edited = await chat.run("In the snow", model=image_edit)  # edits the fox
        speech = await chat.run("A fox in the snow.", model=tts)
        for file in (*files_of(image), *files_of(edited), *files_of(speech)):
            data = await chat.read(file)
            print(file.name, file.media_type, file.size == len(data))
        transcript = await chat.run("About foxes", model=stt)  # of the speech
        print(transcript.text)
        print((await chat.run("What did I make?")).text)


# --8<-- [end:shown]


async def main() -> None:
    async with Provider() as provider:
        provider.script("draw-1", [[Image()]])
        provider.script("voice-1", [[Speech()]])
        provider.script("ear-1", [[Transcription("A fox in the snow.")]])
        provider.script("talk-1", [[Say("A picture, another one, and a voice.")]])
        await make(f"{provider.url}/v1")
        print("Requests:")
        for seen in provider.seen:
            print(" ", seen.format, seen.model)
        print("Messages of the last request:")
        for message in provider.seen[-1].body["messages"]:
            content: str | list[dict[str, str]] = message["content"]
            if not isinstance(content, str):
                parts = [part.get("text", part["type"]) for part in content]
                content = " + ".join(parts)
            print(f"  {message['role']}: {content}")


if __name__ == "__main__":
    asyncio.run(main())
