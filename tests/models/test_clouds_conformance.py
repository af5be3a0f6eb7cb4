"""Models in a cloud keep the contract of a model: the same formats, at the addresses and with the keys of the cloud."""

from __future__ import annotations

from tests.models import test_conformance as vendors

from everturn.core.ports import Model
from everturn.models.prices import Price
from everturn.models.registry import get_model
from everturn.models.retry import RetryPolicy


def in_cloud(vendor: str, url: str, model: str, key: str, price: Price | None, retry: RetryPolicy) -> Model:
    environ = {"GOOGLE_CLOUD_PROJECT": "acme", "GOOGLE_CLOUD_LOCATION": "europe-west4"}
    return get_model(f"{vendor}:{model}", base_url=url, key=key, price=price, retry=retry, environ=environ)


class TestAzure(vendors.TestResponses):
    def connect(self, url: str, model: str, key: str, price: Price | None, retry: RetryPolicy) -> Model:
        return in_cloud("azure", url, model, key, price, retry)


class TestAzureChat(vendors.TestChat):
    def connect(self, url: str, model: str, key: str, price: Price | None, retry: RetryPolicy) -> Model:
        return in_cloud("azure-chat", url, model, key, price, retry)


class TestVertexGemini(vendors.TestGemini):
    def connect(self, url: str, model: str, key: str, price: Price | None, retry: RetryPolicy) -> Model:
        return in_cloud("vertex", url, model, key, price, retry)


class TestVertexClaude(vendors.TestMessages):
    prefix = "claude-"

    def connect(self, url: str, model: str, key: str, price: Price | None, retry: RetryPolicy) -> Model:
        return in_cloud("vertex", url, model, key, price, retry)
