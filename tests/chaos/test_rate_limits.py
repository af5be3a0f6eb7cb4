"""The rate-limit campaign, in its short form: three processes, two tenants, a server that answers 429, and a kill."""

from pathlib import Path

import pytest

from everturn import Chat
from everturn.testing import ScriptedModel, say
from tools.chaos.rate_limits import answers_in_log, campaign, is_good, parse


@pytest.mark.live
@pytest.mark.long
async def test_processes_share_a_limit_fairly_and_a_kill_costs_little() -> None:
    found = await campaign(parse(["--short"]))
    assert is_good(found), found


async def test_the_campaign_sees_a_message_that_was_answered_twice_or_never(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'a.db'}"
    once = Chat(ScriptedModel(say("fine")), store=store, session="once")
    await (await once.send("first"))
    await once.aclose()
    twice = Chat(ScriptedModel(say("fine"), say("fine again")), store=store, session="twice")
    await (await twice.send("second"))
    await (await twice.send("second"))
    await twice.aclose()

    assert await answers_in_log(store, {"first", "second", "third"}) == {"first": 1, "second": 2, "third": 0}
