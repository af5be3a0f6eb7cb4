"""Available models: those of vendors with a key, of local model servers, and of `[models]`, with price, window and tools.

A vendor's own list is requested with its key, in a few seconds at most. Prices and windows are those of genai-prices,
where it is installed, or of the vendor's list.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from everturn.config.discovery import EXAMPLES, LOCAL_SERVERS, NOT_CHAT, LocalModelServer, find_servers
from everturn.config.key_store import KEY_VARIABLES, KeyStore
from everturn.config.load import LoadedConfig
from everturn.models.offline import OFFLINE
from everturn.models.prices import has_tables, look_up
from everturn.models.profile import Profile
from everturn.models.vendors import VENDORS

TIMEOUT: Final = 5.0  # seconds for a vendor's list
MAX_RESPONSE: Final = 8_000_000  # bytes
MILLION: Final = 1_000_000
Tools = Literal["native", "prompted", "unknown"]

GUESSES: Final[Sequence[tuple[str, str]]] = (
    *((pattern, "openai") for pattern in ("gpt-*", "o[0-9]*", "chatgpt-*", "codex-*")),
    ("claude*", "anthropic"),
    ("gemini*", "gemini"),
    ("deepseek*", "deepseek"),
    *((pattern, "kimi") for pattern in ("kimi*", "moonshot*")),
    *((pattern, "mistral") for pattern in ("mistral-*", "codestral*", "magistral*", "devstral*", "ministral*")),
    ("qwen-*", "qwen"),
    ("*/*", "openrouter"),
)
"""How the names of a vendor's models look; the first that matches counts."""


class AvailableModel(Struct, frozen=True):
    """A model that could be used here. Prices are US dollars per million tokens; None and 0: unknown."""

    name: str  # vendor:model, or a name under [models]
    source: str  # where it is from: a vendor, a server's address, or the configuration
    window: int = 0
    input_price: float | None = None
    output_price: float | None = None
    tools: Tools = "unknown"


class ModelSurvey(Struct, frozen=True):
    """The models, and what could not be asked."""

    models: list[AvailableModel]
    problems: list[str]


async def survey_models(
    loaded: LoadedConfig, keys: KeyStore, places: Sequence[LocalModelServer] = LOCAL_SERVERS
) -> ModelSurvey:
    """List the available models: configured ones first, then local servers, then vendors in their order."""
    vendors = [KEY_VARIABLES[variable] for variable, _ in keys.places()]
    servers, lists = await asyncio.gather(
        find_servers(places),
        asyncio.gather(*(asyncio.to_thread(_vendor_models, vendor, keys) for vendor in vendors)),
    )
    models = [
        AvailableModel(
            name,
            f"configuration: {table.model}",
            table.window or _window(table.model),
            *_price(table.model),
            _tools(table.model) if not table.tool_format else "native" if table.tool_format == "native" else "prompted",
        )
        for name, table in loaded.config.models.items()
    ]
    for place, names in servers:
        usual = VENDORS[place.vendor].base_url
        prefix = place.vendor if f":{place.port}" in usual else ""
        models += [
            AvailableModel(f"{prefix}:{name}", f"{place.name}, 127.0.0.1:{place.port}")
            for name in names
            if prefix and not NOT_CHAT.search(name)
        ]
    problems: list[str] = []
    for found, problem in lists:
        models += found
        problems += [problem] if problem else []
    models.append(AvailableModel(OFFLINE, "built in", tools="native"))
    unique = {model.name: model for model in reversed(models)}
    return ModelSurvey([model for model in models if unique[model.name] is model], problems)


def search_models(models: Sequence[AvailableModel], words: str) -> list[AvailableModel]:
    """Return the models whose names or sources have all these words, the shortest names first; all of them without words."""
    wanted = words.lower().split()
    found = [model for model in models if all(word in f"{model.name} {model.source}".lower() for word in wanted)]
    return sorted(found, key=lambda model: len(model.name)) if wanted else found


def guess_model(name: str, loaded: LoadedConfig, keys: KeyStore) -> str:
    """Return a model's whole name: `gpt-5.2` is `openai:gpt-5.2`. A name that is whole, or unknown, is returned as it is.

    Where the vendor has no key and OpenRouter has one, the model is taken from there.
    """
    if not name or name in loaded.config.models or (":" in name and name.partition(":")[0] in (*VENDORS, "offline")):
        return name
    if name in VENDORS and (variable := VENDORS[name].key) in EXAMPLES:
        return EXAMPLES[variable]  # `-m anthropic` is its usual model
    for pattern, vendor in GUESSES:
        if not fnmatchcase(name.lower(), pattern):
            continue
        if not keys.find(VENDORS[vendor].key) and keys.find(VENDORS["openrouter"].key) and vendor != "openrouter":
            owner = {"gemini": "google", "kimi": "moonshotai", "mistral": "mistralai"}.get(vendor, vendor)
            return f"openrouter:{owner}/{name}"
        return f"{vendor}:{_whole_name(name, vendor)}"
    return name


def _whole_name(name: str, vendor: str) -> str:
    """Return the usual model of a vendor for its bare family name, such as `claude`."""
    usual = EXAMPLES.get(VENDORS[vendor].key, "").partition(":")[2]
    return usual if usual.startswith(f"{name}-") and "-" not in name else name


class KeyCheck(Struct, frozen=True):
    """What a vendor said to a key: its models, or what went wrong."""

    models: tuple[str, ...] = ()
    problem: str = ""
    is_refused: bool = False  # the vendor knows no such key


def check_vendor_key(vendor: str, key: str) -> KeyCheck:
    """Ask a vendor for its models with a key. The clouds are not asked: their lists need other rights than a model does."""
    from urllib.error import HTTPError  # slow to import, as urlopen is; only a listing needs them

    profile = VENDORS[vendor]
    if profile.cloud:
        return KeyCheck((), f"{vendor}: its models are not listed here; name yours, as {vendor}:NAME")
    try:
        return KeyCheck(tuple(row.name for row in _rows(_request(profile, key))))
    except HTTPError as error:
        is_refused = error.code in (401, 403)
        return KeyCheck((), f"{vendor}: {'the key is refused' if is_refused else f'HTTP {error.code}'}", is_refused)
    except (OSError, ValueError, msgspec.MsgspecError) as error:
        reason = getattr(error, "reason", None) or error
        return KeyCheck((), f"{vendor}: its list cannot be read ({reason})")


def list_server_models(base_url: str) -> list[str]:
    """Return the models of an OpenAI-compatible server.

    Raises:
        OSError, ValueError: it does not answer, or with something else.
    """
    from urllib.request import urlopen

    with urlopen(f"{base_url.rstrip('/')}/models", timeout=TIMEOUT) as reply:
        return [row.name for row in _rows(reply.read(MAX_RESPONSE))]


class _Row(Struct):
    id: str = ""
    name: str = ""
    context_length: int | None = None
    inputTokenLimit: int | None = None
    supported_parameters: list[str] | None = None
    supportedGenerationMethods: list[str] | None = None
    pricing: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        self.name = self.id or self.name.removeprefix("models/")


class _Rows(Struct):
    data: list[_Row] = []
    models: list[_Row] = []


def _rows(body: bytes) -> list[_Row]:
    listing = msgspec.json.decode(body, type=_Rows)
    return [row for row in (listing.data or listing.models) if row.name and row.name.isprintable()]


def _request(profile: Profile, key: str) -> bytes:
    from urllib.request import Request, urlopen

    headers = {"user-agent": "everturn", **profile.headers}
    if profile.format == "messages":
        headers["x-api-key"] = key
    elif profile.format == "gemini":
        headers["x-goog-api-key"] = key
    else:
        headers["authorization"] = f"Bearer {key}"
    query = "?pageSize=1000" if profile.format == "gemini" else "?limit=1000" if profile.format == "messages" else ""
    request = Request(f"{profile.base_url}/models{query}", headers=headers)
    with urlopen(request, timeout=TIMEOUT) as reply:
        return reply.read(MAX_RESPONSE)


def _vendor_models(vendor: str, keys: KeyStore) -> tuple[list[AvailableModel], str]:
    """Return the models of a vendor, by its own list; without it, its usual model alone."""
    profile = VENDORS[vendor]
    if profile.cloud:
        return [], check_vendor_key(vendor, "").problem
    try:
        rows = _rows(_request(profile, keys.find(profile.key)))
    except (OSError, ValueError, msgspec.MsgspecError):
        problem = check_vendor_key(vendor, keys.find(profile.key)).problem
        usual = EXAMPLES.get(profile.key, "")
        return ([_available(usual, vendor, _Row())] if usual else []), problem
    chat = [
        row
        for row in rows
        if not NOT_CHAT.search(row.name)
        and profile.for_model(row.name).modality == "chat"
        and (row.supportedGenerationMethods is None or "generateContent" in row.supportedGenerationMethods)
    ]
    return [_available(f"{vendor}:{row.name}", vendor, row) for row in chat], ""


def _available(name: str, source: str, row: _Row) -> AvailableModel:
    price = _price(name)
    if price == (None, None) and row.pricing:
        price = _per_million(row.pricing.get("prompt")), _per_million(row.pricing.get("completion"))
    window = row.context_length or row.inputTokenLimit or _window(name)
    tools: Tools = _tools(name)
    if row.supported_parameters is not None:
        tools = "native" if "tools" in row.supported_parameters else "prompted"
    return AvailableModel(name, source, window, *price, tools)


def _per_million(text: object) -> float | None:
    try:
        return float(str(text)) * MILLION
    except ValueError:
        return None


def _tools(name: str) -> Tools:
    vendor, _, model = name.partition(":")
    profile = VENDORS.get(vendor)
    if profile is None or not profile.key:
        return "unknown"  # a local model may or may not have been trained for it
    return "native" if profile.for_model(model).tool_format == "native" else "prompted"


def _price(name: str) -> tuple[float | None, float | None]:
    vendor, _, model = name.partition(":")
    profile = VENDORS.get(vendor)
    if profile is None or not profile.prices or not has_tables():
        return None, None
    return look_up(profile.prices, model).prices


def _window(name: str) -> int:
    vendor, _, model = name.partition(":")
    profile = VENDORS.get(vendor)
    if profile is None or not profile.prices or not has_tables():
        return 0
    return look_up(profile.prices, model).window or 0


def describe_row(model: AvailableModel) -> Mapping[str, str]:
    """Return the columns of a model for people."""
    prices = (model.input_price, model.output_price)
    return {
        "name": model.name,
        "window": f"{model.window // 1000:,}k" if model.window else "?",
        "price": "?" if None in prices else f"${prices[0]:g} / ${prices[1]:g}",
        "tools": "?" if model.tools == "unknown" else model.tools,
        "source": model.source,
    }
