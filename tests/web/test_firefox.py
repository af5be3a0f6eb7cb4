"""The story of a conversation in Firefox: log in, approve, deny, reload, survive a kill -9 of the server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from tests.helpers.scripted_server.server import Rig
from tests.web.conftest import missing

FOLDER: Final = Path(__file__).parent / "firefox"
FIREFOX: Final = os.environ.get("EVERTURN_FIREFOX") or shutil.which("firefox-esr") or shutil.which("firefox") or ""
CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "everturn" / "firefox"
PICTURES: Final = os.environ.get("EVERTURN_PICTURES", "")  # a folder for screenshots, to look at


@pytest.mark.timeout(240)
def test_the_story_in_firefox(rig: Rig, tmp_path: Path) -> None:
    if not FIREFOX or not (CACHE / "node_modules").is_dir():
        missing("there is no Firefox, or no driver for it; run scripts/browser")
    before = len(rig.deeds("mail"))
    shutil.copy(FOLDER / "story.mjs", tmp_path)
    (tmp_path / "node_modules").symlink_to(CACHE / "node_modules")
    config = {"link": rig.login_link(), "url": rig.url, "firefox": FIREFOX, "pictures": PICTURES}
    story = subprocess.Popen(
        ["node", "story.mjs", json.dumps(config)],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    assert story.stdin is not None
    assert story.stdout is not None
    steps: dict[str, dict[str, Any]] = {}
    session = ""
    for line in story.stdout:
        step = json.loads(line)
        if "wait" in step:
            session = step["session"].split("/")[2]
            rig.kill()
            rig.serve()
            story.stdin.write("\n")
            story.stdin.flush()
        else:
            steps[step["step"]] = step
    _, errors = story.communicate(timeout=30)
    assert story.returncode == 0, f"after {list(steps)}: {errors[-2000:]}"
    assert list(steps) == ["logged in", "approved", "reloaded", "denied", "resumed", "pages"]
    assert len(rig.deeds("mail")) == before + 1, "the denied call must not run, and the approved one once"
    assert steps["resumed"]["text"] == rig.stored_text(session)
    assert steps["pages"]["problems"] == []
    assert not steps["pages"]["wide"], "the page scrolls sideways at 390 px"
