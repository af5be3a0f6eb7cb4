"""What is imported is declared, what is declared is locked with hashes, and what is promised to run is run."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))

# `typing_extensions` is imported by type checkers alone, which bring it.
# The others are installed for their tests in an environment of their own, or brought by whoever writes the tests that use them.
ELSEWHERE = {
    "typing_extensions",
    "litellm",
    "pydantic_ai",
    "pytest",
    "pytest_asyncio",
    "sqlalchemy",
    "alembic",
    "keyring",
}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _declared() -> set[str]:
    lines = [*PROJECT["project"]["dependencies"], *(line for lines in EXTRAS.values() for line in lines)]
    return {_normal(re.split(r"[\s\[<>=!~;]", line)[0]) for line in lines}


def imported(text: str) -> set[str]:
    """The top-level packages that a module imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"everturn"}


def test_every_library_that_is_imported_is_declared() -> None:
    providers = packages_distributions()
    undeclared: dict[str, str] = {}
    for path in sorted((ROOT / "src").rglob("*.py")):
        for package in imported(path.read_text(encoding="utf-8")) - ELSEWHERE:
            if not {_normal(name) for name in [package, *providers.get(package, [])]} & _declared():
                undeclared[package] = str(path.relative_to(ROOT))
    assert not undeclared, "declare them in pyproject.toml, in the extra that imports them"


def test_an_import_inside_a_function_counts() -> None:
    assert imported("def f():\n    from yarl import URL\n    import os\n    import a.b, c\n") == {"yarl", "a", "c"}


@pytest.mark.parametrize(
    "library", ["uvicorn", "h11", "granian", "textual", "httpx2", "quickjs-ng", "pydantic-monty", "mcp"]
)
def test_a_library_whose_inside_we_touch_has_an_upper_bound(library: str) -> None:
    lines = [line for lines in EXTRAS.values() for line in lines if _normal(re.split(r"[\[<>=;]", line)[0]) == library]
    assert lines
    assert all("<" in line for line in lines), lines


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_pin_has_its_hashes_and_no_place_to_fetch_from(lock: Path) -> None:
    text = lock.read_text(encoding="utf-8")
    pins = re.findall(r"^[a-z0-9][^\n]*?==[^\n]*(?:\n    [^\n]*)*", text, re.MULTILINE)
    assert pins
    for pin in pins:
        assert "--hash=sha256:" in pin, pin.splitlines()[0]
    assert "://" not in text


def test_what_the_classifiers_promise_is_run() -> None:
    promised = {
        version for line in PROJECT["project"]["classifiers"] for version in re.findall(r"Python :: (3\.\d+)$", line)
    }
    runs = (ROOT / "scripts" / "pythons").read_text(encoding="utf-8")
    newer = set(re.findall(r'^versions="([^"]+)"', runs, re.MULTILINE)[0].split())
    assert promised == {"3.11", *newer}


def test_ci_installs_nothing_without_a_hash() -> None:
    for path in [ROOT / ".ci" / "run", *(ROOT / "scripts").iterdir()]:
        if not path.is_file() or path.name in ("try-install", "floors"):  # what a stranger gets, what is oldest
            continue
        for line in path.read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
            if re.search(r"\bpip (install|sync)\b", line) and not line.lstrip().startswith("#"):
                assert "--require-hashes" in line or "--no-deps" in line, f"{path.name}: {line}"
