"""`session/load` after a restart: the log is replayed, an open approval is asked again, and its tool runs once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from everturn.testing.provider import Call, Provider, Say, Think
from tests.helpers.acp_editor import Editor, open_editor
from tests.helpers.cli_run import TOOLS

pytestmark = pytest.mark.timeout(300)  # it starts processes, and a machine may be busy


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    async with Provider() as provider:
        yield provider


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project" / ".git").mkdir(parents=True)
    return tmp_path / "project"


async def load(editor: Editor, session: str, project: Path) -> dict[str, Any]:
    return await editor.call("session/load", sessionId=session, cwd=str(project), mcpServers=[])


async def test_an_approval_that_is_open_across_kill_9_is_asked_again_and_its_tool_runs_once(
    provider: Provider, tmp_path: Path, project: Path
) -> None:
    """The tool is at most once: it appends to a file, which a second run would show."""
    (tmp_path / "c.toml").write_text(
        f'[tools]\npython = ["{TOOLS}"]\n[[permissions]]\ntool = "save"\naction = "ask"\n', encoding="utf-8"
    )
    steps = [[Think("Hm."), Say("Before. "), Call("save", '{"path": "a.md", "text": "x"}')], [Say("After.")]]
    provider.script("m", steps, sequence=True)
    words = ["--model", "m", "--base-url", f"{provider.url}/v1", "--config", "c.toml"]
    async with open_editor(tmp_path, *words, choose=lambda _: None) as editor:
        session = await editor.new(project)
        await editor.start("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "Go"}]})
        await editor.until(lambda: bool(editor.permissions))
        editor.process.kill()
        await editor.process.wait()
    effects = tmp_path / "done.txt"
    assert not effects.exists()

    async with open_editor(tmp_path, *words, choose=lambda _: None) as editor:
        loaded = await load(editor, session, project)
        assert loaded["result"]["modes"]["currentModeId"] == "ask"
        assert editor.text("user_message_chunk") == "Go"
        assert (editor.text(), editor.text("agent_thought_chunk")) == ("Before. ", "Hm.")
        assert editor.states() == ["pending"] * len(editor.states())
        await editor.until(lambda: bool(editor.permissions))
        assert not effects.exists()
        await editor.answer(editor.open, "allow_once")
        await editor.until(lambda: editor.text() == "Before. After.")
        assert editor.states()[-1] == "completed"
        assert effects.read_text(encoding="utf-8").splitlines() == ["save a.md"]

    async with open_editor(tmp_path, *words) as editor:  # and once more: nothing is open, everything is shown
        await load(editor, session, project)
        assert (editor.text(), editor.permissions) == ("Before. After.", [])
        assert len(editor.states()) >= 3
    assert effects.read_text(encoding="utf-8").splitlines() == ["save a.md"]
    assert len(provider.seen) == 2


async def test_two_editors_share_the_sessions_and_one_takes_over(
    provider: Provider, tmp_path: Path, project: Path
) -> None:
    provider.script("m", [[Say("One.")], [Say("Two.")]], sequence=True)
    words = ["--model", "m", "--base-url", f"{provider.url}/v1"]
    async with open_editor(tmp_path, *words) as first:
        session = await first.new(project)
        assert (await first.prompt(session, "1"))["result"]["stopReason"] == "end_turn"
        async with open_editor(tmp_path) as second:
            await load(second, session, project)
            assert (second.text("user_message_chunk"), second.text()) == ("1", "One.")
            first.process.kill()  # it had the store
            await first.process.wait()
            listed = await second.call("session/list", cwd=str(project))
            assert [row["sessionId"] for row in listed["result"]["sessions"]] == [session]


async def test_an_unknown_session_is_not_found_and_a_resumed_one_is_not_replayed(
    provider: Provider, tmp_path: Path, project: Path
) -> None:
    provider.script("m", [[Say("One.")], [Say("Two.")]], sequence=True)
    words = ["--model", "m", "--base-url", f"{provider.url}/v1"]
    async with open_editor(tmp_path, *words) as editor:
        missing = await load(editor, "session_0123456789abcdef0123456789abcdef", project)
        assert missing["error"]["code"] == -32002
        session = await editor.new(project)
        editor.process.kill()
        await editor.process.wait()
    async with open_editor(tmp_path, *words) as editor:  # nothing was said in it, and the editor remembers it
        unused = await load(editor, session, project)
        assert "modes" in unused["result"]
        await editor.prompt(session, "1")
        resumed = await editor.call("session/resume", sessionId=session, cwd=str(project), mcpServers=[])
        assert "modes" in resumed["result"]
        assert (await editor.prompt(session, "2"))["result"]["stopReason"] == "end_turn"
        await asyncio.sleep(0)
        assert (editor.text("user_message_chunk"), editor.text()) == ("", "One.Two.")


async def test_a_session_that_is_loaded_again_is_not_shown_twice(
    provider: Provider, tmp_path: Path, project: Path
) -> None:
    provider.script("m", [[Say("One.")], [Say("Two.")]], sequence=True)
    words = ["--model", "m", "--base-url", f"{provider.url}/v1"]
    async with open_editor(tmp_path, *words) as editor:
        session = await editor.new(project)
        await editor.prompt(session, "1")
        await load(editor, session, project)
        editor.updates.clear()
        await editor.prompt(session, "2")
        assert editor.text() == "Two."
        assert (await editor.call("session/close", sessionId=session))["result"] == {}
        assert (await editor.prompt(session, "3"))["error"]["code"] == -32002
