"""macOS, as far as it can be seen without one: a process in which Python looks like that (`tests.helpers.fake_macos`).

Every module is imported, the tests of files and folders run there, and the assistant starts: with files, and without a shell.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tui.terminal_emulator import Terminal, environment

pytestmark = pytest.mark.timeout(300)
ROOT = Path(__file__).parents[1]
IMPORT_ALL = """
import tests.helpers.fake_macos
import importlib, pkgutil, everturn
names = [module.name for module in pkgutil.walk_packages(everturn.__path__, "everturn.")]
for name in names:
    if not name.endswith("__main__") and not name.startswith("everturn.evals.bridges."):  # they need extras
        importlib.import_module(name)
print(len(names))
"""
PORTABLE = ("tests/tools_files/test_root.py", "tests/config/test_folder.py", "tests/config/test_work_folder.py")


def test_every_module_can_be_imported() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORT_ALL], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 500


def test_the_tests_of_files_and_folders_pass() -> None:
    words = [sys.executable, "-m", "pytest", "-p", "tests.helpers.fake_macos", "-p", "no:cacheprovider", "-n0", "-q"]
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    done = subprocess.run([*words, *PORTABLE], cwd=ROOT, capture_output=True, text=True, check=False, env=variables)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout


def test_the_assistant_starts_in_a_folder_with_files_and_says_why_there_is_no_shell(tmp_path: Path) -> None:
    folder, start = tmp_path / "shop", tmp_path / "start"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    start.mkdir()
    (start / "sitecustomize.py").write_text("import tests.helpers.fake_macos\n", encoding="utf-8")
    known = environment(tmp_path)
    paths = [str(start), str(ROOT / "src"), str(ROOT), *filter(None, [known.get("PYTHONPATH")])]
    known = {**known, "PYTHONPATH": os.pathsep.join(paths), "EVERTURN_MODEL": "offline:demo"}
    terminal = Terminal([], known, (120, 40), folder)
    try:
        terminal.sees("Ask anything")
        terminal.sees(r"there\s+is\s+no\s+shell")
        terminal.types('list_directory {"path": "."}\r')
        terminal.sees("list_directory says")
        terminal.types("\x11")
        assert terminal.ends() == 0
    finally:
        terminal.close()
