"""The built wheel of a release beside this checkout: the short form of `python -m tools.chaos.two_releases`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.chaos.two_releases import run_two_releases
from tools.release.archive import list_releases

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]


@pytest.mark.parametrize("folder", list_releases()[-1:], ids=lambda folder: folder.name)
async def test_a_release_and_this_checkout_share_a_cluster_while_turns_run(folder: Path) -> None:
    report = await run_two_releases(folder, turns=24)
    assert report.violations == ()
    assert set(report.effects) == {folder.name, "this checkout"}, "one of the versions did nothing"
