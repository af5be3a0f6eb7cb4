"""Context of line mode: what fills the context window, and the warning before a summary is written."""

from __future__ import annotations

from typing import Final

from everturn.core.context.context_report import ContextKind, ContextReport
from everturn.terminal.lines.messages import MessageWriter
from everturn.terminal.text.compaction import format_tokens
from everturn.terminal.text.context import ContextWarning, find_warning, format_gauge, percent

KINDS: Final[dict[ContextKind, str]] = {
    "instructions": "instructions",
    "tools": "tools",
    "skills": "loaded skills",
    "summary": "summary",
    "person": "your messages",
    "answers": "answers",
    "results": "tool results",
    "files": "files",
    "notices": "notices",
    "other": "not explained",
}
WARNINGS: Final[dict[ContextWarning, str]] = {
    "soon": "older messages will be summarised at {at} %; /context shows what fills it",
    "next": "older messages are summarised before the next request; /context shows what fills it",
    "off": "nothing is compacted by itself; /compact summarises older messages",
    "paused": "summaries have failed; /context shows what fills it",
}


def print_context(say: MessageWriter, report: ContextReport) -> None:
    """Print how full the context window is, and what fills it."""
    say(f"{report.model}: {format_gauge(report)}")
    rows = [(KINDS[part.kind], part.tokens) for part in report.parts]
    if report.free is not None:
        rows.append(("free", report.free))
    names, numbers = max(len(name) for name, _ in rows), max(len(f"{size:,}") for _, size in rows)
    for name, size in rows:
        share = f", {size / report.limit:.1%} of the limit" if report.limit else ""
        say(f"{size:>{numbers},} tokens{share}", label=f"{name:<{names}}  ")
    if report.summarize_at:
        clears, summarises = format_tokens(report.clear_at), format_tokens(report.summarize_at)
        say(f"from {clears} tokens old tool results are cleared, from {summarises} older messages are summarised")
    if report.estimated:
        say("estimated: the model has not counted this conversation yet")
    if report.paused:
        say("summaries have failed or freed too little; none is asked for until you say something")


def describe_warning(report: ContextReport) -> str:
    """Describe that the context window is nearly full; "" if it is not."""
    kind = find_warning(report)
    if not kind or report.share is None:
        return ""
    text = WARNINGS[kind].format(at=percent(report.summarize_at / report.limit + 1e-3))
    return f"the context window is {percent(report.share)} % full: {text}"
