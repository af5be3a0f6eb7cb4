"""Dictation and reading aloud in a real browser, with a microphone that beeps and programs that hear and speak."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Playwright, expect

from tests.helpers.scripted_server.server import Rig, a_rig
from tests.web.conftest import ARGUMENTS, CHROMIUM, Visit
from tests.web.page_measurements import axe

HEAR = (
    "import sys, wave\nwith wave.open(sys.stdin.buffer) as f:\n    seconds = f.getnframes() / f.getframerate()\n"
    "    loud = max(abs(int.from_bytes(f.readframes(1), 'little', signed=True)) for _ in range(f.getnframes()))\n"
    "    print('heard' if seconds > 0.5 and loud > 300 else f'silence {seconds} {loud}', f.getframerate())"
)
SPEAK = (
    "import io, sys, wave\nsys.stdin.read()\nout = io.BytesIO()\nwith wave.open(out, 'wb') as f:\n"
    "    f.setparams((1, 2, 16000, 0, 'NONE', ''))\n    f.writeframes(bytes(32000 * 60))\nsys.stdout.buffer.write(out.getvalue())"
)
FAKE_MICROPHONE = (
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
    "--autoplay-policy=no-user-gesture-required",
)


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    """A server with audio."""
    hear, speak = json.dumps([sys.executable, "-c", HEAR]), json.dumps([sys.executable, "-c", SPEAK])
    with a_rig(more=f"\n[audio.transcription]\ncommand = {hear}\n[audio.speech]\ncommand = {speak}\n") as server:
        yield server


@pytest.fixture(scope="module")
def browser(playwright: Playwright) -> Iterator[Browser]:
    """A browser whose microphone beeps, and that asks nobody."""
    chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=[*ARGUMENTS, *FAKE_MICROPHONE])
    yield chromium
    chromium.close()


def test_what_is_dictated_is_in_the_box_and_an_answer_is_read(rig: Rig, visit: Visit) -> None:
    screen = visit().open()
    page = screen.page
    box = page.locator(".composer textarea")
    box.fill("Please note:")
    page.get_by_role("button", name="Dictate").click()
    expect(page.get_by_role("timer")).to_have_text("0:01")
    assert not axe(page)
    page.get_by_role("button", name="Stop recording").click()
    expect(box).to_have_value("Please note: heard 16000")
    assert rig.api("GET", "/api/sessions")["sessions"] == []  # nothing was sent
    box.fill("")
    screen.say("hello")
    screen.wait_idle()
    with page.expect_response(lambda answer: answer.url.endswith("/speech")) as spoken:
        page.get_by_role("button", name="Read aloud").last.click()
    assert (spoken.value.status, spoken.value.headers["content-type"]) == (200, "audio/wav")
    page.get_by_role("button", name="Stop reading").click()
    expect(page.get_by_role("button", name="Stop reading")).to_have_count(0)
