"""Paths and texts of memory files: nothing escapes, nothing looks like something else, and every limit says what to do."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.core.memory.user_memory import (
    MAX_MEMORY_FILE_BYTES,
    MEMORY_ROOT,
    MemoryCreate,
    MemoryFileInfo,
    MemoryInsert,
    MemoryPut,
    MemoryRename,
    MemoryReplace,
    apply_memory_change,
    check_memory_text,
    memory_path_problem,
    normalize_memory_path,
    shown_memory_path,
)
from everturn.errors import BadArguments, ToolError

HOSTILE = [
    "",
    "..",
    "../etc/passwd",
    "/memories/..",
    "/memories/../x",
    "/memories/a/../../x",
    "/memories/./a",
    "/memories/a/..",
    "/memories-evil/a",
    "/memoriesx",
    "/memory/a",
    "/etc/passwd",
    "/",
    "//memories/a",
    "/MEMORIES/a",
    "~",
    "~/a",
    "/memories/~root/a",
    "C:\\a",
    "c:/a",
    "a\\b",
    "..\\a",
    "/memories/%2e%2e/a",
    "/memories/..%2fa",
    "a\0b",
    "/memories/a\0.md",
    "a\nb",
    "a\tb",
    "\x1b[2Ja",
    "a\u202egnp.exe",
    "\u2066a\u2069",
    "a\u200bb",
    "a\u2060b",
    "\ufeffa",
    "a\u00adb",
    "a\u3164b",
    "a\u2800b",
    "a\ufe0fb",
    "a\u00a0b",
    "a\u2028b",
    "a\ud800b",
    "\U000e0041a",
    "e\u0301.md",
    "a.",
    "a ",
    " a",
    "a/ /b",
    "a:stream",
    "a*b",
    "a?b",
    "a|b",
    "<a>",
    "x" * 241,
    "你" * 81,
    "a/b/c/d/e/f/g/h/i",
    "/memories/" + "a/" * 40,
]


@pytest.mark.parametrize("path", HOSTILE, ids=ascii)
def test_a_hostile_path_is_refused(path: str) -> None:
    assert len(HOSTILE) >= 30
    with pytest.raises(BadArguments) as caught:
        normalize_memory_path(path)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/memories", ""),
        ("/memories/", ""),
        ("/memories/a.md", "a.md"),
        ("a.md", "a.md"),
        ("/memories//a///b.md", "a/b.md"),
        ("/memories/笔记/é b-c_d.md", "笔记/é b-c_d.md"),
        ("memories/a", "memories/a"),
        (".hidden", ".hidden"),
    ],
)
def test_a_path_is_normalized(path: str, expected: str) -> None:
    assert normalize_memory_path(path) == expected
    assert normalize_memory_path(shown_memory_path(expected)) == expected


@settings(max_examples=300)
@given(
    st.text(max_size=40) | st.lists(st.sampled_from(["..", ".", "a", "/", MEMORY_ROOT, "\\", "%2e", " "])).map("".join)
)
def test_no_text_escapes(text: str) -> None:
    if memory_path_problem(text):
        with pytest.raises(BadArguments):
            normalize_memory_path(text)
        return
    path = normalize_memory_path(text)
    assert not path.startswith("/")
    assert not {".", "..", ""} & set(path.split("/") if path else [])
    assert normalize_memory_path(shown_memory_path(path)) == path


@pytest.mark.parametrize("text", ["a\0b", "\x1b[31m", "\ud800", "\x07", "\x7f", "\x85"], ids=ascii)
def test_memory_holds_text_only(text: str) -> None:
    with pytest.raises(BadArguments, match="leave it out"):
        check_memory_text(text, "file_text")


def test_a_text_is_bounded_in_bytes() -> None:
    check_memory_text("x" * MAX_MEMORY_FILE_BYTES, "file_text")
    for text in ("x" * (MAX_MEMORY_FILE_BYTES + 1), "你" * (MAX_MEMORY_FILE_BYTES // 3 + 1)):
        with pytest.raises(BadArguments, match="use several files"):
            check_memory_text(text, "file_text")


INSERTS = [
    ("one\ntwo\n", 0, "new", "new\none\ntwo\n"),
    ("one\ntwo\n", 1, "new\n", "one\nnew\ntwo\n"),
    ("one\ntwo\n", 2, "new\n", "one\ntwo\nnew\n"),
    ("one\ntwo", 2, "new", "one\ntwo\nnew"),
    ("one\ntwo", 1, "a\nb\n", "one\na\nb\ntwo"),
    ("", 0, "new\n", "new\n"),
    ("", 0, "new", "new"),
    ("\n", 1, "new", "\nnew"),
]


@pytest.mark.parametrize(("old", "line", "text", "expected"), INSERTS)
def test_lines_are_inserted_after_a_line(old: str, line: int, text: str, expected: str) -> None:
    edit = apply_memory_change(MemoryInsert("a", line, text), {"a": MemoryFileInfo("a", len(old), "h")}, old)
    assert edit.written is not None
    assert edit.written.text == expected


def test_what_cannot_be_done_is_told() -> None:
    files = {path: MemoryFileInfo(path, 1, "h") for path in ("a", "d/b")}
    for change, words in (
        (MemoryInsert("a", 9, "x"), "0 to 1, not 9"),
        (MemoryInsert("missing", 0, "x"), "there is no file"),
        (MemoryReplace("a", "aa", "x"), "more than once"),
        (MemoryReplace("a", "b", "x"), "does not occur"),
        (MemoryCreate("a", "x"), "exists already"),
        (MemoryCreate("a/c", "x"), "is a file, and not a directory"),
        (MemoryCreate("d", "x"), "is a directory"),
        (MemoryPut("", "x"), "name a file in it"),
        (MemoryRename("a", "d"), "already"),
        (MemoryRename("d", "d/e"), "into itself"),
        (MemoryRename("d", "a/x"), "is a file"),
        (MemoryRename("d", "1/2/3/4/5/6/7/8"), "names deep"),
        (MemoryRename("x", "y"), "there is no"),
    ):
        with pytest.raises(ToolError, match=words):
            apply_memory_change(change, files, "aaa" if change.path == "a" else None)
