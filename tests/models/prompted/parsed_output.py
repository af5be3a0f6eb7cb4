"""Text in pieces → what is heard in it: words, thoughts, calls. What the tests of the parsers look at."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence

from msgspec import Struct
from tests.models.prompted.tool_format_writer import call, strictly

from everturn.core.canonical_json import JsonObject, parse_object
from everturn.core.chunks import CallChunk, Chunk, FinishChunk, ReasoningChunk, TextChunk
from everturn.core.requests import ModelRequest, ToolSpec
from everturn.models.prompted import TOOL_FORMATS, DecodingConstraint, OfferedTools, PromptedModel
from everturn.testing.provider import Call

WAYS = ("json", "xml", "blocks")
TOOL = ToolSpec("look", "Look at a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
LOOK = call("look", path="a.txt")
LOOKED = ("look", {"path": "a.txt"})
CODE = 'if x: {\n  print("}]", \'"\')  # \\" \\\\ {\n}\n```\nEND\n=== end ===\n</tool_code>\n'
CODING = call("write", text=CODE, path="f.c", nested={"a": [1, {"b": '"]}'}], "c": "\\"})


class Heard(Struct):
    """What came out, joined."""

    text: str = ""
    reasoning: str = ""
    calls: list[tuple[str, str]] = []
    ids: list[str] = []
    finish: str = ""
    order: str = ""  # which kinds came after which: t, r, c

    @property
    def runnable(self) -> list[tuple[str, JsonObject]]:
        """The calls that would run, if there are such tools: no arguments at all are none, broken ones stop a call."""
        read = [(name, parse_object(text) if text.strip() else {}) for name, text in self.calls]
        return [(name, arguments) for name, arguments in read if arguments is not None]


def join_chunks(chunks: Iterable[Chunk]) -> Heard:
    """Join chunks."""
    found = Heard()
    texts: list[str] = []
    slots: dict[int, list[str]] = {}
    for chunk in chunks:
        match chunk:
            case TextChunk(text=text):
                assert text, "an empty chunk says nothing"
                texts.append(text)
                kind = "t"
            case ReasoningChunk(text=text):
                found.reasoning += text
                kind = "r"
            case CallChunk():
                kind = "c"
                if chunk.slot not in slots:
                    assert chunk.name, "the first chunk of a call brings its name"
                    slots[chunk.slot] = [chunk.name]
                    found.ids.append(chunk.id)
                slots[chunk.slot].append(chunk.arguments)
            case FinishChunk(reason=reason):
                found.finish, kind = reason, ""
            case _:
                kind = ""
        found.order += kind if not found.order.endswith(kind or "?") else ""
    found.text = "".join(texts)
    found.calls = [(name, "".join(arguments)) for name, *arguments in slots.values()]
    return found


def hear(way: str, pieces: Iterable[str], is_bound: bool = False) -> Heard:
    """Read an answer that comes in these pieces."""
    out: list[Chunk] = []
    answer = TOOL_FORMATS[way].answer(OfferedTools([TOOL], is_constrained=is_bound))
    for piece in pieces:
        answer.feed(piece, out)
    answer.end(out)
    found = join_chunks(out)
    assert answer.calls == len(found.calls)
    return found


class Recited:
    """A model that says these batches, whatever it is asked, and remembers that."""

    name = "recited"

    def __init__(self, *batches: Sequence[Chunk]) -> None:
        self._batches = batches
        self.asked: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Say them."""
        self.asked.append(request)
        for batch in self._batches:
            yield batch


def ask(model: PromptedModel, request: ModelRequest | None = None) -> list[Sequence[Chunk]]:
    """All batches a model answers with."""

    async def collect() -> list[Sequence[Chunk]]:
        model_request = request or ModelRequest("m", "", [], [TOOL], {})
        return [batch async for batch in model.stream(model_request)]

    return asyncio.run(collect())


def answer(
    way: str, pieces: Iterable[str], reason: str = "stop", decoding_constraint: DecodingConstraint = ""
) -> Heard:
    """The whole way: a model says this in pieces, and is read as one that has been told of tools."""
    batches: list[list[Chunk]] = [[TextChunk(piece)] for piece in pieces]
    model = PromptedModel(Recited(*batches, [FinishChunk(reason)]), way, decoding_constraint)  # pyright: ignore[reportArgumentType]
    return join_chunks(chunk for batch in ask(model) for chunk in batch)


def prompted_request(way: str, request: ModelRequest, decoding_constraint: DecodingConstraint = "") -> ModelRequest:
    """The request that the model behind it gets."""
    model = Recited([TextChunk("Yes."), FinishChunk("stop")])
    ask(PromptedModel(model, way, decoding_constraint), request)
    return model.asked[0]


def pieces_of(text: str, size: int) -> list[str]:
    """A text in pieces of one size."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def calling(way: str, *calls: Call) -> str:
    """Calls as the tool_format writes them."""
    return strictly(way, calls or [LOOK])
