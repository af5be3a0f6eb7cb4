"""`[audio]`: which models and programs a file gives a server, and what it says of mistakes."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest
from tests.helpers.recordings import a_recording

from everturn.config.audio import make_audio
from everturn.config.build import CommandLineOverrides, open_server
from everturn.config.load import load_config
from everturn.errors import ConfigError, ModelError
from everturn.models.media.command import complete_wav
from everturn.models.offline import OFFLINE
from everturn.testing.provider import Provider, Speech, Transcription


def written(folder: Path, text: str) -> str:
    file = folder / "e.toml"
    file.write_text(text)
    return str(file)


def program(folder: Path, source: str) -> str:
    """A program in Python, as the value of `command`."""
    file = folder / "program"
    file.write_text(f"#!{sys.executable}\nimport os, sys\n{source}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return f'["{file}", "--flag"]'


async def test_the_models_of_a_file_are_those_of_the_server(tmp_path: Path) -> None:
    async with Provider() as provider:
        provider.script("ear", [[Transcription("Hello.")]])
        provider.script("voice", [[Speech(a_recording())]])
        file = written(
            tmp_path,
            f"""
            [models.listener]
            model = "ear@audio-stt"
            base_url = "{provider.url}/v1"
            params = {{ language = "de" }}

            [audio]
            max_seconds = 30

            [audio.transcription]
            model = "listener"

            [audio.speech]
            base_url = "{provider.url}/v1"
            model = "voice"
            api_key = "${{env:VOICE_KEY}}"
            voice = "nova"
            params = {{ response_format = "wav" }}
            """,
        )
        keys = {"VOICE_KEY": "sk-a-secret-key"}
        overrides = CommandLineOverrides(store=str(tmp_path / "a.db"), model=OFFLINE)
        async with open_server(load_config(file, keys), overrides, keys) as context:
            assert context.audio.limits.max_seconds == 30
            assert await context.audio.transcribe(a_recording()) == "Hello."
            assert (await context.audio.speak("Hello."))[1] == "audio/wav"
        transcription, spoken = provider.seen
        assert transcription.body["language"] == "de"
        assert (spoken.body["voice"], spoken.body["response_format"]) == ("nova", "wav")
        assert spoken.headers["authorization"] == "Bearer sk-a-secret-key"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[audio.speech]\nvoice = 'x'", r"audio\.speech: set either `model`"),
        ("[audio.speech]\nmodel = 'openai:tts-1'\ncommand = ['x']", r"audio\.speech: set either"),
        ("[audio.speech]\ncommand = ['x']\nvoice = 'y'", r"audio\.speech\.voice: a `command`"),
        ("[audio.transcription]\nmodel = 'ear'", r"audio\.transcription\.model"),
        ("[audio.transcription]\nmodel = 'anthropic:ear'", "has no supported models of the type audio-stt"),
        ("[audio.transcription]\nmodel = 'ear'\nbase_url = 'ftp://x'", r"audio\.transcription\.base_url"),
        ("[audio.speech]\nmodel = 'whisper-1@audio-stt'\nbase_url = 'http://x/v1'", "type audio-stt, not audio-tts"),
        ("[audio]\nmax_seconds = 0", r"audio\.max_seconds"),
        (
            "[models.m]\nmodel = 'ear@audio-stt'\nbase_url = 'http://x/v1'\n"
            "[audio.transcription]\nmodel = 'm'\nbase_url = 'http://x/v1'",
            r"\[models\.m\] has its own",
        ),
    ],
)
def test_a_mistake_is_told_with_its_setting(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as error:
        load_config(written(tmp_path, text), {})
    assert "e.toml:" in str(error.value)


def test_a_program_is_named_in_a_file_and_not_in_the_environment(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not in the environment"):
        load_config(written(tmp_path, ""), {"EVERTURN_AUDIO__SPEECH__COMMAND": '["/bin/cat"]'})


def test_a_program_that_is_not_there_and_a_key_that_is_not_set_name_the_setting(tmp_path: Path) -> None:
    file = written(tmp_path, "[audio.speech]\ncommand = ['no-such-program-here']")
    with pytest.raises(ConfigError, match=r"audio\.speech\.command: the program 'no-such-program-here' was not found"):
        make_audio(load_config(file, {}).config, {})
    file = written(tmp_path, "[audio.speech]\nmodel = 'openai:tts-1'\napi_key = '${env:MISSING}'")
    with pytest.raises(ConfigError, match=r"audio\.speech\.model: .*MISSING"):
        make_audio(load_config(file, {}).config, {})


async def test_a_program_reads_stdin_and_gets_nothing_of_the_servers_environment(tmp_path: Path) -> None:
    lines = "text = sys.stdin.buffer.read()\nprint(len(text), sys.argv[1:], sorted(os.environ))"
    file = written(tmp_path, f"[audio.transcription]\ncommand = {program(tmp_path, lines)}")
    audio = make_audio(load_config(file, {}).config, {"PATH": "/usr/bin:/bin", "OPENAI_API_KEY": "sk-secret"})
    data = a_recording(3.0)  # more than a pipe takes at once
    transcript = await audio.transcribe(data)
    assert transcript.startswith(f"{len(data)} ['--flag']")
    assert "OPENAI_API_KEY" not in transcript


@pytest.mark.parametrize(
    "source",
    [
        "sys.exit(3)",
        "sys.stdin.buffer.read(); print('no audio')",
        "while True: sys.stdout.buffer.write(bytes(2**20))",
        "import time; time.sleep(600)",
    ],
)
async def test_a_program_that_fails_is_an_error(source: str, tmp_path: Path) -> None:
    text = f"[audio]\ntimeout = 5\n[audio.speech]\ncommand = {program(tmp_path, source)}"
    audio = make_audio(load_config(written(tmp_path, text), {}).config, {"PATH": "/usr/bin:/bin"})
    with pytest.raises(ModelError, match=r"audio\.speech"):
        await audio.speak("hello")


def test_the_sizes_of_a_wav_file_that_was_written_to_a_pipe_are_filled_in() -> None:
    whole = a_recording()
    piped = (
        whole[:4] + (0x7FFFF024).to_bytes(4, "little") + whole[8:40] + (0x7FFFF000).to_bytes(4, "little") + whole[44:]
    )
    assert complete_wav(piped) == whole
    assert complete_wav(whole) == whole
    assert complete_wav(b"ID3") == b"ID3"
