"""The report of a campaign: a row for each job."""

from __future__ import annotations

import fcntl
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
HEAD = (
    "| project | bug | answers | steps | approvals: edits | commands | commits | kill -9 | watched by | fixed and committed | s | load |\n"
    "|---|---|---|--:|--:|--:|--:|--:|--:|---|--:|--:|\n"
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


def store_rows(reports: Sequence[JobReport]) -> None:
    """Write what became of these jobs beside the last result of the other ones, and the page of all of them."""
    with PAGE.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        rows = msgspec.json.decode(ROWS.read_bytes(), type=list[JobReport]) if ROWS.exists() else []
        known = {(row.project, row.answers): row for row in rows}
        known |= {(row.project, row.answers): replace(row, screens=[]) for row in reports}
        rows = [known[name] for name in sorted(known, key=lambda name: (name[0], name[1] == "always"))]
        ROWS.write_bytes(msgspec.json.format(msgspec.json.encode(rows), indent=2) + b"\n")
        PAGE.write_text(render(rows), encoding="utf-8")
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
