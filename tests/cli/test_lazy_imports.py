"""The names of the package: found when they are asked for, and the same for those who run code and those who read it."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import everturn

LAZY = ["", ".events", ".tools", ".models", ".plugins", ".stores", ".engine", ".bus"]


@pytest.mark.parametrize("name", LAZY)
def test_what_a_type_checker_reads_is_where_a_name_is_found(name: str):
    module = import_module(f"everturn{name}")
    tree = ast.parse(Path(module.__file__ or "").read_text(encoding="utf-8"))
    read = {
        alias.name: node.module
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }

    assert read == module._HOMES
    assert sorted(read) == sorted(module.__all__)


@pytest.mark.parametrize("name", LAZY[1:])
def test_a_public_module_imports_nothing_before_it_is_asked(name: str):
    look = (
        f"import sys, everturn{name} as module\n"
        "assert not any(name in vars(module) for name in module.__all__)\n"
        "assert 'pydantic' not in sys.modules and 'aiohttp' not in sys.modules\n"
        "assert all(getattr(module, name) is not None for name in module.__all__)\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", look], check=True)
    with pytest.raises(AttributeError, match=f"module 'everturn{name}' has no attribute 'Caht'"):
        getattr(import_module(f"everturn{name}"), "Caht")  # noqa: B009


def test_every_name_is_there_before_it_was_asked_for():
    look = (
        "import everturn\n"
        "assert set(everturn.__all__) <= set(dir(everturn)) and 'Chat' not in vars(everturn)\n"
        "assert everturn.errors.ConfigError and everturn.Chat and 'Chat' in vars(everturn)\n"
        "from everturn import *\n"
        "print(sorted(name for name in everturn.__all__ if name not in globals()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", look], capture_output=True, encoding="utf-8", check=True
    )

    assert done.stdout == "[]\n"


def test_a_name_that_is_not_there_is_reported_as_python_tells_it():
    with pytest.raises(AttributeError, match="module 'everturn' has no attribute 'Caht'"):
        everturn.Caht  # noqa: B018
    assert not hasattr(everturn, "_nothing")
    with pytest.raises(ImportError, match="cannot import name 'Caht'"):
        exec("from everturn import Caht")


def test_what_a_module_of_ours_lacks_is_not_told_as_the_module(monkeypatch: pytest.MonkeyPatch):
    def fail(name: str) -> None:
        raise ModuleNotFoundError("No module named 'starlette'", name="starlette")

    monkeypatch.setattr("importlib.import_module", fail)
    with pytest.raises(ModuleNotFoundError, match="starlette"):
        everturn.__getattr__("server")
