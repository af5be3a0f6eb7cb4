"""Pytest plugin: every case of a `dataset.toml` is a test.

Turn it on in `conftest.py`:

    pytest_plugins = ["everturn.evals.pytest_plugin"]

Then `pytest refunds/` collects `refunds/dataset.toml`. The tests run at depth pure, or at `--eval-depth`, with the
instructions of `--eval-system-file` and the rules of `--eval-permissions`; no model is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from everturn.evals.change import EvalChange
from everturn.evals.dataset import FILE, Case, Dataset
from everturn.evals.evaluate import evaluate
from everturn.evals.report import SampleResult
from everturn.permissions.rules_file import load_rules


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of evaluations."""
    group = parser.getgroup("everturn", "everturn evals")
    group.addoption("--eval-depth", choices=("pure", "turn"), default="pure", help="depth of the cases of datasets")
    group.addoption("--eval-system-file", metavar="FILE", default="", help="other instructions")
    group.addoption("--eval-permissions", metavar="FILE", default="", help="other permission rules")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a file that does not exist, before any case runs.

    Raises:
        UsageError: an option names a file that is not there.
    """
    for option in ("--eval-system-file", "--eval-permissions"):
        if (name := config.getoption(option, "")) and not Path(name).is_file():
            raise pytest.UsageError(f"{option} {name}: there is no such file")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect datasets."""
    if file_path.name != FILE:
        return None
    return cast("Any", DatasetFile).from_parent(parent, path=file_path)  # pytest's own is not typed


class EvalFailed(Exception):
    """A case did not pass."""

    def __init__(self, sample: SampleResult) -> None:
        super().__init__("\n".join([sample.status, *(f"  {line}" for line in [*sample.reasons, *sample.decisions])]))


class DatasetFile(pytest.File):
    """A dataset, with a test for each case."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the cases."""
        dataset = Dataset.read(self.path)
        for case in dataset.cases:
            yield cast("Any", CaseItem).from_parent(self, name=case.name, dataset=dataset, case=case)


class CaseItem(pytest.Item):
    """A case of a dataset, as a test."""

    def __init__(self, *, dataset: Dataset, case: Case, **rest: Any) -> None:
        super().__init__(**rest)  # pyright: ignore[reportUnknownMemberType]
        self._dataset, self._case = dataset, case

    def runtest(self) -> None:
        """Evaluate the case.

        Raises:
            EvalFailed: it failed, is divergent, or cannot run.
        """
        options = self.config.option
        change = EvalChange()
        if options.eval_system_file:
            change = replace(change, system=Path(options.eval_system_file).read_text(encoding="utf-8").strip())
        if options.eval_permissions:
            change = replace(change, rules=load_rules(options.eval_permissions))
        dataset = replace(self._dataset, cases=[self._case])
        report = asyncio.run(evaluate(dataset, depth=options.eval_depth, change=change))
        if (sample := report.cases[0].samples[0]).status != "passed":
            raise EvalFailed(sample)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show why the case did not pass, without a traceback of ours."""
        return str(excinfo.value) if isinstance(excinfo.value, EvalFailed) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The dataset and the case."""
        return self.path, None, f"eval: {self.name}"
