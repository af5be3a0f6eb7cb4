import asyncio
import zlib
from collections.abc import Sequence
from math import sqrt
from textwrap import fill

from everturn import Chat
from everturn.models import RequestResult
from everturn.plugins import Document, Retrieval, Retriever, retriever_tool
from everturn.testing import ScriptedModel, call, calls, say

SHELF = {
    "returns.md": "A parcel can be returned within 30 days.",
    "shipping.md": "Shipping takes three days, and five to an island.",
    "payment.md": "You can pay by card or by invoice.",
}


def embed(text: str) -> list[float]:
    """A toy embedding that counts words; use an embedding model instead."""
    vector = [0.0] * 64
    for word in text.lower().replace(".", "").replace("?", "").split():
        vector[zlib.crc32(word.encode()) % 64] += 1.0
    size = sqrt(sum(x * x for x in vector)) or 1.0
    return [x / size for x in vector]


class Shelf:
    """A retriever: anything with this method."""

    def __init__(self, texts: dict[str, str]) -> None:
        self._rows = [(name, text, embed(text)) for name, text in texts.items()]

    async def retrieve(self, query: str, *, limit: int) -> Sequence[Document]:
        wanted = embed(query)
        found: list[Document] = []
        for name, text, vector in self._rows:
            found.append(Document(text, name, sum(map(float.__mul__, wanted, vector))))
        return sorted(found, key=lambda document: -(document.score or 0))[:limit]


async def main() -> None:
    shelf: Retriever = Shelf(SHELF)
    print("before the first request:")
    model = ScriptedModel(say("Three days, or five."))
    async with Chat(model, plugins=[Retrieval(shelf, limit=1)]) as chat:
        await (await chat.send("How long does shipping to an island take?"))
        print(fill(model.requests[0].messages[-1].text, 80))

    print("as a tool:")
    search = calls(call("search_documents", query="pay by card"))
    model = ScriptedModel(search, say("By card or invoice."))
    async with Chat(model, tools=[retriever_tool(shelf, limit=1)]) as chat:
        await (await chat.send("How can I pay?"))
        for part in model.requests[1].messages[-1].parts:
            if isinstance(part, RequestResult):
                print(fill(part.text, 80))


if __name__ == "__main__":
    asyncio.run(main())
