"""What a vendor's server is like, as data: an OpenAI-compatible vendor is one more entry, and no code.

`vendors.py` holds the entries. A user's own is a `Profile` too: `replace(VENDORS["compatible"], base_url=…)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from everturn.core.modality import Modality

WireFormat = Literal["chat", "messages", "responses", "gemini", "ollama"]


class Profile(Struct, frozen=True, kw_only=True):
    """A vendor, or one of its models: where it is, which format it speaks, and where it departs from that."""

    vendor: str
    format: WireFormat = "chat"
    base_url: str = ""
    key: str = ""  # the environment variable that holds the key; "": none is needed
    headers: Mapping[str, str] = {}
    params: Mapping[str, Any] = {}  # what is sent unless a turn says otherwise
    prices: str = ""  # what the tables of prices call this vendor
    modality: Modality = "chat"  # what it is for
    inputs: frozenset[str] = frozenset({"image"})  # what it reads beside text: image, audio, pdf

    # how to be given pictures, and not where they are
    pictures: Mapping[str, Any] = field(default_factory=lambda: {"response_format": "b64_json"})

    max_tokens: str = "max_tokens"  # what the field is called here
    default_max_tokens: int = 0  # for those that must be told
    system: Literal["system", "developer"] = "system"
    has_usage_option: bool = True  # it counts tokens only when `stream_options` asks for it
    ids: Literal["ours", "nine", "kimi"] = "ours"  # what it takes for the id of a call
    has_seals: bool = True  # its reasoning may be asked for sealed (Responses); others refuse to be asked
    has_cache_markers: bool = False  # it caches what is marked, and nothing else

    think: Literal["tags", "prefilled", "off"] = (
        "tags"  # `prefilled`: its template opens <think>, and only </think> comes
    )
    replay: str = ""  # the field in which reasoning must come back beside calls
    filler: str = ""  # what stands there when there was none

    paradigm: str = "native"  # how it calls tools: by itself, or as `prompted` teaches it: json, xml, blocks
    binds: Literal["", "schema", "grammar"] = ""  # what its server can hold it to; a grammar goes with a schema, too

    has_schema_with_tools: bool = True  # it takes a schema for its answer beside tools; others are told in words

    can_follow_tool: bool = True  # a user's message may follow a tool's result
    must_alternate: bool = False  # user and assistant take turns, or its template fails

    models: Mapping[str, Mapping[str, Any]] = {}  # patterns of model names -> what is different there

    def of(self, model: str) -> Profile:
        """The profile of one model: every pattern that fits is laid on top, in order."""
        profile = self
        for pattern, changes in self.models.items():
            if fnmatchcase(model, pattern):
                profile = replace(profile, **changes)
        return profile


class Origin(Struct, frozen=True):
    """Who answers: for error texts, and to seal what only the same model may be shown again."""

    vendor: str
    model: str
    key: str = "the key"
    host: str = ""  # where it is, for a vendor that has no name

    @property
    def name(self) -> str:
        """The badge."""
        return f"{self.vendor}:{self.model}"

    @property
    def issuer(self) -> str:
        """The name on sealed payloads: two servers may well call two models the same."""
        return f"{self.name}@{self.host}" if self.host else self.name

    @property
    def names(self) -> Mapping[str, str]:
        """For the texts of errors."""
        return {"vendor": self.host or self.vendor, "model": self.model, "key": self.key or "the key"}
