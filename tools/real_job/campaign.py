"""A real job in a folder, through the terminal:

    python -m tools.real_job.campaign [--only inflection] [--write]

For each project it plants a bug, starts `everturn` in the folder (in a pseudo-terminal, as an ordinary user), types the task,
and answers what the terminal asks. The model is a program behind an HTTP endpoint that does not know the bug (`debugger`).
Each project is done twice: with defaults, each approval given once; and with "always" for the commands that run the tests, and "allow all edits" at the first edit. The
second run is killed (`kill -9`) while the tests run in the middle of the job, and continued with `everturn -c`; a second
terminal and a reader of the HTTP API follow the same session. `--write` writes the rows of the table that the docs show. It exits with 1 if a
job was not done.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tools.real_job.debugger import DONE, next_step
from tools.real_job.model_server import ModelServer, model_server
from tools.real_job.person import Person, environment, find_python
from tools.real_job.projects import PROJECTS, Bug, Project, prepare
from tools.real_job.report import JobReport, render, store_rows
from tools.real_job.screen import UID, TerminalWindow
from tools.real_job.web_reader import WebReader

TASK = "A test fails. Find the bug, fix it, run the tests with `{}`, and commit."
WAYS = {"both": (False, True), "once": (False,), "always": (True,)}
KILL_AT = 14  # the call during which the terminal is killed


def configure(home: Path, model: ModelServer) -> None:
    """Name the model and its address: nothing else differs from the defaults."""
    (home / "tmp").mkdir(parents=True)
    file = home / "config" / "everturn" / "everturn.toml"
    file.parent.mkdir(parents=True)
    file.write_text(
        f'[models.program]\nmodel = "compatible:program"\nbase_url = "{model.url}"\n\n'
        '[agents.assistant]\nmodel = "program"\n'
    )
    if os.geteuid() == 0:
        subprocess.run(["chown", "-R", f"{UID}:{UID}", str(home)], check=True)


def do_job(name: str, folder: Path, command: str, bug: Bug, home: Path, *, is_always: bool) -> JobReport:
    """Do one job; with `is_always`, the terminal is killed on the way, and others watch."""
    begin, report = time.monotonic(), JobReport(name, str(bug), "always" if is_always else "once")
    with model_server(next_step) as model:
        configure(home, model)
        person = Person(home, folder, re.compile(re.escape(command.split()[-1])) if is_always else None)
        watcher: TerminalWindow | None = None
        reader: WebReader | None = None
        try:
            person.ask(TASK.format(command))
            if is_always:
                person.work(lambda text: len(model.results) >= 3)
                watcher = person.open("-c")
                reader = WebReader(log_in(home, folder))
                person.work(lambda text: len(model.calls) > KILL_AT and model.calls[-1][0] == "run_shell")
                person.window.kill()
                report.kills += 1
                person.window.close()
                person.window = person.open("-c")
                person.window.wait_for(re.escape(command.split()[-1]))
            person.work(lambda text: DONE in text)
            if watcher is not None and reader is not None:
                watcher.wait_for(DONE)
                report.watchers = 1 + (DONE in reader.wait_for(DONE))
        except TimeoutError as error:
            report.problem = str(error)
        finally:
            person.window.close()
            if watcher is not None:
                watcher.close()
        report.steps = len(model.results) + 1
        report.count(person.approvals)
        report.continues = person.continues
    report.seconds, report.load = time.monotonic() - begin, os.getloadavg()[0]
    check(report, folder, bug)
    return report


def log_in(home: Path, folder: Path) -> str:
    """The address that `everturn login` prints for a browser."""
    words = [find_python(), "-m", "everturn", "login"]
    user = UID if os.geteuid() == 0 else None
    done = subprocess.run(
        words,
        env=environment(home),
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        user=user,
        group=user,
        extra_groups=None if user is None else [],
    )
    return done.stdout.strip()


def check(report: JobReport, folder: Path, bug: Bug) -> None:
    """Look at what became of the folder: the bug is gone, nothing else has changed, and it is committed."""
    git = ["git", "-c", "safe.directory=*", "-C", str(folder)]
    shown = subprocess.run([*git, "show", "--format=", "--unified=0"], capture_output=True, text=True, check=True)
    changed = [line for line in shown.stdout.splitlines() if re.match(r"[-+](?![-+])", line)]
    commits = subprocess.run([*git, "rev-list", "--count", "HEAD"], capture_output=True, text=True, check=True)
    status = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=True)
    report.is_committed = commits.stdout.strip() == "2" and not status.stdout
    report.lines_changed = len(changed) // 2
    report.is_exact = report.is_committed and bug.path in shown.stdout and f" -{bug.mutation.line} " in shown.stdout


def run(projects: list[Project], ways: tuple[bool, ...] = (False, True)) -> list[JobReport]:
    """Do every job twice."""
    reports: list[JobReport] = []
    for project in projects:
        for is_always in ways:
            base = Path(tempfile.mkdtemp(prefix="everturn-job-", dir="/var/tmp"))
            base.chmod(0o755)
            try:
                folder, bug = prepare(project, base / "project")
                reports.append(
                    do_job(project.requirement, folder, project.command, bug, base / "home", is_always=is_always)
                )
            finally:
                shutil.rmtree(base, ignore_errors=True)
            print(reports[-1].line(), reports[-1].problem, sep="\n", flush=True)
    return reports


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description="A real job in a folder, through the terminal.")
    parser.add_argument("--only", action="append", default=[], help="the name of a project")
    parser.add_argument(
        "--write", action="store_true", help="write the rows of these projects into benchmarks/results/real_job.md"
    )
    parser.add_argument("--answers", choices=WAYS, default="both", help="how approvals are answered")
    options = parser.parse_args()
    projects = [project for project in PROJECTS if not options.only or project.name in options.only]
    reports = run(projects, WAYS[options.answers])
    text = render(reports)
    print(text)
    if options.write:
        store_rows(reports)
    return 0 if all(report.is_done for report in reports) else 1


if __name__ == "__main__":
    sys.exit(main())
