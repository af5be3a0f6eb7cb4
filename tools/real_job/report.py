"""The report of a campaign: a row for each job."""

from __future__ import annotations

import fcntl
import json
import os
from collections import Counter
from collections.abc import Sequence

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from tools.docs_table import write_docs_table
from tools.environment import ROOT
from tools.real_job.person import Approval

PAGE = ROOT / "benchmarks" / "results" / "real_job.md"
ROWS = PAGE.with_suffix(".json")  # a row for each project and way of answering, of the last run of each
LOCAL_ROWS = PAGE.with_name("real_job_local.json")  # likewise, of the small model
HEAD = (
    "| project | bug | answers | steps | approvals: edits | commands | commits | kill -9 | watched by | fixed and committed | s | load |\n"
    "|---|---|---|--:|--:|--:|--:|--:|--:|---|--:|--:|\n"
)


LOCAL_HEAD = (
    "| project | tool calls | requests | tokens in | tokens out | calls | well-formed | ran | what it called | fixed and committed | "
    "how it ended | s | load |\n"
    "|---|---|--:|--:|--:|--:|--:|--:|---|---|---|--:|--:|\n"
)


class JobReport(Struct):
    """What became of one job."""

    project: str
    bug: str
    answers: str  # "once" or "always"
    steps: int = 0
    edits: int = 0
    commands: int = 0
    commits: int = 0
    continues: int = 0
    kills: int = 0
    watchers: int = 0
    lines_changed: int = 0
    is_committed: bool = False
    is_exact: bool = False  # the line of the bug was changed
    seconds: float = 0.0
    load: float = 0.0  # load average of the machine at the end
    problem: str = ""
    screens: list[str] = field(default_factory=list[str])

    def count(self, approvals: Sequence[Approval]) -> None:
        """Count the approvals that were drawn."""
        kinds = Counter(
            "commits"
            if "git commit" in approval.screen.split("Allow ")[-1]
            else "edits"
            if approval.tool == "edit_file"
            else "commands"
            for approval in approvals
        )
        self.edits, self.commands, self.commits = kinds["edits"], kinds["commands"], kinds["commits"]
        self.screens = [approval.screen for approval in approvals]

    @property
    def is_done(self) -> bool:
        """Whether the bug was fixed and committed."""
        return self.is_committed and self.lines_changed == 1 and not self.problem

    def line(self) -> str:
        """A row of the table."""
        answers = "each once" if self.answers == "once" else "“always” for tests and edits"
        done = "yes" if self.is_done and self.is_exact else "yes, elsewhere" if self.is_done else "no"
        cells = [self.project, self.bug, answers, self.steps, self.edits, self.commands, self.commits]
        cells += [self.kills, self.watchers, done, round(self.seconds), round(self.load)]
        return f"| {' | '.join(map(str, cells))} |"


class LocalReport(Struct):
    """What became of one job of the small model."""

    project: str
    tool_format: str
    window: int = 0
    requests: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    calls: list[str] = field(default_factory=list[str])  # the tools that it named, in order
    judged: set[str] = field(default_factory=set[str])  # calls that the rules decided about
    succeeded: int = 0
    is_done: bool = False
    exit_status: int = 0
    end: str = "no turn"
    answer: str = ""  # the text of its last step
    seconds: float = 0.0
    load: float = 0.0

    def read(self, line: str) -> None:
        """Count an event of `everturn run --json`."""
        event = json.loads(line).get("event", {})
        kind = event.get("type", "")
        if kind == "StepFinished":
            self.requests += 1
            usage = event.get("usage", {})
            self.tokens_in += usage.get("input", 0) + usage.get("cached", 0)
            self.tokens_out += usage.get("output", 0)
            self.calls += [part["name"] for part in event["parts"] if part["type"] == "tool"]
            self.answer = "".join(part["text"] for part in event["parts"] if part["type"] == "text")
        elif kind in ("PermissionDecided", "GateOpened"):
            self.judged.add(event.get("call") or event["gate"]["call"])
        elif kind == "CallFinished":
            self.succeeded += event["state"] == "completed"
        elif kind.startswith("Turn") and kind not in ("TurnStarted", "TurnFinishing"):
            self.end = event.get("reason") or event.get("kind") or kind.removeprefix("Turn").lower()

    def line(self) -> str:
        """A row of the table."""
        form = "native" if self.tool_format == "native" else f"prompted (`{self.tool_format}`), form enforced"
        named = ", ".join(f"`{name[:24]}` ×{count}" for name, count in Counter(self.calls).items()) or "nothing"
        end = f"{self.end}, exit status {self.exit_status}"
        cells = [self.project, form, self.requests, self.tokens_in, self.tokens_out, len(self.calls)]
        cells += [len(self.judged), self.succeeded, named, "yes" if self.is_done else "no", end]
        return f"| {' | '.join(map(str, [*cells, round(self.seconds), round(self.load)]))} |"


def store_local_rows(reports: Sequence[LocalReport]) -> None:
    """Write what became of these jobs of the small model beside the last result of the other ones, and the page."""
    known = {(row.project, row.tool_format): row for row in [*_local_rows(), *reports]}
    rows = [known[name] for name in sorted(known, key=lambda name: (name[0], name[1] != "native"))]
    LOCAL_ROWS.write_bytes(msgspec.json.format(msgspec.json.encode(rows, order="deterministic"), indent=2) + b"\n")
    store_rows([])


def _local_rows() -> list[LocalReport]:
    return msgspec.json.decode(LOCAL_ROWS.read_bytes(), type=list[LocalReport]) if LOCAL_ROWS.exists() else []


def render_local(reports: Sequence[LocalReport]) -> str:
    """The section of the small model; "" without rows."""
    if not reports:
        return ""
    rows = "\n".join(report.line() for report in reports)
    return (
        "\n## With a small model on the machine\n\n"
        "Written by `python -m tools.real_job.local_model --write`. The jobs are the same; the model is SmolLM2-135M behind llama.cpp with a\n"
        f"window of {reports[0].window} tokens. `everturn run` works in the folder; edits and the command of the tests are allowed by rules, and\n"
        "every other call that needs an approval is denied. A call is well-formed if it names a tool there is and its arguments fit.\n\n"
        f"{LOCAL_HEAD}{rows}\n"
    )


def store_rows(reports: Sequence[JobReport]) -> None:
    """Write what became of these jobs beside the last result of the other ones, and the page of all of them."""
    with PAGE.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        rows = msgspec.json.decode(ROWS.read_bytes(), type=list[JobReport]) if ROWS.exists() else []
        known = {(row.project, row.answers): row for row in rows}
        known |= {(row.project, row.answers): replace(row, screens=[]) for row in reports}
        rows = [known[name] for name in sorted(known, key=lambda name: (name[0], name[1] == "always"))]
        ROWS.write_bytes(msgspec.json.format(msgspec.json.encode(rows), indent=2) + b"\n")
        PAGE.write_text(render(rows) + render_local(_local_rows()), encoding="utf-8")
        write_docs_table("terminal/folder.md", "real_job", render(rows))
    PAGE.with_suffix(".lock").unlink(missing_ok=True)


def render(reports: Sequence[JobReport]) -> str:
    """The page."""
    rows = "\n".join(report.line() for report in reports)
    return (
        "# A real job in a folder\n\n"
        "Written by `python -m tools.real_job.campaign --write`. A seed plants one wrong token in a source distribution such that a\n"
        "test fails; `everturn` runs in the folder with its defaults; the model is a program that does not know the bug. Approvals\n"
        "are counted as the terminal drew them. Where the terminal was killed (`kill -9`), it was in the middle of a test run, and\n"
        "`everturn -c` continued the turn; a second terminal and a reader of the HTTP API of the web UI then showed its answer, too.\n\n"
        "Other programs ran at the same time; the last column is the load average of the machine, which has "
        f"{os.cpu_count()} cores.\n\n"
        f"{HEAD}{rows}\n"
    )
