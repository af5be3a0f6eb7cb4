"""The same programs in everturn and in its peers: ours are run here, and theirs where they are installed already.

`benchmarks/programs/run.py` installs them, and writes the table.
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
LONGEST = 1.1  # times the shortest of the others


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("everturn_programs", ROOT / "benchmarks/programs/run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


programs = load()


@pytest.mark.parametrize("peer", list(programs.PEERS))
@pytest.mark.parametrize("program", list(programs.PROGRAMS))
async def test_a_program_does_what_the_others_do(program: str, peer: str) -> None:
    if peer != "everturn" and not (programs.CACHE / peer / "installed").exists():
        pytest.skip(f"{peer} is not installed: python benchmarks/programs/run.py")
    await programs.check(peer, program)


@pytest.mark.parametrize("program", list(programs.PROGRAMS))
def test_it_takes_no_more_lines_than_the_shortest_of_the_others(program: str) -> None:
    ours, *others = [programs.lines(peer, program) for peer in programs.PEERS]
    assert ours <= LONGEST * min(others)


def test_the_page_has_the_lines_of_the_programs() -> None:
    assert programs.table() in programs.PAGE.read_text(encoding="utf-8")
