"""Reports: what is in them, and that untrusted text in them does nothing."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

from msgspec.structs import replace

from everturn.evals import CaseResult, CheckResult, EvalReport, SampleResult
from everturn.evals.recorded_world import Divergence
from everturn.evals.report_formats import FORMATS, from_json, to_html, to_json, to_junit, to_markdown

EVIL = (
    '<script src="https://evil.example/x.js"></script><img src=x onerror=alert(1)>\x00\x1b[31m](http://evil.example)|`'
)
REPORT = EvalReport(
    EVIL,
    "turn",
    (
        CaseResult("good", (SampleResult(1, "passed", seconds=1.25), SampleResult(2, "passed", seconds=0.5))),
        CaseResult(
            EVIL,
            (
                SampleResult(1, "failed", (CheckResult(EVIL, False, EVIL),), text=EVIL, actions=(EVIL,)),
                SampleResult(2, "divergent", divergence=Divergence(EVIL, EVIL, EVIL), decisions=(EVIL,)),
            ),
            prompt_diff=(EVIL,),
        ),
    ),
    2,
    "new",
)


class Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def test_html_requests_nothing_and_runs_nothing() -> None:
    page = to_html(REPORT)
    elements = Elements()
    elements.feed(page)
    assert {tag for tag, _ in elements.seen}.isdisjoint({"script", "img", "link", "iframe", "object", "a", "form"})
    attributes = {name for _, names in elements.seen for name in names}
    assert attributes <= {"lang", "charset", "http-equiv", "content", "name", "class"}
    assert "default-src 'none'" in page
    assert "@import" not in page
    assert "url(" not in page


def test_junit_is_xml_with_one_test_for_each_sample() -> None:
    suite = ElementTree.fromstring(to_junit(REPORT))
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("4", "2", "0")
    tests = suite.findall("testcase")
    assert [test.get("name") for test in tests[:2]] == ["good [1]", "good [2]"]
    assert [len(test.findall("failure")) for test in tests] == [0, 0, 1, 1]
    assert [test.get("time") for test in (suite, *tests)] == ["1.750", "1.250", "0.500", "0.000", "0.000"]


def test_markdown_escapes_what_it_quotes() -> None:
    text = to_markdown(REPORT)
    assert not re.search(r"(?<!\\)<script", text)
    assert not re.search(r"(?<!\\)\]\(", text)
    assert "| good | passed | 2/2 |" in text


def test_a_note_about_several_samples_is_written_once() -> None:
    failed = SampleResult(1, "failed", (CheckResult("steps", False, "3 steps"),), actions=("pay {}",))
    samples = (
        failed,
        replace(failed, sample=2),
        SampleResult(3, "passed"),
        replace(failed, sample=4, decisions=("x",)),
    )
    for write in (to_markdown, to_html):
        text = write(EvalReport("d", "turn", (CaseResult("c", samples, recorded_actions=("pay {}",)),), 4, "new"))
        lines = [re.sub("^- |</?li>", "", line) for line in text.splitlines() if "sample" in line]
        assert lines == ["samples 1, 2, 4: steps: 3 steps", "sample 4: x"], text


def test_json_is_read_back_and_has_the_figures() -> None:
    text = to_json(REPORT)
    assert from_json(text) == REPORT
    assert '"pass_at"' in text
    assert set(FORMATS) == {".json", ".xml", ".md", ".html"}


def test_exit_codes() -> None:
    def code(*statuses: str, limit: float = 0.0) -> int:
        cases = tuple(CaseResult(str(at), (SampleResult(1, status),)) for at, status in enumerate(statuses))  # pyright: ignore[reportArgumentType]
        return EvalReport("d", "pure", cases, divergent_limit=limit).exit_code

    assert code("passed", "passed") == 0
    assert code("passed", "failed", "divergent", "error") == 1
    assert code("passed", "divergent") == 2
    assert code("passed", "divergent", limit=0.5) == 0
    assert code("passed", "error") == 3
