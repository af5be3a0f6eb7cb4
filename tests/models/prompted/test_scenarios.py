"""A conversation comes out the same natively and in every tool_format: the log to the hash of its gates, and all requests."""

from __future__ import annotations

import pytest
from inline_snapshot import snapshot
from tests.models.prompted.scenario_run import Record, Scenario, tell
from tests.models.prompted.scenarios import SCENARIOS, switches
from tests.models.prompted.tool_format_writer import can_be_bound

WAYS = [(way, is_loose) for way in ("json", "xml", "blocks") for is_loose in (False, True)]
_native: dict[str, Record] = {}  # each is told natively once


@pytest.mark.parametrize(("way", "is_loose"), WAYS, ids=[f"{way}{'-loose' * loose}" for way, loose in WAYS])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name.replace(" ", "-"))
async def test_a_conversation_is_the_same_in_every_way_of_calling(scenario: Scenario, way: str, is_loose: bool) -> None:
    if scenario.name not in _native:
        _native[scenario.name] = await tell(scenario, "native")
    native, prompted = _native[scenario.name], await tell(scenario, way, is_loose)

    assert prompted.log == native.log
    assert prompted.requests == native.requests


BOUND = [scenario for scenario in SCENARIOS if all(map(can_be_bound, scenario.steps)) and scenario.play is not switches]


@pytest.mark.parametrize("scenario", BOUND, ids=lambda scenario: scenario.name.replace(" ", "-"))
async def test_a_conversation_is_the_same_where_the_server_holds_the_model_to_one_object(scenario: Scenario) -> None:
    native, bound = await tell(scenario, "native"), await tell(scenario, "json", decoding_constraint="schema")

    assert bound.log == native.log
    assert bound.requests == native.requests


async def test_natively_every_scenario_comes_to_what_it_is_about() -> None:
    came_to: dict[str, str] = {}
    for scenario in SCENARIOS:
        came_to[scenario.name] = (await tell(scenario, "native")).settled

    assert came_to == snapshot(
        {
            "words alone": "",
            "one call": "completed",
            "words before a call": "completed",
            "words before, between and after calls": "completed completed",
            "three calls at once": "completed completed completed",
            "twelve calls at once": "completed completed completed completed completed completed completed completed completed completed completed completed",
            "three steps": "completed completed completed completed",
            "a thought before a call": "completed",
            "a thought in tags": "completed",
            "a call in a thought": "",
            "a call in a fence": "",
            "a fence, then a call": "completed",
            "a call that is talked about": "",
            "a quoted call": "",
            "made-up results": "completed",
            "a native call all the same": "completed",
            "two turns": "completed completed",
            "no arguments": "failed completed",
            "nested arguments": "completed",
            "code in arguments": "completed",
            "odd signs in arguments": "completed",
            "a call that quotes calls": "completed",
            "odd keys": "completed",
            "texts that look like other values": "completed",
            "numbers": "completed",
            "a long text": "completed",
            "an unknown tool": "failed completed",
            "a misspelled name": "completed completed",
            "broken arguments": "failed",
            "arguments that do not fit": "failed failed",
            "a tool that raises": "failed completed",
            "a tool that is denied": "denied",
            "a tool that takes too long": "failed",
            "files of a tool": "completed completed",
            "a file of the person's": "completed",
            "a long output": "completed",
            "cut off at the limit": "failed",
            "a whole call at the limit": "failed",
            "a stream cut in a call": "cancelled",
            "a stream cut in words": "",
            "a stream cut behind a line": "",
            "a stream cut where a call may begin": "",
            "an error after a call": "cancelled",
            "an error in a call": "cancelled",
            "a gate, allowed": "completed",
            "a gate, denied": "denied",
            "a gate, denied with a reason": "denied",
            "a gate, edited": "completed",
            "two gates and a call": "completed denied completed",
            "cancelled at a gate": "cancelled",
            "cancelled in words": "",
            "cancelled in a call": "cancelled",
            "cancelled with a tool running": "cancelled",
            "answered again": "completed completed",
            "edited": "completed completed completed completed",
            "forked": "completed completed completed completed",
            "deleted": "completed completed completed completed",
            "the way is changed between turns": "completed completed completed completed",
            "the limit of steps": "completed failed",
            "no tool may be called": "completed",
            "a tool must be called": "completed failed",
            "one tool must be called": "completed failed",
            "an answer that fits a schema": "completed",
            "a plugin rewrites a call": "completed",
            "a plugin forgets": "completed completed",
            "history: full": "completed failed",
            "history: results": "completed failed",
            "history: digest": "completed failed",
            "history: none": "completed failed",
        }
    )
