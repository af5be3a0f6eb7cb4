from collections.abc import AsyncIterator, Sequence

from everturn.models import Chunk, FinishChunk, ModelRequest, TextChunk
from everturn.testing.contracts import ModelContract


class Echo:
    name = "echo"

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        yield [TextChunk(request.messages[-1].text)]
        yield [FinishChunk("stop")]


class TestEcho(ModelContract):
    prompt = "Say hello."  # a prompt that it answers with text
    call_prompt = ""  # a prompt that it answers with a call; Echo has none

    def make(self) -> Echo:
        return Echo()
