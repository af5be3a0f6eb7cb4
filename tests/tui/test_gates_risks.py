"""Risk hints: what is found in commands, paths and URLs. The web UI has the same table and the same cases."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from everturn.localization import load_group
from everturn.terminal.tui.gates.risk_table import RiskPattern, risk_table
from everturn.terminal.tui.gates.risks import (
    RiskHint,
    command_risks,
    compile_pattern,
    find_risks,
    path_risks,
    url_risks,
)

Find = Callable[[str], list[RiskHint]]
Cases = tuple[tuple[str, str], ...]


class RiskCases(msgspec.Struct):
    """tests/tui/risk_cases.json, which web/tests/gates/risks.test.ts reads as well."""

    commands: Cases
    harmless_commands: tuple[str, ...]
    paths: Cases
    harmless_paths: tuple[str, ...]
    urls: Cases
    harmless_urls: tuple[str, ...]


CASES = msgspec.json.decode(Path(__file__).with_name("risk_cases.json").read_bytes(), type=RiskCases)
TABLE = risk_table()
ROWS = (*TABLE.commands, *TABLE.paths, *TABLE.urls)


def test_every_pattern_compiles_and_uses_known_pieces() -> None:
    for pattern in (*(row.pattern for row in ROWS), *msgspec.structs.astuple(TABLE.arguments)):
        compiled = compile_pattern(pattern)
        assert not [name for name in TABLE.pieces if f"<{name}>" in compiled.pattern], pattern
        assert not re.search(r"\(\?(?:P|[#>]|[a-z]+[-:)])|\\[AZzpPkG]|[*+?}]\+", pattern), (
            "not both in JavaScript and Python"
        )


def test_every_risk_has_a_text_in_each_language() -> None:
    codes = {row.code for row in ROWS} | {"lines", "url_long", "high", "look", "none"}
    assert codes == set(load_group("risks", "en")) == set(load_group("risks", "zh"))


def test_every_pattern_has_a_case() -> None:
    def unmatched(rows: tuple[RiskPattern, ...], cases: Cases) -> list[str]:
        return sorted({row.code for row in rows} - {code for _, code in cases})

    assert unmatched(TABLE.commands, CASES.commands) == []
    assert unmatched(TABLE.paths, CASES.paths) == []
    assert unmatched(TABLE.urls, CASES.urls) == []


@pytest.mark.parametrize(
    ("find", "cases", "harmless"),
    [
        (command_risks, CASES.commands, CASES.harmless_commands),
        (path_risks, CASES.paths, CASES.harmless_paths),
        (url_risks, CASES.urls, CASES.harmless_urls),
    ],
    ids=["commands", "paths", "urls"],
)
def test_each_case_is_found_and_nothing_harmless(find: Find, cases: Cases, harmless: tuple[str, ...]) -> None:
    for text, code in cases:
        assert code in [risk.code for risk in find(text)], text
    for text in harmless:
        assert find(text) == []


def test_a_long_query_is_found() -> None:
    assert [risk.code for risk in url_risks(f"https://x.org/?q={'a' * 400}")] == ["url_long"]


def test_hints_are_found_by_the_names_of_arguments_and_by_the_tool() -> None:
    assert [(risk.where, risk.code) for risk in find_risks("t", {"a": [{"path": "../x"}]})] == [("a.0.path", "path_up")]
    assert [risk.code for risk in find_risks("t", {"argv": ["rm", "-rf", "x"]})] == ["delete"]
    assert [risk.code for risk in find_risks("run_shell", {"it": "sudo ls"})] == ["root"]
    assert find_risks("t", {"text": "sudo ls"}) == []
    found = command_risks("cat ../x; sudo rm -rf a; sudo rm -rf b > c")
    assert [risk.code for risk in found][:2] == ["delete", "root"]
    assert [risk.level for risk in found] == sorted(risk.level for risk in found)


def test_nobody_can_make_it_run_for_long() -> None:
    began = time.process_time()
    for text in ("rm " + "-a " * 6000, "a" * 20_000, "$(" * 9000, "git " + "x " * 9000, "\\\n" * 9000):
        command_risks(text)
    assert time.process_time() - began < 20  # a second or two; a pattern that runs away takes minutes
