"""Context in the body of a message: stored as sent, kept by an edit, refused where it is none."""

from __future__ import annotations

import msgspec
import pytest

from everturn import api
from everturn.access.access import Access
from everturn.core.parts import ContextPart, Part, TextPart
from everturn.errors import ConfigError
from tests.helpers.tenants import a_house, over, somebody, start_session

PAGE = api.AttachedContext(
    kind="page", text="Locks are old.", title="Locks", source="https://example.com", untrusted=True
)
STORED = ContextPart("page", "Locks are old.", "Locks", "https://example.com")


async def user_parts(access: Access, session: str) -> tuple[Part, ...]:
    messages = (await access.sessions.messages(session)).messages
    return next(message for message in messages if message.role == "user").parts


async def test_it_is_stored_beside_the_text_and_an_edit_keeps_or_replaces_it() -> None:
    async with a_house() as house:
        ada = Access(house, somebody("ada"))
        sent = await start_session(ada, "hello", contexts=[PAGE])
        await over(ada, sent)
        assert await user_parts(ada, sent.session) == (TextPart("hello"), STORED)
        edited = await ada.sessions.edit_message(sent.session, sent.message, api.EditMessage(text="hi"))
        await over(ada, edited)
        assert await user_parts(ada, sent.session) == (TextPart("hi"), STORED)
        edited = await ada.sessions.edit_message(sent.session, edited.message, api.EditMessage(text="hey", contexts=[]))
        await over(ada, edited)
        assert await user_parts(ada, sent.session) == (TextPart("hey"),)


async def test_context_alone_says_nothing() -> None:
    async with a_house() as house:
        with pytest.raises(ConfigError, match="needs a text or a file"):
            await start_session(Access(house, somebody("ada")), "", contexts=[PAGE])


@pytest.mark.parametrize(
    "body",
    ['{"kind":"","text":"a"}', '{"kind":"page","text":""}', '{"kind":"page"}', '{"kind":"page","text":"a","x":1}'],
)
def test_a_body_that_is_no_context_is_refused(body: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(f'{{"text":"a","contexts":[{body}]}}', type=api.NewMessage)
