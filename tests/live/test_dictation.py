"""A real voice and a real ear behind `[audio]`: a text that is read aloud is dictated back, by programs and by a server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.live.voice_server import HOME, SENTENCE, voice

from everturn.config.build import CommandLineOverrides, open_server
from everturn.config.load import load_config
from everturn.models.offline import OFFLINE

pytestmark = [pytest.mark.live, pytest.mark.timeout(300), pytest.mark.xdist_group("local-voice")]

HEAR = "import sys; sys.path.insert(0, sys.argv[1]); from serve_voice import listen; print(listen(sys.stdin.buffer.read()))"
"""PocketSphinx as a program that reads a WAV file on stdin."""


async def dictated(folder: Path, text: str) -> str:
    """What the server of a configuration hears of the sentence that it speaks."""
    file = folder / "everturn.toml"
    file.write_text(text)
    overrides = CommandLineOverrides(store=str(folder / "a.db"), model=OFFLINE)
    async with open_server(load_config(str(file), {}), overrides) as context:
        sound, kind = await context.audio.speak(SENTENCE)
        assert kind == "audio/wav"
        context.audio.check_recording(sound)
        return await context.audio.transcribe(sound)


async def test_programs_speak_and_hear(tmp_path: Path) -> None:
    hear = [str(HOME / "bin/python"), "-c", HEAR, str(Path(__file__).parent)]
    speak = ["espeak-ng", "--stdin", "--stdout", "-v", "en-us+f5", "-s", "145"]
    text = f"[audio.speech]\ncommand = {json.dumps(speak)}\n[audio.transcription]\ncommand = {json.dumps(hear)}\n"
    assert await dictated(tmp_path, text) == SENTENCE


async def test_a_server_speaks_and_hears(tmp_path: Path) -> None:
    async with voice() as base_url:
        text = (
            f'[audio.speech]\nmodel = "espeak"\nbase_url = "{base_url}"\nparams = {{ response_format = "wav" }}\n'
            f'[audio.transcription]\nmodel = "pocketsphinx"\nbase_url = "{base_url}"\n'
        )
        assert await dictated(tmp_path, text) == SENTENCE
