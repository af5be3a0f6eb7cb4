"""Pictures, voices and transcripts through the same turn as any other answer, over a wire and with real bytes."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from everturn import (
    Chat,
    FilePart,
    Output,
    TextPart,
    TurnError,
    TurnSettings,
    get_model,
    tool,
)
from everturn.core.commands import Send
from everturn.core.events import AnswerStarted, TurnOptions
from everturn.core.messages import Message
from everturn.core.modality import MODALITIES, modality_of
from everturn.core.parts import Part, StepPart
from everturn.core.ports import Model
from everturn.errors import ConfigError, MissingInput
from everturn.events import Phase, StepFinished
from everturn.models.media.file_types import FileType, detect_type
from everturn.models.prices import Price
from everturn.models.retry import FallbackModel, RetryPolicy
from everturn.testing import MemoryStore, ScriptedModel, call, calls, say
from everturn.testing.contracts.model.wire import READERS
from everturn.testing.provider import CutAt, Hang, Image, Provider, Say, ScriptedUsage, Speech, Status, Transcription
from everturn.testing.provider.media.png import draw_png
from everturn.transport import HttpRequest, HttpResponse, StreamLimits
from everturn.transport.live import HttpTransport

CAT, DOG = draw_png(b"cat"), draw_png(b"dog")
TUNE = b"ID3 do re mi"


class Shelf(MemoryStore):
    """A store that remembers every blob it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[bytes] = []

    async def put_blob(self, data: bytes) -> str:
        self.kept.append(data)
        return await super().put_blob(data)


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    async with Provider() as provider:
        yield provider
        assert provider.refusals == []


def model(provider: Provider, name: str, **how: Any) -> Model:
    return get_model(name, base_url=f"{provider.url}/v1", key="k", retry=RetryPolicy(attempts=1), **how)


async def answer(chat: Chat, *content: Any, **how: Any) -> Message:
    parts: list[TextPart | FilePart] = [TextPart(item) if isinstance(item, str) else item for item in content]
    result = await (await chat.send(parts, **how))
    assert result.message is not None
    return result.message


def files_of(message: Message) -> list[FilePart]:
    return [part for part in message.parts if isinstance(part, FilePart)]


# Pictures -------------------------------------------------------------------------------------------------------------


async def test_a_picture_is_made_of_words_kept_and_shown(provider: Provider) -> None:
    provider.script("artist", [[Image(CAT), ScriptedUsage(12, 34)]])
    async with Chat(model(provider, "compatible:artist@image-gen")) as chat:
        turn = await chat.send("a cat", params={"size": "1024x1024"})
        shown = [part for event in [e async for e in turn] if isinstance(event, StepFinished) for part in event.parts]
        message = (await chat.messages())[-1]

        file = FilePart(hashlib.sha256(CAT).hexdigest(), "image/png", len(CAT), "image.png")
        assert shown == [file]
        assert message.parts[0] == file
        assert message.by == "compatible:artist@image-gen"
        assert await chat.read(file) == CAT
        assert (await turn).usage.output == 34
        assert provider.seen[0].body == {
            "model": "artist",
            "prompt": "a cat",
            "size": "1024x1024",
            "response_format": "b64_json",
        }


async def test_several_pictures_are_several_files(provider: Provider) -> None:
    async with Chat(model(provider, "compatible:picture@image-gen")) as chat:
        message = await answer(chat, "cats", params={"n": 3})

    assert [file.name for file in files_of(message)] == ["image.png", "image-2.png", "image-3.png"]


async def test_a_picture_that_is_attached_is_edited(provider: Provider) -> None:
    async with Chat(model(provider, "compatible:picture@image-edit")) as chat:
        first, two = await chat.attach(CAT, name="cat.png"), await chat.attach(DOG, name="dog.png")
        await answer(chat, "make it blue", first)
        await answer(chat, "join them", first, two)

    sent = [seen.body["image"] for seen in provider.seen]
    assert sent[0]["sha256"] == first.blob
    assert [file["sha256"] for file in sent[1]] == [first.blob, two.blob]


async def test_without_one_the_last_picture_of_the_branch_is_edited(provider: Provider) -> None:
    editor = model(provider, "compatible:picture@image-edit")
    async with Chat(model(provider, "compatible:picture@image-gen")) as chat:
        first = await answer(chat, "a cat")
        second = await answer(chat, "and a dog")
        await answer(chat, "bluer", model=editor)
        await chat.fork(first)
        await answer(chat, "bluer", model=editor)

    edited = [seen.body["image"]["sha256"] for seen in provider.seen if seen.format == "edits"]
    assert edited == [files_of(second)[0].blob, files_of(first)[0].blob]


async def test_a_picture_is_made_again_beside_the_first(provider: Provider) -> None:
    provider.script("artist", [[Image(CAT)], [Image(DOG)]], sequence=True)
    async with Chat(model(provider, "compatible:artist@image-gen")) as chat:
        first = await answer(chat, "a pet")
        again = (await (await chat.rerun(first))).message
        tree = await chat.tree()

        assert again is not None
        assert tree.versions(first.id) == [first.id, again.id]
        assert tree.get(first.id) == first
        assert [await chat.read(files_of(message)[0]) for message in (first, again)] == [CAT, DOG]


async def test_it_is_made_again_by_the_model_that_made_it(provider: Provider) -> None:
    async with Chat(ScriptedModel(say("Hello."))) as chat:
        message = await answer(chat, "a cat", model=model(provider, "compatible:picture@image-gen"))
        again = (await (await chat.rerun(message))).message

    assert again is not None
    assert again.by == message.by


class Watched(HttpTransport):
    """The network, and a bell that rings when something has come over it."""

    def __init__(self) -> None:
        self.has_come = asyncio.Event()

    @asynccontextmanager
    async def post(self, post: HttpRequest) -> AsyncGenerator[Any]:
        async with super().post(post) as reply:
            yield _Watched(reply, self.has_come)


class _Watched:
    def __init__(self, reply: HttpResponse, has_come: asyncio.Event) -> None:
        self._reply, self._has_come = reply, has_come
        self.status, self.headers, self.finish = reply.status, reply.headers, reply.finish

    async def read(self) -> AsyncIterator[bytes]:
        async for data in self._reply.read():
            yield data
            self._has_come.set()


@pytest.mark.parametrize("modality", ["image-gen", "image-edit", "audio-tts"])
async def test_what_is_cancelled_in_the_middle_leaves_no_trace_of_a_half_file(
    provider: Provider, modality: str
) -> None:
    store, wire = Shelf(), Watched()
    provider.script("artist", [[Speech() if modality == "audio-tts" else Image(CAT), Hang()]], pace=0.05)
    async with Chat(model(provider, f"compatible:artist@{modality}", transport=wire), store=store) as chat:
        brought = [await chat.attach(DOG, "image/png", "dog.png")] if modality == "image-edit" else []
        turn = await chat.send([TextPart("a cat"), *brought])
        await wire.has_come.wait()
        await turn.cancel()
        result = await turn
        await provider.wait_idle()

        assert result.phase is Phase.CANCELLED
        assert store.kept == [DOG] * len(brought)
        assert (await chat.messages())[-1].parts == ()
        assert provider.seen[0].is_closed_early


@pytest.mark.parametrize("at", [50, 150, 250])
async def test_a_picture_that_is_cut_off_is_none(provider: Provider, at: int) -> None:
    store = Shelf()
    provider.script("artist", [[Image(CAT), CutAt(at)]])
    async with Chat(model(provider, "compatible:artist@image-gen"), store=store) as chat:
        with pytest.raises(TurnError) as caught:
            await answer(chat, "a cat")

    assert caught.value.kind in ("network", "truncated")
    assert store.kept == []


# Voices ---------------------------------------------------------------------------------------------------------------


async def test_words_are_spoken_and_heard_in_one_session(provider: Provider) -> None:
    ear = model(provider, "compatible:ear@audio-stt")
    async with Chat(model(provider, "compatible:voice@audio-tts")) as chat:
        spoken = await answer(chat, "Hello there.", params={"response_format": "wav", "voice": "nova"})
        transcript = await answer(chat, "Which language is this?", model=ear, params={"language": "en"})

    [sound] = files_of(spoken)
    assert (sound.media_type, sound.name) == ("audio/wav", "speech.wav")
    assert transcript.text == f"I heard {sound.size} bytes of audio/wav."
    assert provider.seen[0].body == {
        "voice": "nova",
        "response_format": "wav",
        "model": "voice",
        "input": "Hello there.",
    }
    body = provider.seen[1].body
    assert (body["language"], body["prompt"]) == ("en", "Which language is this?")
    assert body["file"]["sha256"] == sound.blob


async def test_several_recordings_are_heard_one_after_the_other(provider: Provider) -> None:
    provider.script("scribe", [[Transcription("First.")], [Transcription("Second.")]], sequence=True)
    async with Chat(model(provider, "compatible:scribe@audio-stt")) as chat:
        recordings = [await chat.attach(TUNE + bytes([n]), "audio/mpeg", f"{n}.mp3") for n in range(2)]
        transcript = await answer(chat, *recordings)

        assert transcript.text == "First.\n\nSecond."
        assert (await chat.app.store.info(chat.session)).title == "0.mp3, 1.mp3"


# What is checked before anything is created ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("modality", "parts", "wants"),
    [
        ("image-gen", [FilePart("b", "image/png", 1)], "say what the picture should show"),
        ("image-gen", [TextPart("bluer"), FilePart("b", "image/png", 1)], "vendor:model@image-edit"),
        ("audio-tts", [TextPart("Hi."), FilePart("b", "image/png", 1)], "words alone"),
        ("image-edit", [TextPart("bluer")], "attach a picture"),
        ("image-edit", [FilePart("b", "image/png", 1)], "say what should be different"),
        ("image-edit", [TextPart("bluer"), FilePart("b", "audio/wav", 1)], "attach a picture"),
        ("audio-stt", [TextPart("what?")], "attach a recording"),
        ("audio-stt", [FilePart("b", "image/png", 1)], "attach a recording"),
        ("audio-tts", [FilePart("b", "image/png", 1)], "write what should be spoken"),
        ("audio-tts", [TextPart("  ")], "write what should be spoken"),
    ],
)
async def test_what_a_model_needs_is_missed_before_anything_is_created(
    modality: str, parts: Sequence[TextPart | FilePart], wants: str
) -> None:
    async with Chat(get_model(f"compatible:any@{modality}", base_url="http://127.0.0.1:9/v1")) as chat:
        with pytest.raises(MissingInput, match=wants):
            await chat.send(parts)

        assert await chat.app.store.sessions() == []
        assert await chat.messages() == []


async def test_what_is_missed_only_later_ends_the_turn_without_an_answer(provider: Provider) -> None:
    async with Chat(model(provider, "compatible:picture@image-edit")) as chat:
        parts: tuple[Part, ...] = (TextPart("bluer"),)
        send = Send(key="k", session=chat.session, turn="t", message="m", parts=parts, at_leaf=True)
        await chat.app.command(send)  # as another process would, that knows another model by this name
        turn = chat.turn("t")
        events = [event async for event in turn]

        with pytest.raises(TurnError, match="attach a picture") as caught:
            await turn
        assert caught.value.kind == "input"
        assert not any(isinstance(event, AnswerStarted) for event in events)
        assert provider.seen == []


async def test_what_a_turn_that_is_under_way_may_bring_is_not_missed(provider: Provider) -> None:
    editor = model(provider, "compatible:picture@image-edit")
    async with Chat(model(provider, "compatible:picture@image-gen")) as chat:
        drawing = await chat.send("a cat")
        editing = await chat.send("bluer", model=editor)
        first, second = await drawing, await editing

    assert first.message is not None
    assert second.message is not None
    assert provider.seen[-1].body["image"]["sha256"] == files_of(first.message)[0].blob


async def test_a_message_that_was_taken_before_is_not_missed_the_second_time(provider: Provider) -> None:
    editor = model(provider, "compatible:picture@image-edit")
    async with Chat(model(provider, "compatible:picture@image-gen")) as chat:
        await answer(chat, "a cat")
        turn = await chat.send("bluer", model=editor, key="k")
        await turn
        await chat.fork(None)

        assert (await chat.send("bluer", model=editor, key="k")).id == turn.id
        with pytest.raises(MissingInput):
            await chat.send("bluer", model=editor, key="another")


async def test_tools_and_the_words_of_a_chat_are_not_for_them(provider: Provider) -> None:
    @tool
    async def look(path: str) -> str:
        """Look."""
        return path

    settings = TurnSettings(layers=({"temperature": 0.2},))
    picture = model(provider, "compatible:picture@image-gen")
    async with Chat(picture, tools=[look], settings=settings) as chat:
        await answer(chat, "a cat", params={"quality": "low", "tool_format": "json", "max_tokens": 5})

    assert set(provider.seen[0].body) == {"model", "prompt", "quality", "response_format"}


# A chat that goes on --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["compatible:plain", "anthropic:plain", "openai:plain", "ollama:plain", "gemini:plain"]
)
async def test_a_chat_model_sees_the_picture_that_was_made(provider: Provider, name: str) -> None:
    vendor = name.partition(":")[0]
    path = {"ollama": "", "gemini": "/v1beta"}.get(vendor, "/v1")
    talker = get_model(name, base_url=provider.url + path, key="k")
    async with Chat(model(provider, "compatible:picture@image-gen")) as chat:
        await answer(chat, "a cat")
        await answer(chat, "What do you see?", model=talker)

    seen = provider.seen[-1]
    assert READERS[seen.format](seen.body).images == 1


async def test_an_answer_with_a_picture_is_told_to_a_model_that_sees_none(provider: Provider) -> None:
    async with Chat(model(provider, "compatible:picture@image-gen")) as chat:
        await answer(chat, "a cat")
        await answer(chat, "What do you see?", model=model(provider, "deepseek:plain"))

    assert "a file that cannot be shown to you: image.png" in str(provider.seen[-1].body)


# Who they are ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "modality"),
    [
        ("openai:gpt-5.2", "chat"),
        ("openai:gpt-image-1", "image-gen"),
        ("openai:dall-e-3", "image-gen"),
        ("openai:gpt-image-1@image-edit", "image-edit"),
        ("openai:whisper-1", "audio-stt"),
        ("openai:gpt-4o-mini-transcribe", "audio-stt"),
        ("openai:tts-1-hd", "audio-tts"),
        ("openai:gpt-4o-mini-tts", "audio-tts"),
        ("groq:whisper-large-v3", "audio-stt"),
        ("mistral:any@audio-stt", "audio-stt"),
    ],
)
def test_what_a_model_is_for_is_known_or_said(name: str, modality: str) -> None:
    found = get_model(name, key="k")

    assert modality_of(found) == modality
    assert found.name == name


def test_a_name_may_hold_an_at_all_the_same() -> None:
    found = get_model("compatible:acme@2026", base_url="http://127.0.0.1:9")

    assert (found.name, modality_of(found)) == ("compatible:acme@2026", "chat")


@pytest.mark.parametrize("modality", [modality for modality in MODALITIES if modality != "chat"])
def test_a_vendor_without_such_models_says_so(modality: str) -> None:
    with pytest.raises(
        ConfigError, match=rf"anthropic has no supported models of the type .* compatible:model@{modality}"
    ):
        get_model(f"anthropic:claude@{modality}", environ={})  # and not that a key is missing


def test_only_its_like_can_stand_in_for_a_model() -> None:
    with pytest.raises(ConfigError, match="of one type"):
        FallbackModel(get_model("openai:gpt-image-1", key="k"), get_model("openai:gpt-5.2", key="k"))


async def test_a_model_that_is_not_there_is_another_ones_turn(provider: Provider) -> None:
    provider.script("busy", [[Status(503)]])
    both = FallbackModel(model(provider, "compatible:busy@image-gen"), model(provider, "compatible:picture@image-gen"))
    async with Chat(both) as chat:
        assert files_of(await answer(chat, "a cat"))


# What the wire brings -------------------------------------------------------------------------------------------------


async def test_what_openai_wants_is_what_it_gets(provider: Provider) -> None:
    for name in ("dall-e-3", "gpt-image-1", "gpt-image-1@image-edit", "tts-1", "whisper-1"):
        async with Chat(model(provider, f"openai:{name}")) as chat:
            brought = {
                "image-edit": [await chat.attach(CAT, "image/png", "c.png")],
                "audio-stt": [await chat.attach(TUNE, "audio/mpeg", "t.mp3")],
            }
            message = await answer(chat, "a cat", *brought.get(chat.app.modality_of(""), ()))
            assert isinstance(message.parts[0], FilePart | TextPart)
            assert isinstance(message.parts[-1], StepPart)

    assert [seen.body.get("response_format") for seen in provider.seen] == ["b64_json", None, None, None, "json"]


async def test_tokens_have_their_price(provider: Provider) -> None:
    provider.script("artist", [[Image(CAT), ScriptedUsage(1_000_000, 2_000_000)]])
    priced = model(provider, "compatible:artist@image-gen", price=Price(5, 10))
    async with Chat(priced) as chat:
        assert (await (await chat.send("a cat"))).usage.cost == 25


async def test_the_address_of_a_picture_is_not_followed(provider: Provider) -> None:
    async with Chat(model(provider, "openai-chat:dall-e-2")) as chat:
        with pytest.raises(TurnError, match='"response_format": "b64_json"') as caught:
            await answer(chat, "a cat", params={"response_format": "url"})

    assert caught.value.kind == "response"


async def test_a_refusal_has_its_kind_and_its_words() -> None:
    async with Provider() as provider, Chat(model(provider, "compatible:picture@image-gen")) as chat:
        with pytest.raises(TurnError) as caught:
            await answer(chat, "a cat", params={"n": 1000})

        assert caught.value.kind == "request"
        assert provider.refusals[0] in str(caught.value)


async def test_a_chat_model_is_none_of_them(provider: Provider) -> None:
    provider.script("talker", [[Say("Hello.")]])
    async with Chat(model(provider, "compatible:talker@image-gen")) as chat:
        with pytest.raises(TurnError):
            await answer(chat, "a cat")
    provider.reset()


async def test_a_turn_that_was_promised_another_model_says_what_it_is_for(provider: Provider) -> None:
    async with Chat(ScriptedModel(say("Hello.")), options=TurnOptions()) as chat:
        await answer(chat, "Hi.")
        with pytest.raises(MissingInput):
            await chat.send("bluer", model=model(provider, "compatible:picture@image-edit"))
        assert len(await chat.messages()) == 2


async def test_what_a_chat_was_told_is_not_for_a_model_that_draws(provider: Provider) -> None:
    options = TurnOptions(params={"temperature": 0.2, "reasoning_effort": "low"})
    async with Chat(ScriptedModel(say("Hello.")), options=options) as chat:
        await answer(chat, "a cat", model=model(provider, "compatible:picture@image-gen"), params={"size": "auto"})

    assert set(provider.seen[0].body) == {"model", "prompt", "size", "response_format"}


async def test_what_no_wait_can_mend_is_refused_while_another_turn_is_under_way(provider: Provider) -> None:
    provider.script("slow", [[Hang()]])
    draws = model(provider, "compatible:picture@image-gen")
    async with Chat(model(provider, "compatible:slow")) as chat:
        turn = await chat.send("Hello")
        with pytest.raises(MissingInput, match="say what the picture should show"):
            await chat.send([await chat.attach(CAT, name="cat.png")], model=draws)
        await turn.cancel()


@pytest.mark.parametrize("name", ["picture@image-edit", "ear@audio-stt"])
async def test_a_field_that_the_message_fills_cannot_be_given_as_well(provider: Provider, name: str) -> None:
    async with Chat(model(provider, f"compatible:{name}")) as chat:
        files = [await chat.attach(CAT, "image/png", "c.png"), await chat.attach(TUNE, "audio/mpeg", "t.mp3")]
        for field, hint in (("model", "choose the model"), ("prompt", "the text of your message")):
            with pytest.raises(TurnError, match=f"^'{field}' cannot be given in params: .*{hint}"):
                await answer(chat, "a cat", *files, params={field: "other"})
    assert not provider.seen


async def test_recordings_that_were_heard_before_another_failed_are_counted(provider: Provider) -> None:
    provider.script("scribe", [[Transcription("First."), ScriptedUsage(5, 2)], [Status(500)]], sequence=True)
    async with Chat(model(provider, "compatible:scribe@audio-stt")) as chat:
        turn = await chat.send([await chat.attach(TUNE + bytes([n]), "audio/mpeg") for n in range(2)])
        with pytest.raises(TurnError):
            await turn

        assert (await turn.state()).usage.output == 2
        assert (await chat.messages())[-1].text == "First."


async def test_a_picture_that_a_tool_brought_can_be_edited(provider: Provider) -> None:
    @tool(read_only=True)
    async def photograph() -> Output:
        """Take a picture."""
        return Output("click", attachments=(await chat.attach(CAT, "image/png", "c.png"),))

    talker = ScriptedModel(calls(call("photograph")), say("There."))
    async with Chat(talker, tools=[photograph]) as chat:
        await answer(chat, "Take one.")
        await answer(chat, "bluer", model=model(provider, "compatible:picture@image-edit"))

    assert provider.seen[0].body["image"]["sha256"] == hashlib.sha256(CAT).hexdigest()


def wav(size: int) -> bytes:
    return b"RIFF" + size.to_bytes(4, "little") + b"WAVEfmt " + bytes(20)


@pytest.mark.parametrize(
    ("data", "media_type", "is_whole"),
    [
        (CAT, "image/png", True),
        (CAT + bytes(16), "image/png", True),
        (CAT[:-1], "image/png", False),
        (wav(28), "audio/wav", True),
        (wav(29), "audio/wav", False),
        (wav(0), "audio/wav", True),
        (wav(0x7FFFF024), "audio/wav", True),  # espeak-ng, which does not know yet how long it will be
        (wav(0xFFFFFFFF), "audio/wav", True),
        (b"\xff\xd8\xff\xe0 and more \xff\xd9", "image/jpeg", True),
        (b"\xff\xd8\xff\xe0 and more", "image/jpeg", False),
        (b"GIF89a and more;", "image/gif", True),
        (b"\xff\xfb\x90\x64", "audio/mpeg", True),
        (b"OggS", "audio/ogg", True),
        (b"fLaC", "audio/flac", True),
        (b"\0\0\0\x20ftypM4A ", "audio/mp4", True),
        (b"\x1a\x45\xdf\xa3", "audio/webm", True),
        (b"", "", True),
        (b"hello", "", True),
    ],
)
def test_a_file_is_known_at_sight(data: bytes, media_type: str, is_whole: bool) -> None:
    assert detect_type(data) == FileType(media_type, is_whole)


async def test_how_long_an_answer_may_be_can_be_said(provider: Provider) -> None:
    async with Chat(model(provider, "compatible:picture@image-gen", limits=StreamLimits(stream=100))) as chat:
        with pytest.raises(TurnError, match=r"more than 100 bytes; raise `Limits\.stream`") as caught:
            await answer(chat, "a cat")

    assert caught.value.kind == "limit"
