"""What a seeded bug is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "src/everturn"


@dataclass(frozen=True)
class Mutant:
    """A bug: in `file`, `old` (which stands there exactly once) becomes `new`; `test` fails then.

    A file is one of `src/everturn` (`turn/loop.py`); with a slash in front, one of the repository (`/tools/chaos/plan.py`).
    """

    name: str
    file: str
    old: str
    new: str
    test: str

    @property
    def path(self) -> Path:
        """The file that is changed."""
        return ROOT / self.file[1:] if self.file.startswith("/") else PACKAGE / self.file
