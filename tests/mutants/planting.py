"""A process in which a seeded bug is the only difference: warm before it is forked, and changed by an import hook.

This module is what the processes of all mutants have in common. It is imported once, by the server they are forked from
(see `run.py`), and then the packages that Everturn and its tests stand on are imported, and the source of Everturn is
compiled. No module of Everturn itself is: each child imports all of them anew, one of them with a bug in it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.metadata import entry_points
from types import CodeType, ModuleType

import pytest

from tests.mutants.mutant import PACKAGE, ROOT, Mutant

PLACES = {"everturn": PACKAGE, "tools": ROOT / "tools"}

# What plugins of pytest import only when they are used, and what the tests of most mutants use.
WARM = (
    "aiohttp",
    "anyio._backends._asyncio",
    "hypothesis.stateful",
    "inline_snapshot.plugin._default_plugin",
    "msgspec",
)
for name in WARM:
    importlib.import_module(name)
for plugin in entry_points(group="pytest11"):
    plugin.load()

SOURCES = {str(file): file.read_text(encoding="utf-8") for folder in PLACES.values() for file in folder.rglob("*.py")}
CODE = {path: compile(text, path, "exec", dont_inherit=True) for path, text in SOURCES.items()}


class Planted(SourceFileLoader):
    """Loads what was compiled before the fork."""

    def get_code(self, fullname: str) -> CodeType:
        return CODE[self.path]


class Planter:
    """Finds the modules of Everturn and of `tools` in this source tree, wherever else they may be installed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if (folder := PLACES.get(fullname.partition(".")[0])) is None:
            return None
        spec = PathFinder.find_spec(fullname, path or [str(folder.parent)], target)
        if spec is not None and spec.origin in CODE:
            spec.loader = Planted(fullname, spec.origin)
        return spec


def plant(mutant: Mutant) -> None:
    """Plant one bug in what this process is about to import."""
    path = str(mutant.path)
    text = SOURCES[path]
    if text.count(mutant.old) != 1:
        raise LookupError(f"{mutant.name}: {mutant.file} has the line {text.count(mutant.old)} times; fix the mutant")
    CODE[path] = compile(text.replace(mutant.old, mutant.new), path, "exec", dont_inherit=True)


def run(tests: Sequence[str], mutant: Mutant | None) -> int:
    """Run tests on the source with a bug in it, or without one; what pytest's exit code is."""
    strangers = [name for name in sys.modules if name.partition(".")[0] in PLACES]
    assert not strangers, f"imported before anything was planted: {strangers}"
    if mutant is not None:
        plant(mutant)
    sys.meta_path.insert(0, Planter())
    options = ["-q", "-x", "-n0", "-p", "no:cacheprovider", "--hypothesis-profile=mutant"]
    # A bug may let a test wait for ever. Without one a loaded machine is given the time it needs.
    patience = ["--timeout=10", "--timeout-method=thread"] if mutant else []
    # What is imported already is not rewritten: packages, whose assertions nobody reads.
    quiet = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return pytest.main([*options, *patience, *quiet, *tests])
