"""The guide on reaching out: its turn is the one that was recorded, and can be had again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from docs_src.guides import reach_first as guide
from docs_src.guides.reach_rates import RATES, rates

from everturn.core.events import CallFinished, FilesChanged, FilesReverted, GateOpened
from everturn.replay import Recording, differences, normalize_recording
from everturn.tools.code import javascript

WHY = javascript.why_javascript_unavailable() or ("" if shutil.which("git") else "there is no git")
needs_all = pytest.mark.skipif(bool(WHY), reason=WHY)

AGAIN = "if it is meant to differ, record it again: `Recording.dump()` of `solve`, moved to THERE, is the file"


@needs_all
async def test_what_happens_over_http_is_what_was_recorded_byte_for_byte(tmp_path: Path) -> None:
    folder = guide.lay_out(tmp_path / "expenses")
    happened = (await guide.solve(folder, tmp_path / "snapshots")).with_paths_replaced({str(folder): guide.THERE})
    recorded = Recording.read(guide.KEPT)
    assert differences(recorded, happened, guide.IGNORE) == [], AGAIN
    assert normalize_recording(recorded, guide.IGNORE) == normalize_recording(happened, guide.IGNORE)


@needs_all
async def test_the_recording_is_played_again_without_a_provider(tmp_path: Path) -> None:
    folder = guide.lay_out(tmp_path / "elsewhere")
    assert await guide.again(folder, tmp_path / "snapshots") == []
    assert (folder / "total.md").read_text(encoding="utf-8") == "March cost 279.00 euros.\n"


def test_the_recording_has_what_the_page_says() -> None:
    recording = Recording.read(guide.KEPT)
    recording.check()
    assert recording.dump() == guide.KEPT.read_bytes()
    origins = {event.output.origin for event in recording.events if isinstance(event, CallFinished)}
    assert origins == {f"files:{guide.THERE}", "mcp:rates", "code:quickjs-ng"}
    gates = [event.gate for event in recording.events if isinstance(event, GateOpened)]
    assert [gate.tool for gate in gates] == ["rates_rates", "write_file"]
    assert "+March cost 279.00 euros." in gates[1].preview
    trees = [event.after for event in recording.events if isinstance(event, FilesChanged)]
    back, forth = [event for event in recording.events if isinstance(event, FilesReverted)]
    assert [back.after, forth.after] == trees  # what was there before, and after, to the byte


def test_the_server_says_what_it_does_not_know() -> None:
    assert rates("2026-03-31") == RATES["2026-03-31"]
    with pytest.raises(ValueError, match="there are: 2026-03-31"):
        rates("1999-12-31")
