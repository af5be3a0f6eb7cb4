"""What a shell completes, tried in the shell itself."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from everturn.cli import main
from everturn.cli.args.commands import SHELLS

ASK = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
COMP_LINE="${COMP_WORDS[*]}"; COMP_POINT=${#COMP_LINE}
$(complete -p everturn | sed -n 's/.*-F \\([^ ]*\\).*/\\1/p') everturn "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("completion") / "everturn.bash"


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("",), {"chat", "run", "serve", "sessions", "export", "import", "mcp"}),
        (("--v",), {"--version"}),
        (("se",), {"serve", "sessions"}),
        (("keys", ""), {"add", "list", "revoke"}),
        (("keys", "add", "--ro"), {"--role"}),
        (("keys", "add", "--role", "o"), {"owner", "operator"}),
        (("sessions", "--s"), {"--search", "--store"}),
        (("mcp", "tr"), {"trust"}),
        (("completion", "z"), {"zsh"}),
        (("import", "tal"), {"talk.zip"}),
    ],
)
def test_bash_completes_commands_options_and_what_they_take(
    words: tuple[str, ...], offered: set[str], script: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    if not script.exists():
        assert main(["completion", "bash"]) == 0
        script.write_text(capsys.readouterr().out, encoding="utf-8")
    (tmp_path / "talk.zip").touch()
    ask = ["bash", "--norc", "-c", ASK, "bash", str(script), "everturn", *words]
    done = subprocess.run(ask, capture_output=True, encoding="utf-8", cwd=tmp_path, check=True)

    found = {word.strip() for word in done.stdout.splitlines()}
    assert offered <= found
    assert all(word.startswith(words[-1]) for word in found)


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_that_is_named_is_written_for(shell: str, capsys: pytest.CaptureFixture[str]):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "everturn" in script
    assert "sessions" in script
    if shutil.which(shell) and shell in ("bash", "zsh", "fish"):
        subprocess.run([shell, "-n"], input=script, encoding="utf-8", check=True)
