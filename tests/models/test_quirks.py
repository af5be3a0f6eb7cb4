"""49 streams as servers really send them. Each says what a right client sees; where they come from: docs/guides/custom-models.md."""

import base64
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from everturn.core.canonical_json import parse_object
from everturn.core.chunks import CallChunk, Chunk, FinishChunk, ReasoningChunk, TextChunk, UsageChunk
from everturn.core.requests import ModelRequest
from everturn.errors import ModelError
from everturn.models.http_model import HttpModel
from everturn.models.vendors import VENDORS
from everturn.transport.replay import RecordedResponse, ReplayTransport

QUIRKS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "data/openai_chat_quirks.json").read_text("utf-8"))
PROFILE = replace(VENDORS["compatible"], base_url="http://127.0.0.1:9")


class Seen(msgspec.Struct):
    text: str = ""
    reasoning: str = ""
    calls: dict[int, list[str]] = {}
    finish: FinishChunk | None = None
    usage: list[int] | None = None
    error: ModelError | None = None

    def take(self, chunk: Chunk) -> None:
        match chunk:
            case TextChunk(text=text):
                self.text += text
            case ReasoningChunk(text=text):
                self.reasoning += text
            case CallChunk(slot=slot, name=name, arguments=arguments):
                call = self.calls.setdefault(slot, ["", ""])
                call[0] = call[0] or name
                call[1] += arguments
            case UsageChunk(usage=usage):
                self.usage = [usage.input, usage.output]
            case FinishChunk():
                self.finish = chunk
            case _:
                pass


async def read(pieces: list[bytes], is_cut: bool) -> Seen:
    seen = Seen()
    model = HttpModel("m", PROFILE, ReplayTransport([RecordedResponse(pieces, is_cut=is_cut)]))
    try:
        async for batch in model.stream(ModelRequest("m", "", [], [], {})):
            for chunk in batch:
                seen.take(chunk)
    except ModelError as error:
        seen.error = error
    return seen


def pieces_of(quirk: dict[str, Any]) -> list[bytes]:
    return [
        piece.encode() if isinstance(piece, str) else base64.b64decode(piece["base64"]) for piece in quirk["chunks"]
    ]


def check(seen: Seen, expect: dict[str, Any]) -> None:
    assert (seen.error is not None) == expect["is_error"], seen.error
    assert seen.text == ("I cannot" if expect["text"] == "*refusal" else expect["text"])
    assert seen.reasoning == expect["reasoning"]
    assert seen.usage == expect["usage"]
    assert [name for name, _ in seen.calls.values()] == [call["name"] for call in expect["calls"]]
    for (_, arguments), call in zip(seen.calls.values(), expect["calls"], strict=True):
        wanted = None if call["arguments"] == "*invalid" else call["arguments"]
        assert parse_object(arguments or "{}") == wanted
    if expect["is_error"]:
        assert seen.finish is None
        return
    assert seen.finish is not None
    if expect["text"] == "*refusal":  # the provider says "stop"; that it refused is told by the field
        assert seen.finish == FinishChunk("refusal", expect["finish"])
    else:
        assert seen.finish.reason == ("other" if expect["finish"] == "*other" else expect["finish"])


@pytest.mark.parametrize("quirk", QUIRKS, ids=[quirk["name"] for quirk in QUIRKS])
async def test_a_server_with_a_quirk_is_understood(quirk: dict[str, Any]) -> None:
    check(await read(pieces_of(quirk), quirk["abrupt_close"]), quirk["expect"])


@pytest.mark.parametrize("size", [1, 7, 100_000])
@pytest.mark.parametrize("quirk", QUIRKS, ids=[quirk["name"] for quirk in QUIRKS])
async def test_a_quirk_is_understood_however_its_bytes_are_split(quirk: dict[str, Any], size: int) -> None:
    data = b"".join(pieces_of(quirk))
    split = [data[at : at + size] for at in range(0, len(data), size)]
    check(await read(split, quirk["abrupt_close"]), quirk["expect"])


def test_there_are_as_many_as_were_recorded() -> None:
    assert len(QUIRKS) == 49
