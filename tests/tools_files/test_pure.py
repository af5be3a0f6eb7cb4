"""What needs no files: edits that are safe to repeat, diffs that say what happens, trees, pages of texts."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.tools_files.fake_app import virtual_desk

from everturn.core.parts import FileChange
from everturn.errors import ToolError
from everturn.tools.files import diffs, trees
from everturn.tools.files.diffs import count_lines, make_unified_diff
from everturn.tools.files.edits import EditResult, apply_edit
from everturn.tools.files.paths import normalize_path, path_problem
from everturn.tools.files.text_pages import count_text_lines, read_text_page
from everturn.tools.files.trees import FileEntry, diff_trees, read_tree, write_tree

few = st.text(alphabet="ab\n", max_size=12)
breaks = st.lists(st.sampled_from(["a", "b", "\n", "\r\n", "\r"]), max_size=10).map("".join)
lines = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "\u2028\n", "\x0b\n", "x\r\n"]), max_size=40).map("".join)
texts = st.builds(lambda body, end: body + end, lines, st.sampled_from(["", "a", "no end", "\r"]))


@given(text=few | breaks, old=few | breaks, new=few | breaks, every=st.booleans())
@example(text="aab", old="ab", new="b", every=False)
@example(text="a\r\nb|a\nb", old="a\nb", new="c", every=False)
@example(text="abab", old="ab", new="aba", every=True)
def test_an_edit_that_was_made_is_never_made_again(text: str, old: str, new: str, every: bool) -> None:
    if not old or old == new:
        return
    try:
        result = apply_edit(text, old, new, every=every)
    except ToolError:
        return
    if result.replacements == 0:
        assert result.text == text
    if new:
        assert apply_edit(result.text, old, new, every=every) == EditResult(result.text, 0)
    else:
        with pytest.raises(ToolError, match="does not stand"):
            apply_edit(result.text, old, new, every=every)


@given(before=few, after=few, old=few.filter(bool), new=few)
@example(before="", after="a", old="aa", new="b")
def test_an_edit_changes_the_one_place_and_nothing_around_it(before: str, after: str, old: str, new: str) -> None:
    text = before + old + after
    try:
        result = apply_edit(text, old, new)
    except ToolError:
        return
    if result.replacements:
        assert sum(text.startswith(old, at) for at in range(len(text))) == 1  # overlaps count
        assert result.text == text.replace(old, new)


def patched(text: str, diff: str) -> str:
    """Apply a unified diff, knowing nothing of how it was made."""
    old = re.findall(r"[^\n]*\n|[^\n]+", text)
    rows = diff.split("\n")[2:]
    rebuilt: list[str] = []
    at = 0
    for number, row in enumerate(rows):
        if head := re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", row):
            begin = int(head[1]) - (1 if head[2] != "0" else 0)
            rebuilt += old[at:begin]
            at = begin
            assert len(rebuilt) == int(head[3]) - (1 if head[4] != "0" else 0)
        elif not row.startswith("\\"):
            end = "" if number + 1 < len(rows) and rows[number + 1].startswith("\\") else "\n"
            if row[0] in " -":
                assert old[at] == row[1:] + end
                at += 1
            if row[0] in " +":
                rebuilt.append(row[1:] + end)
    return "".join(rebuilt + old[at:])


@given(old=texts | few, new=texts | few)
@example(old="a\na\n", new="a\n")  # its beginning and its end are the same line
@example(old="a\n", new="a\nb\na\n")
def test_a_diff_makes_the_one_text_of_the_other(old: str, new: str) -> None:
    diff = make_unified_diff(old, new, "a.txt")
    assert (diff == "") == (old == new)
    if diff:
        assert patched(old, diff) == new
        added, removed = count_lines(old.encode(), new.encode())
        body = diff.split("\n")[2:]
        assert added == sum(row.startswith("+") for row in body)
        assert removed == sum(row.startswith("-") for row in body)


@given(old=texts, new=texts)
def test_a_diff_of_texts_too_long_to_be_matched_is_still_right(old: str, new: str) -> None:
    limit = diffs.MAX_COMPARED_LINES
    diffs.MAX_COMPARED_LINES = 3
    try:
        assert old == new or patched(old, make_unified_diff(old, new, "a.txt")) == new
    finally:
        diffs.MAX_COMPARED_LINES = limit


def test_a_diff_is_bounded_and_says_what_is_left_out() -> None:
    long = "".join(f"{number}\n" for number in range(15_000))
    shown = make_unified_diff("", long, "a.txt", most=1_000)
    assert len(shown) < 1_200
    assert "more lines; the arguments hold the whole" in shown
    assert "too long to be compared: 0 lines become 30,000" in make_unified_diff("", "\n" * 30_000, "a.txt")


@given(text=texts, first=st.integers(1, 45), most=st.integers(1, 10))
def test_pages_joined_are_the_text(text: str, first: int, most: int) -> None:
    rows: list[str] = []
    at = 1
    while True:
        found = read_text_page(text, at, most)
        assert found.total == count_text_lines(text)
        rows += found.text.split("\n") if found.last >= found.first else []
        if not found.next_line:
            break
        assert found.next_line == at + most
        at = found.next_line
    expected = text.split("\n")
    assert rows == (expected[:-1] if expected[-1] == "" else expected)


@given(st.text(max_size=30))
def test_a_path_that_was_read_is_inside_the_root_and_reads_as_itself(text: str) -> None:
    if path_problem(text):
        with pytest.raises(ToolError):
            normalize_path(text)
        return
    path = normalize_path(text)
    assert normalize_path(path) == path
    assert path == "." or not {"", ".", ".."} & set(path.split("/"))


# --------------------------------------------------------------------------------------------------------------- trees

names = st.text(alphabet="abc/.é", min_size=1, max_size=8).filter(
    lambda name: not path_problem(name) and normalize_path(name) == name != "."
)
leaves = st.builds(FileEntry, st.sampled_from(["1" * 64, "2" * 64]), st.integers(0, 100))
forests = st.dictionaries(names, leaves, max_size=8)


@given(forests)
def test_a_tree_is_read_as_it_was_written_and_equal_trees_are_equal_bytes(tree: dict[str, FileEntry]) -> None:
    data = write_tree(tree)
    assert read_tree(data) == tree
    assert write_tree(dict(reversed(tree.items()))) == data


@given(forests, forests)
def test_changes_lead_from_one_tree_to_the_other(old: dict[str, FileEntry], new: dict[str, FileEntry]) -> None:
    result = dict(old)
    for change in diff_trees(old, new):
        match change.kind:
            case "added":
                assert change.path not in old
                result[change.path] = new[change.path]
            case "modified":
                assert old[change.path] != new[change.path]
                result[change.path] = new[change.path]
            case "deleted":
                del result[change.path]
    assert result == new


@pytest.mark.parametrize(
    "data",
    [
        *(b"[]", b"{", b'{"a":1}', b'{"../a":{"blob":"x","size":1}}', b'{"/a":{"blob":"x","size":1}}'),
        *(b'{"a//b":{"blob":"x","size":1}}', b'{"a":{"blob":"x","size":-1}}', b'{".":{"blob":"x","size":1}}', b"\xff"),
    ],
)
def test_what_is_no_tree_is_refused(data: bytes) -> None:
    with pytest.raises(ToolError):
        read_tree(data)


def test_a_tree_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    leaf = FileEntry("1" * 64, 10)
    monkeypatch.setattr(trees, "MOST_FILES", 2)
    with pytest.raises(ToolError, match="at most 2 files"):
        write_tree({"a": leaf, "b": leaf, "c": leaf})
    monkeypatch.setattr(trees, "MAX_TOTAL_BYTES", 15)
    with pytest.raises(ToolError, match="of files in total"):
        write_tree({"a": leaf, "b": leaf})
    with pytest.raises(ToolError, match="at most 8 MiB"):
        write_tree({"a": FileEntry("1" * 64, 8 * 2**20 + 1)})


async def test_a_session_that_is_full_takes_no_more_and_keeps_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = virtual_desk()
    monkeypatch.setattr(trees, "MAX_TOTAL_BYTES", 10)
    await desk.call("write_file", path="a", content="12345678")
    before = dict(desk.blobs.data)
    with pytest.raises(ToolError, match="in total"):
        await desk.call("write_file", path="b", content="abc")
    assert desk.blobs.data == before
    assert await desk.text("list_directory") == "a (8 bytes)"


async def test_what_became_of_the_files_of_a_session_is_told_to_the_log() -> None:
    desk = virtual_desk()
    arguments: dict[str, Any] = {"path": "a.txt", "content": "1\n2\n"}
    await desk.call("write_file", **arguments)
    await desk.call("write_file", **arguments)
    await desk.call("edit_file", path="a.txt", old_text="2", new_text="two\nthree")
    await desk.system().change("a.txt", lambda old: None)
    assert desk.files.changes == [
        FileChange("a.txt", "added", 2, 0),
        FileChange("a.txt", "modified", 2, 1),
        FileChange("a.txt", "deleted", 0, 3),
    ]
    assert desk.files.writes == 3
    assert await desk.text("list_directory") == "(empty)"
