"""Large files by reference: uploaded once for each conversation and account, written down before, uploaded again when gone."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from everturn import Agent, App, Chat, TextPart, get_model, wire
from everturn.chat.erase_session import erase_session
from everturn.core.events import FileUploadChanged
from everturn.core.ports import Model
from everturn.errors import ConfigError
from everturn.models import FallbackModel
from everturn.stores.import_sanitize import sanitize_events
from everturn.testing import FakeClock, MemoryStore
from everturn.testing.provider import Provider, Say
from everturn.testing.provider.files import CREATED

KEY = "sk-key-of-the-first"
PDF = b"%PDF-1.4\n" + b"x" * 5_000 + b"\n%%EOF\n"
PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 5_000 + b"IEND\xaeB`\x82"
VENDORS: Mapping[str, str] = {
    "openai:gpt-5": "/v1",
    "openai-chat:gpt-5": "/v1",
    "anthropic:claude-x": "/v1",
    "gemini:gemini-3": "/v1beta",
    "azure:gpt-5": "/openai/v1",
}
NO_IMAGES = ("openai-chat:gpt-5", "azure:gpt-5")


class Talk:
    """A conversation with a model of the strict provider."""

    def __init__(
        self,
        provider: Provider,
        vendor: str,
        key: str = KEY,
        above: int | None = 1_000,
        store: MemoryStore | None = None,
    ) -> None:
        self.provider, self.clock, self.store = provider, FakeClock(float(CREATED)), store or MemoryStore()
        provider.script(vendor.partition(":")[2], [[Say("ok")]])
        self.model = connect(provider, vendor, key, above)
        self.app = App(agents=[Agent(self.model, name="a")], store=self.store, clock=self.clock)

    def chat(self, session: str = "s") -> Chat:
        return self.app.chat(session, agent="a")

    async def events(self, session: str = "s") -> list[FileUploadChanged]:
        found = (entry.event for entry in await self.store.events(session))
        return [event for event in found if isinstance(event, FileUploadChanged)]

    async def states(self, session: str = "s") -> list[str]:
        return [event.state for event in await self.events(session)]


def connect(provider: Provider, vendor: str, key: str = KEY, above: int | None = 1_000) -> Model:
    return get_model(vendor, base_url=provider.url + VENDORS[vendor], key=key, upload_above=above)


@asynccontextmanager
async def talking(vendor: str, **how: Any) -> AsyncGenerator[Talk]:
    async with Provider() as provider:
        talk = Talk(provider, vendor, **how)
        async with talk.app:
            yield talk


async def ask(chat: Chat, text: str, *files: tuple[bytes, str]) -> str:
    parts = [await chat.attach(data, name=name) for data, name in files]
    return (await chat.run([TextPart(text), *parts])).text


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_large_file_is_uploaded_once_and_named_in_every_request(vendor: str) -> None:
    async with talking(vendor) as talk:
        chat = talk.chat()
        assert await ask(chat, "Read it.", (PDF, "contract.pdf")) == "ok"
        assert await ask(chat, "Again.") == "ok"
        assert await talk.states() == ["started", "ready"]
        (file,) = talk.provider.cabinet.files.values()
        assert (file.data, file.media_type) == (PDF, "application/pdf")
        assert file.seconds == (172_800 if vendor.startswith("gemini") else 86_400)
        reference = (await talk.events())[-1].reference
        for seen in talk.provider.seen:
            assert str(seen.body).count(reference) == 1
            assert "base64" not in str(seen.body)
            assert "inlineData" not in str(seen.body)
        assert not talk.provider.refusals


@pytest.mark.parametrize("vendor", VENDORS)
async def test_images_are_named_too_where_the_format_can(vendor: str) -> None:
    async with talking(vendor) as talk:
        await ask(talk.chat(), "Look.", (PNG, "picture.png"))
        assert talk.provider.cabinet.uploads == (0 if vendor in NO_IMAGES else 1)
        assert not talk.provider.refusals


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_file_of_the_size_or_below_is_sent_inline(vendor: str) -> None:
    async with talking(vendor, above=len(PDF)) as talk:
        assert await ask(talk.chat(), "Read it.", (PDF, "contract.pdf")) == "ok"
        assert await talk.states() == []
        assert talk.provider.cabinet.uploads == 0


async def test_a_dated_version_of_azure_has_its_files_at_its_own_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_VERSION", "2025-04-01-preview")
    async with talking("azure:gpt-5") as talk:
        chat = talk.chat()
        assert await ask(chat, "Read it.", (PDF, "contract.pdf")) == "ok"
        talk.provider.cabinet.files.clear()
        assert await ask(chat, "Again.") == "ok"
        assert await talk.states() == ["started", "ready", "gone", "started", "ready"]
        assert not talk.provider.refusals


@pytest.mark.parametrize("vendor", ["azure-chat:gpt-5", "vertex:gemini-3", "bedrock:anthropic.claude-x"])
def test_a_cloud_without_uploads_refuses_the_setting(vendor: str) -> None:
    with pytest.raises(ConfigError, match=r"upload_above: .* no files API"):
        get_model(vendor, base_url="http://127.0.0.1:1", key=KEY, upload_above=1_000)


async def test_files_by_reference_do_not_count_for_the_size_of_a_request() -> None:
    async with talking("anthropic:claude-x") as talk:
        chat = talk.chat()
        big = b"%PDF-1.4\n" + b"x" * 12_000_000 + b"\n%%EOF\n"
        files = [(big.replace(b"x", letter), f"{number}.pdf") for number, letter in enumerate((b"a", b"b"))]
        assert await ask(chat, "Read them.", *files) == "ok"
        assert talk.provider.cabinet.uploads == 2
        assert len(str(talk.provider.seen[0].body)) < 10_000


async def test_nothing_is_uploaded_while_the_log_is_written_for_a_release_without_uploads() -> None:
    wire.set_write_version(1)
    try:
        async with talking("openai:gpt-5") as talk:
            assert await ask(talk.chat(), "Read it.", (PDF, "contract.pdf")) == "ok"
            assert await talk.states() == []
            assert talk.provider.cabinet.uploads == 0
            assert "base64" in str(talk.provider.seen[0].body)
    finally:
        wire.set_write_version(0)


async def test_without_the_setting_nothing_is_uploaded() -> None:
    async with talking("openai:gpt-5", above=None) as talk:
        await ask(talk.chat(), "Read it.", (PDF, "contract.pdf"))
        assert talk.provider.cabinet.uploads == 0


def test_a_vendor_without_a_files_api_refuses_the_setting() -> None:
    with pytest.raises(ConfigError, match="upload_above"):
        get_model("compatible:m", base_url="http://127.0.0.1:1/v1", upload_above=1_000)


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_file_that_is_gone_is_uploaded_again_once_and_the_request_is_repeated(vendor: str) -> None:
    async with talking(vendor) as talk:
        chat = talk.chat()
        await ask(chat, "Read it.", (PDF, "contract.pdf"))
        talk.provider.cabinet.files.clear()
        assert await ask(chat, "Again.") == "ok"
        assert await talk.states() == ["started", "ready", "gone", "started", "ready"]
        assert talk.provider.cabinet.uploads == 2


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_reference_that_is_about_to_expire_is_not_used(vendor: str) -> None:
    async with talking(vendor) as talk:
        chat = talk.chat()
        await ask(chat, "Read it.", (PDF, "contract.pdf"))
        first = (await talk.events())[-1]
        talk.clock.advance(first.expires - talk.clock.now() - 600)
        assert await ask(chat, "Again.") == "ok"
        assert await talk.states() == ["started", "ready", "started", "ready"]
        assert [seen.status for seen in talk.provider.seen] == [200, 200]


@pytest.mark.parametrize("vendor", VENDORS)
async def test_another_conversation_and_another_key_have_uploads_of_their_own(vendor: str) -> None:
    async with Provider() as provider:
        talk = Talk(provider, vendor)
        async with talk.app:
            for session in ("one", "two"):
                await ask(talk.chat(session), "Read it.", (PDF, "contract.pdf"))
        other = Talk(provider, vendor, "sk-key-of-another", store=talk.store)
        async with other.app:
            assert await ask(other.chat("one"), "Again.") == "ok"
        assert [file.key for file in provider.cabinet.files.values()] == [KEY, KEY, "sk-key-of-another"]
        accounts = {event.account for event in await talk.events("one")}
        assert len(accounts) == 2
        assert not any(KEY[:8] in account for account in accounts)
        assert {event.account for event in await talk.events("two")} < accounts
        assert not provider.refusals


async def test_a_fallback_to_another_vendor_uploads_the_file_there() -> None:
    async with Provider() as first, Provider() as second:
        second.script("claude-x", [[Say("from the second")]] * 2)
        models = connect(first, "openai:gpt-5"), connect(second, "anthropic:claude-x")
        store = MemoryStore()
        async with App(agents=[Agent(FallbackModel(*models), name="a")], store=store) as app:
            assert await ask(app.chat("s", agent="a"), "Read it.", (PDF, "c.pdf")) == "from the second"
        assert (first.cabinet.uploads, second.cabinet.uploads) == (1, 1)


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_file_that_the_vendor_does_not_take_is_sent_inline_from_then_on(vendor: str) -> None:
    async with talking(vendor) as talk:
        talk.provider.cabinet.is_closed = True
        chat = talk.chat()
        assert await ask(chat, "Read it.", (PDF, "contract.pdf")) == "ok"
        assert await ask(chat, "Again.") == "ok"
        assert await talk.states() == ["started", "refused"]
        assert talk.provider.cabinet.refused == 1


@pytest.mark.parametrize("vendor", VENDORS)
async def test_erasing_a_conversation_deletes_its_files_and_no_others(vendor: str) -> None:
    async with talking(vendor) as talk:
        for session in ("one", "two"):
            await ask(talk.chat(session), "Read it.", (PDF, "contract.pdf"))
        (reference,) = [event.reference for event in await talk.events("two") if event.reference]
        assert await erase_session(talk.app, "one") == []
        (file,) = talk.provider.cabinet.files.values()
        assert reference.endswith(file.id)
        assert await ask(talk.chat("two"), "Again.") == "ok"


async def test_what_a_vendor_does_not_delete_is_returned() -> None:
    async with talking("openai:gpt-5") as talk:
        await ask(talk.chat(), "Read it.", (PDF, "contract.pdf"))
        talk.provider.cabinet.is_closed = True
        (left,) = await erase_session(talk.app, "s")
        assert left.state == "ready"


async def test_an_imported_log_names_no_files_of_an_account() -> None:
    async with talking("openai:gpt-5") as talk:
        await ask(talk.chat(), "Read it.", (PDF, "contract.pdf"))
        events = [entry.event for entry in await talk.store.events("s")]
        assert len([event for event in events if isinstance(event, FileUploadChanged)]) == 2
        assert not [event for event in sanitize_events(events, 1e10) if isinstance(event, FileUploadChanged)]


def test_the_types_of_the_packages_have_what_is_sent() -> None:
    openai = pytest.importorskip("openai.types")
    anthropic = pytest.importorskip("anthropic.types")
    genai = pytest.importorskip("google.genai.types")
    assert {"file", "purpose", "expires_after"} <= set(openai.FileCreateParams.__annotations__)
    assert {"file", "expires_in_seconds"} <= set(anthropic.FileUploadParams.__annotations__)
    assert {"type", "file_id"} == set(anthropic.FileDocumentSourceParam.__annotations__)
    assert {"type", "file_id"} == set(anthropic.FileImageSourceParam.__annotations__)
    for fields, params in (
        ({"type", "file_id"}, openai.responses.ResponseInputFileParam),
        ({"type", "file_id"}, openai.responses.ResponseInputImageParam),
        ({"type", "file"}, openai.chat.chat_completion_content_part_param.File),
        ({"file_id"}, openai.chat.chat_completion_content_part_param.FileFile),
    ):
        assert fields <= set(params.__annotations__)
    assert {"file_uri", "mime_type"} <= set(genai.FileData.model_fields)
    assert {"name", "display_name", "mime_type", "size_bytes"} <= set(genai.File.model_fields)
