"""The guide on many workers: its shop in a real cluster, and the numbers and settings it names."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from docs_src.guides.shop import ask, make

from everturn.base_app.app import DRIVE_SECONDS, DURABLE_DRAIN_TIMEOUT
from everturn.base_app.reconciler import RECONCILE_AFTER
from everturn.core.session_claims import MAX_QUICK_CLAIMS, QUARANTINE_SECONDS
from tools.chaos.cell import cell
from tools.servers import restate
from tools.servers.process import free_port

PAGE = (Path(__file__).parent.parent.parent / "docs" / "deploy" / "cluster.md").read_text(encoding="utf-8")


def test_the_settings_of_restate_in_the_guide_are_those_the_tests_run_with() -> None:
    (block,) = (block for block in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL) if "[worker.invoker]" in block)
    shown = {line for line in block.split("[worker.invoker]\n")[1].splitlines() if line}
    assert shown <= set(restate.CONFIG.splitlines())
    assert len(shown) == 4


def test_the_version_of_restate_in_the_guide_is_the_one_the_tests_run_with() -> None:
    assert set(re.findall(r"everturn-restate/([\d.]+)/", PAGE)) == {restate.VERSION}


def test_the_numbers_in_the_guide_are_those_in_the_code() -> None:
    assert (MAX_QUICK_CLAIMS, QUARANTINE_SECONDS, DURABLE_DRAIN_TIMEOUT, RECONCILE_AFTER, DRIVE_SECONDS) == (
        3,
        600,
        3,
        20,
        60,
    )
    phrases = (
        "three times",
        "every ten minutes",
        "After three seconds",
        "driven for a minute",
        "was not driven for 20 s",
    )
    assert [words for words in phrases if words not in " ".join(PAGE.split())] == []


@pytest.mark.live
@pytest.mark.timeout(300)
async def test_the_shop_of_the_guide_is_served_by_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    async with cell() as where:
        worker = msgspec.structs.replace(where.cluster, listen=f"127.0.0.1:{free_port()}")
        async with worker.join(make):
            await ask(where.cluster, "cups")
            await ask(where.cluster, "cups")  # the same key, so the same turn
    assert capsys.readouterr().out == 2 * "There are seven cups.\ncompleted\n"
