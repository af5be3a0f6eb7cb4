"""Formats of a report: JSON, JUnit XML for CI, Markdown for pull requests, and HTML for people. Pure.

Answers and arguments are untrusted text: every format escapes them. The HTML page requests nothing: no script, no style
sheet, no image of another place, and a Content-Security-Policy that forbids them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from html import escape
from typing import Any, Final

import msgspec

from everturn.evals.report import CaseResult, EvalReport, SampleResult

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
SHOWN: Final = 400  # characters of a text that a report shows


def to_json(report: EvalReport) -> str:
    """The whole report, with the figures that follow from it under `figures`."""
    return msgspec.json.format(
        msgspec.json.encode({**msgspec.to_builtins(report), "figures": figures(report)}), indent=2
    ).decode()


def from_json(data: str | bytes) -> EvalReport:
    """Read a report that `to_json` wrote."""
    return msgspec.json.decode(data, type=EvalReport)


def figures(report: EvalReport) -> dict[str, Any]:
    """The figures of a report."""
    difference = report.difference
    return {
        "counts": dict(report.counts),
        "divergent_share": report.divergent_share,
        "exit_code": report.exit_code,
        "pass_at": {str(k): report.pass_at(k) for k in _ks(report)},
        "pass_hat": {str(k): report.pass_hat(k) for k in _ks(report)},
        "difference": None if difference is None else msgspec.to_builtins(difference),
        "cost": report.cost,
        "requests": report.requests,
    }


def _ks(report: EvalReport) -> list[int]:
    """1, and the number of samples of each case."""
    least = min((len(case.samples) for case in report.cases), default=0)
    return sorted({k for k in (1, least) if k})


def summary_lines(report: EvalReport) -> list[str]:
    """The report in a few lines of text."""
    lines = [report.summary]
    if report.not_tested:
        lines.append(
            f"NOT TESTED: the changed {' and '.join(report.not_tested)}, because the answers are the recorded ones; "
            "to ask a model, pass --depth turn --model NAME"
        )
    if report.model:
        lines.append(f"model {report.model}, {report.requests} requests, {report.cost:.4f} US dollars")
        lines += [f"pass@{k} {report.pass_at(k):.3f}, pass^{k} {report.pass_hat(k):.3f}" for k in _ks(report)]
    if (difference := report.difference) is not None and (report.model or difference.mean):
        lines.append(
            f"difference to {report.baseline}: {difference.mean:+.3f} "
            f"(95 % interval {difference.low:+.3f} to {difference.high:+.3f}, {difference.cases} {'case' if difference.cases == 1 else 'cases'})"
        )
    return lines


# JUnit --------------------------------------------------------------------------------------------------------------


def to_junit(report: EvalReport) -> str:
    """JUnit XML: one test case for each sample, which CI systems show."""
    samples = [(case, sample) for case in report.cases for sample in case.samples]
    failed = sum(sample.status in ("failed", "divergent") for _, sample in samples)
    errors = sum(sample.status == "error" for _, sample in samples)
    seconds = sum(sample.seconds for _, sample in samples)
    counts = f'tests="{len(samples)}" failures="{failed}" errors="{errors}" skipped="0"'
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        f'<testsuite name="{_xml(report.dataset)}" {counts} time="{seconds:.3f}">',
    ]
    for case, sample in samples:
        name = case.name if len(case.samples) == 1 else f"{case.name} [{sample.sample}]"
        class_name = f"everturn.eval.{_xml(report.depth)}"
        lines.append(f'  <testcase classname="{class_name}" name="{_xml(name)}" time="{sample.seconds:.3f}">')
        if sample.status != "passed":
            tag = "error" if sample.status == "error" else "failure"
            reasons = sample.reasons or [sample.status]
            text = _xml("\n".join(reasons))
            lines.append(f'    <{tag} type="{sample.status}" message="{_xml(reasons[0])}">{text}</{tag}>')
        lines.append("  </testcase>")
    return "\n".join([*lines, "</testsuite>", ""])


def _xml(text: str) -> str:
    return escape(_NOT_XML.sub("\ufffd", text), quote=True)


# Markdown -----------------------------------------------------------------------------------------------------------


def to_markdown(report: EvalReport) -> str:
    """Markdown for a pull request: the figures, a table of the cases, and why cases did not pass."""
    lines = [f"# Evaluation of {_markdown(report.dataset)}", ""]
    lines += [f"- {_markdown(line)}" for line in summary_lines(report)]
    lines += ["", "| case | result | passed | actions |", "|---|---|--:|---|"]
    for case in report.cases:
        actions = "; ".join(dict.fromkeys(action for sample in case.samples for action in sample.actions))
        lines.append(
            f"| {_markdown(case.name)} | {case.status} | {case.passed}/{len(case.samples)} | {_markdown(_shorten(actions))} |"
        )
    for case in report.cases:
        lines += _case_markdown(case)
    return "\n".join(lines) + "\n"


def _case_markdown(case: CaseResult) -> Iterator[str]:
    if notes := _case_notes(case):
        yield from ("", f"## {_markdown(case.name)}", "")
        yield from (f"- {_markdown(_shorten(note))}" for note in notes)


def _case_notes(case: CaseResult) -> list[str]:
    """What there is to say about a case: each note once, with the samples that it is about."""
    samples: dict[str, list[str]] = {}
    for sample in case.samples:
        for note in _notes(case, sample):
            samples.setdefault(note, []).append(str(sample.sample))
    return [_samples_prefix(numbers, len(case.samples)) + note for note, numbers in samples.items()]


def _samples_prefix(numbers: list[str], count: int) -> str:
    if count == 1:
        return ""
    if len(numbers) == count:
        return "all samples: "
    return f"{'sample' if len(numbers) == 1 else 'samples'} {', '.join(numbers)}: "


def _notes(case: CaseResult, sample: SampleResult) -> Iterator[str]:
    """What there is to say about a sample."""
    if sample.status != "passed":
        yield from sample.reasons
        recorded, now = "; ".join(case.recorded_actions) or "none", "; ".join(sample.actions) or "none"
        says_so = any(check.name == "same_calls" and not check.passed for check in sample.checks)
        if recorded != now and not says_so:
            yield f"recorded actions: {recorded}; now: {now}"
    yield from sample.decisions
    if sample.agreement is not None and sample.agreement < 1:
        yield f"the next action is the recorded one in {sample.agreement:.0%} of the steps"


def _markdown(text: str) -> str:
    text = " ".join(text.split())
    return re.sub(r"([\\`*_\[\]<>|#!~&])", r"\\\1", text)


def _shorten(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


# HTML ---------------------------------------------------------------------------------------------------------------

_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; } td, th { border-bottom: 1px solid #8884; padding: .4rem; text-align: left; }
td { vertical-align: top; overflow-wrap: anywhere; } li { overflow-wrap: anywhere; } pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #8881; padding: .6rem; }
.passed { color: #18794e; } .failed, .error { color: #b42318; } .divergent { color: #b54708; }
"""
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


def to_html(report: EvalReport) -> str:
    """One HTML page that requests nothing."""
    lines = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>Evaluation of {escape(report.dataset)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>Evaluation of {escape(report.dataset)}</h1>",
        *(f"<p>{escape(line)}</p>" for line in summary_lines(report)),
        "<table><thead><tr><th>case</th><th>result</th><th>passed</th><th>recorded actions</th><th>actions now</th>"
        "<th>steps</th><th>cost</th></tr></thead><tbody>",
    ]
    for case in report.cases:
        lines += _rows(case)
    lines.append("</tbody></table>")
    for case in report.cases:
        lines += _details(case)
    return "\n".join([*lines, "</body></html>", ""])


def _rows(case: CaseResult) -> Iterator[str]:
    now = "; ".join(dict.fromkeys(action for sample in case.samples for action in sample.actions))
    steps = max((sample.steps for sample in case.samples), default=0)
    cost = sum(sample.cost for sample in case.samples)
    yield (
        f'<tr><td>{escape(case.name)}</td><td class="{case.status}">{case.status}</td>'
        f"<td>{case.passed}/{len(case.samples)}</td><td>{escape('; '.join(case.recorded_actions))}</td>"
        f"<td>{escape(_shorten(now))}</td><td>{steps}</td><td>{cost:.4f}</td></tr>"
    )


def _details(case: CaseResult) -> Iterator[str]:
    notes = _case_notes(case)
    answers = dict.fromkeys(sample.text for sample in case.samples if sample.status != "passed" and sample.text)
    if not notes and not case.prompt_diff:
        return
    yield f"<h2>{escape(case.name)}</h2>"
    if notes:
        yield from ("<ul>", *(f"<li>{escape(note)}</li>" for note in notes), "</ul>")
    if case.prompt_diff:
        yield f"<h3>Changed instructions</h3><pre>{escape(chr(10).join(case.prompt_diff))}</pre>"
    if answers:
        yield from ("<h3>Answers</h3>", *(f"<pre>{escape(answer)}</pre>" for answer in answers))


FORMATS: Final[Mapping[str, Callable[[EvalReport], str]]] = {
    ".json": to_json,
    ".xml": to_junit,
    ".md": to_markdown,
    ".html": to_html,
}
"""Ending of a file → what is written into it."""
