"""Tools and limits, as a command line names them."""

import sys
from pathlib import Path

import pytest

from everturn.core.options import Budget
from everturn.errors import ConfigError
from everturn.terminal.text.tool_loader import check_manual, load_tools, parse_budget, tools_in

FILE = """
from everturn import tool
from everturn.tools.groups import ToolGroup

@tool(read_only=True)
def look(at: str) -> str:
    return at

@tool(approval="always", name="throw_away")
def throw(what: str) -> str:
    return what

@tool(read_only=True)
def inner(at: str) -> str:
    return at

drawer = ToolGroup("drawer", [inner])
also = look
del inner

class Lazy:
    @property
    def spec(self):
        raise RuntimeError("not yet")

lazy, number = Lazy(), 5
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(FILE, encoding="utf-8")
    return path


def test_of_a_file_every_tool_and_group_is_taken_once_and_groups_are_on(file: Path):
    found = load_tools([str(file), str(file)[:-3] + ".py:look"])

    assert sorted(tools_in(found)) == ["inner", "look", "throw_away"]
    assert len(found) == 3
    assert [thing.on for thing in found if hasattr(thing, "on")] == [True]


@pytest.mark.parametrize("name", ["throw", "throw_away"])
def test_one_tool_is_taken_by_the_name_of_its_variable_or_its_own(file: Path, name: str):
    assert list(tools_in(load_tools([f"{file}:{name}"]))) == ["throw_away"]


def test_a_module_is_found_from_the_folder_one_stands_in(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    file.rename(tmp_path / "some_tools_of_mine.py")
    before = list(sys.path)

    assert "look" in tools_in(load_tools(["some_tools_of_mine"]))
    assert list(tools_in(load_tools(["some_tools_of_mine:look"]))) == ["look"]
    assert sys.path == before


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1", "there is no tool in it; put @tool above a function"),
        ("\nx = (", "it cannot be loaded (line 2): SyntaxError"),
        ("\n\nraise ValueError('no\\nway')", "it cannot be loaded (line 3): ValueError: no way"),
        ("import nowhere_to_be_found", "it needs nowhere_to_be_found, which is not installed here"),
        ("import sys; sys.exit(3)", "it cannot be loaded (line 1): SystemExit: 3"),
    ],
)
def test_a_file_that_cannot_be_used_is_reported_in_one_line(tmp_path: Path, text: str, expected: str):
    path = tmp_path / "bad.py"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(ConfigError) as error:
        load_tools([str(path)])
    assert str(error.value).startswith(f"--tools {path}: {expected}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("nope.py", "there is no such file"),
        ("nope_nope", "there is no such module; a file is named with its .py"),
        ("{file}:nope", "nope is not in it; there are: look, throw, drawer, also"),
        ("{file}:number", "number is not a tool; put @tool above it; there are: look"),
    ],
)
def test_what_is_not_there_is_reported_with_what_there_is(file: Path, word: str, expected: str):
    with pytest.raises(ConfigError) as error:
        load_tools([word.format(file=file)])
    assert expected in str(error.value)


def test_a_pattern_of_tools_to_do_manual_that_fits_none_is_refused(file: Path):
    found = load_tools([str(file)])
    check_manual(["thr*"], found)

    with pytest.raises(ConfigError, match="no tool has a name like that; there are: look"):
        check_manual(["throw"], found)
    with pytest.raises(ConfigError, match="there are no tools; --tools brings some"):
        check_manual(["throw"], [])


def test_a_budget_is_read_from_pairs():
    assert parse_budget("") == Budget()
    assert parse_budget("cost=1.00, calls=40,seconds=120") == Budget(cost=1.0, calls=40, seconds=120.0)


@pytest.mark.parametrize(
    "text", ["money=1", "cost", "cost=x", "calls=1.5", "cost=-1", "cost=nan", "cost=inf", "calls=0"]
)
def test_a_budget_that_makes_no_sense_is_refused(text: str):
    with pytest.raises(ConfigError, match=f"--budget {text}: "):
        parse_budget(text)
