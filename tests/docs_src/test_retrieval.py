"""The guide on retrieval: its vector store finds what it should."""

import pytest
from docs_src.guides.retrieval_first import SHELF, embed

from everturn import Chat
from everturn.plugins.retrieval import Retrieval
from everturn.testing import ScriptedModel, say


async def test_documents_in_sqlite_are_found_by_their_vectors() -> None:
    pytest.importorskip("apsw")
    pytest.importorskip("sqlite_vec")
    from docs_src.guides.retrieval_sqlite_vec import VectorShelf

    shelf = VectorShelf(":memory:", embed, 64)
    shelf.add(SHELF)
    best, second = await shelf.retrieve("How long does shipping to an island take?", limit=2)
    assert best.source == "shipping.md"
    assert (best.score or 0) > (second.score or 0)
    model = ScriptedModel(say("Five days."))
    async with Chat(model, plugins=[Retrieval(shelf, limit=1)]) as chat:
        await (await chat.send("How long does shipping to an island take?"))
    assert SHELF["shipping.md"] in model.requests[0].messages[-1].text
