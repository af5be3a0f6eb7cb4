"""Every example has a recorded turn, and every recorded turn replays byte-equal, offline and without the example."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from everturn.core.events import CallFinished, TurnCompleted
from everturn.replay import Recording, differences, normalize_recording, replay_offline
from tests.examples.example_process import EXAMPLES, ROOT, commands, environment, run

NAMES = sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())
RECORDED = sorted(EXAMPLES.glob("*/recorded/*.jsonl"))


def id_of(path: Path) -> str:
    return path.relative_to(EXAMPLES).as_posix()


def unreachable(self: socket.socket, address: object) -> None:
    raise AssertionError(f"a replay is offline, and wanted to reach {address}")


def test_there_are_six_and_each_has_a_recorded_turn() -> None:
    assert NAMES == [
        *("approval-inbox", "browser-notebook", "local-json", "slack-approvals", "support-bot", "terminal-assistant"),
    ]
    assert {path.parent.parent.name for path in RECORDED} == set(NAMES)


@pytest.mark.parametrize("path", RECORDED, ids=id_of)
async def test_a_recorded_turn_replays_byte_equal(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket.socket, "connect", unreachable)
    recording = Recording.read(path)
    assert any(isinstance(event, TurnCompleted) for event in recording.events)
    assert any(isinstance(event, CallFinished) and event.state == "completed" for event in recording.events)
    played = await replay_offline(recording)
    assert normalize_recording(played) == normalize_recording(recording)
    assert len(played.events) == len(recording.events)


@pytest.mark.parametrize("path", RECORDED, ids=id_of)
async def test_a_result_that_was_changed_is_reported(path: Path) -> None:
    """The comparison can fail: one more character in what a tool came to is seen."""
    recording = Recording.read(path)
    at = next(at for at, event in enumerate(recording.events) if isinstance(event, CallFinished))
    settled = recording.events[at]
    assert isinstance(settled, CallFinished)
    other = replace(settled, output=replace(settled.output, text=f"{settled.output.text}!"))
    changed = replace(recording, events=(*recording.events[:at], other, *recording.events[at + 1 :]))
    assert normalize_recording(changed) != normalize_recording(recording)
    lines = differences(recording, changed)
    assert any("output.text" in line for line in lines), lines


def test_the_command_replays_all_of_them(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "everturn", "replay", *map(str, RECORDED)]
    output = run(words, tmp_path)
    assert output.count("the same, event for event") == len(RECORDED)


def test_the_command_tells_a_result_that_was_changed(tmp_path: Path) -> None:
    (original,) = [path for path in RECORDED if path.name == "payment.jsonl"]
    changed = tmp_path / "payment.jsonl"
    changed.write_text(original.read_text(encoding="utf-8").replace("paid 40.00", "paid 41.00", 1), encoding="utf-8")
    words = [sys.executable, "-m", "everturn", "replay", str(changed)]
    done = subprocess.run(words, env=environment(tmp_path), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr


@pytest.mark.parametrize("path", RECORDED, ids=id_of)
def test_a_recording_says_nothing_of_the_machine_it_was_made_on(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"/(tmp|root|home|work)/", text)
    assert str(ROOT) not in text


@pytest.mark.parametrize("name", NAMES)
def test_a_readme_says_how_to_start_what_to_try_and_where_to_look(name: str) -> None:
    readme = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", readme, re.MULTILINE) == ["Start it", "Try", "Look at"]
    assert 1 <= len(commands(name)) <= 3
    for link in re.findall(r"\]\((\.\./[^)#]+)", readme):
        assert (EXAMPLES / name / link).exists(), link
    for file in re.findall(r"`([\w/]+\.(?:py|toml|jsonl))`", readme):
        assert (EXAMPLES / name / file).exists(), file


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_short_enough_to_be_read(name: str) -> None:
    files = sorted((EXAMPLES / name).glob("*.py"))
    assert 1 <= len(files) <= 3
    for file in files:
        assert len(file.read_text(encoding="utf-8").splitlines()) <= 150, file


def test_the_readmes_of_examples_are_told_on_a_page() -> None:
    page = (ROOT / "docs" / "get-started" / "examples.md").read_text(encoding="utf-8")
    for name in NAMES:
        assert f"examples/{name}" in page
