"""Prices: what a model's tokens cost, and its context window.

A user's own `Price` comes first. Otherwise the tables of genai-prices are used where they are installed (the `prices`
extra): they are offline, and know tiers and caches. A model in neither has no cost, rather than a wrong one.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Awaitable, Callable

from msgspec import Struct

from everturn.core.parts import Usage

MILLION, THOUSAND = 1_000_000, 1000


class Price(Struct, frozen=True):
    """US dollars per million tokens. Cache reads and writes cost as much as input by default.

    `web_search` and `file_search` are the fees of tools that the provider runs, in dollars for a thousand searches.
    """

    input: float
    output: float
    cached: float | None = None
    written: float | None = None
    web_search: float = 0.0
    file_search: float = 0.0

    def __call__(self, usage: Usage) -> float | None:
        """Return the cost of a request; None if its usage is inconsistent."""
        fresh = usage.input - usage.cached - usage.written
        if fresh < 0:
            return None
        try:
            total = fresh * self.input + usage.output * self.output
            total += usage.cached * (self.input if self.cached is None else self.cached)
            total += usage.written * (self.input if self.written is None else self.written)
            fees = usage.web_searches * self.web_search + usage.file_searches * self.file_search
            return total / MILLION + fees / THOUSAND
        except OverflowError:
            return None


class AudioAmount(Struct, frozen=True):
    """How much audio a request was about, for models that are not priced by tokens."""

    seconds: float = 0.0  # of a recording
    characters: int = 0  # of a text that was spoken


class ModelFacts(Struct, frozen=True):
    """Facts about a model: its price, its context window in tokens, its vendor, and what it accepts."""

    price: Callable[[Usage], float | None] | None = None
    window: int | None = None
    vendor: str = ""
    inputs: frozenset[str] | None = None  # what it accepts beside text: image, audio, pdf; None: unknown
    has_native_tools: bool | None = None  # False: it is prompted to call tools; None: unknown
    has_temperature: bool | None = None  # False: a request with a temperature is refused; None: unknown
    reasoning_levels: tuple[str, ...] | None = None  # the levels of `reasoning` that it has; None: unknown
    audio_price: Callable[[AudioAmount], float | None] | None = None

    @property
    def prices(self) -> tuple[float | None, float | None]:
        """US dollars per million tokens of input and of output, for a request of ordinary size."""
        if self.price is None:
            return None, None
        input, output = self.price(Usage(input=1000)), self.price(Usage(output=1000))
        return None if input is None else input * 1000, None if output is None else output * 1000


NO_FACTS = ModelFacts()


async def facts_of(model: object) -> ModelFacts:
    """Return what a model says about itself; a model without `facts` says nothing."""
    facts: Callable[[], Awaitable[ModelFacts]] | None = getattr(model, "facts", None)
    return NO_FACTS if facts is None else await facts()


def has_tables() -> bool:
    """Return whether genai-prices is installed."""
    return importlib.util.find_spec("genai_prices") is not None


@functools.cache
def look_up(provider: str, model: str) -> ModelFacts:
    """Look a model up in the tables. The first call takes a quarter of a second, so run it in a thread."""
    import genai_prices

    def price(usage: Usage) -> float | None:
        try:
            counted = genai_prices.Usage(
                input_tokens=usage.input,
                output_tokens=usage.output,
                cache_read_tokens=usage.cached or None,
                cache_write_tokens=usage.written or None,
                web_searches=usage.web_searches or None,
                storage_searches=usage.file_searches or None,
            )
            return float(genai_prices.calc_price(counted, model, provider_id=provider).total_price)
        except (
            LookupError,
            ValueError,
            ArithmeticError,
        ):  # of inconsistent counts, such as more cached than input tokens
            return None

    def audio_price(amount: AudioAmount) -> float | None:
        try:
            counted = genai_prices.Usage(
                audio_seconds=amount.seconds or None, input_characters=amount.characters or None
            )
            cost = float(genai_prices.calc_price(counted, model, provider_id=provider).total_price)
        except (LookupError, ValueError, ArithmeticError):
            return None
        return cost or None  # this model is priced by something else

    try:
        calculation = genai_prices.calc_price(genai_prices.Usage(input_tokens=1), model, provider_id=provider)
    except (LookupError, ValueError):
        return NO_FACTS
    return ModelFacts(price, calculation.model.context_window, audio_price=audio_price)
