"""The rate-limit campaign, in its short form: three processes, two tenants, a server that answers 429, and a kill."""

import pytest

from tools.chaos.rate_limits import campaign, is_good, parse

pytestmark = [pytest.mark.live, pytest.mark.long]


async def test_processes_share_a_limit_fairly_and_a_kill_costs_little() -> None:
    found = await campaign(parse(["--short"]))
    assert is_good(found), found
