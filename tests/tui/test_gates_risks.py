"""The page and the terminal give the same hints: the tables are the same to the letter, and so is what they find."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from everturn.terminal.tui.gates import risk_table, risk_texts, risks
from everturn.terminal.tui.gates.risks import command_risks, find_risks, path_risks, url_risks

WEB = Path(__file__).resolve().parents[2] / "web"
PAGE = (WEB / "src/gates/risks.ts").read_text("utf-8")
CASES = (WEB / "tests/gates/risks.test.ts").read_text("utf-8")
ROW = re.compile(r'\["(\w+)", "(high|look)", (?:String\.raw`((?:\\`|[^`])*)`|(SECRET_FILES))(, "")?\]')


def table(name: str) -> list[tuple[str, str, str, bool]]:
    """A table of the page."""
    text = PAGE[PAGE.index(f"const {name}: readonly Row[]") :]
    rows = ROW.findall(text[: text.index("\n]);")])
    return [
        (code, level, risk_table.SECRET_FILES if is_secret else re.sub(r"\$\{(\w+)\}", r"<\1>", raw), not flags)
        for code, level, raw, is_secret, flags in rows
    ]


@pytest.mark.parametrize("name", ["COMMANDS", "PATHS", "URLS"])
def test_the_tables_are_those_of_the_page(name: str) -> None:
    assert list(getattr(risk_table, name)) == table(name)
    assert len(table(name)) == PAGE[PAGE.index(f"const {name}:") :].split("\n]);")[0].count("\n  [")


def test_the_pieces_and_the_bounds_are_those_of_the_page() -> None:
    for name in ("SHELL", "RUNS", "NAME", "SECRET_FILES"):
        found = re.search(rf"const {name} =\s*String\.raw`((?:\\`|[^`])*)`", PAGE)
        assert found is not None
        assert getattr(risk_table, name) == re.sub(r"\$\{(\w+)\}", r"<\1>", found[1])
    for name in ("COMMAND_NAME", "SHELL_TOOL", "PATH_NAME", "URL_NAME"):
        assert f"const {name} = /{getattr(risks, name)}/i;" in PAGE
    for name in ("WINDOW", "WINDOW_OVERLAP", "MAX_QUERY"):
        assert f"const {name} = {getattr(risks, name)};" in PAGE


def test_the_words_are_those_of_the_page() -> None:
    text = (WEB / "src/gates/riskTexts.ts").read_text("utf-8")
    english, chinese = (dict(re.findall(r'(\w+): "([^"]*)"', part)) for part in text.split("\n  {\n")[1:])
    assert (risk_texts.EN, risk_texts.ZH) == (english, chinese)


def pairs(after: str, before: str) -> list[tuple[str, str]]:
    """Cases of the page's own tests."""
    text = CASES[CASES.index(after) :]
    found = re.findall(r'\[("(?:\\.|[^"\\])*"), "(\w+)"\]', text[: text.index(before)])
    return [(json.loads(one.replace(r"\0", r"\u0000")), code) for one, code in found]


def test_they_find_what_the_page_finds() -> None:
    commands = pairs("const COMMANDS", "];\n\ntest.each")
    assert len(commands) > 80
    for command, code in commands:
        assert code in [one.code for one in command_risks(command)], command
    for path, code in pairs("test.each<[string, RiskCode]>", "path %j"):
        assert code in [one.code for one in path_risks(path)], path
    for url, code in pairs('["http://localhost:1/"', "address %j"):
        assert code in [one.code for one in url_risks(url)], url
    for plain in ("ls -la src", "git status", "echo done 2>&1", "x >/dev/null 2>/dev/null", "alarm -r", "make test"):
        assert command_risks(plain) == []


def test_hints_are_found_by_the_names_of_arguments_and_by_the_tool() -> None:
    assert [(one.where, one.code) for one in find_risks("t", {"a": [{"path": "../x"}]})] == [("a.0.path", "path_up")]
    assert [one.code for one in find_risks("t", {"argv": ["rm", "-rf", "x"]})] == ["delete"]
    assert [one.code for one in find_risks("run_shell", {"it": "sudo ls"})] == ["root"]
    assert find_risks("t", {"text": "sudo ls"}) == []
    found = command_risks("cat ../x; sudo rm -rf a; sudo rm -rf b > c")
    assert [one.code for one in found][:2] == ["delete", "root"]
    assert [one.level for one in found] == sorted(one.level for one in found)


def test_nobody_can_make_it_run_for_long() -> None:
    began = time.process_time()
    for text in ("rm " + "-a " * 6000, "a" * 20_000, "$(" * 9000, "git " + "x " * 9000, "\\\n" * 9000):
        command_risks(text)
    assert time.process_time() - began < 20  # a second or two; a pattern that runs away takes minutes
