"""Vendors: the profiles of the vendors that are known by name, read from `vendors.json`.

There each fact has the day on which it was entered or checked, and its source. `scripts/vendor-facts` compares them with the
SDK packages of the vendors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from everturn.models.profile import Profile


class VendorFact(Struct, frozen=True, forbid_unknown_fields=True):
    """Fields of a profile, and where they come from; or the name of facts that several vendors share."""

    set: Mapping[str, Any] = {}
    models: Sequence[str] = ()  # patterns of the models that they are about; (): all of them
    as_of: str = ""
    source: str = ""
    use: str = ""


class VendorEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """A vendor. Later facts win."""

    vendor: str
    facts: Sequence[VendorFact]


class PriceTables(Struct, frozen=True, forbid_unknown_fields=True):
    """A package with prices and context windows."""

    package: str
    version: str
    has: str
    as_of: str


class VendorFacts(Struct, frozen=True, forbid_unknown_fields=True):
    """The file."""

    about: str
    tables: Sequence[PriceTables]
    shared: Mapping[str, Sequence[VendorFact]]
    vendors: Sequence[VendorEntry]

    def facts_of(self, entry: VendorEntry) -> Iterator[VendorFact]:
        """The facts of a vendor, in order, with those that it shares."""
        for fact in entry.facts:
            if fact.use:
                yield from self.shared[fact.use]
            else:
                yield fact


def _to_profile(vendor: str, facts: Iterator[VendorFact]) -> Profile:
    fields: dict[str, Any] = {"vendor": vendor}
    models: dict[str, dict[str, Any]] = {}
    for fact in facts:
        for pattern in fact.models:
            models[pattern] = {**models.get(pattern, {}), **_with_sets(fact.set)}
        if not fact.models:
            fields |= fact.set
    return msgspec.convert({**fields, "models": models}, Profile)


def _with_sets(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: frozenset(value) if name == "inputs" else value for name, value in fields.items()}


FACTS: Final = msgspec.json.decode(Path(__file__).with_name("vendors.json").read_bytes(), type=VendorFacts)
VENDORS: Final[Mapping[str, Profile]] = {
    entry.vendor: _to_profile(entry.vendor, FACTS.facts_of(entry)) for entry in FACTS.vendors
}
