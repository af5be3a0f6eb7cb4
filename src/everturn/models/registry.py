"""Model registry: returns a ready model for a name such as `anthropic:claude-opus-5`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict, Unpack
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.modality import MODALITIES
from everturn.core.ports import Model
from everturn.core.rate_limits import RateLimit
from everturn.entry_points import names_in, open_by_name
from everturn.errors import ConfigError, unexpected_argument
from everturn.models.http_model import HttpModel
from everturn.models.limited import Deployment, LimitedModel, ModelDeployment, bucket_key
from everturn.models.media import FILE_LIMIT, MediaModel, check_vendor
from everturn.models.prices import ModelFacts, Price
from everturn.models.profile import DEFAULT_KEY_VARIABLE, Profile
from everturn.models.prompted import NATIVE, TOOL_FORMATS, PromptedModel
from everturn.models.retry import RetryModel, RetryPolicy
from everturn.models.vendors import VENDORS
from everturn.transport import StreamLimits, Transport, url_origin
from everturn.transport.live import HttpTransport

if TYPE_CHECKING:
    from everturn.models.clouds import CloudServer

_key_source: Callable[[str], str] | None = None


def set_key_source(source: Callable[[str], str] | None) -> None:
    """Set where keys are looked up that are not in the environment, by the variable's name; the command line does."""
    global _key_source
    _key_source = source


def find_key(variable: str, environ: Mapping[str, str]) -> str:
    """Return the key of a vendor: of the environment, or of the key source; "" if there is none."""
    key = environ.get(variable, "")
    return key if key or _key_source is None or variable == DEFAULT_KEY_VARIABLE else _key_source(variable)


class _NoMore(TypedDict):
    """No further arguments: type checkers refuse them, and `get_model` says what to write instead."""


NAMES_ELSEWHERE: Mapping[str, str] = {
    **dict.fromkeys(("api_key", "token", "apikey"), "key="),
    **dict.fromkeys(("url", "api_base", "endpoint", "host", "base"), "base_url="),
    **dict.fromkeys(
        ("temperature", "max_tokens", "top_p", "model_settings", "params"),
        "Agent(get_model(…), params={…}): parameters belong to the agent",
    ),
    **dict.fromkeys(("max_retries", "retries", "timeout"), "retry=RetryPolicy(…), or limits=StreamLimits(…)"),
    "context_window": "window=",
    "http_client": "transport=",
}
"""What other libraries call an argument of `get_model`, and what to write here."""


def get_model(
    name: str,
    *,
    base_url: str = "",
    key: str = "",
    profile: Profile | None = None,
    price: Price | None = None,
    window: int | None = None,
    retry: RetryPolicy | None = None,
    rate_limit: RateLimit | None = None,
    rate_limit_name: str = "",
    deployments: Sequence[ModelDeployment] = (),
    tool_format: str = "",
    upload_above: int | None = None,
    limits: StreamLimits | None = None,
    transport: Transport | None = None,
    environ: Mapping[str, str] | None = None,
    **unknown: Unpack[_NoMore],
) -> Model:
    """Return a model by `vendor:model`, with the key from the vendor's environment variable.

    With a `base_url` any OpenAI-compatible server can be used, and the vendor can be left out; its key is given here or
    in EVERTURN_API_KEY, because the key of a vendor is sent to that vendor only. A `tool_format` (json, xml, blocks) is
    for models without native tool calls; a model whose server refuses tools is prompted (json) without it. The modality of the usual models is known; for any other it can be given in
    the name: `openai:gpt-image-1@image-edit`. So can the tool_format: `ollama:gemma3@json`. `offline:demo` needs no
    network. A vendor that is not built in is looked up among the entry points `everturn.models` of installed packages.

    Requests wait for a `rate_limit`, which all processes on one store share; with a `rate_limit_name`, models share it.
    `deployments` are further places where the model can be had: a request goes to the one with most room. Images and PDF
    files with more than `upload_above` bytes are uploaded to the vendor's files API once, and named by reference.

    Raises:
        ConfigError: the vendor is unknown, or its key is missing; the message says what to do.
    """
    for argument in unknown:
        raise unexpected_argument("get_model", argument, _ARGUMENTS, NAMES_ELSEWHERE)
    if name.startswith("offline:") and not base_url:
        from everturn.models.offline import get_offline_model

        return get_offline_model(name)
    if not base_url and profile is None and (provided := _provided(name)) is not None:
        return provided
    environ = os.environ if environ is None else environ
    facts = ModelFacts(price, window) if price is not None or window is not None else None
    first = ModelDeployment(name, base_url, key, rate_limit, rate_limit_name, transport)
    opened = _open(first, profile, facts, limits, environ, upload_above)
    places = [opened.deployment]
    for each in deployments:
        other = _open(_completed(each, first), None if each.model else profile, facts, limits, environ, upload_above)
        if other.modality != opened.modality:
            raise ConfigError(f"{each.model!r} cannot be a deployment of {name!r}, which is for {other.modality}")
        places.append(other.deployment)
    model = RetryModel(LimitedModel(*places), retry)
    if opened.modality != "chat":
        return model
    chosen = tool_format or opened.tool_format
    return PromptedModel(
        model,
        chosen or opened.profile.tool_format,
        opened.profile.decoding_constraint,
        name=f"{model.name}@{chosen}" if chosen else model.name,
        falls_back=not chosen,
    )


def _completed(place: ModelDeployment, first: ModelDeployment) -> ModelDeployment:
    """A deployment with what it has in common with the first one; of another vendor it has nothing."""
    place = replace(place, transport=place.transport or first.transport)
    if place.model:
        return place
    # A key is sent to the server that it was given for, and to no other.
    key = place.key or ("" if place.base_url else first.key)
    return replace(place, model=first.model, base_url=place.base_url or first.base_url, key=key)


class _OpenedDeployment(Struct, frozen=True):
    """A deployment, and what its name and profile say of the model."""

    deployment: Deployment
    profile: Profile
    modality: str
    tool_format: str  # from the name; "": not said there


def _open(
    wanted: ModelDeployment,
    profile: Profile | None,
    facts: ModelFacts | None,
    limits: StreamLimits | None,
    environ: Mapping[str, str],
    upload_above: int | None,
) -> _OpenedDeployment:
    """Make the model of one deployment."""
    name, base_url, key = wanted.model, wanted.base_url, wanted.key
    bare, _, suffix = name.rpartition("@")
    has_suffix = suffix in MODALITIES or suffix in (NATIVE, *TOOL_FORMATS)
    vendor, model = _split(bare if has_suffix else name, base_url, profile)
    profile = profile or VENDORS[vendor]
    if base_url:
        profile = replace(profile, base_url=_checked_url(base_url))
    cloud: CloudServer | None = None
    if profile.cloud:
        profile, key, cloud = _open_cloud(profile, model, key, environ)
    if not profile.base_url:
        raise ConfigError(f"{name!r} needs a base_url, the address of the server; for example http://127.0.0.1:8000/v1")
    homes = [vendor.base_url for vendor in VENDORS.values() if vendor.key and vendor.key == profile.key]
    if homes and profile.base_url not in homes:
        profile = replace(profile, key=DEFAULT_KEY_VARIABLE)
    model_profile = profile.for_model(model)
    modality = suffix if suffix in MODALITIES else model_profile.modality
    if modality != "chat":
        check_vendor(model_profile, modality)  # before a useless key is looked for
    if not key and cloud is None:
        key = find_key(profile.key or DEFAULT_KEY_VARIABLE, environ)
        if not key and profile.key not in ("", DEFAULT_KEY_VARIABLE):
            raise ConfigError(
                f"{name} needs a key: `everturn auth login {vendor}` stores it, or set the environment variable "
                f"{profile.key} (in Python you can also pass key=… to get_model)"
            )
    if key.strip() != key or not key.isascii() or not key.isprintable():
        raise ConfigError(
            f"the key for {name} contains blanks or characters that no key has; check that you copied all of it"
        )
    host = url_origin(profile.base_url) if vendor == "compatible" else ""
    shared = wanted.rate_limit_name
    bucket = bucket_key("name", shared) if shared else bucket_key(profile.base_url, key, model)
    transport = wanted.transport or HttpTransport()
    if modality != "chat":
        http_model: Model = MediaModel(
            model,
            profile,
            transport,
            modality=modality,
            key=key,
            host=host,
            name=f"{vendor}:{model}@{modality}" if has_suffix else "",
            facts=facts,
            limit=limits.stream if limits is not None else FILE_LIMIT,
        )
    else:
        http_model = HttpModel(
            model,
            profile,
            transport,
            key=key,
            host=host,
            limits=limits,
            facts=facts,
            bucket=bucket,
            cloud=cloud,
            upload_above=upload_above,
        )
    tool_format = suffix if has_suffix and suffix not in MODALITIES else ""
    return _OpenedDeployment(Deployment(http_model, bucket, wanted.rate_limit), model_profile, modality, tool_format)


def _open_cloud(profile: Profile, model: str, key: str, environ: Mapping[str, str]) -> tuple[Profile, str, CloudServer]:
    """Return the profile, the key and the server of a model in a cloud.

    A key of the environment goes to the cloud's own server, as its other credentials do; any other has a key of its own.
    """
    from everturn.models.clouds import open_cloud

    if model in (".", ".."):  # the URL of a model has its name in the path
        raise ConfigError(f"{model!r} is not the name of a model of {profile.vendor}")
    own = key or (find_key(profile.key, environ) if profile.key else "")
    server = open_cloud(profile, model, profile.base_url, bool(own), environ)
    if server.base_url:
        _checked_url(server.base_url)  # of the environment
    if not key:
        key = own if server.is_home else find_key(DEFAULT_KEY_VARIABLE, environ)
    changes = {} if server.is_home else {"key": DEFAULT_KEY_VARIABLE}
    return replace(profile, base_url=server.base_url, **changes), key, server


def _provided(name: str) -> Model | None:
    """The model of another package, if its vendor is not built in."""
    vendor, colon, _ = name.partition(":")
    return open_by_name("everturn.models", vendor, name) if colon and vendor not in VENDORS else None


_ARGUMENTS = ("name", *(get_model.__kwdefaults__ or {}))

VENDORS_ELSEWHERE: Mapping[str, str] = {
    **dict.fromkeys(("google", "google-gla", "google-genai", "google_genai", "googleai"), "gemini"),
    **dict.fromkeys(("google-vertex", "google_vertexai", "vertex_ai", "vertexai"), "vertex"),
    **dict.fromkeys(("azure_openai", "azure-openai"), "azure"),
    **dict.fromkeys(("aws", "bedrock_converse", "amazon"), "bedrock"),
    **dict.fromkeys(("moonshot", "moonshotai"), "kimi"),
    **dict.fromkeys(("dashscope", "alibaba"), "qwen"),
    **dict.fromkeys(("openai-responses", "openai_responses"), "openai"),
    **dict.fromkeys(("mistralai", "mistral_ai"), "mistral"),
    **dict.fromkeys(("claude", "anthropics"), "anthropic"),
    **dict.fromkeys(("llama.cpp", "llama-cpp", "llama_cpp"), "llamacpp"),
}
"""What other libraries call a vendor, and its name here."""

KNOWN_PREFIXES = {"gpt-": "openai", "claude-": "anthropic", "gemini-": "gemini"}
"""Beginnings of model names whose vendor is known, for the error about a name without a vendor."""


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
    if colon and vendor in vendors:
        raise ConfigError(f"{name!r} is not a model name: write the name of a model behind `{vendor}:`")
    if not colon and "/" in name:  # `openai/gpt-5.2` is how LiteLLM and OpenRouter write it
        head, _, tail = name.partition("/")
        if head in vendors or head in VENDORS_ELSEWHERE:
            vendor, model = head, tail
    near = [VENDORS_ELSEWHERE[vendor]] if vendor in VENDORS_ELSEWHERE else difflib.get_close_matches(vendor, vendors, 1)
    known = next((owner for prefix, owner in KNOWN_PREFIXES.items() if name.startswith(prefix) and not colon), "")
    suggestion = f"{known}:{name}" if known else f"{near[0]}:{model or '…'}" if near else ""
    hint = f"did you mean {suggestion}? " if suggestion else ""
    if colon and vendor and model and not hint:
        hint = f"there is no vendor {vendor!r}; "
    raise ConfigError(
        f"{name!r} is not a model name: {hint}write vendor:model with one of the vendors {', '.join(vendors)}; "
        "for any other OpenAI-compatible server, set base_url"
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
        raise ConfigError(
            f"a base URL must not contain a password: pass the key as key=…, or in {DEFAULT_KEY_VARIABLE}"
        )
    return url
