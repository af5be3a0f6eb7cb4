"""A call in words, and an answer of a form: offline as the README starts it, and with a real model of this machine."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from everturn.core.events import CallFinished, TurnCompleted
from tests.examples.example_process import (
    EXAMPLES,
    check_recorded,
    commands,
    copied,
    environment,
    recording_of,
    run,
    says,
    started,
)
from tools.servers.process import free_port

NAME = "local-json"
HOME = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "everturn-local-model"
SAID = re.compile(r"In (.+), take: (sunglasses|umbrella|coat)\n\Z")


async def test_it_is_started_offline(tmp_path: Path) -> None:
    folder, (ask,) = copied(NAME, tmp_path), commands(NAME)
    output = run([*ask, "--store", "talks.db"], folder)
    assert output == "[get_weather: It is 21 degrees and sunny in Paris.]\nIn Paris, take: sunglasses\n"
    fresh = await recording_of(folder / "talks.db", "weather")
    check_recorded(fresh, NAME, "offline.jsonl")


def test_a_server_that_is_not_there_is_reported_in_one_line(tmp_path: Path) -> None:
    folder, (ask,) = copied(NAME, tmp_path), commands(NAME)
    words = [*ask, "--url", f"http://127.0.0.1:{free_port()}/v1"]
    done = subprocess.run(words, cwd=folder, env=environment(folder), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert re.fullmatch(r"weather: no server answers at .*\n", done.stderr)


@pytest.mark.live
@pytest.mark.timeout(900)
@pytest.mark.xdist_group("local-model")
async def test_a_real_model_is_held_to_both_forms(tmp_path: Path) -> None:
    assert (HOME / "bin" / "python").exists(), "there is no local model: run scripts/local-model"
    folder, port = copied(NAME, tmp_path), str(free_port())
    serve, ask = ([word.replace("8080", port) for word in words] for words in commands(NAME, 1))
    serve[0] = serve[0].replace("~/.cache/everturn-local-model", str(HOME))
    with started(serve, folder) as server:
        says(server, "ready")
        output = run([*ask, "--store", "talks.db"], folder, 360.0)
    called, _, answered = output.partition("\n")
    assert re.fullmatch(r"\[get_weather: It is .+ in .+\.\]", called)
    assert SAID.fullmatch(answered)
    fresh = await recording_of(folder / "talks.db", "weather")
    assert sum(isinstance(event, CallFinished) for event in fresh.events) == 1
    assert any(isinstance(event, TurnCompleted) for event in fresh.events)
    if os.environ.get("EVERTURN_RECORD"):  # what it says is its own affair, so nothing is compared
        fresh.write(EXAMPLES / NAME / "recorded" / "paris.jsonl")
