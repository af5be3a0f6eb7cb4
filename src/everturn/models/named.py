"""A name such as `anthropic:claude-opus-5` → a model, ready to be asked."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from msgspec.structs import replace

from everturn.core.modality import MODALITIES
from everturn.core.ports import Model
from everturn.errors import ConfigError
from everturn.models.http import HttpModel
from everturn.models.media import FILE_LIMIT, MediaModel, check_vendor
from everturn.models.prices import Facts, Price
from everturn.models.profile import Profile
from everturn.models.prompted import NATIVE, PARADIGMS, Prompted
from everturn.models.retrying import Patience, Retrying
from everturn.models.vendors import VENDORS
from everturn.transport import Limits, Transport, place
from everturn.transport.live import Live

OWN_KEY = "EVERTURN_API_KEY"


def named(
    name: str,
    *,
    base_url: str = "",
    key: str = "",
    profile: Profile | None = None,
    price: Price | None = None,
    window: int | None = None,
    patience: Patience | None = None,
    paradigm: str = "",
    limits: Limits | None = None,
    transport: Transport | None = None,
    environ: Mapping[str, str] | None = None,
) -> Model:
    """Find a model by `vendor:model`, with the key from the vendor's environment variable.

    With a `base_url` any OpenAI-compatible server will do, and the vendor may be left out; its key is given here or
    stands in EVERTURN_API_KEY, for the key of a vendor goes to that vendor only. A `paradigm` (json, xml, blocks) is
    for models that cannot call tools by themselves. What a model is for is known of the usual ones; of any other it can
    be said: `openai:gpt-image-1@image-edit`. So can the paradigm: `ollama:gemma3@json`. `offline:demo` needs no network.

    Raises:
        ConfigError: the vendor is unknown, or its key is missing; the text says what to do.
    """
    if name.startswith("offline:") and not base_url:
        from everturn.models.offline import offline

        return offline(name)
    environ = os.environ if environ is None else environ
    bare, _, asked = name.rpartition("@")
    is_told = asked in MODALITIES or asked in (NATIVE, *PARADIGMS)
    vendor, model = _split(bare if is_told else name, base_url, profile)
    profile = profile or VENDORS[vendor]
    if base_url:
        profile = replace(profile, base_url=_checked_url(base_url))
    if not profile.base_url:
        raise ConfigError(f"{name!r} needs a base_url: where the server is, for example http://127.0.0.1:8000/v1")
    homes = [vendor.base_url for vendor in VENDORS.values() if vendor.key and vendor.key == profile.key]
    if homes and profile.base_url not in homes:
        profile = replace(profile, key=OWN_KEY)
    its = profile.of(model)
    modality = asked if asked in MODALITIES else its.modality
    if modality != "chat":
        check_vendor(its, modality)  # before anybody looks for a key that would be of no use
    if not key:
        key = environ.get(profile.key or OWN_KEY, "")
        if not key and profile.key not in ("", OWN_KEY):
            raise ConfigError(
                f"{name} needs a key: set the environment variable {profile.key} (in Python, key=… will do, too)"
            )
    if key.strip() != key or not key.isascii() or not key.isprintable():
        raise ConfigError(f"the key for {name} holds blanks or characters that no key has; was it pasted whole?")
    facts = Facts(price, window) if price is not None or window is not None else None
    host = place(profile.base_url) if vendor == "compatible" else ""
    if modality != "chat":
        badge = f"{vendor}:{model}@{modality}" if is_told else ""
        made = MediaModel(
            model,
            profile,
            transport or Live(),
            modality=modality,
            key=key,
            host=host,
            name=badge,
            facts=facts,
            limit=limits.stream if limits is not None else FILE_LIMIT,
        )
        return Retrying(made, patience)
    found = HttpModel(model, profile, transport or Live(), key=key, host=host, limits=limits, facts=facts)
    chosen = paradigm or (asked if is_told and asked not in MODALITIES else "")
    badge = f"{found.name}@{chosen}" if chosen else found.name
    return Prompted(Retrying(found, patience), chosen or its.paradigm, its.binds, name=badge)


def _split(name: str, base_url: str, profile: Profile | None) -> tuple[str, str]:
    vendor, colon, model = name.partition(":")
    if profile is not None:
        return profile.vendor, model if vendor == profile.vendor and colon else name
    if vendor in VENDORS and model:
        return vendor, model
    if base_url and name:
        return "compatible", name  # `qwen3:8b` is a name of a model, too
    import difflib

    near = difflib.get_close_matches(vendor, VENDORS, 1)
    hint = f"did you mean {near[0]}:{model or '…'}? " if near else ""
    raise ConfigError(
        f"{name!r} names no model: {hint}it is vendor:model, and the vendors are {', '.join(VENDORS)}; "
        "any OpenAI-compatible server can be had with a base_url"
    )


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        is_one = is_one and not parts.query and not parts.fragment and url.isprintable() and " " not in url
        has_password = bool(parts.username or parts.password)
    except ValueError:
        is_one = has_password = False
    if not is_one:
        shown = "this" if "@" in url else repr(url)  # it may hold a password
        raise ConfigError(f"{shown} is not a base URL; it looks like http://127.0.0.1:8000/v1")
    if has_password:
        raise ConfigError(f"a base URL holds no password: give the key with key=…, or in {OWN_KEY}")
    return url
