"""Check: the inventory of the SDK packages against what is reviewed, what requests have, and what profiles say.

Each function returns sentences; none means that nothing differs.
"""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Iterator, Mapping
from datetime import date

from everturn.core.canonical_json import JsonObject
from everturn.core.parts import TextPart
from everturn.core.requests import ModelRequest, RequestMessage, ToolSpec
from everturn.models.profile import Origin, Profile
from everturn.models.vendors import FACTS, VENDORS, VendorFact, VendorFacts
from everturn.models.wire_formats import get_wire_format
from everturn.tools import provider_tool
from tools.vendor_facts.inventory import Inventory
from tools.vendor_facts.reviewed import REVIEWS, Review

# Format -> the list of the inventory with its parameters, and those that only the address and the transport have.
PARAMETERS: Mapping[str, tuple[str, frozenset[str]]] = {
    "responses": ("openai responses: parameters", frozenset({"stream"})),
    "chat": ("openai chat: parameters", frozenset({"stream"})),
    "messages": ("anthropic: parameters", frozenset({"stream"})),
    "gemini": ("google: parameters", frozenset({"contents"})),
    "converse": ("bedrock: parameters", frozenset[str]()),
}
PACKAGE_OF: Mapping[str, str] = {
    "openai": "openai",
    "openai-chat": "openai",
    "azure": "openai",
    "azure-chat": "openai",
    "anthropic": "anthropic",
    "gemini": "google-genai",
    "vertex": "google-genai",
    "bedrock": "botocore",
}  # the profiles whose requests a package describes: the others are compatible with one of them
MODELS: Mapping[str, tuple[str, ...]] = {
    "openai": ("gpt-5.2", "gpt-4.1", "gpt-3.5-turbo"),
    "anthropic": ("claude-opus-4-5", "claude-opus-5", "claude-3-5-sonnet-latest"),
    "google-genai": ("gemini-3-pro", "gemini-2.5-flash"),
    "botocore": ("anthropic.claude-opus-4-5-v1:0", "amazon.nova-pro-v1:0", "meta.llama3-1-8b-v1:0"),
}


def compare(inventory: Inventory, reviews: Mapping[str, Review] = REVIEWS) -> Iterator[str]:
    """What a package has that is neither mapped nor listed with a reason; and what is listed and no longer there."""
    for name in sorted(inventory.keys() | reviews.keys()):
        if name not in inventory:
            yield f"{name}: the packages have no such list"
        elif name not in reviews:
            yield f"{name}: not reviewed"
        else:
            review, found = reviews[name], set(inventory[name])
            known = review.mapped | review.left_out.keys()
            for new in sorted(found - known):
                yield f"{name}: {new} is neither mapped nor listed with a reason"
            gone = (review.left_out.keys() if review.may_map_more else known) - found
            for old in sorted(gone):
                yield f"{name}: {old} is known here, and the package does not have it"
            for both in sorted(review.mapped & review.left_out.keys()):
                yield f"{name}: {both} is mapped and listed as not mapped"


def request_fields(profile: Profile, model: str) -> set[str]:
    """The fields of a request with everything that a profile has words for."""
    tools = [ToolSpec(name="look", description="", schema={"type": "object", "properties": {}})]
    names = ("web_search", "code_execution") if profile.provider_tools else ()
    hosted = [provider_tool(name).spec for name in names]
    params: JsonObject = {"reasoning": "low", "tool_choice": "required", "max_tokens": 9000}
    if profile.has_output_schema:
        params["output_schema"] = {"type": "object", "properties": {}, "additionalProperties": False}
    request = ModelRequest(
        model=f"{profile.vendor}:{model}",
        system="Be brief.",
        messages=[RequestMessage("user", (TextPart("Hi"),))],
        tools=tools,
        provider_tools=hosted,
        params=params,
    )
    built = get_wire_format(profile.format).build(request, profile, Origin(profile.vendor, model))
    body: JsonObject = json.loads(built.body)
    config: JsonObject = body.pop("generationConfig", {}) if profile.format == "gemini" else {}
    return {*body, *config}


def compare_requests(inventory: Inventory) -> Iterator[str]:
    """Fields of our requests, and parameters of profiles, that the package of the vendor does not have."""
    for vendor, package in PACKAGE_OF.items():
        for model in MODELS[package]:
            profile = VENDORS[vendor].for_model(model)
            parameters, others = PARAMETERS[profile.format]
            for field in sorted(request_fields(profile, model) - set(inventory[parameters]) - others):
                yield f"{vendor}:{model}: {field} is sent, and {package} has no such parameter"


def compare_sources(facts: VendorFacts = FACTS, today: date | None = None) -> Iterator[str]:
    """Facts without a date or a source, and tables of another version than the installed one."""
    entries = [(entry.vendor, fact) for entry in facts.vendors for fact in entry.facts if not fact.use]
    entries += [(name, fact) for name, shared in facts.shared.items() for fact in shared]
    for name, fact in entries:
        yield from _source_problems(name, fact, today)
    for table in facts.tables:
        if (installed := importlib.metadata.version(table.package)) != table.version:
            yield f"vendors.json: {table.package} is {installed} here and {table.version} there; look at it, and set as_of"


def _source_problems(name: str, fact: VendorFact, today: date | None) -> Iterator[str]:
    if not fact.source.strip():
        yield f"vendors.json: a fact of {name} has no source: {fact.set}"
    try:
        as_of = date.fromisoformat(fact.as_of)
    except ValueError:
        yield f"vendors.json: a fact of {name} has no date (as_of): {fact.set}"
        return
    if today is not None and as_of > today:
        yield f"vendors.json: a fact of {name} is of the future: {fact.as_of}"


def news(pinned: Inventory, newest: Inventory) -> Iterator[str]:
    """What newer releases add and take away."""
    for name in sorted(pinned.keys() | newest.keys()):
        old, new = set(pinned.get(name, ())), set(newest.get(name, ()))
        for added in sorted(new - old):
            yield f"{name}: + {added}"
        for removed in sorted(old - new):
            yield f"{name}: - {removed}"
