"""Without anything that only Linux has: every module can be imported, pure tests pass, and the assistant works in a folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from everturn.testing.provider import Call, Provider, Say
from tests.helpers.acp_editor import open_editor
from tests.helpers.cli_run import plain
from tools.environment import ROOT

pytestmark = pytest.mark.timeout(300)  # it starts processes, and a machine may be busy
DARWIN = [sys.executable, "-m", "tests.helpers.darwin"]


def run(home: Path, *words: str) -> str:
    """What a process on the other platform prints; it must succeed."""
    environ = plain(home) | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([*DARWIN, *words], capture_output=True, text=True, env=environ, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_no_module_needs_linux_to_be_imported(tmp_path: Path) -> None:
    assert run(tmp_path, "import").strip() == ""


def test_the_pure_core_and_turns_pass_there(tmp_path: Path) -> None:
    printed = run(tmp_path, "pytest", "tests/core/test_state.py", "tests/turn/test_step_limit.py")
    assert " passed" in printed


async def test_the_assistant_reads_writes_and_edits_files_in_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / "note.txt").write_text("the code is 4711\n", encoding="utf-8")
    async with Provider() as provider:
        steps = [
            [Call("search_files", '{"text": "4711"}')],
            [Call("edit_file", '{"path": "note.txt", "old_text": "4711", "new_text": "4712"}')],
            [Call("write_file", '{"path": "new/file.txt", "content": "x\\n"}')],
            [Call("read_file", '{"path": "../outside.txt"}')],
            [Say("Done.")],
        ]
        provider.script("m", steps, sequence=True)
        words = ["--model", "m", "--base-url", f"{provider.url}/v1"]
        async with open_editor(tmp_path, *words, program=[*DARWIN, "everturn", "acp"]) as editor:
            session = await editor.new(project)
            answer = await editor.prompt(session, "Correct the code")
            assert answer["result"]["stopReason"] == "end_turn"
            assert editor.text() == "Done."
            assert editor.states()[-1] == "failed", "the path outside of the folder"
        assert [permission["toolCall"]["kind"] for permission in editor.permissions] == ["edit", "edit"], (
            "each was asked about"
        )
        offered = {tool["function"]["name"] for tool in provider.seen[0].body["tools"]}
    assert (project / "note.txt").read_text(encoding="utf-8") == "the code is 4712\n"
    assert (project / "new" / "file.txt").read_text(encoding="utf-8") == "x\n"
    assert "run_shell" not in offered, "there is no sandbox for it"
