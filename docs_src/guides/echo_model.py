import asyncio
from collections.abc import AsyncIterator, Sequence

from everturn import Chat, ModelError
from everturn.models import Chunk, FinishChunk, ModelRequest, TextChunk


class Echo:
    """Repeats the last message, a few characters at a time."""

    name = "echo"

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        text = request.messages[-1].text
        if len(text) > 1000:
            raise ModelError("that is more than I can repeat", kind="too_long")
        for at in range(0, len(text), 8):
            yield [TextChunk(text[at : at + 8])]  # a batch: the chunks of one read
        yield [FinishChunk("stop")]  # without it, the stream counts as truncated


async def main() -> None:
    async with Chat(Echo()) as chat:
        print((await (await chat.send("Is anybody there?"))).text)


if __name__ == "__main__":
    asyncio.run(main())
