"""`everturn acp` as an editor uses it: sessions, prompts, tool calls, approvals, modes, commands, cancellation."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from everturn.testing.provider import Call, Hang, Provider, Say, Think
from tests.helpers.acp_editor import open_editor

pytestmark = pytest.mark.timeout(300)  # it starts processes, and a machine may be busy
WRITE = Call("write_file", '{"path": "new.txt", "content": "x\\n"}')


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    async with Provider() as provider:
        yield provider


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    (folder / "note.txt").write_text("the code is 4711\n", encoding="utf-8")
    return folder


def at(provider: Provider, *steps: Sequence[object]) -> list[str]:
    provider.script("m", steps or [[Say("unasked")]], sequence=True)  # pyright: ignore[reportArgumentType]
    return ["--model", "m", "--base-url", f"{provider.url}/v1"]


async def test_a_prompt_is_answered_with_text_thoughts_and_tool_calls(
    provider: Provider, tmp_path: Path, project: Path
) -> None:
    words = at(provider, [Think("Let me look."), Call("read_file", '{"path": "note.txt"}')], [Say("It is 4711.")])
    async with open_editor(tmp_path, *words) as editor:
        session = await editor.new(project)
        answer = await editor.prompt(session, "What is the code?")

        assert answer["result"] == {"stopReason": "end_turn"}
        assert editor.text() == "It is 4711."
        assert editor.text("agent_thought_chunk") == "Let me look."
        assert editor.text("user_message_chunk") == ""  # the editor shows its own message
        calls = [update for update in editor.updates if update["sessionUpdate"].startswith("tool_call")]
        assert (calls[0]["sessionUpdate"], calls[0]["kind"], calls[0]["status"]) == ("tool_call", "read", "pending")
        assert [state for at, state in enumerate(editor.states()) if at == 0 or state != editor.states()[at - 1]] == [
            *("pending", "in_progress", "completed")
        ]
        assert calls[-1]["toolCallId"] == calls[0]["toolCallId"]
        assert "4711" in calls[-1]["content"][0]["content"]["text"]
        located = next(update for update in calls if update.get("locations"))
        assert located["locations"] == [{"path": str(project / "note.txt"), "line": 1}] or located["locations"] == [
            {"path": str(project / "note.txt")}
        ]
        assert editor.permissions == []  # reading asks nobody


async def test_an_edit_is_asked_with_a_diff_and_always_holds_in_the_folder(
    provider: Provider, tmp_path: Path, project: Path
) -> None:
    (project / "new.txt").write_text("old\n", encoding="utf-8")
    words = at(provider, [WRITE], [Say("One.")], [WRITE], [Say("Two.")], [WRITE], [Say("Three.")])
    choices = iter(["reject_once", "allow_always_0"])
    async with open_editor(tmp_path, *words, choose=lambda _: next(choices)) as editor:
        session = await editor.new(project)
        await editor.prompt(session, "Write")
        assert (project / "new.txt").read_text(encoding="utf-8") == "old\n"
        assert editor.states()[-1] == "failed"
        await editor.prompt(session, "Again")
        assert (project / "new.txt").read_text(encoding="utf-8") == "x\n"
        other = await editor.new(project)
        assert (await editor.prompt(other, "In another session"))["result"]["stopReason"] == "end_turn"

    assert len(editor.permissions) == 2
    permission = editor.permissions[0]
    assert permission["toolCall"]["kind"] == "edit"
    diff = permission["toolCall"]["content"][0]
    assert diff == {"type": "diff", "path": str(project / "new.txt"), "oldText": "old\n", "newText": "x\n"}
    assert [option["kind"] for option in permission["options"]] == ["allow_once", "allow_always", "reject_once"] or {
        option["kind"] for option in permission["options"]
    } == {"allow_once", "allow_always", "reject_once"}
    assert "write_file" in next(option["name"] for option in permission["options"] if option["kind"] == "allow_always")
    assert permission["_meta"]["everturn"]["hash"]


async def test_modes_change_what_is_asked_and_offered(provider: Provider, tmp_path: Path, project: Path) -> None:
    words = at(provider, [Say("A plan.")], [WRITE], [Say("Done.")])
    async with open_editor(tmp_path, *words, choose=lambda _: "reject_once") as editor:
        session = await editor.new(project)
        assert (await editor.call("session/set_mode", sessionId=session, modeId="plan"))["result"] == {}
        await editor.prompt(session, "Plan")
        offered = [tool["function"]["name"] for tool in provider.seen[-1].body["tools"]]
        assert "read_file" in offered
        assert "write_file" not in offered
        await editor.call("session/set_mode", sessionId=session, modeId="auto-edit")
        await editor.prompt(session, "Do it")
        assert (project / "new.txt").read_text(encoding="utf-8") == "x\n"
        assert editor.permissions == []
        wrong = await editor.call("session/set_mode", sessionId=session, modeId="yolo")
        assert "plan, ask, auto-edit" in wrong["error"]["message"]


async def test_cancel_ends_the_turn_and_its_open_approval(provider: Provider, tmp_path: Path, project: Path) -> None:
    words = at(provider, [Say("begin"), Hang()], [WRITE], [Say("never")])
    async with open_editor(tmp_path, *words, choose=lambda _: None) as editor:
        session = await editor.new(project)
        content = [{"type": "text", "text": "Hi"}]
        prompt = await editor.start("session/prompt", {"sessionId": session, "prompt": content})
        await editor.until(lambda: editor.text() == "begin")
        await editor.notify("session/cancel", sessionId=session)
        async with asyncio.timeout(60):
            assert (await prompt)["result"] == {"stopReason": "cancelled"}
        prompt = await editor.start("session/prompt", {"sessionId": session, "prompt": content})
        await editor.until(lambda: bool(editor.permissions))
        await editor.notify("session/cancel", sessionId=session)
        await editor.answer(editor.open, "cancelled")
        async with asyncio.timeout(60):
            assert (await prompt)["result"] == {"stopReason": "cancelled"}
    assert not (project / "new.txt").exists()


async def test_a_failure_is_an_error_with_the_reason(provider: Provider, tmp_path: Path, project: Path) -> None:
    words = at(provider)
    async with open_editor(tmp_path, "--model", "other", *words[2:]) as editor:
        answer = await editor.prompt(await editor.new(project), "Hi")
    assert answer["error"]["code"] == -32603
    assert answer["error"]["data"]["kind"]


async def test_commands_are_announced_and_run(provider: Provider, tmp_path: Path, project: Path) -> None:
    (tmp_path / "c.toml").write_text(
        '[prompts.review]\ntext = "Review {{file}} now"\ndescription = "reviews"\n',
        encoding="utf-8",
    )
    words = at(provider, [Say("Fine.")])
    async with open_editor(tmp_path, *words, "--config", "c.toml") as editor:
        session = await editor.new(project)
        await editor.until(lambda: bool(editor.updates))
        (commands,) = [update["availableCommands"] for update in editor.updates if "availableCommands" in update]
        assert [command["name"] for command in commands] == ["compact", "review"]
        await editor.prompt(session, "/review note.txt")
    assert provider.seen[-1].body["messages"][-1]["content"] == "Review note.txt now"


async def test_files_of_the_editor_are_context_and_images_are_sent(
    provider: Provider, tmp_path: Path, project: Path
) -> None:
    words = at(provider, [Say("Seen.")])
    blocks: list[dict[str, Any]] = [
        {"type": "text", "text": "Look at "},
        {"type": "resource_link", "uri": f"file://{project}/note.txt", "name": "note.txt"},
        {"type": "resource", "resource": {"uri": f"file://{project}/b.txt", "text": "an unsaved buffer"}},
    ]
    async with open_editor(tmp_path, *words) as editor:
        session = await editor.new(project)
        answer = await editor.call("session/prompt", sessionId=session, prompt=blocks)
        assert answer["result"]["stopReason"] == "end_turn"
        bad = base64.b64encode(b"x").decode() + "!"
        wrong = [{"type": "image", "data": bad, "mimeType": "image/png"}]
        assert (await editor.call("session/prompt", sessionId=session, prompt=wrong))["error"]["code"] == -32602
    messages = str(provider.seen[-1].body["messages"])
    assert "an unsaved buffer" in messages
    assert "note.txt" in messages


async def test_a_folder_that_is_not_trusted_is_refused(provider: Provider, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    words = at(provider, [Say("Hi.")])
    async with open_editor(tmp_path, *words) as editor:
        refused = await editor.call("session/new", cwd=str(tmp_path / "plain"), mcpServers=[])
        assert "not trusted" in refused["error"]["message"]
    async with open_editor(tmp_path, *words, "--trust") as editor:
        assert (await editor.prompt(await editor.new(tmp_path / "plain"), "Hi"))["result"]["stopReason"] == "end_turn"


@pytest.mark.parametrize(("choice", "closing"), [("allow_once", False), ("reject_once", True)])
async def test_at_the_step_limit_the_editor_is_asked_whether_to_continue(
    provider: Provider, tmp_path: Path, project: Path, choice: str, closing: bool
) -> None:
    reads = [[Call("read_file", f'{{"path": "note.txt", "limit": {number + 1}}}')] for number in range(10)]
    words = at(provider, *reads, [Say("That is all.")])
    config = tmp_path / "everturn.toml"
    config.write_text("[assistant]\nmax_steps = 10\n", encoding="utf-8")
    async with open_editor(tmp_path, *words, "--config", str(config), choose=lambda _: choice) as editor:
        session = await editor.new(project)
        answer = await editor.prompt(session, "Read")
        assert answer["result"]["stopReason"] == ("max_turn_requests" if closing else "end_turn")
        assert editor.text() == "That is all."
    (permission,) = editor.permissions
    assert permission["toolCall"]["title"] == "Step limit reached. Continue, for up to 20 steps in total?"
    assert [(option["optionId"], option["name"]) for option in permission["options"]] == [
        ("allow_once", "Continue"),
        ("reject_once", "End with a closing answer"),
    ]
