"""Dictation and reading aloud over the API: against a provider that answers as a script says."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from everturn import api, get_model
from everturn.access.access import Access
from everturn.access.context.agents import TenantLimits
from everturn.access.context.audio_service import AudioLimits, AudioModel, AudioService
from everturn.access.context.server_context import ServerContext
from everturn.core.options import Budget
from everturn.errors import ConfigError, Forbidden, ModelError, TooMuch, UnknownSession
from everturn.models.retry import RetryPolicy
from everturn.models.vendors import VENDORS
from everturn.testing.provider import Hang, Provider, Raw, Speech, Status, Transcription
from tests.helpers.recordings import a_recording
from tests.helpers.tenants import a_house, access_of, over, somebody, start_session
from tests.helpers.waiting import wait_until

WORDS = "the words of the recording 0815"
SPOKEN = a_recording(0.2)


@asynccontextmanager
async def an_audio_house(
    limits: AudioLimits | None = None, tenant_limits: TenantLimits | None = None
) -> AsyncGenerator[tuple[ServerContext, Provider]]:
    """A house whose audio models are those of a scripted provider."""
    async with Provider() as provider, a_house(limits=tenant_limits) as house:

        def model(name: str) -> AudioModel:
            once = RetryPolicy(attempts=1)
            found = get_model(name, base_url=f"{provider.url}/v1", key="sk-secret-key", retry=once)
            return AudioModel(found, {"voice": "nova"} if "tts" in name else {"language": "en"})

        provider.script("ear", [[Transcription(WORDS)]])
        provider.script("voice", [[Speech(SPOKEN)]])
        house.audio = AudioService(model("ear@audio-stt"), model("voice@audio-tts"), limits)
        yield house, provider


async def test_a_recording_becomes_text_and_nothing_is_stored() -> None:
    async with an_audio_house() as (house, provider):
        member = access_of(house, "member")
        session = (await start_session(member, "hello")).session
        before = await member.scope.store.events(session)
        assert (await member.audio.transcribe(a_recording(), session)).text == WORDS
        assert (await member.audio.transcribe(a_recording())).text == WORDS  # for a new conversation
        assert [(seen.body["model"], seen.body["language"]) for seen in provider.seen] == [("ear", "en")] * 2
        assert [entry.seq for entry in await member.scope.store.events(session)][: len(before)] == [
            entry.seq for entry in before
        ]
        assert len((await member.sessions.list()).sessions) == 1


async def test_a_text_becomes_audio_with_the_configured_voice() -> None:
    async with an_audio_house() as (house, provider):
        member = access_of(house, "member")
        session = (await start_session(member, "hello")).session
        assert await member.audio.speak(session, api.SpeakText(text="Hello there.")) == (SPOKEN, "audio/wav")
        assert provider.seen[-1].body == {"voice": "nova", "model": "voice", "input": "Hello there."}


async def test_only_those_who_may_write_in_the_session_use_it() -> None:
    async with an_audio_house() as (house, provider):
        member, viewer = access_of(house, "member"), access_of(house, "viewer")
        stranger = Access(house, somebody("ada", "owner", "stranger"))
        session = (await start_session(member, "hello", private=True)).session
        spoken = api.SpeakText(text="hello")
        for refused, why in (
            (viewer, Forbidden),
            (stranger, UnknownSession),
            (access_of(house, "owner", "bob"), UnknownSession),
        ):
            with pytest.raises(why):
                await refused.audio.speak(session, spoken)
            with pytest.raises(why):
                await refused.audio.transcribe(a_recording(), session)
        reader = access_of(house, "approver")
        await member.sharing.share(session, api.NewShare(user="approver-ada", level="read"))
        with pytest.raises(Forbidden, match="to read"):
            await reader.audio.speak(session, spoken)
        assert provider.seen == []


@pytest.mark.parametrize(
    ("data", "said_why"),
    [
        (b"", "WAV file"),
        (b"\x1a\x45\xdf\xa3 webm", "WAV file"),
        (a_recording(channels=2), "one channel"),
        (a_recording(0), "WAV file"),
        (a_recording(2.5), "audio.max_seconds"),
        # The header claims a sample, and the file has more.
        (a_recording(2.5).replace((80_000).to_bytes(4, "little"), (2).to_bytes(4, "little")), "audio.max_seconds"),
    ],
)
async def test_a_recording_that_is_none_or_too_long_is_refused_and_nothing_is_sent(data: bytes, said_why: str) -> None:
    async with an_audio_house(AudioLimits(max_seconds=2)) as (house, provider):
        with pytest.raises(ConfigError, match=said_why):
            await access_of(house, "member").audio.transcribe(data)
        assert provider.seen == []


async def test_a_text_that_is_too_long_or_blank_is_refused() -> None:
    async with an_audio_house(AudioLimits(max_characters=100)) as (house, provider):
        member = access_of(house, "member")
        session = (await start_session(member, "hello")).session
        for text, why in (("x" * 101, "audio.max_characters"), (" \n", "the text is empty")):
            with pytest.raises(ConfigError, match=why):
                await member.audio.speak(session, api.SpeakText(text=text))
        assert provider.seen == []


async def test_without_configuration_the_setting_is_named() -> None:
    async with a_house() as house:
        member = access_of(house, "member")
        view = await access_of(house, "viewer").audio.get()
        assert (view.transcription, view.speech) == (False, False)
        session = (await start_session(member, "hello")).session
        with pytest.raises(ConfigError, match=r"\[audio.transcription\]"):
            await member.audio.transcribe(a_recording())
        with pytest.raises(ConfigError, match=r"\[audio.speech\]"):
            await member.audio.speak(session, api.SpeakText(text="hello"))


async def test_requests_at_once_are_limited_and_one_that_hangs_ends() -> None:
    async with an_audio_house(AudioLimits(timeout=0.5, concurrent=1)) as (house, provider):
        provider.script("ear", [[Hang()]])
        member = access_of(house, "member")
        hanging = asyncio.ensure_future(member.audio.transcribe(a_recording()))
        await wait_until(lambda: len(provider.seen) == 1)
        with pytest.raises(TooMuch, match=r"audio\.concurrent"):
            await member.audio.transcribe(a_recording())
        with pytest.raises(ModelError, match=r"audio\.timeout"):
            await hanging
        provider.script("ear", [[Transcription(WORDS)]])
        assert (await member.audio.transcribe(a_recording())).text == WORDS  # the place is free again


@pytest.mark.parametrize("script", [[Status(500, "the text 4711")], [Raw(b"<p>the text 4711</p>", "audio/mpeg")]])
async def test_an_error_repeats_and_logs_nothing_of_the_text(
    script: list[Status | Raw], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with an_audio_house() as (house, provider):
        provider.script("voice", [[*script]])
        member = access_of(house, "member")
        session = (await start_session(member, "hello")).session
        with pytest.raises(ModelError, match=r"audio\.speech") as raised:
            await member.audio.speak(session, api.SpeakText(text="the text 4711"))
        assert raised.value.__context__ is None or "4711" not in str(raised.value.__context__)
        assert any("[audio.speech] failed" in record.getMessage() for record in caplog.records)
        assert "4711" not in str(raised.value) + caplog.text


async def test_it_counts_as_an_upload_and_not_beyond_a_budget_that_is_used_up() -> None:
    size = len(a_recording())
    async with an_audio_house(tenant_limits=TenantLimits(requests=0, uploaded=size)) as (house, provider):
        member = access_of(house, "member")
        await member.audio.transcribe(a_recording())
        with pytest.raises(TooMuch, match="bytes of files"):
            await member.audio.transcribe(a_recording())
        assert len(provider.seen) == 1
    async with an_audio_house(tenant_limits=TenantLimits(requests=0, budget=Budget(steps=2))) as (house, provider):
        member = access_of(house, "member")
        await member.audio.transcribe(a_recording())
        sent = await start_session(member, "hello")
        await over(member, sent)
        with pytest.raises(TooMuch, match="budget"):
            await member.audio.speak(sent.session, api.SpeakText(text="hello"))
        assert len(provider.seen) == 1


async def test_it_counts_for_its_user_model_and_tenant() -> None:
    async with an_audio_house() as (house, _):
        member, store = access_of(house, "member"), house.app.store
        sent = await start_session(member, "hello")
        await over(member, sent)
        before = await store.spent(tenant="ada")
        await member.audio.transcribe(a_recording())
        await member.audio.speak(sent.session, api.SpeakText(text="hello"))
        user = member.principal.user
        rows = {model: spent for who, model, _, spent in await store.usage_by_user("ada") if who == user}
        audio = {"compatible:ear@audio-stt", "compatible:voice@audio-tts"}
        assert {model: rows[model].steps for model in audio} == dict.fromkeys(audio, 1)
        assert (await store.spent(tenant="ada")).steps == before.steps + 2
        assert (await store.user_spent("ada", user)).steps == before.steps + 2
        assert (await store.spent(session=sent.session)) == before, "it belongs to no conversation"
        shown = (await access_of(house, "owner").users.usage()).rows
        assert {row.model for row in shown} >= audio


async def test_the_budget_of_a_user_refuses_it_with_the_reason() -> None:
    async with an_audio_house() as (house, provider):
        member = access_of(house, "member")
        budget = api.PutUserBudget(steps=1, period=3600)
        await access_of(house, "owner").users.set_budget(member.principal.user, budget)
        await member.audio.transcribe(a_recording())
        with pytest.raises(TooMuch, match="your budget is used up: 1 of 1 steps; an administrator can raise it"):
            await member.audio.transcribe(a_recording())
        house.meter._user_readings.clear()  # the next second
        with pytest.raises(TooMuch, match="your budget is used up"):
            await member.audio.transcribe(a_recording())
        assert len(provider.seen) == 1


@pytest.mark.parametrize(
    ("name", "cost"), [("whisper-1", 0.36 / 120), ("tts-1", 15 * 5 / 1_000_000), ("unknown-tts", None)]
)
async def test_its_cost_is_that_of_the_price_table_by_the_hour_or_the_character(name: str, cost: float | None) -> None:
    async with Provider() as provider, a_house() as house:
        profile = replace(VENDORS["openai"], base_url=f"{provider.url}/v1", key="")
        model = AudioModel(get_model(name, profile=profile, key="sk"))
        provider.script(name, [[Transcription(WORDS) if cost == 0.36 / 120 else Speech(SPOKEN)]])
        house.audio = AudioService(model, model)
        member = access_of(house, "member")
        sent = await start_session(member, "hello")
        if name == "whisper-1":
            await member.audio.transcribe(a_recording(30.0))
        else:
            await member.audio.speak(sent.session, api.SpeakText(text="hello"))
        (spent,) = [spent for _, model, _, spent in await house.app.store.usage_by_user("ada") if name in model]
        assert spent.usage.cost == (None if cost is None else pytest.approx(cost))
