from collections.abc import AsyncIterator, Sequence

from everturn.core.chunks import Chunk, FinishChunk, TextChunk
from everturn.core.requests import ModelRequest
from everturn.testing.contracts import ModelContract


class Echo:
    name = "echo"

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        yield [TextChunk(request.messages[-1].text)]
        yield [FinishChunk("stop")]


class TestEcho(ModelContract):
    prompt = "Say hello."  # it answers this with some text
    call_prompt = ""  # and this with a call of `look`; Echo calls no tools

    def make(self) -> Echo:
        return Echo()
