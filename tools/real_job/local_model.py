"""The real job with a small model on this machine: how far it goes, and not whether it should.

    scripts/local-model
    python -m tools.real_job.local_model [--only inflection] [--steps 12] [--write]

The projects, bugs and task are those of `campaign`. `everturn run` has the files and the shell of the folder; rules take the
place of a person: edits and the command of the tests are allowed, everything else is denied. Each project is tried with
native tool calls and with prompted ones whose form the server enforces. `--write` writes the rows of these projects into
`benchmarks/results/real_job.md`, below those of the campaign. A call is well-formed if it names a tool there is and its
arguments fit: then, and only then, the rules decide about it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tools.environment import ROOT
from tools.real_job.campaign import TASK, check
from tools.real_job.person import environment, find_python
from tools.real_job.projects import PROJECTS, Project, prepare
from tools.real_job.report import JobReport, LocalReport, store_local_rows
from tools.real_job.screen import UID

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
PYTHON = CACHE / "everturn-local-model" / "bin" / "python"
WINDOW = 8192  # tokens; the model was trained with as many
ANSWER = 256  # tokens of an answer: it writes until it is stopped
SECONDS = 1500
FORMATS = ("native", "json")


@contextmanager
def local_server() -> Generator[str]:
    """Serve the model; its address."""
    if not PYTHON.exists():
        raise FileNotFoundError("there is no local model: run scripts/local-model")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [PYTHON, ROOT / "tests" / "live" / "serve_model.py", str(port), "2", str(WINDOW)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        try:
            assert server.stdout is not None
            server.stdout.readline()
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.kill()


def configure(home: Path, address: str, tool_format: str) -> None:
    """Name the model, its address and its window."""
    (home / "tmp").mkdir(parents=True)
    file = home / "config" / "everturn" / "everturn.toml"
    file.parent.mkdir(parents=True)
    lines = [
        "[models.local]",
        'model = "llamacpp:smollm2"',
        f'base_url = "{address}"',
        f"window = {WINDOW}",
        f"params = {{ max_tokens = {ANSWER}, temperature = 0.0 }}",
        *([] if tool_format == "native" else [f'tool_format = "{tool_format}"']),
        "",
        "[agents.assistant]",
        'model = "local"',
    ]
    file.write_text("\n".join(lines) + "\n")
    if os.geteuid() == 0:
        subprocess.run(["chown", "-R", f"{UID}:{UID}", str(home)], check=True)


def do_job(project: Project, tool_format: str, address: str, base: Path, steps: int) -> LocalReport:
    """Do one job, and look at the folder afterwards."""
    report, begin = LocalReport(project.requirement, tool_format, window=WINDOW), time.monotonic()
    folder, bug = prepare(project, base / "project")
    configure(base / "home", address, tool_format)
    words = [find_python(), "-m", "everturn", "run", "--json", "--no-stdin", "--mode", "auto-edit"]
    words += ["--max-steps", str(steps), "--timeout", str(SECONDS), "--allow", f"run_shell({project.command})"]
    user = UID if os.geteuid() == 0 else None
    done = subprocess.run(
        [*words, TASK.format(project.command)],
        env=environment(base / "home"),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS + 120,
        check=False,
        user=user,
        group=user,
        extra_groups=None if user is None else [],
    )
    for line in done.stdout.splitlines():
        report.read(line)
    if not done.stdout:
        raise RuntimeError(f"everturn run exited with {done.returncode}: {done.stderr[-2000:]}")
    folder_report = JobReport(project.requirement, str(bug), "once")
    check(folder_report, folder, bug)
    report.is_done, report.exit_status = folder_report.is_done, done.returncode
    report.seconds, report.load = time.monotonic() - begin, os.getloadavg()[0]
    return report


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description="The real job with a small model on this machine.")
    parser.add_argument("--only", action="append", default=[], help="the name of a project")
    parser.add_argument("--steps", type=int, default=12, help="requests at most (default: 12)")
    parser.add_argument("--write", action="store_true", help="write the rows into benchmarks/results/real_job.md")
    options = parser.parse_args()
    projects = [project for project in PROJECTS if not options.only or project.name in options.only]
    reports: list[LocalReport] = []
    with local_server() as address:
        for project in projects:
            for tool_format in FORMATS:
                base = Path(tempfile.mkdtemp(prefix="everturn-local-job-", dir="/var/tmp"))
                base.chmod(0o755)
                try:
                    reports.append(do_job(project, tool_format, address, base, options.steps))
                finally:
                    shutil.rmtree(base, ignore_errors=True)
                print(reports[-1].line(), flush=True)
    if options.write:
        store_local_rows(reports)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
