"""What is written down of a run: a page of Markdown."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from tools.environment import ROOT

PAGE: Final = ROOT / "benchmarks/results/long_conversation.md"


class FactReport(Struct, frozen=True):
    """What became of a fact."""

    kind: str
    key: str
    in_request: bool
    said: bool
    in_request_without: bool
    said_without: bool
    answer: str


class Report(Struct):
    """What a run has shown."""

    messages: int
    window: int
    commit: str = ""
    seconds: float = 0.0
    turns_completed: int = 0
    failures: list[str] = []
    summaries: int = 0
    truncations: int = 0
    summary_problems: list[str] = []
    useless: int = 0  # summaries that freed too little
    kills: int = 0
    killed_after: int = 0  # bytes of the summary that had arrived
    requests: int = 0
    summary_requests: int = 0
    refused: dict[str, int] = {}  # requests that the model refused, by status
    largest: int = 0  # tokens of the largest request, as the model counted them
    facts: list[FactReport] = []

    @property
    def is_whole(self) -> bool:
        """Whether every message was answered."""
        return not self.failures and self.turns_completed == self.messages + len(self.facts)


def render(report: Report) -> str:
    """The page."""
    questions = len(report.facts)
    rows = {
        "messages, and questions at the end": f"{report.messages} + {questions}",
        "turns that completed": str(report.turns_completed),
        "turns that failed or were lost": str(len(report.failures)),
        "summaries written": str(report.summaries),
        "summaries that could not be written": str(len(report.summary_problems)),
        "summaries that freed too little (strikes)": str(report.useless),
        "times the oldest messages were left out without a summary": str(report.truncations),
        "`kill -9` in the middle of a summary": f"{report.kills}, after {report.killed_after:,} bytes of it",
        "requests, of which for summaries": f"{report.requests}, {report.summary_requests}",
        "requests that the model refused": describe_refused(report.refused),
        "largest request, in tokens that the model counted": f"{report.largest:,} of {report.window:,}",
        "minutes": f"{report.seconds / 60:.0f}",
    }
    lines = [
        "# A long conversation with a real model",
        "",
        "Written by `python -m tools.long_conversation.campaign --write`; do not edit. The model is SmolLM2-135M on llama.cpp with a",
        f"context window of {report.window:,} tokens, the client is `everturn chat` in a terminal, unattended, with default",
        f"settings. The commit is `{report.commit}`.",
        "",
        "| | |",
        "|---|--:|",
        *(f"| {name} | {value} |" for name, value in rows.items()),
        "",
        "Eight facts were said once, among the first messages. Each was asked for at the end. *In the request*: its words are in",
        "the bytes that were sent for the question. *Said*: they are in the answer. *Without*: the same question with the newest",
        "messages that fit, and no summary.",
        "",
        "| fact | in the request | said by the model | without: in the request | without: said | answer |",
        "|---|---|---|---|---|---|",
        *(_row(fact) for fact in report.facts),
        f"| **sum** | {_sum(report, 'in_request')} | {_sum(report, 'said')} | {_sum(report, 'in_request_without')} "
        f"| {_sum(report, 'said_without')} | |",
        "",
        "What a model of this size says of what it reads is its own; the column that Everturn answers for is the first.",
        "",
    ]
    if report.failures or report.summary_problems:
        lines += ["What went wrong:", "", *(f"- {text}" for text in [*report.failures, *report.summary_problems]), ""]
    return "\n".join(lines)


def describe_refused(refused: dict[str, int]) -> str:
    """How many requests were refused, by status."""
    return ", ".join(f"{count} x {status}" for status, count in refused.items()) or "0"


def _row(fact: FactReport) -> str:
    marks = (fact.in_request, fact.said, fact.in_request_without, fact.said_without)
    answer = fact.answer.replace("|", "\\|").replace("`", "'")
    return f"| {fact.kind}: {fact.key} | {' | '.join('yes' if mark else 'no' for mark in marks)} | {answer} |"


def _sum(report: Report, name: str) -> str:
    return f"{sum(getattr(fact, name) for fact in report.facts)} of {len(report.facts)}"
