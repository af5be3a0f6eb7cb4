"""The guide on media: what it claims beside its examples."""

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from everturn import (
    Chat,
    FilePart,
    Prompt,
    TextPart,
    Turn,
    TurnError,
    TurnSettings,
    get_model,
    tool,
)
from everturn.core.chunks import Chunk, FileChunk, FinishChunk, TextChunk
from everturn.core.events import StepFinished
from everturn.core.modality import MODALITIES, Modality, explain_missing_input
from everturn.core.ports import Model
from everturn.core.requests import ModelRequest
from everturn.errors import ConfigError, MissingInput
from everturn.events import Phase, TextDelta
from everturn.models import FallbackModel, Price
from everturn.models.media import FILE_LIMIT
from everturn.models.media.speech import VOICE
from everturn.models.profile import Profile
from everturn.models.vendors import VENDORS
from everturn.testing import MemoryStore, ScriptedModel, say
from everturn.testing.provider import Cut, Hang, Image, Item, Provider, Raw, Say, Speech, Status, Transcription
from everturn.testing.provider.media.png import draw_png
from everturn.transport.limits import WHOLE_LINE_LIMITS

GUIDE = (Path(__file__).parent.parent.parent / "docs/guides/media.md").read_text(encoding="utf-8")
PNG, WAV = draw_png(b"a fox"), b"RIFF\x24\x00\x00\x00WAVEfmt " + b"\0" * 28


def rows(head: str) -> list[list[str]]:
    table = GUIDE.split(f"| {head} |", 1)[1].split("\n\n", 1)[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def local_model(provider: Provider, name: str, **how: Any) -> Model:
    return get_model(name, base_url=f"{provider.url}/v1", **how)


def files_of(messages: Any) -> list[FilePart]:
    return [part for message in messages for part in message.parts if isinstance(part, FilePart)]


# Types -------------------------------------------------------------------------------------------------------------


def test_the_table_of_types_says_what_each_must_be_given() -> None:
    table = {row[0].strip("`"): row[2] for row in rows("type | output | input | endpoint")}
    assert list(table) == list(MODALITIES)
    words, picture, sound = TextPart("Hi"), FilePart("b", "image/png", 1), FilePart("b", "audio/wav", 1)
    needs: dict[Modality, list[tuple[Any, ...]]] = {
        "chat": [()],
        "image-gen": [(words,)],
        "image-edit": [(words, picture)],
        "audio-stt": [(sound,)],
        "audio-tts": [(words,)],
    }
    for modality in MODALITIES:
        assert [explain_missing_input(modality, [], parts) for parts in needs[modality]] == [""]
        for others in [(), (words,), (picture,), (sound,)]:
            is_enough = any(set(parts) <= set(others) for parts in needs[modality])
            assert (explain_missing_input(modality, [], others) == "") is is_enough


def test_the_names_that_are_known_to_be_no_chat_are_those_on_the_page() -> None:
    listed = {
        name: row[1].strip("`") for row in rows("names of models | are") for name in re.findall(r"`([^`]+)`", row[0])
    }
    for vendor in ("openai", "openai-chat", "groq"):
        its = {name: fields["modality"] for name, fields in VENDORS[vendor].models.items() if "modality" in fields}
        assert listed == its
    assert [p.vendor for p in VENDORS.values() if any("modality" in fields for fields in p.models.values())] == [
        "openai",
        "openai-chat",
        "groq",
    ]


def test_a_type_is_said_behind_the_name_and_is_part_of_it() -> None:
    model = get_model("openai:gpt-image-1@image-edit", key="k")
    assert model.name == "openai:gpt-image-1@image-edit"
    assert get_model("openai:gpt-image-1", key="k").name == "openai:gpt-image-1"
    for vendor in ("anthropic", "gemini", "ollama"):
        with pytest.raises(ConfigError):
            get_model(f"{vendor}:m@image-gen", key="k")
    assert get_model("ollama-chat:m@image-gen").name == "ollama-chat:m@image-gen"


def test_a_fallback_stands_in_for_its_own_type_only() -> None:
    with pytest.raises(ConfigError, match="one type"):
        FallbackModel(get_model("openai:gpt-image-1", key="k"), get_model("openai:gpt-5.2", key="k"))


# What it works on --------------------------------------------------------------------------------------------------


async def test_the_files_of_the_message_come_first_and_then_the_newest_of_the_branch() -> None:
    async with Provider() as provider:
        edits = local_model(provider, "picture@image-edit")
        async with Chat(edits) as chat:
            pictures = [await chat.attach(draw_png(str(n).encode()), "image/png", f"{n}.png") for n in range(3)]
            await (await chat.send([TextPart("Both"), *pictures[:2]]))
            await (await chat.send([TextPart("This"), pictures[2]]))
            (generated,) = files_of((await chat.messages())[-1:])
            await (await chat.send("Again"))
        images = [seen.body["image"] for seen in provider.seen]
    assert [len(images[0]), images[1]["size"], images[2]["size"]] == [2, pictures[2].size, generated.size]
    assert images[2]["sha256"] == generated.blob.removeprefix("sha256:")


async def test_what_was_there_on_arrival_and_is_gone_when_the_turn_begins_ends_it_as_input() -> None:
    async with Provider() as provider:
        provider.script("talks", [[Say("Hi."), Hang()]])
        async with Chat(local_model(provider, "talks")) as chat:
            picture = await chat.attach(PNG, "image/png")
            busy = await chat.send([TextPart("Look"), picture])
            waiting: list[Turn] = []
            async for event in busy:
                if isinstance(event, TextDelta):
                    waiting.append(await chat.send("In the snow", model=local_model(provider, "picture@image-edit")))
                    await chat.fork(None)
                    await busy.cancel()
            with pytest.raises(TurnError) as failed:
                await waiting[0]
    assert failed.value.kind == "input"


async def test_nothing_goes_out_but_the_words_the_files_and_the_parameters_of_the_turn() -> None:
    @tool
    async def look() -> None: ...

    async with Provider() as provider:
        settings = TurnSettings(Prompt("Be brief."), layers=({"temperature": 0.5},))
        async with Chat(local_model(provider, "talks"), tools=[look], settings=settings) as chat:
            params = {"size": "512x512", "max_tokens": 5, "tool_choice": "auto"}
            await (await chat.send("A fox", model=local_model(provider, "picture@image-gen"), params=params))
        assert provider.seen[0].body == {
            "model": "picture",
            "prompt": "A fox",
            "size": "512x512",
            "response_format": "b64_json",
        }


async def test_a_voice_has_a_name_unless_another_is_given() -> None:
    assert f"`{VOICE}`" in GUIDE
    async with Provider() as provider:
        async with Chat(local_model(provider, "voice@audio-tts")) as chat:
            await (await chat.send("Hello"))
            await (await chat.send("Hello", params={"voice": "nova", "response_format": "wav"}))
            assert [file.name for file in files_of(await chat.messages())] == ["speech.mp3", "speech.wav"]
        assert [seen.body["voice"] for seen in provider.seen] == [VOICE, "nova"]


async def test_several_recordings_are_written_down_one_after_the_other_with_words_that_say_what_it_is_about() -> None:
    async with Provider() as provider:
        provider.script("ear", [[Transcription("One.")], [Transcription("Two.")]], sequence=True)
        async with Chat(local_model(provider, "ear@audio-stt")) as chat:
            sounds = [await chat.attach(WAV + bytes([n]), "audio/wav") for n in range(2)]
            result = await (await chat.send([TextPart("About foxes"), *sounds]))
        assert result.text == "One.\n\nTwo."
        assert [seen.body["prompt"] for seen in provider.seen] == ["About foxes"] * 2


# What it makes -----------------------------------------------------------------------------------------------------


async def test_a_file_is_a_part_without_bytes_and_comes_with_the_end_of_its_step() -> None:
    async with Provider() as provider:
        provider.script("picture", [[Image(PNG)]])
        async with Chat(local_model(provider, "picture@image-gen")) as chat:
            turn = await chat.send("A fox")
            steps = [event async for event in turn if isinstance(event, StepFinished)]
            (file,) = [part for part in steps[0].parts if isinstance(part, FilePart)]
            assert (file.media_type, file.size, file.name) == ("image/png", len(PNG), "image.png")
            assert await chat.read(file) == PNG
            assert PNG[:8] not in repr(await chat.app.store.events(chat.session)).encode()


async def test_a_rerun_is_made_by_the_same_model_with_the_parameters_of_the_turn() -> None:
    async with Provider() as provider:
        async with Chat(local_model(provider, "talks")) as chat:
            model = local_model(provider, "picture@image-gen")
            await (await chat.send("A fox", model=model, params={"size": "512x512"}))
            first = (await chat.messages())[-1]
            await (await chat.rerun(first))
            second = (await chat.messages())[-1]
            await (await chat.rerun(first, params={"size": "1024x1024"}))
            assert (await chat.tree()).versions(first.id)[:2] == [first.id, second.id]
            assert first.by == second.by == "compatible:picture@image-gen"
        assert [seen.body.get("size") for seen in provider.seen] == ["512x512", "512x512", "1024x1024"]


@pytest.mark.parametrize("is_known", [True, False])
async def test_another_process_makes_a_picture_again_if_it_knows_the_model(is_known: bool) -> None:
    store = MemoryStore()
    async with Provider() as provider:
        draws = local_model(provider, "picture@image-gen")
        async with Chat(local_model(provider, "plain-n1"), store=store, session="s") as chat:
            result = await (await chat.send("A fox", model=draws))
        async with Chat(local_model(provider, "plain-n1"), store=store, session="s") as chat:
            if is_known:
                chat.app.add_model(draws)
                again = await (await chat.rerun(result.messages[-1].id))
                assert files_of(again.messages)
            else:
                with pytest.raises(ConfigError):
                    await chat.rerun(result.messages[-1].id)


async def test_an_edit_asks_the_model_of_the_chat_unless_it_is_given_another() -> None:
    async with Provider() as provider, Chat(local_model(provider, "plain-n1")) as chat:
        draws = local_model(provider, "picture@image-gen")
        await (await chat.send("A fox", model=draws))
        fox = (await chat.messages())[0]
        edited = await (await chat.edit(fox, "A cat"))
        drawn = await (await chat.edit(fox, "A cat", model=draws))
        inserted = await (await chat.insert(fox, "A dog", model=draws))
    assert edited.messages[-1].by == "compatible:plain-n1"
    assert drawn.messages[-1].by == inserted.messages[-1].by == "compatible:picture@image-gen"


async def test_a_turn_that_is_cancelled_lets_go_of_the_server_and_keeps_nothing() -> None:
    requested = asyncio.Event()

    def begins(body: Any) -> list[Item]:
        requested.set()
        return [Image(PNG), Hang()]

    async with Provider() as provider:
        provider.script("picture", [begins])
        async with Chat(local_model(provider, "picture@image-gen")) as chat:
            turn = await chat.send("A fox")
            await requested.wait()
            await turn.cancel()
            assert (await turn).phase is Phase.CANCELLED
            assert files_of(await chat.messages()) == []
            await provider.wait_idle()
        assert provider.seen[0].is_closed_early


async def test_tokens_are_counted_where_the_server_says_them_and_cost_what_was_said() -> None:
    async with Provider() as provider:
        price = Price(input=10.0, output=40.0)
        async with Chat(local_model(provider, "openai:gpt-image-1", price=price, key="k")) as chat:
            usage = (await (await chat.send("A fox"))).usage
        assert (usage.input, usage.output, usage.cost) == (100, 200, pytest.approx(0.009))
        async with Chat(local_model(provider, "voice@audio-tts", price=price)) as chat:
            assert (await (await chat.send("A fox"))).usage.cost is None


# Chat models -------------------------------------------------------------------------------------------------------


async def test_a_picture_of_gemini_is_a_file_and_goes_back_to_it_as_its_own() -> None:
    data = base64.b64encode(PNG).decode()
    answer = {"candidates": [{"content": {"parts": [{"inlineData": {"mimeType": "image/png", "data": data}}]}}]}
    answer["candidates"][0]["finishReason"] = "STOP"  # type: ignore[assignment]
    async with Provider() as provider:
        provider.script("g", [[Raw(b"data: " + json.dumps(answer).encode() + b"\n\n")], [Say("A fox.")]], sequence=True)
        async with Chat(get_model("gemini:g", base_url=f"{provider.url}/v1beta", key="k")) as chat:
            params = {"responseModalities": ["TEXT", "IMAGE"]}
            (file,) = files_of((await (await chat.send("A fox", params=params))).messages)
            assert await chat.read(file) == PNG
            await (await chat.send("What is it?"))
        first, second = [seen.body for seen in provider.seen]
    assert first["generationConfig"] == params
    assert second["contents"][1] == {
        "role": "model",
        "parts": [{"inlineData": {"mimeType": "image/png", "data": data}}],
    }


async def test_a_model_of_ones_own_makes_a_file_and_says_what_it_is_for() -> None:
    class Draws:
        name = "draws"
        modality: Modality = "image-gen"

        async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
            yield [FileChunk(PNG, "image/png", "fox.png"), TextChunk("A fox."), FinishChunk("stop")]

    async with Chat(Draws()) as chat:
        with pytest.raises(MissingInput):
            await chat.send(" ")
        (file,) = files_of((await (await chat.send("A fox"))).messages)
    assert (file.name, file.size) == ("fox.png", len(PNG))


async def test_a_chat_model_may_bring_a_file_and_words_beside_it() -> None:
    async with Chat(ScriptedModel([[[FileChunk(PNG, "image/png")]], *say("There.")])) as chat:
        result = await (await chat.send("A fox"))
    assert ([file.size for file in files_of(result.messages)], result.text) == ([len(PNG)], "There.")


# Limits ------------------------------------------------------------------------------------------------------------


def test_the_limits_on_the_page_are_those_in_the_code() -> None:
    assert f"{FILE_LIMIT // 2**20} MiB" in GUIDE
    assert f"{WHOLE_LINE_LIMITS.line // 2**20} MiB" in GUIDE
    assert Profile(vendor="v").image_params == {"response_format": "b64_json"}


@pytest.mark.parametrize(
    "answer",
    [
        Raw(b'{"data": [{"url": "http://127.0.0.1/fox.png"}]}', "application/json"),
        Raw(json.dumps({"data": [{"b64_json": base64.b64encode(PNG[:-20]).decode()}]}).encode(), "application/json"),
        Raw(b'{"data": []}', "application/json"),
    ],
    ids=["an address", "half a picture", "none"],
)
async def test_what_is_no_whole_picture_is_an_error_and_no_address_is_followed(answer: Raw) -> None:
    async with Provider() as provider:
        provider.script("picture", [[answer]])
        async with Chat(local_model(provider, "picture@image-gen")) as chat:
            with pytest.raises(TurnError) as failed:
                await (await chat.send("A fox"))
            assert files_of(await chat.messages()) == []
        assert (failed.value.kind, len(provider.seen)) == ("response", 1)


async def test_a_voice_that_broke_off_is_not_paid_for_twice_and_never_kept_in_part() -> None:
    async with Provider() as provider:
        provider.script("voice", [[Status(503)], [Speech(WAV[:20]), Cut()], [Speech(WAV)]], sequence=True)
        async with Chat(local_model(provider, "voice@audio-tts")) as chat:
            with pytest.raises(TurnError):
                await (await chat.send("Hi"))
            assert files_of(await chat.messages()) == []
        assert len(provider.seen) == 2  # what was refused was tried again, what broke off was not
