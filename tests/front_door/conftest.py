"""The scripted provider in the place of the vendors: `Agent("openai:gpt-5.2")` as a program writes it, without a network."""

import asyncio
import threading
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from everturn.models import registry
from everturn.testing.provider import Provider


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    """A strict provider in a thread of its own, so that code without an event loop can be tested too."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    provider = Provider()
    asyncio.run_coroutine_threadsafe(provider.__aenter__(), loop).result()
    profiles = {
        vendor: replace(profile, base_url=f"{provider.url}/v1")
        for vendor, profile in registry.VENDORS.items()
        if vendor in ("openai", "anthropic")
    }
    monkeypatch.setattr(registry, "VENDORS", {**registry.VENDORS, **profiles})
    for vendor in profiles:
        monkeypatch.setenv(f"{vendor.upper()}_API_KEY", "key")
    yield provider
    asyncio.run_coroutine_threadsafe(provider.__aexit__(None, None, None), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
    assert provider.refusals == []
