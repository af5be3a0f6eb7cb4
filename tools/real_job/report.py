"""The report of a campaign: a row for each job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct, field

from tools.environment import ROOT, describe_load
from tools.real_job.person import Approval

PAGE = ROOT / "benchmarks" / "results" / "real_job.md"
HEAD = (
    "| project | bug | answers | steps | approvals: edits | commands | commits | kill -9 | watched by | fixed and committed | s |\n"
    "|---|---|---|--:|--:|--:|--:|--:|--:|---|--:|\n"
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
    problem: str = ""
    screens: list[str] = field(default_factory=list[str])

    def count(self, approvals: Sequence[Approval]) -> None:
        """Count the approvals that were drawn."""
        kinds = Counter(
            "commits"
            if "git commit" in one.screen.split("Allow ")[-1]
            else "edits"
            if one.tool == "edit_file"
            else "commands"
            for one in approvals
        )
        self.edits, self.commands, self.commits = kinds["edits"], kinds["commands"], kinds["commits"]
        self.screens = [one.screen for one in approvals]

    @property
    def is_done(self) -> bool:
        """Whether the bug was fixed and committed."""
        return self.is_committed and self.lines_changed == 1 and not self.problem

    def line(self) -> str:
        """A row of the table."""
        answers = "each once" if self.answers == "once" else "“always” for tests"
        done = "yes" if self.is_done and self.is_exact else "yes, elsewhere" if self.is_done else "no"
        cells = [self.project, self.bug, answers, self.steps, self.edits, self.commands, self.commits]
        cells += [self.kills, self.watchers, done, round(self.seconds)]
        return f"| {' | '.join(map(str, cells))} |"


def render(reports: Sequence[JobReport]) -> str:
    """The page."""
    rows = "\n".join(report.line() for report in reports)
    return (
        "# A real job in a folder\n\n"
        "Written by `python -m tools.real_job.campaign --write`. A seed plants one wrong token in a source distribution such that a\n"
        "test fails; `everturn` runs in the folder with its defaults; the model is a program that does not know the bug. Approvals\n"
        "are counted as the terminal drew them.\n\n"
        f"{describe_load()}\n\n"
        f"{HEAD}{rows}\n"
    )
