"""Model registry: returns a ready model for a name such as `anthropic:claude-opus-5`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from msgspec.structs import replace

from everturn.core.modality import MODALITIES
from everturn.core.ports import Model
from everturn.entry_points import names_in, open_by_name
from everturn.errors import ConfigError
from everturn.models.http_model import HttpModel
from everturn.models.media import FILE_LIMIT, MediaModel, check_vendor
from everturn.models.prices import ModelFacts, Price
from everturn.models.profile import Profile
from everturn.models.prompted import NATIVE, TOOL_FORMATS, PromptedModel
from everturn.models.retry import RetryModel, RetryPolicy
from everturn.models.vendors import VENDORS
from everturn.transport import StreamLimits, Transport, url_origin
from everturn.transport.live import HttpTransport

DEFAULT_KEY_VARIABLE = "EVERTURN_API_KEY"


def get_model(
    name: str,
    *,
    base_url: str = "",
    key: str = "",
    profile: Profile | None = None,
    price: Price | None = None,
    window: int | None = None,
    retry: RetryPolicy | None = None,
    tool_format: str = "",
    limits: StreamLimits | None = None,
    transport: Transport | None = None,
    environ: Mapping[str, str] | None = None,
) -> Model:
    """Return a model by `vendor:model`, with the key from the vendor's environment variable.

    With a `base_url` any OpenAI-compatible server can be used, and the vendor can be left out; its key is given here or
    in EVERTURN_API_KEY, because the key of a vendor is sent to that vendor only. A `tool_format` (json, xml, blocks) is
    for models without native tool calls. The modality of the usual models is known; for any other it can be given in
    the name: `openai:gpt-image-1@image-edit`. So can the tool_format: `ollama:gemma3@json`. `offline:demo` needs no
    network. A vendor that is not built in is looked up among the entry points `everturn.models` of installed packages.

    Raises:
        ConfigError: the vendor is unknown, or its key is missing; the message says what to do.
    """
    if name.startswith("offline:") and not base_url:
        from everturn.models.offline import get_offline_model

        return get_offline_model(name)
    if not base_url and profile is None and (provided := _provided(name)) is not None:
        return provided
    environ = os.environ if environ is None else environ
    bare, _, suffix = name.rpartition("@")
    has_suffix = suffix in MODALITIES or suffix in (NATIVE, *TOOL_FORMATS)
    vendor, model = _split(bare if has_suffix else name, base_url, profile)
    profile = profile or VENDORS[vendor]
    if base_url:
        profile = replace(profile, base_url=_checked_url(base_url))
    if not profile.base_url:
        raise ConfigError(f"{name!r} needs a base_url: where the server is, for example http://127.0.0.1:8000/v1")
    homes = [vendor.base_url for vendor in VENDORS.values() if vendor.key and vendor.key == profile.key]
    if homes and profile.base_url not in homes:
        profile = replace(profile, key=DEFAULT_KEY_VARIABLE)
    model_profile = profile.for_model(model)
    modality = suffix if suffix in MODALITIES else model_profile.modality
    if modality != "chat":
        check_vendor(model_profile, modality)  # before a useless key is looked for
    if not key:
        key = environ.get(profile.key or DEFAULT_KEY_VARIABLE, "")
        if not key and profile.key not in ("", DEFAULT_KEY_VARIABLE):
            raise ConfigError(
                f"{name} needs a key: set the environment variable {profile.key} (in Python, key=… will do, too)"
            )
    if key.strip() != key or not key.isascii() or not key.isprintable():
        raise ConfigError(f"the key for {name} holds blanks or characters that no key has; was it pasted whole?")
    facts = ModelFacts(price, window) if price is not None or window is not None else None
    host = url_origin(profile.base_url) if vendor == "compatible" else ""
    if modality != "chat":
        badge = f"{vendor}:{model}@{modality}" if has_suffix else ""
        media_model = MediaModel(
            model,
            profile,
            transport or HttpTransport(),
            modality=modality,
            key=key,
            host=host,
            name=badge,
            facts=facts,
            limit=limits.stream if limits is not None else FILE_LIMIT,
        )
        return RetryModel(media_model, retry)
    http_model = HttpModel(model, profile, transport or HttpTransport(), key=key, host=host, limits=limits, facts=facts)
    chosen = tool_format or (suffix if has_suffix and suffix not in MODALITIES else "")
    badge = f"{http_model.name}@{chosen}" if chosen else http_model.name
    return PromptedModel(
        RetryModel(http_model, retry),
        chosen or model_profile.tool_format,
        model_profile.decoding_constraint,
        name=badge,
    )


def _provided(name: str) -> Model | None:
    """The model of another package, if its vendor is not built in."""
    vendor, colon, _ = name.partition(":")
    return open_by_name("everturn.models", vendor, name) if colon and vendor not in VENDORS else None


def _split(name: str, base_url: str, profile: Profile | None) -> tuple[str, str]:
    vendor, colon, model = name.partition(":")
    if profile is not None:
        return profile.vendor, model if vendor == profile.vendor and colon else name
    if vendor in VENDORS and model:
        return vendor, model
    if base_url and name:
        return "compatible", name  # `qwen3:8b` is also the name of a model
    import difflib

    vendors = [*VENDORS, *names_in("everturn.models")]
    near = difflib.get_close_matches(vendor, vendors, 1)
    hint = f"did you mean {near[0]}:{model or '…'}? " if near else ""
    raise ConfigError(
        f"{name!r} names no model: {hint}it is vendor:model, and the vendors are {', '.join(vendors)}; "
        "any OpenAI-compatible server can be had with a base_url"
    )


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        is_valid = is_valid and not parts.query and not parts.fragment and url.isprintable() and " " not in url
        has_password = bool(parts.username or parts.password)
    except ValueError:
        is_valid = has_password = False
    if not is_valid:
        shown = "this" if "@" in url else repr(url)  # it may contain a password
        raise ConfigError(f"{shown} is not a base URL; it looks like http://127.0.0.1:8000/v1")
    if has_password:
        raise ConfigError(f"a base URL holds no password: give the key with key=…, or in {DEFAULT_KEY_VARIABLE}")
    return url
