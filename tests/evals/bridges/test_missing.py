"""A bridge whose library is not there says what to install: when it is imported, and on the command line."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from everturn.cli import main

EXAMPLES = Path(__file__).parents[3] / "examples"
BRIDGES = "everturn.evals.bridges"


@pytest.mark.parametrize(
    ("bridge", "library", "extra"),
    [("pydantic_evals", "pydantic_evals.dataset", "pydantic-evals"), ("inspect_ai", "inspect_ai.model", "inspect")],
)
def test_a_bridge_without_its_library_says_what_to_install(
    bridge: str, library: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [name for name in sys.modules if name.startswith(f"{BRIDGES}.")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, library, None)  # as if it were not there, where it is
    with pytest.raises(ModuleNotFoundError, match=rf"pip install 'everturn\[{extra}\]'") as caught:
        importlib.import_module(f"{BRIDGES}.{bridge}")
    assert caught.value.name in ("pydantic_evals", "inspect_ai")


def test_a_report_for_inspect_without_it_costs_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [name for name in sys.modules if name.startswith(f"{BRIDGES}.inspect")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.delattr(f"{BRIDGES}.inspect_ai", raising=False)
    monkeypatch.setitem(sys.modules, "inspect_ai.model", None)
    assert main(["eval", str(EXAMPLES), "--report", str(tmp_path / "log.eval")]) == 3
    output = capsys.readouterr()
    assert "pip install 'everturn[inspect]'" in output.err
    assert "passed" not in output.out  # nothing was evaluated
