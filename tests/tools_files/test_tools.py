"""The five tools, the same on a folder and in a session."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.tools_files.fake_app import Desk, folder_desk, virtual_desk

from everturn.core.rules.subjects import build_cases
from everturn.errors import BadArguments, ConfigError, ToolError
from everturn.tools.files import PROTECTED, UNPROTECTED, ProtectedPaths, files, matchers, search_tool, virtual_files
from everturn.tools.files.file_system import MAX_FILE_BYTES, content_hash
from everturn.tools.files.folder import _UNFINISHED


@pytest.fixture(params=["folder", "virtual"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    return folder_desk(tmp_path) if request.param == "folder" else virtual_desk()


# ------------------------------------------------------------------------------------------------------- list and read


async def test_a_directory_is_listed_by_name_with_kinds_and_sizes(desk: Desk) -> None:
    for path in ("b.txt", "a/one.txt", "a/two/three.txt", ".env"):
        await desk.put(path, "12345")
    assert await desk.text("list_directory") == ".env (5 bytes; protected)\na/\nb.txt (5 bytes)"
    assert await desk.text("list_directory", path="a/") == "one.txt (5 bytes)\ntwo/"


async def test_a_long_directory_is_listed_in_pages(desk: Desk) -> None:
    for number in range(5):
        await desk.put(f"{number}.txt", "")
    first = await desk.text("list_directory", limit=2)
    assert first == "0.txt (0 bytes)\n1.txt (0 bytes)\n[entries 1-2 of 5; go on with offset=3]"
    assert await desk.text("list_directory", limit=2, offset=5) == "4.txt (0 bytes)"
    assert "after the last" in await desk.text("list_directory", offset=6)


async def test_a_file_is_read_in_pages_and_its_hash_is_reported(desk: Desk) -> None:
    await desk.put("a.txt", "".join(f"line {number}\n" for number in range(1, 11)))
    output = await desk.call("read_file", path="a.txt", offset=4, limit=3)
    assert output.text == "[lines 4-6 of 10; go on with offset=7]\nline 4\nline 5\nline 6"
    assert output.metadata == {"path": "a.txt", "hash": content_hash(await desk.get("a.txt")), "lines": 10}
    assert (await desk.text("read_file", path="a.txt", offset=10)) == "[lines 10-10 of 10]\nline 10"
    with pytest.raises(ToolError, match=r"has 10 lines; offset=11 is after the last one"):
        await desk.call("read_file", path="a.txt", offset=11)


async def test_long_lines_and_long_pages_are_cut_and_said_to_be(desk: Desk) -> None:
    await desk.put("wide.txt", "x" * 5_000 + "\nshort\n")
    text = await desk.text("read_file", path="wide.txt")
    assert "… [3,000 more characters in this line]\nshort" in text
    assert "1 of them too long" in text
    await desk.put("long.txt", ("y" * 99 + "\n") * 1_000)
    text = await desk.text("read_file", path="long.txt")
    assert len(text) < 41_000
    assert "go on with offset=401" in text


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0", "is not text: 10 bytes that begin with 89 50 4e 47"),
        (b"\xff\xfeh\0i\0", "UTF-16"),
        (b"x" * (MAX_FILE_BYTES // 8) + b"\0", None),
    ],
)
async def test_what_is_not_text_is_refused_with_what_it_is(desk: Desk, data: bytes, expected: str | None) -> None:
    await desk.put("thing", data)
    if expected is None:  # a zero far behind its beginning: shown as it is
        assert "lines 1-1" in await desk.text("read_file", path="thing")
        return
    with pytest.raises(ToolError, match=expected):
        await desk.call("read_file", path="thing")


async def test_bytes_that_are_not_utf8_are_shown_as_such_and_never_edited(desk: Desk) -> None:
    await desk.put("latin.txt", b"one\ncaf\xe9\n")
    assert "line 2 has the byte 0xe9" in await desk.text("read_file", path="latin.txt")
    with pytest.raises(ToolError, match="an edit would damage it"):
        await desk.call("edit_file", path="latin.txt", old_text="one", new_text="two")
    assert await desk.get("latin.txt") == b"one\ncaf\xe9\n"


async def test_what_is_not_there_is_said_with_what_is(desk: Desk) -> None:
    await desk.put("src/main.py", "x")
    with pytest.raises(ToolError, match=r"there is no 'src/mian.py'; in 'src' there is 'main.py'"):
        await desk.call("read_file", path="src/mian.py")
    for name in ("read_file", "list_directory"):
        with pytest.raises(ToolError, match=r"nor a directory 'lib'"):
            await desk.call(name, path="lib/main.py")
    with pytest.raises(ToolError, match="is a directory"):
        await desk.call("read_file", path="src")
    with pytest.raises(ToolError, match="is a file of 1 bytes"):
        await desk.call("list_directory", path="src/main.py")
    with pytest.raises(ToolError, match=r"root itself|is a directory"):
        await desk.call("read_file", path=".")


# ------------------------------------------------------------------------------------------------------ write and edit


async def test_a_file_is_written_with_its_directories_and_a_second_time_nothing_happens(desk: Desk) -> None:
    first = await desk.call("write_file", path="a/b/c.txt", content="one\ntwo\n")
    assert first.text == "'a/b/c.txt' was created: 2 lines added, 0 removed"
    assert await desk.get("a/b/c.txt") == b"one\ntwo\n"
    again = await desk.call("write_file", path="a/b/c.txt", content="one\ntwo\n")
    assert again.text == "'a/b/c.txt' already holds just this; nothing was changed"
    more = await desk.call("write_file", path="a/b/c.txt", content="one\n2\n")
    assert more.text == "'a/b/c.txt' was changed: 1 line added, 1 removed"


async def test_a_file_is_no_directory_and_a_directory_no_file(desk: Desk) -> None:
    await desk.put("a/b.txt", "x")
    with pytest.raises(ToolError, match="a part of it is a file"):
        await desk.call("write_file", path="a/b.txt/c.txt", content="")
    with pytest.raises(ToolError, match="is a directory"):
        await desk.call("write_file", path="a", content="")
    with pytest.raises(ToolError, match=r"root itself|is a directory"):
        await desk.call("write_file", path=".", content="")


async def test_an_edit_replaces_the_one_place_or_all(desk: Desk) -> None:
    await desk.put("a.txt", "one two one\n")
    with pytest.raises(ToolError, match=r"occurs 2 times \(lines 1, 1\)"):
        await desk.call("edit_file", path="a.txt", old_text="one", new_text="1")
    await desk.call("edit_file", path="a.txt", old_text="two", new_text="2")
    assert await desk.get("a.txt") == b"one 2 one\n"
    await desk.call("edit_file", path="a.txt", old_text="one", new_text="1", all=True)
    assert await desk.get("a.txt") == b"1 2 1\n"


async def test_an_edit_of_what_is_not_there_shows_the_nearest_line(desk: Desk) -> None:
    await desk.put("a.py", "def main():\n    return compute(1)\n")
    with pytest.raises(ToolError, match=r"The nearest is line 2: '    return compute\(1\)'"):
        await desk.call("edit_file", path="a.py", old_text="  return compute(2)", new_text="x")
    with pytest.raises(ToolError, match="Its first line is line 1, but what follows there is different"):
        await desk.call("edit_file", path="a.py", old_text="def main():\n  pass", new_text="x")
    with pytest.raises(ToolError, match="There is nothing like it"):
        await desk.call("edit_file", path="a.py", old_text="@@@@", new_text="x")
    with pytest.raises(ToolError, match=r"there is no 'b.py'; in '.' there is 'a.py'"):
        await desk.call("edit_file", path="b.py", old_text="x", new_text="y")


async def test_an_edit_keeps_the_line_breaks_of_the_file(desk: Desk) -> None:
    await desk.put("dos.txt", "one\r\ntwo\r\nthree\r\n")
    assert "CR LF" in await desk.text("read_file", path="dos.txt")
    await desk.call("edit_file", path="dos.txt", old_text="one\ntwo", new_text="1\n2")
    assert await desk.get("dos.txt") == b"1\r\n2\r\nthree\r\n"


# ----------------------------------------------------------------------------------------- crashes, previews, the basis


async def test_an_edit_that_a_crash_cut_short_is_not_made_twice(desk: Desk) -> None:
    for before, old, new in (
        ("one\ntwo\n", "one", "one\nmore"),  # the old text is part of the new one
        ("one\ntwo\n", "two", "2"),
        ("x = 1\n", "x", "xx"),
        ("a a a", "a", "aa"),
    ):
        await desk.put("a.txt", before)
        arguments: dict[str, Any] = {"path": "a.txt", "old_text": old, "new_text": new, "all": before == "a a a"}
        preview = await desk.preview("edit_file", **arguments)
        await desk.call("edit_file", **arguments, base_version=preview.base_version)
        after = await desk.get("a.txt")
        again = await desk.call(
            "edit_file", **arguments, base_version=preview.base_version
        )  # nobody knows that it was done
        assert "already is as this edit makes it" in again.text
        assert await desk.get("a.txt") == after != before.encode()


async def test_a_deletion_that_a_crash_cut_short_is_known_by_what_the_call_kept(desk: Desk) -> None:
    await desk.put("a.txt", "one\ntwo\n")
    await desk.call("edit_file", path="a.txt", old_text="two\n", new_text="")
    await asyncio.sleep(0)
    assert desk.kept == [content_hash(b"one\n")]
    again = await desk.call("edit_file", path="a.txt", old_text="two\n", new_text="", saved_state=desk.kept[0])
    assert "already is as this edit makes it" in again.text
    with pytest.raises(ToolError, match="does not stand in the file"):  # the next call knows nothing of that
        await desk.call("edit_file", path="a.txt", old_text="two\n", new_text="")


async def test_an_edit_that_would_leave_its_old_text_behind_is_refused(desk: Desk) -> None:
    await desk.put("a.txt", "aab")
    with pytest.raises(ToolError, match="would contain old_text again"):
        await desk.call("edit_file", path="a.txt", old_text="ab", new_text="b")
    assert await desk.get("a.txt") == b"aab"


async def test_a_write_is_shown_as_a_diff_before_it_is_made(desk: Desk) -> None:
    shown = await desk.preview("write_file", path="a.txt", content="new\u200b\n")
    assert (shown.text, shown.base_version) == ("--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+new\u200b", "absent")
    await desk.put("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n")
    shown = await desk.preview("edit_file", path="a.txt", old_text="5", new_text="five")
    assert shown.text == "--- a/a.txt\n+++ b/a.txt\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8"
    assert shown.base_version == content_hash(b"1\n2\n3\n4\n5\n6\n7\n8\n")
    with pytest.raises(ToolError, match=r"'a.txt' was not changed: old_text does not stand"):
        await desk.preview("edit_file", path="a.txt", old_text="nine", new_text="9")  # nobody is asked about it
    with pytest.raises(ToolError, match=r"there is no 'b.txt'"):
        await desk.preview("edit_file", path="b.txt", old_text="1", new_text="2")
    assert (await desk.preview("edit_file", path="a.txt", old_text="0", new_text="1")).text == "nothing would change"
    await desk.put("bin", b"\0\1")
    assert "is not text: 2 bytes become 4" in (await desk.preview("write_file", path="bin", content="text")).text


async def test_what_changed_after_it_was_shown_is_not_written(desk: Desk) -> None:
    await desk.put("a.txt", "one\n")
    wrote: dict[str, Any] = {"path": "a.txt", "content": "two\n"}
    edited: dict[str, Any] = {"path": "a.txt", "old_text": "one", "new_text": "two"}
    bases = [
        (await desk.preview("write_file", **wrote)).base_version,
        (await desk.preview("edit_file", **edited)).base_version,
    ]
    await desk.put("a.txt", "one, and what somebody else wrote\n")
    for name, arguments, base_version in zip(("write_file", "edit_file"), (wrote, edited), bases, strict=True):
        with pytest.raises(ToolError, match="has changed since the user saw"):
            await desk.call(name, **arguments, base_version=base_version)
    assert await desk.get("a.txt") == b"one, and what somebody else wrote\n"
    new = (await desk.preview("write_file", path="new.txt", content="mine")).base_version
    await desk.put("new.txt", "theirs")
    with pytest.raises(ToolError, match="has changed since"):
        await desk.call("write_file", path="new.txt", content="mine", base_version=new)
    await desk.put("new.txt", "mine")  # as it was to be: there is nothing to refuse
    assert "already" in (await desk.call("write_file", path="new.txt", content="mine", base_version=new)).text
    gone = content_hash(b"something that was there")
    with pytest.raises(ToolError, match="has changed since"):
        await desk.call("write_file", path="never.txt", content="mine", base_version=gone)


async def test_fifty_edits_at_once_are_all_made(desk: Desk) -> None:
    await desk.put("a.txt", "".join(f"<{number}>\n" for number in range(50)))
    edits = [
        desk.call("edit_file", path="a.txt", old_text=f"<{number}>", new_text=f"[{number}]") for number in range(50)
    ]
    await asyncio.gather(*edits)
    assert await desk.get("a.txt") == "".join(f"[{number}]\n" for number in range(50)).encode()


# ---------------------------------------------------------------------------------------------------------------- search


async def test_lines_are_found_by_text_and_by_pattern(desk: Desk) -> None:
    await desk.put("src/a.py", "import os\nprint('Hello')\n")
    await desk.put("src/b.txt", "hello\n")
    await desk.put("c.py", "nothing")
    found = await desk.text("search_files", text="Hello")
    assert found == "src/a.py:2: print('Hello')\n[1 line in 1 file; 3 searched]"
    found = await desk.text("search_files", text="hello", ignore_case=True, path="src")
    assert found == "src/a.py:2: print('Hello')\nsrc/b.txt:1: hello\n[2 lines in 2 files; 2 searched]"
    found = await desk.text("search_files", text=r"^h\w+o$", regex=True, ignore_case=True)
    assert found == "src/b.txt:1: hello\n[1 line in 1 file; 3 searched]"
    assert "src/a.py:1" in await desk.text("search_files", text="import", glob="*.py")
    assert "0 lines" in await desk.text("search_files", text="import", glob="src/*.txt")
    assert "src/a.py:1" in await desk.text("search_files", text="import", glob="src/**/*.py", path="src/a.py")
    with pytest.raises(BadArguments, match="is not a regular expression: unterminated"):
        await desk.text("search_files", text="[a", regex=True)
    with pytest.raises(BadArguments, match="searches line by line"):
        await desk.text("search_files", text="a\nb")


async def test_a_search_leaves_out_what_is_protected_hidden_or_no_text(desk: Desk) -> None:
    for path in ("server.pem", ".env", ".git/config", ".hidden/x", "keys/id_rsa", ".ssh/known", "plain"):
        await desk.put(path, "secret")
    await desk.put("binary", b"\0secret")
    await desk.put("large", b"secret" + b"x" * search_tool.MAX_SEARCHED_BYTES)
    found = await desk.text("search_files", text="secret")
    assert found == (
        "plain:1: secret\n[1 line in 1 file; 1 searched; 2 protected ones left out; "
        "2 left out that are no text or too large]"
    )
    for path in (".env", "server.pem", ".ssh", ".ssh/known", "KEYS/ID_RSA"):
        with pytest.raises(BadArguments, match="protected"):
            await desk.text("search_files", text="secret", path=path)


async def test_hidden_files_are_searched_where_that_is_wanted(tmp_path: Path) -> None:
    for desk in (folder_desk(tmp_path, hidden=True), virtual_desk(hidden=True)):
        for path in (".env", ".git/HEAD", ".hidden/x", ".ssh/known"):
            await desk.put(path, "secret")
        found = await desk.text("search_files", text="secret")
        assert found == ".hidden/x:1: secret\n[1 line in 1 file; 1 searched; 2 protected ones left out]"


async def test_a_search_stops_at_its_limit(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        await desk.put(f"{number}.txt", "hit\n" * 3)
    found = await desk.text("search_files", text="hit", limit=5)
    assert found.count(": hit") == 5
    assert "stopped at 5 lines" in found
    monkeypatch.setattr(search_tool, "MOST_FILES", 2)
    assert "stopped after 2 files" in await desk.text("search_files", text="hit")
    monkeypatch.setattr(search_tool, "SEARCH_TIMEOUT", -1.0)
    assert "stopped after -1 seconds" in await desk.text("search_files", text="hit")


async def test_a_pattern_that_would_take_years_is_killed_and_blocks_nobody(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matchers, "MATCH_TIMEOUT", 1.0)
    await desk.put("a.txt", "a" * 60 + "!\n")
    over, beats = asyncio.Event(), 0

    async def beat() -> None:
        nonlocal beats
        while not over.is_set():
            beats += 1
            await asyncio.sleep(0.01)

    async with asyncio.TaskGroup() as group:
        group.create_task(beat())
        with pytest.raises(ToolError, match="takes too long to match"):
            await desk.text("search_files", text="(a+)+$", regex=True)
        over.set()
    assert beats > 10  # of about a hundred: the loop went on meanwhile
    assert await _children() == []


async def test_a_matcher_that_dies_is_an_answer(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    await desk.put("a.txt", "x")
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    with pytest.raises(ToolError, match="could not be matched"):
        await desk.text("search_files", text="x+", regex=True)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="children are looked up in /proc")
async def test_a_search_that_is_cancelled_leaves_no_process_behind(desk: Desk) -> None:
    await desk.put("a.txt", "a" * 60 + "!\n")
    task = asyncio.create_task(desk.text("search_files", text="(a+)+$", regex=True))
    while not await _children():
        pass
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await _children() == []


async def _children() -> list[str]:
    """The matchers that run on our behalf."""

    def look() -> list[str]:
        found: list[str] = []
        for pid in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
            for child in pid.read_text(encoding="utf-8").split():
                line = Path(f"/proc/{child}/cmdline")
                if line.exists() and b"grep_worker.py" in line.read_bytes():
                    found.append(child)
        return found

    return await asyncio.to_thread(look)


# --------------------------------------------------------------------------------------------------- what is protected

FOR_NOBODY = [
    *(".env", ".ENV", ".env.local", "app/.env.production", ".envrc", "server.pem", "certs/Key.PEM", "id_rsa"),
    *("home/.ssh/config", ".SSH/authorized_keys", ".gnupg/x", ".aws/credentials", ".netrc", ".npmrc", ".pypirc"),
    *(".git/config", ".GIT/CONFIG", "GIT~1/config", ".everturn/trust.json", ".g\u200cit/config", "．env", ".ｅnv"),  # noqa: RUF001
    *(
        ".config/everturn/mcp-tokens/a.json",
        "home/.config/everturn/mcp-trust.json",
        ".local/state/everturn/snapshots/x",
    ),
    *(".git-credentials", "a/b/.kube/config", "id_ed25519.pub", ".e\u00adnv"),
]
FOR_READING = [
    *(
        ".git/hooks/pre-commit",
        ".git/HEAD",
        "sub/.git/hooks/x",
        ".git",
        "git~1/hooks/x",
        ".bashrc",
        ".zshrc",
        ".profile",
    ),
    *(
        "everturn.toml",
        "Everturn.TOML",
        ".github/workflows/ci.yml",
        ".gitlab-ci.yml",
        ".vscode/tasks.json",
        ".mcp.json",
    ),
    *(".idea/workspace.xml", "CLAUDE.md", "claude.md", "docs/AGENTS.md", ".cursorrules", ".husky/pre-push"),
    *(".GITHUB/Workflows/x.yml", ".bash_profile"),
]
FOR_ALL = [
    *(
        "environment.py",
        "env",
        "src/id_map.py",
        "README.md",
        "agents.py",
        "claude.txt",
        ".gitignore",
        ".github/FUNDING.yml",
    ),
    *("my.git/x", "everturn.toml.md", "git/config", "ssh/config", "keys.py"),
]


async def test_protected_paths_are_denied_whether_they_are_there_or_not(desk: Desk) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("read_file", {}),
        ("list_directory", {}),
        ("search_files", {"text": "x"}),
        ("write_file", {"content": "x"}),
        ("edit_file", {"old_text": "a", "new_text": "b"}),
    ]
    for path in [*FOR_NOBODY, *FOR_READING, *FOR_ALL]:
        for name, more in calls:
            arguments: dict[str, Any] = {"path": path, **more}
            if path in FOR_NOBODY or (path in FOR_READING and name in ("write_file", "edit_file")):
                with pytest.raises(BadArguments, match="is protected"):
                    desk.tools[name].validate(arguments)
                with pytest.raises(BadArguments, match="is protected"):  # nor for whoever validates nothing
                    await desk.tools[name].run(arguments, desk.context())
            else:
                desk.tools[name].validate(arguments)


async def test_protection_is_widened_and_narrowed_in_so_many_words(tmp_path: Path) -> None:
    (tmp_path / ".env.example").write_text("A=1", encoding="utf-8")
    protect = PROTECTED.excluding("**/.env.example", ".github/workflows").adding(
        secrets=["data/**"], write_protected=["Makefile"]
    )
    desk = folder_desk(tmp_path, protect=protect)
    assert "A=1" in await desk.text("read_file", path=".env.example")
    await desk.text("write_file", path=".github/workflows/ci.yml", content="on: push")
    for name, path in (
        ("read_file", ".env"),
        ("read_file", "data/x"),
        ("read_file", "DATA"),
        ("write_file", "makefile"),
    ):
        with pytest.raises(BadArguments, match="protected"):
            await desk.text(name, path=path, **({"content": ""} if name == "write_file" else {}))
    free = folder_desk(tmp_path, protect=UNPROTECTED)
    await free.text("write_file", path=".env", content="B=2")
    with pytest.raises(ConfigError, match="tuple of patterns"):
        ProtectedPaths(secrets="**/.env")  # pyright: ignore[reportArgumentType]


# ----------------------------------------------------------------------------------------------- as tools of a runtime


def test_what_the_tools_are() -> None:
    group = virtual_files()
    specs = {tool.spec.name: tool.spec for tool in group.tools}
    assert list(specs) == ["list_directory", "read_file", "search_files", "write_file", "edit_file"]
    assert {name: (spec.read_only, spec.idempotent, spec.approval) for name, spec in specs.items()} == {
        "list_directory": (True, False, "auto"),
        "read_file": (True, False, "auto"),
        "search_files": (True, False, "auto"),
        "write_file": (False, True, "auto"),
        "edit_file": (False, True, "auto"),
    }
    assert all(spec.subjects == {"path": "path"} for spec in specs.values())
    assert len(virtual_files(read_only=True).tools) == 3


def test_writing_in_a_folder_is_asked_about_and_two_folders_are_not_one(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, second = ({tool.spec.name: tool.spec for tool in files(tmp_path / name).tools} for name in "ab")
    assert first["write_file"].approval == first["edit_file"].approval == "ask"
    assert (
        first["write_file"].identity != second["write_file"].identity
    )  # what is granted in one holds not in the other
    assert {t.spec.approval for t in files(tmp_path, approval="ask").tools} == {"auto", "ask"}


def test_rules_are_held_against_the_path_that_is_meant(desk: Desk) -> None:
    arguments = desk.tools["read_file"].validate({"path": "./src//a.py", "limit": "5"})
    assert arguments == {"path": "src/a.py", "offset": 1, "limit": 5}
    [case] = build_cases({"path": "path"}, arguments, lambda text: [], frozenset())
    assert case["path"] is not None
    assert case["path"].text == "src/a.py"


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"path": 5},
        {"path": "a", "colour": "red"},
        {"path": "a", "limit": 0},
        {"path": "a", "offset": "x"},
        {"path": None},
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_those_there_are(desk: Desk, arguments: dict[str, Any]) -> None:
    with pytest.raises(BadArguments, match="Its parameters are: path, offset, limit"):
        desk.tools["read_file"].validate(arguments)


async def test_texts_that_are_no_texts_are_refused(desk: Desk) -> None:
    with pytest.raises(BadArguments, match="incomplete character"):
        await desk.call("write_file", path="a", content="\ud800")
    with pytest.raises(BadArguments, match="at most 8 MiB"):
        await desk.call("write_file", path="a", content="x" * (MAX_FILE_BYTES + 1))
    with pytest.raises(BadArguments, match="are the same"):
        await desk.call("edit_file", path="a", old_text="x", new_text="x")
    with pytest.raises(BadArguments, match="old_text"):
        await desk.call("edit_file", path="a", old_text="", new_text="x")


async def test_an_app_that_keeps_no_files_says_so() -> None:
    from msgspec.structs import replace

    desk = virtual_desk()
    with pytest.raises(ConfigError, match="not available in this context"):
        await desk.tools["read_file"].run({"path": "a"}, replace(desk.context(), files=None))


# --------------------------------------------------------------------------------------------------------- only folders


async def test_a_file_keeps_its_mode_and_loses_the_right_to_be_somebody_else(tmp_path: Path) -> None:
    desk = folder_desk(tmp_path)
    (tmp_path / "run.sh").write_text("echo 1", encoding="utf-8")
    (tmp_path / "run.sh").chmod(0o4750)
    await desk.call("edit_file", path="run.sh", old_text="1", new_text="2")
    assert stat.S_IMODE((tmp_path / "run.sh").stat().st_mode) == 0o750
    (tmp_path / "run.sh").chmod(0o444)
    with pytest.raises(ToolError, match="read-only"):
        await desk.call("edit_file", path="run.sh", old_text="2", new_text="3")


async def test_a_write_that_fails_half_way_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = folder_desk(tmp_path)
    (tmp_path / "a.txt").write_text("old", encoding="utf-8")

    def full(*args: object, **more: object) -> None:
        raise OSError(28, "No space left on device")

    for name in ("fsync", "rename"):
        with monkeypatch.context() as patched:
            patched.setattr(os, name, full)
            with pytest.raises(ToolError, match="the disk is full"):
                await desk.call("write_file", path="a.txt", content="new")
        assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "old"
        assert os.listdir(tmp_path) == ["a.txt"]


async def test_what_a_dead_writer_left_is_swept_away_after_an_hour(tmp_path: Path) -> None:
    old, young = tmp_path / f".everturn-{'0' * 16}.tmp", tmp_path / f".everturn-{'1' * 16}.tmp"
    for left in (old, young):
        assert _UNFINISHED.fullmatch(left.name)
        left.write_text("half", encoding="utf-8")
    os.utime(old, (time.time() - 4000, time.time() - 4000))
    await folder_desk(tmp_path).call("write_file", path="a.txt", content="new")
    assert sorted(os.listdir(tmp_path)) == [young.name, "a.txt"]


@pytest.mark.parametrize("was_there", [True, False])
async def test_what_somebody_writes_in_the_midst_of_a_change_is_not_lost(tmp_path: Path, was_there: bool) -> None:
    desk = folder_desk(tmp_path)
    path = tmp_path / "a.txt"
    if was_there:
        path.write_text("one", encoding="utf-8")

    def make(old: bytes | None) -> bytes:
        (tmp_path / "other").write_text("theirs", encoding="utf-8")
        os.replace(tmp_path / "other", path)
        return b"ours"

    with pytest.raises(ToolError, match="changed by somebody else just now"):
        await desk.system().change("a.txt", make)
    assert os.listdir(tmp_path) == ["a.txt"]
    assert path.read_text(encoding="utf-8") == "theirs"


async def test_a_reader_sees_the_old_file_or_the_new_one_and_nothing_between(tmp_path: Path) -> None:
    desk = folder_desk(tmp_path)
    contents = [letter * 100_000 for letter in "ab"]
    await desk.put("a.txt", contents[0])
    over = threading.Event()
    seen: set[str] = set()

    def reading() -> None:
        while not over.is_set():
            seen.add((tmp_path / "a.txt").read_text(encoding="utf-8"))

    thread = threading.Thread(target=reading)
    thread.start()
    try:
        for number in range(50):
            await desk.call("write_file", path="a.txt", content=contents[number % 2])
    finally:
        over.set()
        thread.join()
    assert seen <= set(contents)


async def test_names_that_no_path_can_have_are_listed_and_marked(tmp_path: Path) -> None:
    desk = folder_desk(tmp_path)
    for name in (b"line\nbreak", b"not-utf8-\xff", b"a:b", b"turn\xe2\x80\xae"):
        os.close(os.open(os.fsencode(tmp_path) + b"/" + name, os.O_CREAT | os.O_WRONLY))
    (tmp_path / "link").symlink_to("a:b")
    os.mkfifo(tmp_path / "pipe")
    assert (await desk.text("list_directory")).split("\n") == [
        "'a:b' (file; its name cannot be used here)",
        "'line\\nbreak' (file; its name cannot be used here)",
        "link (a link, not followed)",
        "'not-utf8-\\udcff' (file; its name cannot be used here)",
        "pipe (a pipe, socket or device)",
        "'turn\\u202e' (file; its name cannot be used here)",
    ]
    assert "0 lines" in await desk.text("search_files", text="x")


async def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "large").touch()
    os.truncate(tmp_path / "large", MAX_FILE_BYTES + 1)
    with pytest.raises(ToolError, match="8,388,609 bytes"):
        await folder_desk(tmp_path).call("read_file", path="large")
