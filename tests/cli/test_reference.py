"""The page about the command line is what the parser says."""

import importlib.util
from pathlib import Path

from everturn.cli.args.commands import GROUPS

ROOT = Path(__file__).parent.parent.parent


def test_the_reference_is_written_from_the_parser():
    spec = importlib.util.spec_from_file_location("commands", ROOT / "scripts" / "commands.py")
    assert spec is not None
    assert spec.loader is not None
    commands = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(commands)

    assert commands.PAGE.read_text(encoding="utf-8") == commands.page(), "run: python scripts/commands.py"


def test_the_guide_speaks_of_every_command():
    guide = (ROOT / "docs" / "terminal" / "command-line.md").read_text(encoding="utf-8")

    assert [name for names in GROUPS.values() for name in names if f"everturn {name}" not in guide] == []
