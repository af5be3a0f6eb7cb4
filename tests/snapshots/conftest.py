"""An empty folder of which snapshots are taken."""

from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Beside it there is room for what must not be touched."""
    folder = tmp_path / "folder"
    folder.mkdir()
    return folder
