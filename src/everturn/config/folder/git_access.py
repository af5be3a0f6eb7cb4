"""Git in a folder: what the model is told of the repository, and which commands of the shell may change it."""

from __future__ import annotations

import os
import subprocess
from typing import Final

from everturn.config.folder.project import Project
from everturn.errors import EverturnError
from everturn.tools.code.shell import GitAccess

GIT_TIMEOUT: Final = 3.0  # seconds
MAX_STATUS_LINES: Final = 20
SAFE: Final = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.pager=cat")
GIT_WRITES: Final = (
    *("add", "am", "apply", "branch", "checkout", "cherry-pick", "commit", "merge", "mv", "rebase", "reset"),
    *("restore", "revert", "rm", "stash", "switch", "tag"),
)
"""The commands of git that change a repository: only for these is it writable in the shell."""

GIT_READS: Final = ("blame", "diff", "log", "ls-files", "rev-parse", "show", "status")
"""The commands of git that only print. Options with which they write or run something are judged by themselves."""


def make_git_access(project: Project) -> GitAccess:
    """Return the commands that may change the repository, and the author of their commits."""
    name = run_git(project, "config", "--get", "user.name").strip() or "everturn"
    email = run_git(project, "config", "--get", "user.email").strip() or "everturn@localhost"
    roles = ("AUTHOR", "COMMITTER")
    variables = {f"GIT_{role}_{key}": value for role in roles for key, value in (("NAME", name), ("EMAIL", email))}
    return GitAccess(changes_repository, variables)


def changes_repository(command: str) -> bool:
    """Whether a command line has a plain `git commit` or the like, as the rules for commands read it."""
    from everturn.permissions.shell.command_line import read_command

    try:
        subjects = read_command(command)
    except EverturnError:  # it is not run either
        return False
    return any(
        subject.words[0] == "git" and subject.words[1] in GIT_WRITES for subject in subjects if len(subject.words) > 1
    )


def describe_git(project: Project) -> str:
    """Describe the branch and the uncommitted changes."""
    branch = run_git(project, "rev-parse", "--abbrev-ref", "HEAD").strip() or "no commit yet"
    status = run_git(project, "status", "--porcelain").splitlines()
    changes = "no uncommitted changes"
    if status:
        shown = ", ".join(line.strip() for line in status[:MAX_STATUS_LINES])
        more = f" and {len(status) - MAX_STATUS_LINES} more" if len(status) > MAX_STATUS_LINES else ""
        changes = f"uncommitted changes: {shown}{more}"
    return f"Git, when this conversation began: branch {branch}; {changes}"


def run_git(project: Project, *words: str) -> str:
    """Run git without anything that a repository could make it start; "" if it fails."""
    variables = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["git", *SAFE, *words],
            cwd=project.root,
            capture_output=True,
            timeout=GIT_TIMEOUT,
            check=False,
            env=variables,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    text = done.stdout[:20_000].decode(errors="replace") if done.returncode == 0 else ""
    return "".join(char if char.isprintable() or char == "\n" else "?" for char in text)
