"""Parameters of a session hold for its later turns, whoever sends them, as far as model and agent take them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from everturn import api
from everturn.access.access import Access
from everturn.chat.session_parameters import read_session_parameters
from everturn.core.events import TurnStarted
from everturn.core.options import TurnOptions
from everturn.core.session_parameters import SessionParameters, model_params
from everturn.errors import ConfigError
from everturn.models.formats.reasoning_effort import reasoning_levels
from everturn.models.vendors import VENDORS
from tests.helpers.tenants import a_house, over, somebody, start_session
from tests.helpers.waiting import wait_until

CHOSEN = SessionParameters(temperature=0.2, max_tokens=500, reasoning="low")


async def options_of(access: Access, sent: api.MessageReceipt) -> TurnOptions:
    async def look() -> TurnOptions | None:
        log = await access.scope.store.events(sent.session, turn=sent.turn)
        return next((entry.event.options for entry in log if isinstance(entry.event, TurnStarted)), None)

    return await wait_until(look)


async def test_they_are_chosen_with_the_first_message_and_hold_for_later_ones() -> None:
    async with a_house() as house:
        access = Access(house, somebody())
        first = await access.sessions.start(api.NewSession(text="hello", parameters=CHOSEN), "key")
        expected = {"temperature": 0.2, "max_tokens": 500, "reasoning": "low"}
        assert (await options_of(access, first)).params == expected
        await over(access, first)
        assert (await access.sessions.get(first.session)).parameters == CHOSEN
        second = await access.sessions.send(first.session, api.NewMessage(text="more"))
        assert (await options_of(access, second)).params == expected
        await over(access, second)
        again = await access.sessions.rerun(first.session, second.message, api.RegenerateAnswer())
        assert (await options_of(access, again)).params == expected
        await over(access, again)
        edited = await access.sessions.edit_message(first.session, second.message, api.EditMessage(text="other"))
        assert (await options_of(access, edited)).params == expected


async def test_what_a_message_says_itself_comes_first_and_they_can_be_taken_back() -> None:
    async with a_house() as house:
        access = Access(house, somebody())
        first = await access.sessions.start(api.NewSession(text="hello", parameters=CHOSEN))
        await over(access, first)
        own = await access.sessions.send(first.session, api.NewMessage(text="more", params={"temperature": 1}))
        assert (await options_of(access, own)).params == {"temperature": 1, "max_tokens": 500, "reasoning": "low"}
        await over(access, own)
        await access.sessions.update(first.session, api.PatchSession(parameters=SessionParameters()))
        assert (await access.sessions.get(first.session)).parameters is None
        plain = await access.sessions.send(first.session, api.NewMessage(text="more"))
        assert not (await options_of(access, plain)).params


async def test_they_only_ever_take_tools_away() -> None:
    async with a_house() as house:
        access = Access(house, somebody())
        registry = house.app.registry_of("reader")
        before = registry.enabled(house.agents.get("reader").options.tools)
        groups = {group.name for group, _ in registry.select(None).groups}
        without = SessionParameters(without_groups=(*sorted(groups), "no such group"))
        sent = await start_session(access, "hello", agent="reader")
        await over(access, sent)
        await access.sessions.update(sent.session, api.PatchSession(parameters=without))
        after = (await options_of(access, await access.sessions.send(sent.session, api.NewMessage(text="more")))).tools
        assert set(registry.enabled(after)) <= set(before)


@pytest.mark.parametrize(
    "wrong",
    [{"temperature": 3}, {"temperature": -1}, {"max_tokens": -1}, {"without_groups": ("",)}],
)
async def test_what_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    async with a_house() as house:
        access, parameters = Access(house, somebody()), SessionParameters(**wrong)
        with pytest.raises(ConfigError, match="parameters: "):
            await access.sessions.start(api.NewSession(text="hello", parameters=parameters))
        sent = await start_session(access, "hello")
        with pytest.raises(ConfigError, match="parameters: "):
            await access.sessions.update(sent.session, api.PatchSession(parameters=parameters))


def test_a_reasoning_level_that_there_is_not_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"parameters": {"reasoning": "very"}}, api.PatchSession)


def test_a_model_is_told_only_what_it_takes() -> None:
    assert model_params(CHOSEN, False, ("high",)) == {"max_tokens": 500}
    assert model_params(CHOSEN, None, None) == {"temperature": 0.2, "max_tokens": 500, "reasoning": "low"}
    openai = VENDORS["openai"]
    assert not openai.for_model("gpt-5-mini").has_temperature
    assert openai.for_model("gpt-4.1").has_temperature
    assert reasoning_levels(openai.for_model("gpt-4.1")) == ()
    assert "low" in reasoning_levels(openai.for_model("o3"))
    assert not openai.for_model("gpt-4.1").has_encrypted_reasoning  # both tables have the pattern


async def test_a_session_that_does_not_exist_has_none() -> None:
    async with a_house() as house:
        assert await read_session_parameters(house.app.store, "nowhere") == SessionParameters()
