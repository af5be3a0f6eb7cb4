"""The layers hold, and the checker that says so is itself checked.

Each case copies `src` to a scratch folder, adds one forbidden import and expects import-linter to name it.
A case names folders, not files, wherever any file will do, so the code may grow and move beneath it.
"""

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
PYPROJECT = ROOT / "pyproject.toml"
CONTRACTS = {
    contract["id"]: contract["name"]
    for contract in tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
}


def lint(src: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--config", PYPROJECT, "--no-cache", "--no-logo"],
        cwd=src.parent,
        # Ahead of the editable install, or the linter would read the real tree.
        env={**os.environ, "PYTHONPATH": str(src), "COLUMNS": "200", "NO_COLOR": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def some_module(package: Path) -> Path:
    """Any module of a package; its `__init__.py` only when there is nothing else."""
    return min(package.rglob("*.py"), key=lambda path: (path.name.startswith("_"), path))


def dotted(module: Path, src: Path) -> str:
    return ".".join(module.relative_to(src).with_suffix("").parts).removesuffix(".__init__")


class Violation(NamedTuple):
    contract: str
    importer: str
    """A module or package under everturn; of a package, any module."""
    imported: str
    """The same, or a module from outside."""
    how: str = "import {}"


IN_A_FUNCTION = "def _hidden():\n    import {}"
FOR_A_TYPE = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import {}"

VIOLATIONS = {
    "core imports turn": Violation("layers", "core", "turn/loop.py"),
    "core imports wire": Violation("layers", "core", "wire.py"),
    "core imports turn for a type": Violation("layers", "core", "turn/loop.py", FOR_A_TYPE),
    "errors import core": Violation("layers", "errors.py", "core"),
    "a store imports turn": Violation("layers", "stores", "turn/loop.py"),
    "a model imports a store": Violation("layers", "models", "stores"),
    "a plugin imports the public face": Violation("layers", "plugins", "chat"),
    "core imports time": Violation("core-is-pure", "core", "time"),
    "core imports asyncio in a function": Violation("core-is-pure", "core", "asyncio", IN_A_FUNCTION),
    "core imports datetime for a type": Violation("core-is-pure", "core", "datetime", FOR_A_TYPE),
    "core imports pydantic": Violation("core-is-pure", "core", "pydantic"),
    "turn imports sqlite3 in a function": Violation("turn-talks-to-ports", "turn", "sqlite3", IN_A_FUNCTION),
    "turn imports uuid": Violation("turn-talks-to-ports", "turn/loop.py", "uuid"),
    "turn imports a model": Violation("turn-talks-to-ports", "turn", "models"),
    "a stage imports another": Violation("stages", "turn/request.py", "turn/stream.py"),
    "a stage imports the loop": Violation("stages", "turn/stream.py", "turn/loop.py", FOR_A_TYPE),
    "the test kit imports the campaigns": Violation("only-what-ships", "testing", "tools", IN_A_FUNCTION),
    "a plugin imports the loop": Violation("plugins", "plugins", "turn/loop.py"),
    "a plugin imports a stage in a function": Violation("plugins", "plugins", "turn/stream.py", IN_A_FUNCTION),
    "two modules import each other": Violation(
        "acyclic", "core/rules/policy.py", "core/rules/shadowed_rules.py", IN_A_FUNCTION
    ),
    "two packages import each other": Violation(
        "acyclic", "terminal/text/screen.py", "terminal/lines/gate_view.py", FOR_A_TYPE
    ),
}


@pytest.fixture
def src(tmp_path: Path) -> Path:
    # Without it Python would merge the copy with the editable install, and the linter read either.
    assert (ROOT / "src/everturn/__init__.py").exists(), "src/everturn needs an __init__.py"
    ignore = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(ROOT / "src", tmp_path / "src", ignore=ignore))


@pytest.fixture
def module(src: Path) -> Callable[[str], Path]:
    def find(name: str) -> Path:
        path = src / "everturn" / name
        assert path.exists(), f"there is no everturn/{name} any more; the case needs another module"
        return some_module(path) if path.is_dir() else path

    return find


def test_the_tree_as_it_stands_keeps_every_contract(src: Path):
    result = lint(src)

    assert result.returncode == 0, result.stdout + result.stderr
    for name in CONTRACTS.values():
        assert f"{name} KEPT" in result.stdout


@pytest.mark.parametrize("violation", VIOLATIONS.values(), ids=VIOLATIONS.keys())
def test_a_forbidden_import_is_caught(violation: Violation, src: Path, module: Callable[[str], Path]):
    importer, imported = module(violation.importer), violation.imported
    if imported not in sys.stdlib_module_names | {"pydantic", "tools"}:
        imported = dotted(module(imported), src)
    with importer.open("a", encoding="utf-8") as file:
        file.write(f"\n{violation.how.format(imported)}\n")

    result = lint(src)

    assert result.returncode == 1, result.stdout + result.stderr
    assert f"{CONTRACTS[violation.contract]} BROKEN" in result.stdout
    if violation.contract == "acyclic":  # which import of a circle is the wrong one, the linter can only guess
        shared = os.path.commonpath([importer, module(violation.imported)])
        assert f"No cycles are allowed in {dotted(Path(shared), src)}." in result.stdout
    else:
        assert f"{dotted(importer, src)} -> {imported} " in result.stdout


def test_a_new_package_at_the_top_must_choose_its_layer(src: Path):
    (src / "everturn" / "stray").mkdir()
    (src / "everturn" / "stray" / "__init__.py").touch()

    result = lint(src)

    assert result.returncode == 1, result.stdout + result.stderr
    assert f"{CONTRACTS['layers']} BROKEN" in result.stdout
    assert "everturn.stray" in result.stdout


def test_every_contract_has_been_seen_to_break():
    assert {violation.contract for violation in VIOLATIONS.values()} == set(CONTRACTS)
