"""`everturn run` in a project: its session is saved, belongs to the folder, continues, and `everturn logs` shows it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from tests.helpers.cli_run import RUN, Here, plain, start

from everturn.cli import main
from everturn.config.folder.project import find_project
from everturn.stores.registry import get_store
from everturn.testing.provider import Call, Hang, Provider, Say, Status

pytestmark = pytest.mark.timeout(180)  # some start processes, and a machine may be busy


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    async with Provider() as provider:
        yield provider


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]) -> Here:
    found = Here(tmp_path, monkeypatch, capsysbinary)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in ("project", "other"):
        (tmp_path / name / ".git").mkdir(parents=True)
    (tmp_path / "project" / "note.txt").write_text("the code is 4711\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path / "project")
    return found


def at(provider: Provider, *steps: Sequence[object]) -> list[str]:
    provider.script("m", steps or [[Say("unasked")]], sequence=True)  # pyright: ignore[reportArgumentType]
    return ["--model", "m", "--base-url", f"{provider.url}/v1"]


def store_of(home: Path) -> Path:
    return home / ".local" / "share" / "everturn" / "everturn.db"


async def agents_of(home: Path) -> list[str]:
    store = get_store(str(store_of(home)))
    try:
        return [info.agent for info in await store.session_page("local")]
    finally:
        await store.aclose()


async def test_a_run_is_saved_belongs_to_its_folder_and_continues(
    provider: Provider, cli: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = at(provider, [Say("One.")], [Say("Elsewhere.")], [Say("Two.")])
    assert (await cli(*words, "first")).out == "One.\n"
    monkeypatch.chdir(tmp_path / "other")
    assert (await cli(*words, "another folder")).out == "Elsewhere.\n"
    assert await agents_of(tmp_path) == [find_project(tmp_path / name).agent for name in ("other", "project")]

    monkeypatch.chdir(tmp_path / "project")
    done = await cli(*words, "-c", "second")

    assert (done.code, done.out, done.err) == (0, "Two.\n", "")
    contents = [message["content"] for message in provider.seen[-1].body["messages"] if message["role"] != "system"]
    assert contents == ["first", "One.", "second"]
    assert len(await agents_of(tmp_path)) == 2


async def test_nothing_to_continue_is_said(provider: Provider, cli: Here) -> None:
    done = await cli(*at(provider), "-c", "Hi")

    assert (done.code, done.out) == (2, "")
    assert "leave -c out" in done.err
    assert provider.seen == []


async def test_with_no_save_nothing_is_left(provider: Provider, cli: Here, tmp_path: Path) -> None:
    assert (await cli(*at(provider, [Say("One.")]), "--no-save", "Hi")).out == "One.\n"

    assert not store_of(tmp_path).exists()
    for option in (["--session", "x"], ["-c"], ["--wait"], ["--idempotency-key", "k"], ["--store", "x.db"]):
        done = await cli(*at(provider), "--no-save", *option, "Hi")
        assert (done.code, "--no-save" in done.err) == (2, True), done


async def test_in_a_project_the_model_has_its_files_and_writes_are_denied(
    provider: Provider, cli: Here, tmp_path: Path
) -> None:
    read, write = Call("read_file", '{"path": "note.txt"}'), Call("write_file", '{"path": "new.txt", "content": "x"}')
    words = at(provider, [read], [write], [Say("Done.")])

    done = await cli(*words, "Look")

    assert (done.code, done.out) == (3, "Done.\n")
    assert "write_file" in done.err
    results = [message["content"] for message in provider.seen[-1].body["messages"] if message["role"] == "tool"]
    assert "4711" in results[0]
    assert not (tmp_path / "project" / "new.txt").exists()


@pytest.mark.parametrize("option", [["--mode", "auto-edit"], ["--allow", "write_file(new.txt)"]])
async def test_edits_may_be_allowed_before(provider: Provider, cli: Here, tmp_path: Path, option: list[str]) -> None:
    words = at(provider, [Call("write_file", '{"path": "new.txt", "content": "x"}')], [Say("Done.")])

    done = await cli(*words, *option, "Write")

    assert (done.code, done.out, done.err) == (0, "Done.\n", "")
    assert (tmp_path / "project" / "new.txt").read_text(encoding="utf-8") == "x"


@pytest.mark.parametrize("is_trusted", [True, False])
async def test_without_trust_or_with_no_folder_there_are_no_files(
    provider: Provider, cli: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_trusted: bool
) -> None:
    words = at(provider, [Say("One.")])
    if not is_trusted:
        (tmp_path / "plain").mkdir()
        monkeypatch.chdir(tmp_path / "plain")

    done = await cli(*words, *(["--no-folder"] if is_trusted else []), "Hi")

    assert (done.code, done.out) == (0, "One.\n")
    assert "read_file" not in json.dumps(provider.seen[-1].body.get("tools", []))
    assert await agents_of(tmp_path) == [find_project(".").agent]  # it belongs to the folder all the same


async def test_with_an_output_schema_stdout_is_the_valid_answer(provider: Provider, cli: Here, tmp_path: Path) -> None:
    schema = {
        "type": "object",
        "properties": {"age": {"type": "integer"}},
        "required": ["age"],
        "additionalProperties": False,
    }
    (tmp_path / "s.json").write_text(json.dumps(schema), encoding="utf-8")
    words = at(provider, [Say('{"age": "old"}')], [Say('{"age": 36}')])

    done = await cli(*words, "--output-schema", str(tmp_path / "s.json"), "--no-folder", "How old?")

    assert (done.code, json.loads(done.out)) == (0, {"age": 36})
    assert len(provider.seen) == 2  # the first answer did not fit, and the model was asked again


@pytest.mark.parametrize(
    ("text", "expected"), [("[1]", "JSON Schema"), ("{", "not JSON"), ("{}", "JSON Schema"), (None, "read")]
)
async def test_a_wrong_schema_is_refused(
    provider: Provider, cli: Here, tmp_path: Path, text: str | None, expected: str
) -> None:
    if text is not None:
        (tmp_path / "s.json").write_text(text, encoding="utf-8")

    done = await cli(*at(provider), "--output-schema", str(tmp_path / "s.json"), "Hi")

    assert (done.code, done.out, expected in done.err, provider.seen) == (2, "", True, []), done


async def test_a_run_beside_another_one_is_saved_when_it_ends(provider: Provider, cli: Here, tmp_path: Path) -> None:
    words = at(provider, [Say("One.")], [Say("Two.")])
    assert (await cli(*words, "first")).code == 0
    store = get_store(str(store_of(tmp_path)))
    await store.lock_for_process()  # as a run that is under way has it
    try:
        done = await cli(*words, "second")
        continued = await cli(*words, "-c", "third")
    finally:
        await store.aclose()

    assert (done.code, done.out, done.err) == (0, "Two.\n", "")
    assert await agents_of(tmp_path) == [find_project(".").agent] * 2
    assert continued.code == 2  # what must continue in the store is not done elsewhere


async def test_a_run_leaves_the_unfinished_turns_of_others_alone(provider: Provider, cli: Here, tmp_path: Path) -> None:
    words = at(provider, [Say("begin"), Hang()], [Say("Two.")], [Say("too much")])
    killed = await start(tmp_path, *words, "--no-stdin", "first")
    assert killed.stdout is not None
    assert await killed.stdout.read(5) == b"begin"
    killed.kill()
    await killed.wait()

    done = await cli(*words, "second")

    assert (done.code, done.out) == (0, "Two.\n")
    assert [request.body["messages"][-1]["content"] for request in provider.seen] == ["first", "second"]


async def test_of_many_problems_of_a_configuration_one_line_is_printed(cli: Here, tmp_path: Path) -> None:
    (tmp_path / "project" / "wrong.toml").write_text("[server]\nprot = 1\n[agents.a]\nmodel = 3\n", encoding="utf-8")

    done = await cli("--config", "wrong.toml", "Hi")

    assert done.code == 2
    assert len(done.err.splitlines()) == 1
    assert done.err.endswith("did you mean 'port'? (and 1 more: `everturn config check wrong.toml` lists them)\n")


async def test_logs_show_why_a_turn_failed(provider: Provider, cli: Here, tmp_path: Path) -> None:
    assert (await cli(*at(provider, [Status(400)]), "What is a lake?")).code == 1

    def show() -> str:
        command = [*RUN[:-1], "logs", "show"]
        return subprocess.run(command, env=plain(tmp_path), capture_output=True, text=True, check=True).stdout

    shown = show()

    assert "What is a lake?" in shown
    assert re.search(r"^\[failed\] http://127\.0\.0\.1:\d+: HTTP 400", shown, re.MULTILINE)


async def test_logs_list_show_and_repeat_what_was_run(
    provider: Provider, cli: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = at(provider, [Say("A lake.")], [Say("Elsewhere.")])
    assert (await cli(*words, "What is a fjord?")).code == 0
    monkeypatch.chdir(tmp_path / "other")
    assert (await cli(*words, "Unrelated")).code == 0

    def logs(*options: str, folder: str = "project") -> str:
        command = [*RUN[:-1], "logs", *options]
        done = subprocess.run(
            command, cwd=tmp_path / folder, env=plain(tmp_path), capture_output=True, text=True, check=True
        )
        return done.stdout

    (line,) = logs().splitlines()
    assert "What is a fjord?" in line
    assert len(logs("--all").splitlines()) == 2
    (row,) = map(json.loads, logs("--json").splitlines())
    shown = logs("show")
    assert "What is a fjord?" in shown
    assert "A lake." in shown
    assert "(1 step, " in shown
    assert logs("answer") == "A lake.\n"
    assert logs("answer", row["id"], folder="other") == "A lake.\n"


def test_logs_without_anything_say_what_to_do(cli: Here, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["logs"]) == 2
    assert b"no store" in capsysbinary.readouterr().err
