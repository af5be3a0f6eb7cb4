"""The diagrams in the docs are drawn from the tables; one that drifts is noticed."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from everturn.core.calls import CALL_TRANSITIONS
from everturn.core.phases import TRANSITIONS

ROOT = Path(__file__).parent.parent


@pytest.fixture
def diagrams() -> ModuleType:
    return _script("diagrams")


def _script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_diagrams_in_the_docs_are_what_the_tables_say(diagrams: ModuleType):
    assert diagrams.outdated(ROOT / "docs" / "diagrams") == []


def test_a_diagram_that_drifts_is_noticed_and_mended(diagrams: ModuleType, tmp_path: Path):
    assert diagrams.outdated(tmp_path) == ["phases.txt", "calls.txt"]
    diagrams.write(tmp_path)
    assert diagrams.outdated(tmp_path) == []

    calls = tmp_path / "calls.txt"
    calls.write_text(calls.read_text(encoding="utf-8").replace("asking", "wondering"), encoding="utf-8")

    assert diagrams.outdated(tmp_path) == ["calls.txt"]


@pytest.mark.parametrize("table", [TRANSITIONS, CALL_TRANSITIONS])
def test_every_row_of_a_table_is_in_its_diagram(diagrams: ModuleType, table: dict[str, dict[type, object]]):
    drawn: str = diagrams.draw(table)

    assert [line for line in drawn.splitlines() if not line.startswith(" ")] == list(table)
    for state, row in table.items():
        block = drawn.split(f"{state}\n", 1)[1]
        assert all(event.__name__ in block for event in row)


def test_the_pictures_in_the_docs_are_what_would_be_drawn_now(tmp_path: Path):
    drawings = _script("drawings")

    assert drawings.outdated(ROOT / "docs" / "assets") == []
    assert drawings.outdated(tmp_path) == list(drawings.DRAWINGS)


def test_a_picture_of_another_machine_is_not_drawn(monkeypatch: pytest.MonkeyPatch):
    drawings = _script("drawings")
    monkeypatch.setattr(drawings, "TRANSITIONS", {phase: {} for phase in TRANSITIONS})

    with pytest.raises(AssertionError, match="nothing leads from preparing to streaming"):
        drawings.turn()
