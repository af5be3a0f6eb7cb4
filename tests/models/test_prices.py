"""What tokens cost: by a price of one's own, by the tables, or by nobody's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from everturn.core.chunks import UsageChunk
from everturn.core.parts import Usage
from everturn.core.requests import ModelRequest
from everturn.models.http_model import HttpModel
from everturn.models.prices import NO_FACTS, ModelFacts, Price, has_tables, look_up
from everturn.models.vendors import VENDORS
from everturn.transport.replay import RecordedResponse, ReplayTransport

USED = Usage(input=1000, cached=500, written=100, output=100)


async def cost(model: HttpModel) -> float | None:
    async for batch in model.stream(ModelRequest("m", "", [], [], {})):
        for chunk in batch:
            if isinstance(chunk, UsageChunk):
                return chunk.usage.cost
    return None


def answer(**usage: Any) -> ReplayTransport:
    event = {"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}], "usage": usage}
    return ReplayTransport([RecordedResponse([b"data: %b\n\ndata: [DONE]\n\n" % json.dumps(event).encode()])])


def vendor_model(vendor: str, model: str, transport: ReplayTransport, facts: ModelFacts | None = None) -> HttpModel:
    return HttpModel(model, replace(VENDORS[vendor], format="chat"), transport, facts=facts)


# A price of one's own -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("price", "usage", "dollars"),
    [
        (Price(3, 15), Usage(), 0.0),
        (Price(3, 15), Usage(input=1_000_000), 3.0),
        (Price(3, 15), Usage(output=1_000_000), 15.0),
        (Price(3, 15), USED, (1000 * 3 + 100 * 15) / 1e6),  # a cache costs as input, unless it is said
        (Price(3, 15, cached=0.3), USED, (500 * 3 + 500 * 0.3 + 100 * 15) / 1e6),
        (Price(3, 15, web_search=10.0, file_search=2.5), Usage(web_searches=2, file_searches=4), 0.03),
        (Price(3, 15, written=3.75), USED, (900 * 3 + 100 * 3.75 + 100 * 15) / 1e6),
        (Price(3, 15, 0.3, 3.75), USED, (400 * 3 + 500 * 0.3 + 100 * 3.75 + 100 * 15) / 1e6),
        (Price(3, 15, 0.0, 0.0), USED, (400 * 3 + 100 * 15) / 1e6),
        (Price(3, 15), Usage(output=100, reasoning=90), 100 * 15 / 1e6),  # reasoning is a part of the output
        (Price(0, 0), USED, 0.0),
    ],
)
def test_a_price_is_for_a_million_tokens(price: Price, usage: Usage, dollars: float) -> None:
    assert price(usage) == pytest.approx(dollars)


async def test_a_price_of_ones_own_comes_before_the_tables() -> None:
    used = {"prompt_tokens": 1000, "completion_tokens": 1000}

    assert await cost(vendor_model("openai-chat", "gpt-4o", answer(**used), ModelFacts(Price(1, 2)))) == pytest.approx(
        0.003
    )
    assert await cost(vendor_model("compatible", "m", answer(**used), ModelFacts(Price(1, 2)))) == pytest.approx(0.003)


async def test_what_a_provider_says_it_cost_comes_before_any_price() -> None:
    used = answer(prompt_tokens=1000, completion_tokens=1000, cost=0.5)

    assert await cost(vendor_model("openrouter", "a/b", used, ModelFacts(Price(1, 2)))) == 0.5


async def test_a_count_beyond_all_bounds_is_no_crash() -> None:
    await cost(vendor_model("compatible", "m", answer(prompt_tokens=10**400), ModelFacts(Price(1, 2))))


# The tables -----------------------------------------------------------------------------------------------------------


def test_the_tables_know_caches() -> None:
    assert has_tables()
    facts = look_up("anthropic", "claude-opus-4-5")

    assert facts.window == 200_000
    assert facts.price is not None
    # 400 fresh at 5, 500 cached at 0.5, 100 written at 6.25 and 100 of output at 25 dollars for a million
    assert facts.price(USED) == pytest.approx(0.005375)
    assert facts.price(Usage()) == 0.0


@pytest.mark.parametrize(
    ("vendor", "model"), [("openai", "gpt-5.2"), ("anthropic", "claude-opus-4-5"), ("google", "gemini-3-pro-preview")]
)
def test_the_tables_know_the_fees_for_searches(vendor: str, model: str) -> None:
    price = look_up(vendor, model).price
    assert price is not None
    searched, plain = price(Usage(input=1000, web_searches=100)), price(Usage(input=1000))
    assert searched is not None
    assert plain is not None
    assert searched - plain > 0.99


async def test_a_known_model_is_priced_by_the_tables() -> None:
    model = vendor_model("openai-chat", "gpt-4o", answer(prompt_tokens=1000, completion_tokens=100))

    assert await cost(model) == pytest.approx((1000 * 2.5 + 100 * 10) / 1e6)
    assert (await model.facts()).window == 128_000


@pytest.mark.parametrize(
    ("vendor", "model"), [("openai", "nobody-1"), ("nobody", "gpt-4o"), ("", ""), ("anthropic", "")]
)
def test_an_unknown_model_has_no_price(vendor: str, model: str) -> None:
    assert look_up(vendor, model) is NO_FACTS


@pytest.mark.parametrize(
    ("vendor", "model"), [("openai-chat", "nobody-1"), ("compatible", "gpt-4o"), ("ollama", "llama3")]
)
async def test_who_is_unknown_costs_nothing_rather_than_something_wrong(vendor: str, model: str) -> None:
    assert await cost(vendor_model(vendor, model, answer(prompt_tokens=1000, completion_tokens=100))) is None


async def test_a_count_that_makes_no_sense_has_no_cost() -> None:
    odd = answer(prompt_tokens=10, completion_tokens=1, prompt_tokens_details={"cached_tokens": 99})

    assert await cost(vendor_model("openai-chat", "gpt-4o", odd)) is None


async def test_a_count_below_zero_has_no_cost() -> None:
    assert await cost(vendor_model("openai-chat", "gpt-4o", answer(prompt_tokens=-1, completion_tokens=1))) is None


def test_every_vendor_is_called_what_the_tables_call_it() -> None:
    import genai_prices.data_snapshot as snapshot

    known = {provider.id for provider in snapshot.get_snapshot().providers}
    assert {profile.prices for profile in VENDORS.values() if profile.prices} <= known


# What a model says about itself ---------------------------------------------------------------------------------------


async def test_a_model_says_its_prices_per_million_its_vendor_and_what_it_accepts() -> None:
    facts = await vendor_model("anthropic", "claude-x", answer(), ModelFacts(Price(5.0, 25.0), 200_000)).facts()
    assert (facts.prices, facts.window, facts.vendor) == ((5.0, 25.0), 200_000, "anthropic")
    assert (facts.inputs, facts.has_native_tools) == ({"image", "pdf"}, True)


async def test_of_a_model_on_a_server_of_ones_own_it_is_not_known_whether_it_calls_tools() -> None:
    facts = await vendor_model("compatible", "local", answer(), NO_FACTS).facts()
    assert (facts.prices, facts.vendor, facts.has_native_tools) == ((None, None), "compatible", None)
