"""The short form of `output_schedules.py`: the same schedules every time."""

import pytest
from tests.models.output_schedules import play
from tests.models.output_types import LEAVES
from tests.models.schedule_models import GROUPS

from everturn.models.structured_output.plan import OUTPUT_MODES

SHORT = 40


@pytest.mark.parametrize("first", range(0, 400, SHORT))
async def test_every_type_comes_back_as_its_json_from_every_vendor(first: int) -> None:
    findings = await play(range(first, first + SHORT))
    assert findings.problems == []
    assert findings.turns == 2 * SHORT
    assert {mode for mode, _ in findings.modes} >= set(OUTPUT_MODES)


@pytest.mark.parametrize("group", GROUPS)
async def test_every_vendor_is_asked_in_more_than_one_mode(group: str) -> None:
    findings = await play(range(1_000, 1_015), groups=[group])
    assert findings.problems == []
    assert len({mode for mode, _ in findings.modes}) > 1


async def test_a_seed_makes_the_same_schedule_again() -> None:
    assert await play(range(5)) == await play(range(5))


def test_the_types_are_those_that_are_hard_somewhere() -> None:
    wanted = {"tree", "chain", "mutual", "dict", "any", "Decimal", "enum", "60 fields", "14 deep", "discriminated"}
    assert wanted <= set(LEAVES)
