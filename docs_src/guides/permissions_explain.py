import contextlib
import io
import shlex
import tempfile
import textwrap
from pathlib import Path

from everturn.cli import main as everturn

RULES = """\
[[permissions]]
tool = "run"
match = { command = "git *" }
action = "allow"

[[permissions]]
tool = "run"
match = { command = "git push *" }
action = "ask"

[[permissions]]
tool = "run"
match = { command = "git push origin *" }
action = "allow"
"""
TOOLS = '''\
from everturn import tool

@tool(approval="ask", subjects={"command": "command"})
def run(command: str) -> str:
    """Run a command."""
    raise NotImplementedError
'''


def show(*words: str) -> None:
    command = "$ everturn " + shlex.join(words)
    print(" \\\n      ".join(textwrap.wrap(command, 80, break_on_hyphens=False)))
    with contextlib.redirect_stdout(io.StringIO()) as output:
        code = everturn(words)
    for line in output.getvalue().splitlines():
        print(textwrap.fill(line, 84, subsequent_indent="      "))
    print(f"[exit code {code}]")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("everturn.toml").write_text(RULES, encoding="utf-8")
        Path("mytools.py").write_text(TOOLS, encoding="utf-8")
        rules = ("--permissions", "everturn.toml")
        show("permissions", "check", *rules)
        call = ("run", "command=git log; git push origin")
        show("permissions", "explain", *call, "--tools", "mytools.py", *rules)


if __name__ == "__main__":
    main()
