"""Ratings over the API: of members who may write, in their own name, seen by whoever reads the conversation."""

from __future__ import annotations

import pytest

from everturn import api
from everturn.access.access import Access
from everturn.errors import Forbidden, KeyConflict, UnknownMessage, UnknownSession
from tests.helpers.tenants import a_house, over, somebody, start_session


async def test_a_rating_is_of_the_caller_and_shown_with_the_messages() -> None:
    async with a_house() as house:
        ada = Access(house, somebody())
        sent = await start_session(ada, "hello")
        await over(ada, sent)
        question, answer = (await ada.sessions.messages(sent.session)).messages
        down = api.PutRating(rating="down", reason="too short \ud800")
        await ada.sessions.rate(sent.session, answer.id, down, "k")
        await ada.sessions.rate(sent.session, answer.id, down, "k")
        with pytest.raises(KeyConflict):
            await ada.sessions.rate(sent.session, answer.id, api.PutRating(rating="up"), "k")
        [rating] = (await ada.sessions.messages(sent.session)).ratings
        assert (rating.message, rating.rating, rating.by) == (answer.id, "down", ada.principal.user)
        assert rating.reason == "too short ?"
        assert not (await ada.sessions.messages(sent.session, leaf=question.id)).ratings  # it is of another page
        await ada.sessions.rate(sent.session, answer.id, api.PutRating(rating=""))
        assert not (await ada.sessions.messages(sent.session)).ratings


async def test_viewers_and_others_rate_nothing() -> None:
    async with a_house() as house:
        ada = Access(house, somebody())
        sent = await start_session(ada, "hello")
        await over(ada, sent)
        answer = (await ada.sessions.messages(sent.session)).messages[-1].id
        up = api.PutRating(rating="up")
        with pytest.raises(Forbidden):
            await Access(house, somebody(role="viewer")).sessions.rate(sent.session, answer, up)
        with pytest.raises(UnknownSession):
            await Access(house, somebody("bob", role="owner")).sessions.rate(sent.session, answer, up)
        with pytest.raises(UnknownMessage):
            await ada.sessions.rate(sent.session, "msg_none", up)
