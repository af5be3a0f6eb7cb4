"""Pictures and sound: what the provider makes, how it can break, what it refuses and the nearest thing that it takes."""

import asyncio
import base64
import hashlib
import io
import struct
import wave
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest
from tests.testing.test_provider_http import PATHS, Reply, chat, connect, read_reply, send, wire

from everturn.testing.provider import (
    Cut,
    CutAt,
    Hang,
    Image,
    Pause,
    Provider,
    Raw,
    Say,
    ScriptedUsage,
    Speech,
    Status,
    Step,
    Transcription,
)
from everturn.testing.provider.media.png import draw_png
from everturn.testing.provider.media.sound import mp3, wav

JSON = {"Content-Type": "application/json"}
PNG, WAV = draw_png(b"a"), wav("hello")
JPEG, WEBP = b"\xff\xd8\xff\xe0 and so on", b"RIFF\x10\0\0\0WEBPVP8 "


class File(NamedTuple):
    data: bytes
    filename: str | None = "a.png"
    content_type: str = "image/png"


class Ask(NamedTuple):
    path: str
    body: bytes | Mapping[str, Any]
    headers: Mapping[str, str] = JSON


def form(path: str, fields: Mapping[str, Any], **headers: str) -> Ask:
    """A request as browsers write it; a field that is a list is sent once for each."""
    lines: list[bytes] = []
    for name, values in fields.items():
        for value in values if isinstance(values, list) else [values]:
            file = value if isinstance(value, File) else File(str(value).encode(), None, "")
            named = f'; filename="{file.filename}"' if file.filename is not None else ""
            typed = f"\r\nContent-Type: {file.content_type}" if file.content_type else ""
            lines.append(f'--xyz\r\nContent-Disposition: form-data; name="{name}"{named}{typed}\r\n\r\n'.encode())
            lines.append(file.data + b"\r\n")
    kind = headers.get("kind", 'multipart/form-data; boundary="xyz"')
    return Ask(path, b"".join(lines) + b"--xyz--\r\n", {"Content-Type": kind})


def image(**fields: Any) -> Ask:
    body = {"model": "image", "prompt": "a cat", **fields}
    return Ask("/v1/images/generations", {name: value for name, value in body.items() if value is not None})


def speech(**fields: Any) -> Ask:
    body = {"model": "voice", "input": "hello", "voice": "alloy", "response_format": "wav", **fields}
    return Ask("/v1/audio/speech", {name: value for name, value in body.items() if value is not None})


def edit(**fields: Any) -> Ask:
    body = {"model": "image", "prompt": "a cat", "image": File(PNG), **fields}
    return form("/v1/images/edits", {name: value for name, value in body.items() if value is not None})


def edits(*images: File, **fields: Any) -> Ask:
    """An edit of several pictures."""
    return edit(**{"image": None, "image[]": list(images), **fields})


def transcription(**fields: Any) -> Ask:
    body = {"model": "ear", "file": File(WAV, "a.wav", "audio/wav"), **fields}
    return form("/v1/audio/transcriptions", {name: value for name, value in body.items() if value is not None})


async def get(provider: Provider, *asks: Ask) -> list[Reply]:
    return await send(provider, *(wire(*ask) for ask in asks))


def pictures(reply: Reply) -> list[bytes]:
    assert reply.status == 200, reply.body
    return [base64.b64decode(entry["b64_json"], validate=True) for entry in reply.json["data"]]


def pixels(png: bytes) -> tuple[int, int, bytes]:
    """Width, height and the lines of a PNG, its sums checked."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    chunks: dict[bytes, bytes] = {}
    at = 8
    while at < len(png):
        (size,) = struct.unpack_from(">I", png, at)
        kind, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        assert struct.unpack_from(">I", png, at + 8 + size) == (zlib.crc32(kind + data),)
        chunks[kind] = data
        at += 12 + size
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, depth, colour, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (depth, colour, rest) == (8, 2, [0, 0, 0])
    return width, height, zlib.decompress(chunks[b"IDAT"])


# ------------------------------------------------------------------------------------------- built-in models


async def test_a_picture_is_a_real_one_and_another_for_other_words():
    async with Provider() as provider:
        cat, again, dog = await get(provider, image(), image(), image(prompt="a dog"))
    [first], [second], [other] = pictures(cat), pictures(again), pictures(dog)
    width, height, lines = pixels(first)
    assert (width, height) == (64, 64)
    assert len(lines) == 64 * (1 + 64 * 3)
    assert first == second != other
    assert cat.headers["content-type"] == "application/json"
    assert "usage" not in cat.json


async def test_several_pictures_are_several():
    async with Provider() as provider:
        [generated, edited] = await get(provider, image(n=3), edit(n=2))
    assert len(set(pictures(generated))) == 3
    assert len(set(pictures(edited))) == 2


async def test_an_edit_depends_on_the_words_and_on_every_picture():
    other = File(draw_png(b"b"))
    async with Provider() as provider:
        replies = await get(
            provider,
            edit(),
            edit(prompt="a dog"),
            edit(image=other),
            edits(File(PNG), other),
            edits(other, File(PNG)),
        )
        assert len({pictures(reply)[0] for reply in replies}) == 5
        assert provider.refusals == []


async def test_a_voice_is_a_real_sound_as_long_as_its_text():
    async with Provider() as provider:
        short, long = await get(provider, speech(), speech(input="hello " * 50))
    assert short.headers["content-type"] == "audio/wav"
    lengths: list[float] = []
    for reply in (short, long):
        with wave.open(io.BytesIO(reply.body)) as sound:
            assert (sound.getframerate(), sound.getnchannels(), sound.getsampwidth()) == (24_000, 1, 2)
            lengths.append(sound.getnframes() / sound.getframerate())
            assert len(sound.readframes(10**9)) == sound.getnframes() * 2
    assert lengths == pytest.approx([0.2, 3.0], abs=0.01)


async def test_a_voice_speaks_mp3_unless_asked_and_not_everything():
    async with Provider() as provider:
        plain, bare, opus = await get(
            provider, speech(response_format=None), speech(response_format="pcm"), speech(response_format="opus")
        )
    assert (plain.headers["content-type"], plain.body) == ("audio/mpeg", mp3("hello"))
    assert len(plain.body) % 417 == 0
    assert (bare.headers["content-type"], bare.body) == ("audio/pcm", WAV[44:])
    assert (opus.status, opus.json["error"]["param"]) == (400, "response_format")


async def test_an_ear_tells_what_it_was_given_in_the_form_that_was_asked_for():
    words = f"I heard {len(WAV)} bytes of audio/wav."
    async with Provider() as provider:
        plain, text, long, srt = await get(
            provider,
            transcription(),
            *(transcription(response_format=form) for form in ("text", "verbose_json", "srt")),
        )
    assert plain.json == {"text": words}
    assert (text.headers["content-type"], text.body.decode()) == ("text/plain; charset=utf-8", words + "\n")
    assert (long.json["text"], long.json["task"]) == (words, "transcribe")
    assert srt.body.decode().split("\n")[2] == words


async def test_an_ear_streams_words_but_whisper_does_not():
    async with Provider() as provider:
        provider.script("gpt-4o-transcribe", [[Transcription("one two three"), ScriptedUsage(10, 3)]])
        streamed, whole = await get(
            provider,
            transcription(model="gpt-4o-transcribe", stream="true"),
            transcription(model="whisper-1", stream="true"),
        )
    assert [event.get("delta") for event in streamed.events] == ["one ", "two ", "three", None]
    assert streamed.events[-1]["text"] == "one two three"
    assert streamed.events[-1]["usage"]["total_tokens"] == 13
    assert whole.json["text"].startswith("I heard")


async def test_gpt_image_counts_tokens_and_dall_e_gives_an_address():
    async with Provider() as provider:
        new, old, inline = await get(
            provider,
            image(model="gpt-image-1"),
            image(model="dall-e-3"),
            image(model="dall-e-3", response_format="b64_json"),
        )
        assert new.json["usage"]["total_tokens"] == 300
        assert len(pictures(new)) == len(pictures(inline)) == 1
        [only] = old.json["data"]
        assert list(only) == ["url"]
        assert only["url"].startswith(provider.url + "/v1/files/")
        path = only["url"].removeprefix(provider.url)
        file, gone = await send(
            provider, *(f"GET {p} HTTP/1.1\r\nHost: x\r\n\r\n".encode() for p in (path, "/v1/files/no.png"))
        )
    assert (file.status, file.headers["content-type"], [file.body]) == (200, "image/png", pictures(inline))
    assert gone.status == 404


# --------------------------------------------------------------------------------------------------- scripts


async def test_a_script_brings_its_own_pictures_sounds_and_texts():
    async with Provider() as provider:
        provider.script("painter", [[Image(PNG, "a grey cat"), ScriptedUsage(7, 9)]])
        provider.script("singer", [[Speech(b"la la", "audio/ogg")]])
        provider.script("clerk", [[Transcription("hello there")]])
        painted, sung, written = await get(
            provider, image(model="painter"), speech(model="singer"), transcription(model="clerk")
        )
    assert painted.json["data"] == [{"revised_prompt": "a grey cat", "b64_json": base64.b64encode(PNG).decode()}]
    assert painted.json["usage"]["input_tokens"] == 7
    assert (sung.body, sung.headers["content-type"]) == (b"la la", "audio/ogg")
    assert written.json == {"text": "hello there"}


async def test_a_sequence_and_a_function_of_the_request_work_as_in_chat():
    async with Provider() as provider:
        steps: list[Step] = [
            [Status(429, headers={"Retry-After": "0"})],
            lambda body: [Transcription(body["file"]["filename"])],
        ]
        provider.script("m", steps, sequence=True)
        refused, answered = await get(provider, transcription(model="m"), transcription(model="m"))
    assert (refused.status, refused.json["error"]["code"]) == (429, "rate_limit_exceeded")
    assert refused.headers["retry-after"] == "0"
    assert answered.json == {"text": "a.wav"}


async def test_a_file_can_break_off_anywhere():
    async with Provider() as provider:
        provider.script("whole", [[Speech(b"0123456789")]])
        provider.script("cut-at", [[Speech(b"0123456789"), CutAt(7)]])
        provider.script("cut-behind", [[Image(PNG), Cut()]])
        provider.script("cut-first", [[Cut()]])
        [whole] = await get(provider, speech(model="whole"))
        [part] = await get(provider, speech(model="cut-at"))
        [behind] = await get(provider, image(model="cut-behind"))
        with pytest.raises(asyncio.IncompleteReadError):
            await get(provider, image(model="cut-first"))
    assert (whole.body, whole.is_whole) == (b"0123456789", True)
    assert (part.body, part.is_whole, part.status) == (b"0123456", False, 200)
    assert behind.body.endswith(base64.b64encode(PNG) + b'"}')
    assert not behind.is_whole


async def test_a_file_comes_in_pieces_at_a_pace_and_may_pause_and_hang():
    async with Provider() as provider:
        provider.script("paced", [[Speech(bytes(80))]], pace=0.001)
        provider.script("pause", [[Speech(b"a"), Pause(0.001), Speech(b"b")]])
        provider.script("hang", [[Image(PNG), Hang()]])
        paced, paused = await get(provider, speech(model="paced"), speech(model="pause"))
        assert [len(chunk) for chunk in paced.chunks] == [10] * 8
        assert paused.body == b"ab"
        async with connect(provider.url) as (reader, writer):
            writer.write(wire(*image(model="hang")))
            await reader.readuntil(base64.b64encode(PNG)[-20:])
        await provider.wait_idle()
        assert provider.seen[-1].is_closed_early


async def test_raw_bytes_are_the_body_as_they_are():
    async with Provider() as provider:
        provider.script("m", [[Raw(b"<html>", "text/html")]])
        [reply] = await get(provider, image(model="m"))
    assert (reply.status, reply.headers["content-type"], reply.body) == (200, "text/html", b"<html>")


async def test_a_form_is_seen_as_its_fields_and_what_can_be_said_of_its_files():
    upload = {
        "filename": "a.png",
        "content_type": "image/png",
        "size": len(PNG),
        "sha256": hashlib.sha256(PNG).hexdigest(),
    }
    async with Provider() as provider:
        await get(provider, edit(n=2), edits(File(PNG), File(PNG)))
        first, second = provider.seen
    assert (first.format, first.model, first.status) == ("edits", "image", 200)
    assert first.body == {"model": "image", "prompt": "a cat", "image": upload, "n": "2"}
    assert second.body["image"] == [upload, upload]


async def test_bytes_of_a_file_are_not_taken_for_the_end_of_it():
    data = PNG + b"\r\n--xy\r\n--xyz1\r\n--xyz-- or not\r\n\r\n"
    async with Provider() as provider:
        await get(provider, edit(image=File(data, 'a "b".png'.replace('"', "%22"))))
        seen = provider.seen[0].body["image"]
    assert (seen["filename"], seen["sha256"]) == ('a "b".png', hashlib.sha256(data).hexdigest())


async def test_a_key_is_asked_for_here_too():
    async with Provider(key="secret") as provider:
        [without] = await get(provider, image())
        [with_key] = await get(provider, image()._replace(headers={**JSON, "Authorization": "Bearer secret"}))
    assert (without.status, with_key.status) == (401, 200)


async def test_a_lax_provider_makes_what_the_real_ones_refuse():
    async with Provider(strict=False) as provider:
        replies = await get(
            provider,
            image(prompt=None, size=5, n="many"),
            edit(image=None),
            transcription(file=None),
            speech(input=None),
        )
    assert [reply.status for reply in replies] == [200] * 4


# ---------------------------------------------------------------------------------------- the wrong endpoint


async def test_a_model_is_only_for_what_it_is_for():
    async with Provider() as provider:
        provider.script("talker", [[Say("hello")]])
        provider.script("painter", [[Image()]])
        for model in ("talker", "plain", "voice", "ear"):
            for ask in (image(model=model), edit(model=model)):
                [reply] = await get(provider, ask)
                assert (reply.status, reply.json["error"]["param"]) == (400, "model")
                assert reply.json["error"]["message"].startswith(f"Invalid model {model}.")
        for ask in (
            speech(model="talker"),
            speech(model="painter"),
            transcription(model="plain"),
            transcription(model="voice"),
        ):
            [reply] = await get(provider, ask)
            assert (reply.status, reply.json["error"]["code"]) == (404, "model_not_found")
        for model in ("painter", "image", "voice", "ear", "dall-e-3"):
            [reply] = await send(provider, wire(PATHS["chat"], chat(model=model)))
            assert reply.status == 404
            assert "This is not a chat model" in reply.json["error"]["message"]
        [reply] = await send(provider, wire(PATHS["responses"], {"model": "image", "stream": True, "input": "hi"}))
        assert "cannot be used with the Responses API" in reply.json["error"]["message"]


async def test_an_unknown_model_is_not_found():
    async with Provider() as provider:
        for ask in (image(model="sculptor"), transcription(model="sculptor")):
            [reply] = await get(provider, ask)
            assert (reply.status, reply.json["error"]["code"]) == (404, "model_not_found")


# ------------------------------------------------------------------------------------------------- refusals


class Rule(NamedTuple):
    says: str
    refused: Ask
    words: str
    taken: Ask


def broken(ask: Ask, old: bytes, new: bytes) -> Ask:
    assert isinstance(ask.body, bytes)
    assert old in ask.body
    return ask._replace(body=ask.body.replace(old, new, 1))


GPT, OLD = {"model": "gpt-image-1"}, {"model": "dall-e-2"}
MPEG = File(mp3("hi"), "a.mp3", "audio/mpeg")
NOISE = b"this is no recording at all"

RULES = [
    # how it is sent
    Rule("a picture is asked for in JSON", image()._replace(headers={"Content-Type": "text/plain"}), "This API method only accepts 'application/json' requests", image()._replace(headers={"Content-Type": "application/json; charset=utf-8"})),
    Rule("a type is said", image()._replace(headers={}), "Unsupported content type: ''.", image()),
    Rule("JSON is JSON", image()._replace(body=b"{"), "We could not parse the JSON body", image()),
    Rule("speech is asked for in JSON", form("/v1/audio/speech", {"model": "voice"}), "only accepts 'application/json'", speech()),
    Rule("an edit is a form", edit()._replace(headers=JSON), "only accepts 'multipart/form-data' requests", edit()),
    Rule("a recording comes in a form", transcription()._replace(headers=JSON), "only accepts 'multipart/form-data' requests", transcription()),
    Rule("a form has a boundary", transcription()._replace(headers={"Content-Type": "multipart/form-data"}), "Could not parse multipart form", transcription()._replace(headers={"Content-Type": "multipart/form-data; charset=utf-8; boundary=xyz"})),
    Rule("the boundary is that of the form", transcription()._replace(headers={"Content-Type": "multipart/form-data; boundary=abc"}), "Could not parse multipart form", transcription()),
    Rule("a form has an end", broken(transcription(), b"--xyz--\r\n", b""), "Could not parse multipart form", broken(transcription(), b"--xyz--\r\n", b"--xyz--")),
    Rule("a form ends once", broken(transcription(), b"--xyz\r\n", b"--xyz--\r\n"), "Could not parse multipart form", transcription()),
    Rule("a form begins at once", broken(transcription(), b"--xyz\r\n", b"hello\r\n--xyz\r\n"), "Could not parse multipart form", transcription()),
    Rule("a field has a name", broken(transcription(), b'; name="model"', b""), "Could not parse multipart form", broken(transcription(), b'name="model"', b"name=model")),
    Rule("a field is of a form", broken(transcription(), b"form-data; name", b"attachment; name"), "Could not parse multipart form", transcription()),
    Rule("headers have names", broken(transcription(), b"Content-Disposition: ", b"Content-Disposition "), "Could not parse multipart form", broken(transcription(), b"Content-Disposition: ", b"content-disposition:")),
    Rule("headers end", broken(transcription(), b'name="model"\r\n\r\n', b'name="model"\r\n'), "Could not parse multipart form", transcription()),
    Rule("there is a model", image(model=None), "you must provide a model parameter", image()),
    Rule("a field comes once", edit(image=[File(PNG), File(PNG)]), "Duplicate parameter: 'image'.", edits(File(PNG), File(PNG))),
    Rule("a list is not also a field", edit(**{"image[]": File(PNG)}), "Duplicate parameter: 'image'.", edits(File(PNG))),
    # pictures
    Rule("fields are known", image(messages=[]), "Unknown parameter: 'messages'.", image(user="me", background="auto", style="vivid")),
    Rule("a picture is of something", image(prompt=None), "Missing required parameter: 'prompt'.", image()),
    Rule("the prompt is not empty", image(prompt=""), "Invalid 'prompt': empty string.", image(prompt=".")),
    Rule("the prompt is text", image(prompt=["a"]), "Invalid type for 'prompt': expected a string, but got an array instead.", image()),
    Rule("a prompt has an end", image(prompt="x" * 32_001, **GPT), "Expected a string with maximum length 32000, but got a string with length 32001 instead.", image(prompt="x" * 32_000, **GPT)),
    Rule("an old prompt is short", image(prompt="x" * 1001, **OLD), "maximum length 1000", image(prompt="x" * 1000, **OLD)),
    Rule("a size is one of a few", image(size="512x512", **GPT), "Invalid value: '512x512'. Supported values are: '1024x1024', '1024x1536', '1536x1024', and 'auto'.", image(size="1536x1024", **GPT)),
    Rule("an old size is one of others", image(size="auto", **OLD), "Invalid value: 'auto'.", image(size="512x512", **OLD)),
    Rule("a size has two sides", image(size="large"), "Invalid value: 'large'.", image(size="768x512")),
    Rule("a size is text", image(size=512), "Invalid type for 'size'", image(size="auto")),
    Rule("one at least", image(n=0), "Expected a value >= 1, but got 0 instead.", image(n=1)),
    Rule("ten at most", image(n=11), "Expected a value <= 10, but got 11 instead.", image(n=10)),
    Rule("a number is one", image(n=1.5), "Invalid type for 'n': expected an integer, but got a decimal instead.", image(n=2)),
    Rule("a number in a form is one too", edit(n="two"), "Invalid type for 'n': expected an integer, but got a string instead.", edit(n="2")),
    Rule("dall-e-3 makes one", image(n=2, model="dall-e-3"), "You must provide n=1 for this model.", image(n=1, model="dall-e-3")),
    Rule("gpt-image knows one way to answer", image(response_format="b64_json", **GPT), "Unknown parameter: 'response_format'.", image(response_format="b64_json", **OLD)),
    Rule("dall-e knows one kind of file", image(output_format="png", **OLD), "Unknown parameter: 'output_format'.", image(output_format="png", **GPT)),
    Rule("an answer is data or an address", image(response_format="png"), "Supported values are: 'url' and 'b64_json'.", image(response_format="b64_json")),
    Rule("quality is known", image(quality="hd", **GPT), "Invalid value: 'hd'.", image(quality="hd", model="dall-e-3")),
    Rule("a background is known", image(background="blue"), "Invalid value: 'blue'.", image(background="opaque")),
    Rule("JPEG hides nothing", image(background="transparent", output_format="jpeg"), "Transparent background is not supported", image(background="transparent", output_format="png")),
    Rule("pictures come whole", image(stream=True), "'stream' must be false", image(stream=False)),
    # edits
    Rule("an edit has a prompt", edit(prompt=None), "Missing required parameter: 'prompt'.", edit()),
    Rule("an edit has a picture", edit(image=None), "Missing required parameter: 'image'.", edit()),
    Rule("a picture is a file", edit(image="cat.png"), "expected one of an array of files or file, but got a string instead.", edit()),
    Rule("pictures are files", edits(File(PNG), File(PNG, None)), "expected one of an array of files or file", edits(File(PNG), File(PNG))),
    Rule("a picture says what it is", edit(image=File(PNG, content_type="application/octet-stream")), "Invalid file 'image': unsupported mimetype ('application/octet-stream'). Supported file formats are 'image/jpeg', 'image/png', and 'image/webp'.", edit(image=File(PNG, "blob"))),
    Rule("a picture says anything at all", edit(image=File(PNG, content_type="")), "unsupported mimetype ('application/octet-stream')", edit()),
    Rule("each picture says what it is", edits(File(PNG), File(PNG, content_type="image/gif")), "Invalid file 'image[1]': unsupported mimetype ('image/gif').", edits(File(JPEG, "a.jpg", "image/jpeg"), File(WEBP, "a.webp", "image/webp"))),
    Rule("a picture is what it says", edit(image=File(b"GIF89a")), "Invalid image file or mode for image 1, please check your image file.", edit(image=File(JPEG, "a.jpg", "image/jpeg"))),
    Rule("a picture is not empty", edit(image=File(b"")), "Invalid image file", edit()),
    Rule("a sound is no picture", edit(image=File(WAV)), "Invalid image file", edit(image=File(WEBP, "a.webp", "image/webp"))),
    Rule("sixteen pictures at most", edits(*[File(PNG)] * 17), "Expected an array with maximum length 16, but got an array with length 17 instead.", edits(*[File(PNG)] * 16)),
    Rule("dall-e-2 edits one PNG", edit(image=File(JPEG, "a.jpg", "image/jpeg"), **OLD), "Supported file formats are 'image/png'.", edit(**OLD)),
    Rule("dall-e-2 edits a small one", edit(image=File(PNG + bytes(4 * 1024 * 1024)), **OLD), "less than 4 MB", edit(image=File(PNG + bytes(4 * 1024 * 1024)))),
    Rule("dall-e-3 edits nothing", edit(model="dall-e-3"), "Invalid value: 'dall-e-3'. Value must be 'dall-e-2'.", edit(**OLD)),
    Rule("a mask is a picture", edit(mask=File(JPEG)), "mask must be a PNG", edit(mask=File(PNG, content_type="application/octet-stream"))),
    Rule("gpt-image edits one way", edit(response_format="b64_json", **GPT), "Unknown parameter: 'response_format'.", edit(**GPT, input_fidelity="high")),
    # speech
    Rule("speech knows its fields", speech(prompt="a"), "Unknown parameter: 'prompt'.", speech(instructions="softly")),
    Rule("something is said", speech(input=None), "'loc': ('body', 'input'), 'msg': 'Field required'", speech()),
    Rule("what is said is not empty", speech(input=""), "String should have at least 1 character", speech(input=".")),
    Rule("what is said is text", speech(input=["a"]), "Input should be a valid string", speech()),
    Rule("what is said has an end", speech(input="x" * 4097), "String should have at most 4096 characters", speech(input="x" * 4096)),
    Rule("somebody says it", speech(voice=None), "'loc': ('body', 'voice'), 'msg': 'Field required'", speech()),
    Rule("a voice has a name", speech(voice=7), "Input should be a valid string", speech(voice={"id": "voice_1"})),
    Rule("a voice is known to OpenAI", speech(voice="grumpy", model="tts-1"), "Input should be 'alloy', 'ash'", speech(voice="nova", model="tts-1")),
    Rule("a voice is not nothing", speech(voice=""), "'loc': ('body', 'voice')", speech(voice="grumpy")),
    Rule("a sound is of a kind", speech(response_format="midi"), "'loc': ('body', 'response_format'), 'msg': \"Input should be 'mp3', 'opus', 'aac', 'flac', 'wav' or 'pcm'\"", speech(response_format="pcm")),
    Rule("not too slow", speech(speed=0.2), "greater than or equal to 0.25", speech(speed=0.25)),
    Rule("not too fast", speech(speed=4.1), "less than or equal to 4", speech(speed=4)),
    Rule("a speed is a number", speech(speed="fast"), "Input should be a valid number", speech(speed=1.0)),
    Rule("speech is bare", speech(stream_format="sse"), "'stream_format' must be 'audio'", speech(stream_format="audio")),
    # recordings
    Rule("a recording knows its fields", transcription(voice="nova"), "Unknown parameter: 'voice'.", transcription(prompt="Names: Ada.", **{"timestamp_granularities[]": ["word"]})),
    Rule("there is a recording", transcription(file=None), "'loc': ('body', 'file'), 'msg': 'Field required'", transcription()),
    Rule("a recording is a file", transcription(file=File(WAV, None, "audio/wav")), "Expected UploadFile", transcription()),
    Rule("a recording is named like one", transcription(file=File(WAV, "a.txt", "audio/wav")), "Unrecognized file format. Supported formats: ['flac', 'm4a', 'mp3', 'mp4', 'mpeg', 'mpga', 'oga', 'ogg', 'wav', 'webm']", transcription(file=File(WAV, "a.b.WAV", ""))),
    Rule("a recording has a name that ends", transcription(file=File(WAV, "wav", "audio/wav")), "Unrecognized file format.", transcription(file=File(WAV, ".wav", "audio/wav"))),
    Rule("a recording is one", transcription(file=File(NOISE, "a.wav", "audio/wav")), "Audio file might be corrupted or unsupported", transcription(file=MPEG)),
    Rule("a recording is not empty", transcription(file=File(b"", "a.wav", "audio/wav")), "Audio file might be corrupted or unsupported", transcription(file=File(b"OggS and so on", "a.ogg", "audio/ogg"))),
    Rule("a picture is no recording", transcription(file=File(WEBP, "a.wav", "audio/wav")), "Audio file might be corrupted or unsupported", transcription(file=File(b"\0\0\0\x18ftypM4A ", "a.m4a", "audio/mp4"))),
    Rule("a text is of a kind", transcription(response_format="xml"), "'loc': ('body', 'response_format')", transcription(response_format="vtt")),
    Rule("newer ears write plainly", transcription(model="gpt-4o-transcribe", response_format="verbose_json"), "response_format 'verbose_json' is not compatible with model 'gpt-4o-transcribe'.", transcription(model="whisper-1", response_format="verbose_json")),
    Rule("a temperature is a number", transcription(temperature="warm"), "unable to parse string as a number", transcription(temperature="0.2")),
    Rule("a temperature is low", transcription(temperature="1.1"), "less than or equal to 1", transcription(temperature="1")),
    Rule("a language is a code", transcription(language="English"), "must be specified in ISO-639-1 format", transcription(language="en")),
    Rule("to stream is yes or no", transcription(stream="perhaps"), "Input should be a valid boolean", transcription(stream="false")),
]  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.says)
async def test_a_rule_refuses_and_its_neighbour_is_taken(rule: Rule):
    async with Provider() as provider:
        refused, taken = await get(provider, rule.refused, rule.taken)
        assert refused.status == 400
        assert rule.words in refused.json["error"]["message"]
        assert taken.status == 200, taken.json
        assert provider.refusals == [refused.json["error"]["message"]]


async def test_a_recording_that_is_too_large_is_told_its_size():
    limit = 25 * 1024 * 1024
    async with Provider() as provider:
        large, good = await get(
            provider,
            *(transcription(file=File(WAV.ljust(size, b"\0"), "a.wav", "audio/wav")) for size in (limit + 1, limit)),
        )
    assert (large.status, good.status) == (413, 200)
    assert large.json["error"]["message"] == f"Maximum content size limit ({limit}) exceeded ({limit + 1} bytes read)"


async def test_a_form_may_come_byte_by_byte():
    async with Provider() as provider, connect(provider.url) as (reader, writer):
        for byte in wire(*transcription(file=File(WAV[:60], "a.wav", "audio/wav"))):
            writer.write(bytes([byte]))
            await writer.drain()
        assert (await read_reply(reader)).json == {"text": "I heard 60 bytes of audio/wav."}
