"""Servers of pictures, voices and transcripts that break every rule, over a real socket: a file comes whole or not at all.

Run as a script it is the client whose memory is measured.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

sys.path.insert(0, str(Path(__file__).parents[2]))  # it is a script, too

from tests.models.test_hostile import MIB, SOON, Answer, head, peak, serving

from everturn import Chat, TurnError, TurnSettings
from everturn.core.chunks import Chunk, FileChunk, FinishChunk, TextChunk
from everturn.core.parts import FilePart, TextPart
from everturn.core.ports import Model
from everturn.core.requests import ModelRequest, RequestMessage
from everturn.errors import ModelError
from everturn.models.media import FILE_LIMIT
from everturn.models.registry import get_model
from everturn.models.retry import RetryPolicy
from everturn.testing.provider.media.png import draw_png
from everturn.testing.provider.media.sound import mp3, wav

KINDS = ("image-gen", "image-edit", "audio-tts", "audio-stt")
PICTURES = ("image-gen", "image-edit")
PNG, WAV, MP3 = draw_png(b"turtle"), wav("turtle"), mp3("turtle")
JSON = head(content_type="application/json")
SOUND = head(content_type="audio/wav")
every_kind = pytest.mark.parametrize("kind", KINDS)
of_pictures = pytest.mark.parametrize("kind", PICTURES)


def pictures(*files: bytes | str, **more: Any) -> bytes:
    """An answer with these pictures, in base64 or as they are written."""
    data = [{"b64_json": file if isinstance(file, str) else base64.b64encode(file).decode()} for file in files]
    return json.dumps({"created": 1, "data": data, **more}).encode()


WHOLE = {
    "image-gen": JSON + pictures(PNG),
    "image-edit": JSON + pictures(PNG),
    "audio-tts": SOUND + WAV,
    "audio-stt": JSON + b'{"text":"hi"}',
}


def model_at(kind: str, url: str) -> Model:
    return get_model(f"compatible:m@{kind}", base_url=url, key="sk-secret", retry=RetryPolicy(attempts=1))


def asking(kind: str) -> ModelRequest:
    files = {"picture": PNG} if kind == "image-edit" else {"sound": WAV} if kind == "audio-stt" else {}
    types = {"picture": "image/png", "sound": "audio/wav"}
    parts = [FilePart(blob, types[blob], len(data)) for blob, data in files.items()]
    return ModelRequest("m", "", [RequestMessage("user", (TextPart("A turtle."), *parts))], [], {}, dict(files))


class Heard(Struct):
    chunks: list[Chunk]
    error: ModelError | None = None

    @property
    def outcome(self) -> str:
        """The kind of the error, or what came: files by their type, words as they are."""
        if self.error is not None:
            return f"{self.error.kind}!"
        files = [chunk.media_type for chunk in self.chunks if isinstance(chunk, FileChunk)]
        return " ".join(files + [chunk.text for chunk in self.chunks if isinstance(chunk, TextChunk)])


async def hear(kind: str, answer: Answer | bytes) -> Heard:
    """Ask the model itself."""
    result = Heard([])
    async with serving(answer) as server, asyncio.timeout(SOON):
        try:
            async for batch in model_at(kind, server.url).stream(asking(kind)):
                result.chunks += batch
        except ModelError as error:
            result.error = error
    assert "sk-secret" not in str(result.error)
    str(result.error).encode()  # whatever a server said can be stored
    if result.error is not None:
        assert result.chunks == []  # nothing that is only half there is shown
    else:
        assert isinstance(result.chunks[-1], FinishChunk)
    return result


async def talk(kind: str, answer: Answer | bytes, settings: TurnSettings | None = None) -> str:
    """Ask through the front door: the kind of the error, or what the answer holds."""
    async with serving(answer) as server, asyncio.timeout(SOON):
        async with Chat(model_at(kind, server.url), settings=settings) as chat:
            parts: list[TextPart | FilePart] = [TextPart("A turtle.")]
            if kind == "image-edit":
                parts.append(await chat.attach(PNG, "image/png", "turtle.png"))
            elif kind == "audio-stt":
                parts.append(await chat.attach(WAV, "audio/wav", "turtle.wav"))
            try:
                result = await (await chat.send(parts))
            except TurnError as error:
                return f"{error.kind}!"
            assert result.message is not None
            message = result.message
            files = [part.media_type for part in message.parts if isinstance(part, FilePart)]
            return " ".join(files + [part.text for part in message.parts if isinstance(part, TextPart)])


async def check(kind: str, answer: Answer | bytes, outcome: str) -> None:
    """The model and the turn come to the same."""
    result = await hear(kind, answer)
    assert result.outcome == outcome, result.error
    assert await talk(kind, answer) == outcome


@every_kind
async def test_a_whole_answer_is_taken(kind: str) -> None:
    outcome = {"audio-tts": "audio/wav", "audio-stt": "hi"}.get(kind, "image/png")
    await check(kind, WHOLE[kind], outcome)


# Too much -------------------------------------------------------------------------------------------------------------


@every_kind
async def test_an_answer_without_end_is_given_up(kind: str) -> None:
    endless = Answer(WHOLE[kind][:-3], forever=b"A" * 65536)
    async with serving(endless) as server, asyncio.timeout(SOON):
        with pytest.raises(ModelError, match=f"a stream of more than {FILE_LIMIT:,} bytes") as caught:
            assert not [chunk async for batch in model_at(kind, server.url).stream(asking(kind)) for chunk in batch]
    assert caught.value.kind == "limit"
    assert server.sent < FILE_LIMIT + 16 * MIB  # the socket was closed, and the buffers between us are not ours


@every_kind
async def test_a_bomb_is_not_unpacked_whole(kind: str) -> None:
    bomb = gzip.compress(b'{"data":[{"b64_json":"' + b"A" * (2 * FILE_LIMIT))
    result = await hear(kind, head(content_type="application/json", content_encoding="gzip") + bomb)

    assert result.outcome == "limit!"


@every_kind
async def test_a_refusal_that_never_ends_is_given_up(kind: str) -> None:
    await check(kind, Answer(head("500 Oh no") + b"{", forever=b"x" * 4096), "server!")


@every_kind
async def test_a_server_that_falls_silent_is_given_up_by_the_turn(kind: str) -> None:
    silent = Answer(head(content_type="application/json", content_length=10**6) + b'{"data":[', after="stay")
    assert await talk(kind, silent, TurnSettings(first_chunk_timeout=0.3, idle_timeout=0.3)) == "stalled!"


@of_pictures
async def test_ten_thousand_pictures_are_ten_thousand_files(kind: str) -> None:
    result = await hear(kind, JSON + pictures(*[PNG] * 10_000))

    assert result.error is None
    assert sum(isinstance(chunk, FileChunk) for chunk in result.chunks) == 10_000


# Not what was asked for -----------------------------------------------------------------------------------------------

HTML = b"<!DOCTYPE html>\n<html><body>" + b"<p>Welcome to nginx</p>\n" * 1000 + b"</body></html>"


@every_kind
async def test_a_page_is_no_answer(kind: str) -> None:
    await check(kind, head(content_type="text/html") + HTML, "response!")
    await check(kind, head("502 Bad Gateway", content_type="text/html") + HTML, "server!")
    assert len(str((await hear(kind, head(content_type="text/html") + HTML)).error)) < 700


@every_kind
async def test_an_error_that_comes_with_200_is_no_answer(kind: str) -> None:
    body = b'{"error":{"type":"rate_limit_error","code":"rate_limit_exceeded","message":"slow down"}}'
    assert (await hear(kind, JSON + body)).error is not None


@every_kind
@pytest.mark.parametrize("body", [b"", b"\n", b"{}", b"[]", b"null", b"7", b'"x"', b"[" * 10_000, b"\xff\xfe", b"{"])
async def test_nothing_and_nonsense_are_no_answer(kind: str, body: bytes) -> None:
    await check(kind, JSON + body, "response!")


BROKEN_DATA: dict[str, bytes] = {
    "no list": b'{"data":{}}',
    "an empty list": b'{"data":[]}',
    "nothing in it": b'{"data":[{}]}',
    "null in it": b'{"data":[null]}',
    "a number for a picture": b'{"data":[{"b64_json":7}]}',
    "no base64": pictures("*** no base64 ***"),
    "half a character": b'{"data":[{"b64_json":"\\ud800"}]}',
    "truncated base64": pictures(base64.b64encode(PNG).decode()[:-3]),
    "half a picture": pictures(PNG[: len(PNG) // 2]),
    "all of a picture but its end": pictures(PNG[:-13]),
    "half a second picture": pictures(PNG, PNG[:-13]),
    "words": pictures(b"I cannot draw that."),
    "a page": pictures(HTML),
    "a sound": pictures(WAV),
    "a drawing that runs code": pictures(b"<svg onload='alert(1)'/>"),
    "where the picture is": b'{"data":[{"url":"http://127.0.0.1:9/a.png"}]}',
    "where a file of ours is": b'{"data":[{"url":"file:///etc/passwd"}]}',
    "a data URL of a page": b'{"data":[{"url":"data:text/html;base64,PGI+"}]}',
    "a data URL without data": b'{"data":[{"url":"data:image/png;base64,"}]}',
    "a picture that ends early": pictures(PNG)[:-30],
}


@of_pictures
@pytest.mark.parametrize("defect", BROKEN_DATA)
async def test_no_picture_is(kind: str, defect: str) -> None:
    await check(kind, JSON + BROKEN_DATA[defect], "response!")


@of_pictures
async def test_where_a_picture_is_said_to_be_nobody_looks(kind: str) -> None:
    async with serving(head(content_type="image/png") + PNG) as other:
        result = await hear(kind, JSON + json.dumps({"data": [{"url": f"{other.url}/a.png"}]}).encode())

    assert 'send params={"response_format": "b64_json"}' in str(result.error)
    assert not other.heads


@of_pictures
@pytest.mark.parametrize(
    "content_type", ["text/html", "text/event-stream", "image/png", "application/octet-stream", ""]
)
async def test_a_picture_is_what_its_bytes_are_whatever_the_head_says(kind: str, content_type: str) -> None:
    await check(
        kind, head(content_type=content_type) + pictures(PNG, b"\xff\xd8\xff\xe0\xff\xd9"), "image/png image/jpeg"
    )


@pytest.mark.parametrize(
    ("content_type", "data", "outcome"),
    [
        ("audio/wav", WAV, "audio/wav"),
        ("audio/mpeg", WAV, "audio/wav"),
        ("text/html", WAV, "audio/wav"),
        ("", MP3, "audio/mpeg"),
        ("application/json", MP3, "audio/mpeg"),
        ("audio/wav", WAV[:-1], "response!"),
        ("audio/wav", WAV[: len(WAV) // 2], "response!"),
        ("audio/wav", b"", "response!"),
        ("audio/pcm", b"\0\1" * 99, "audio/pcm"),
        ("application/octet-stream", b"\0\1" * 99, "response!"),
        ("audio/wav", PNG, "response!"),
        ("audio/wav", HTML, "response!"),
        ("audio/mpeg", b'{"error":{"message":"no such voice"}}', "request!"),
    ],
)
async def test_a_sound_is_what_its_bytes_are(content_type: str, data: bytes, outcome: str) -> None:
    await check("audio-tts", head(content_type=content_type) + data, outcome)


@pytest.mark.parametrize(
    ("content_type", "data", "outcome"),
    [
        ("application/json", b'{"text":"a\xffb"}', "a\ufffdb"),
        ("application/json", b'{"text":"a\\ud800b"}', "a?b"),
        ("application/json", b'{"text":["hi"]}', "response!"),
        ("application/json", b'{"text":null}', "response!"),
        ("text/html", b'{"text":"hi"}', "hi"),
        ("text/plain", b" a\xffb\0 ", "a\ufffdb\0"),
        ("text/plain; charset=utf-16", b"hi", "hi"),
    ],
)
async def test_what_was_heard_may_be_anything(content_type: str, data: bytes, outcome: str) -> None:
    await check("audio-stt", head(content_type=content_type) + data, outcome)


@pytest.mark.parametrize("kind", ["image-gen", "image-edit", "audio-stt"])  # sounds are not counted
@pytest.mark.parametrize(
    "usage", [b"7", b"[]", b'{"input_tokens":NaN}', b'{"input_tokens":%b}' % (b"9" * 400), b'{"input_tokens":-1}']
)
async def test_a_count_of_tokens_may_be_anything(kind: str, usage: bytes) -> None:
    start = b'{"usage":%b,' % usage
    result = await hear(kind, WHOLE[kind].replace(b"{", start, 1))

    assert result.error is None or result.error.kind == "response"
    assert await talk(kind, WHOLE[kind].replace(b"{", start, 1)) == result.outcome


# HTTP -----------------------------------------------------------------------------------------------------------------


@every_kind
async def test_a_connection_that_breaks_in_the_middle_is_no_answer(kind: str) -> None:
    top, _, body = WHOLE[kind].partition(b"\r\n\r\n")
    for more in (b"content-length: %d" % (len(body) + 9), b"transfer-encoding: chunked"):
        start = b"%x\r\n" % (len(body) + 9) if b"chunked" in more else b""
        result = await hear(kind, top + b"\r\n" + more + b"\r\n\r\n" + start + body)

        assert result.error is not None
        # It was made, and is paid for: nobody asks again of their own accord.
        assert (result.error.kind, result.error.retryable) == ("network", False)


@every_kind
@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"SSH-2.0-OpenSSH_9.6\r\n", id="another protocol"),
        pytest.param(head(content_encoding="gzip") + PNG, id="gzip that is none"),
        pytest.param(head(content_length=-1) + PNG, id="a negative length"),
    ],
)
async def test_broken_http(kind: str, answer: bytes) -> None:
    await check(kind, answer, "network!")


@every_kind
async def test_a_redirect_is_not_followed(kind: str) -> None:
    async with serving(WHOLE[kind]) as other:
        result = await hear(kind, head("302 Found", location=f"{other.url}/v1", content_length=0))

        assert result.outcome == "request!"
        assert "change base_url" in str(result.error)
        assert not other.heads  # nobody was asked there, so no key went there


# Memory ---------------------------------------------------------------------------------------------------------------


class Measured(Struct):
    """Of one client in a process of its own, beyond what it needed for ordinary answers, in bytes."""

    rss: int
    outcome: str


# Made when they are needed, for they are in the way of whoever measures.
HOSTILE: dict[str, tuple[str, Callable[[], Answer], str, int]] = {
    "an endless picture": (
        "image-gen",
        lambda: Answer(JSON + b'{"data":[{"b64_json":"', forever=b"A" * 65536, count=4096),
        "limit!",
        2 * FILE_LIMIT,
    ),
    "an endless sound": (
        "audio-tts",
        lambda: Answer(SOUND, forever=b"A" * 65536, count=4096),
        "limit!",
        2 * FILE_LIMIT,
    ),
    "a bomb": (
        "image-gen",
        lambda: Answer(head(content_encoding="gzip") + gzip.compress(b'{"data":"' + b"A" * (256 * MIB))),
        "limit!",
        2 * FILE_LIMIT,
    ),
    "ten thousand pictures": ("image-gen", lambda: Answer(JSON + pictures(*[PNG] * 10_000)), "image/png", 32 * MIB),
    "deep nonsense": ("image-gen", lambda: Answer(JSON + b"[" * (32 * MIB)), "response!", 4 * 32 * MIB),
    "a picture as large as may be": (
        "image-gen",
        lambda: Answer(JSON + pictures(PNG[:-12] + bytes(40 * MIB) + PNG[-12:])),
        "image/png",
        5 * FILE_LIMIT,  # as bytes twice, as text, and decoded
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
async def test_what_is_too_much_is_bounded(case: str) -> None:
    kind, answer, outcome, most = HOSTILE[case]
    warm = [Answer(WHOLE[kind])] * 5
    async with serving(*warm, answer()) as server:
        command = [sys.executable, __file__, kind, server.url, str(len(warm))]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        out, _ = await process.communicate()
    assert process.returncode == 0
    measured = Measured(**json.loads(out))

    assert measured.outcome == outcome
    assert measured.rss <= most


async def _ask(model: Model, kind: str) -> str:
    seen = ""
    try:
        async for batch in model.stream(asking(kind)):
            for chunk in batch:
                seen = chunk.media_type if isinstance(chunk, FileChunk) else seen
    except ModelError as error:
        return f"{error.kind}!"
    return seen


async def _main(kind: str, url: str, warm: int) -> Measured:
    model = model_at(kind, url)
    for _ in range(warm):
        await _ask(model, kind)
    before = peak()
    outcome = await _ask(model, kind)
    return Measured(peak() - before, outcome)


def main(arguments: Sequence[str]) -> None:
    kind, url, warm = arguments
    measured = asyncio.run(_main(kind, url, int(warm)))
    print(json.dumps({"rss": measured.rss, "outcome": measured.outcome}))


if __name__ == "__main__":
    main(sys.argv[1:])
