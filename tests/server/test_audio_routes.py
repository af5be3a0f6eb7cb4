"""The routes of audio: what they take and give, and that only a server with dictation lets its page use a microphone."""

from __future__ import annotations

from pathlib import Path

import pytest

from everturn import get_model
from everturn.access.context.audio_service import AudioModel, AudioService
from everturn.config.server_options import ServerOptions
from everturn.testing.provider import Provider, Speech, Transcription
from tests.helpers.recordings import a_recording
from tests.helpers.route_matrix import a_world
from tests.helpers.server_app import ask


async def test_a_recording_is_transcribed_and_a_text_spoken_and_neither_is_cached() -> None:
    async with Provider() as provider, a_world() as world:
        provider.script("ear", [[Transcription("Hello.")]])
        provider.script("voice", [[Speech(a_recording())]])
        url, key, wav = f"{provider.url}/v1", world.key("ours", "member"), {"content-type": "audio/wav"}
        session = world.things["ours"].session
        world.house.audio = AudioService(
            AudioModel(get_model("ear@audio-stt", base_url=url)), AudioModel(get_model("voice@audio-tts", base_url=url))
        )
        transcription = await ask(world.app, "POST", "/api/transcription", key, body=a_recording(), headers=wav)
        assert (transcription.status, transcription.json) == (200, {"text": "Hello."})
        owner = world.key("ours", "owner")
        spoken = await ask(world.app, "POST", f"/api/sessions/{session}/speech", owner, json={"text": "Hello."})
        assert (spoken.status, spoken.body, spoken.header("content-type")) == (200, a_recording(), "audio/wav")
        assert spoken.header("cache-control") == "no-store"
        webm = {"content-type": "audio/webm"}
        assert (await ask(world.app, "POST", "/api/transcription", key, body=b"x", headers=webm)).status == 415
        assert (await ask(world.app, "POST", "/api/transcription", key, body=b"x", headers=wav)).code == "unfit"
        view = (await ask(world.app, "GET", "/api/audio", world.key("ours", "viewer"))).json
        assert view == {"transcription": True, "speech": True, "max_seconds": 120.0, "max_characters": 4096}


async def test_only_a_server_with_dictation_lets_its_page_use_a_microphone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "index.html").write_text("<!doctype html><title>Everturn</title>")
    monkeypatch.setenv("EVERTURN_WEB", str(tmp_path))
    async with Provider() as provider, a_world(options=ServerOptions()) as world:
        front = await ask(world.app, "GET", "/", headers={"accept": "text/html"})
        assert "microphone=()" in front.header("permissions-policy")
        ear = AudioModel(get_model("ear@audio-stt", base_url=f"{provider.url}/v1"))
        world.house.audio = AudioService(transcription=ear)
        front = await ask(world.app, "GET", "/", headers={"accept": "text/html"})
        assert "microphone=(self)" in front.header("permissions-policy")
        assert "camera=()" in front.header("permissions-policy")
