"""Vendor profiles: what a vendor's server is like, as data. An OpenAI-compatible vendor is one more entry, and no code.

`vendors.py` has the entries. A user's own is a `Profile` too: `replace(VENDORS["compatible"], base_url=…)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from everturn.core.modality import Modality

FormatName = Literal["chat", "messages", "responses", "gemini", "ollama", "converse"]
FileApiName = Literal["", "openai", "azure", "anthropic", "gemini"]
CloudName = Literal["", "azure", "vertex", "bedrock"]
DEFAULT_KEY_VARIABLE = "EVERTURN_API_KEY"


class Profile(Struct, frozen=True, kw_only=True):
    """A vendor, or one of its models: its URL, its wire format, and where it departs from that format."""

    vendor: str
    format: FormatName = "chat"
    base_url: str = ""
    cloud: CloudName = ""  # its URL and its credentials are those of a cloud: see `clouds`
    key: str = ""  # the environment variable with the key; "": no key is needed
    headers: Mapping[str, str] = {}
    params: Mapping[str, Any] = {}  # default parameters
    prices: str = ""  # the vendor's name in genai-prices
    modality: Modality = "chat"  # what it is for
    inputs: frozenset[str] = frozenset({"image"})  # the input it accepts beside text: image, audio, pdf

    pdf_pages: int = (
        0  # pages of all PDF files of a request; in longer ones models read their text. 0: no limit is known
    )
    pdf_bytes: int = 0  # bytes of them, as base64

    file_api: FileApiName = ""  # the API to which large files can be uploaded; "": they are sent inline

    # parameters that request images as data, and not as URLs
    image_params: Mapping[str, Any] = field(default_factory=lambda: {"response_format": "b64_json"})

    max_tokens: str = "max_tokens"  # the name of the field
    default_max_tokens: int = 0  # for vendors that require it
    has_model_field: bool = True  # the body names the model; where it is in the path, the field is refused
    system: Literal["system", "developer"] = "system"
    has_usage_option: bool = True  # it sends usage only if `stream_options` requests it
    ids: Literal["ours", "nine", "kimi"] = "ours"  # the form of call ids that it accepts
    has_encrypted_reasoning: bool = (
        True  # it can return encrypted reasoning (Responses); other models refuse the request for it
    )
    has_cache_markers: bool = False  # it caches only what is marked
    has_cache_key: bool = False  # it groups requests by `prompt_cache_key`
    has_long_cache: bool = False  # it keeps a prefix for up to 24 hours, if `prompt_cache_retention` says so

    think: Literal["tags", "prefilled", "off"] = (
        "tags"  # `prefilled`: its template opens <think>, and only </think> is sent
    )
    reasoning: str = (
        ""  # how it is told a reasoning effort, in `formats.reasoning_effort`; "": as is usual in its format
    )
    reasoning_levels: tuple[str, ...] | None = None  # the efforts it has; None: those of its way; (): it does not think
    has_temperature: bool = True  # a request may set a temperature
    replay: str = ""  # the field in which reasoning must be sent back beside calls
    filler: str = ""  # the value of that field without reasoning

    tool_format: str = "native"  # tool format: native, or prompted: json, xml, blocks
    decoding_constraint: Literal["", "schema", "grammar"] = (
        ""  # constrained decoding of its server; `grammar` includes schemas
    )

    # Structured output: see `structured_output`
    has_output_schema: bool = True  # it enforces an output schema
    output_subset: str = (
        ""  # the schemas it enforces, by their name in `structured_output.subsets`; "": those of the format
    )
    has_schema_with_tools: bool = True  # it accepts an output schema beside tools
    has_output_tool: bool = True  # where there are no other tools, its models can still be given one for the answer
    can_force_call: bool = True  # its tool choice can require a call
    has_json_mode: bool = True  # it has a mode in which an answer is some JSON object

    can_follow_tool: bool = True  # a user's message may follow a tool's result
    must_alternate: bool = False  # user and assistant must alternate, or its template fails

    # How it is asked to continue a text that was cut: `last`, it continues an assistant message at the end; `prefix`, one
    # that is marked so; `notice`, it is asked to.
    continuation: Literal["notice", "last", "prefix"] = "notice"

    # It runs tools of its own: `mixed`, also beside functions; `alone`, only in a request without; `searches`, the same, and of
    # several only those that search.
    provider_tools: Literal["", "alone", "searches", "mixed"] = ""
    provider_tool_set: str = ""  # which ones, by their name in `formats.provider_tools`; "": those of the format
    has_call_parts: bool = True  # it can show calls of its own tools as parts of an answer (Gemini)

    models: Mapping[str, Mapping[str, Any]] = {}  # patterns of model names -> the fields that differ

    def for_model(self, model: str) -> Profile:
        """Return the profile of one model: every matching pattern is applied, in order."""
        profile = self
        for pattern, changes in self.models.items():
            if fnmatchcase(model, pattern):
                profile = replace(profile, **changes)
        return profile


class Origin(Struct, frozen=True):
    """The vendor and model of an answer: for error messages, and as the issuer of opaque data."""

    vendor: str
    model: str
    key: str = "the key"
    host: str = ""  # the server's host, for a vendor without a name
    login: Literal["key", "no_key", "credentials"] = "key"  # what was sent to the server: a key, nothing, or a token

    @property
    def name(self) -> str:
        """The name that a UI shows."""
        return f"{self.vendor}:{self.model}"

    @property
    def issuer(self) -> str:
        """The issuer of opaque data: two servers may have models of the same name."""
        return f"{self.name}@{self.host}" if self.host else self.name

    @property
    def names(self) -> Mapping[str, str]:
        """Names for error messages."""
        vendor, key = self.host or self.vendor, self.key or "the key"
        return {"vendor": vendor, "model": self.model, "key": key, "login": self.login}


def origin_of(profile: Profile, model: str, key: str, host: str = "") -> Origin:
    """Return the origin of the answers of a server. A server that is not of a vendor has its key in EVERTURN_API_KEY."""
    if profile.cloud:
        return Origin(profile.vendor, model, profile.key, host, "key" if key and profile.key else "credentials")
    return Origin(profile.vendor, model, profile.key or DEFAULT_KEY_VARIABLE, host, "key" if key else "no_key")
