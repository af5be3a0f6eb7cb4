"""Whatever is imported, no vendor refuses the history that comes of it: in every wire format, and for broken lists."""

import pytest

from everturn import App, Chat
from everturn.errors import ConfigError
from everturn.message_formats import MessageFormat
from everturn.testing import MemoryStore
from everturn.testing.provider import Provider, Say
from tests.message_formats.random_conversations import SHAPES
from tests.models.schedule_models import GROUPS, all_models

SHORT = 25
FORMATS = ("chat", "responses", "messages", "gemini-2", "gemini-3", "ollama", "mistral", "alternate", "json")


async def refusals_of(shape: MessageFormat, seeds: range) -> tuple[int, list[str]]:
    """Import conversations, answer each once in every format, and return how many were answered, and all refusals."""
    async with Provider(record=False) as provider:
        models = all_models(provider.url)
        names = [GROUPS[group].names[0] for group in FORMATS]
        for name in names:
            provider.script(name, [[Say("Yes.")]] * 12)
        answered = 0
        app = App(models[names[0]], store=MemoryStore())
        try:
            for seed in seeds:
                for name in names:
                    chat = Chat(models[name], app=app, session=f"{shape}-{seed}-{name}")
                    try:
                        await chat.import_messages(SHAPES[shape](seed), format=shape)
                    except ConfigError:  # nothing in it can be imported
                        continue
                    result = await (await chat.send("And now?"))
                    assert result.text
                    answered += 1
        finally:
            await app.aclose()
        return answered, provider.refusals


@pytest.mark.parametrize("shape", SHAPES)
async def test_no_vendor_refuses_an_imported_history(shape: MessageFormat) -> None:
    answered, refusals = await refusals_of(shape, range(SHORT))
    assert refusals == []
    assert answered > SHORT * len(FORMATS) * 0.8
