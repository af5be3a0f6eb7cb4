"""Every name of the pinned SDK packages is mapped or has a reason, and facts about vendors have a date and a source."""

from __future__ import annotations

import datetime

import pytest
from msgspec.structs import replace

from everturn.models.vendors import FACTS, VENDORS, VendorEntry, VendorFact
from tools.vendor_facts import check
from tools.vendor_facts.inventory import Inventory, take_inventory
from tools.vendor_facts.reviewed import REVIEWS

pytest.importorskip("anthropic")
pytest.importorskip("google.genai")
pytest.importorskip("botocore")


@pytest.fixture(scope="module")
def inventory() -> Inventory:
    found, errors = take_inventory()
    assert errors == {}
    return found


def test_every_name_of_the_pinned_packages_is_mapped_or_has_a_reason(inventory: Inventory) -> None:
    assert [*check.compare(inventory)] == []
    assert all(why for review in REVIEWS.values() for why in review.left_out.values())


def test_requests_have_only_parameters_that_the_packages_have(inventory: Inventory) -> None:
    assert [*check.compare_requests(inventory)] == []


def test_every_fact_has_a_date_and_a_source() -> None:
    assert [*check.compare_sources(today=datetime.datetime.now(datetime.UTC).date())] == []


@pytest.mark.parametrize("name", sorted(REVIEWS))
def test_a_name_that_a_package_adds_or_removes_is_reported(inventory: Inventory, name: str) -> None:
    more = {**inventory, name: [*inventory[name], "brand_new"]}
    assert [*check.compare(more)] == [f"{name}: brand_new is neither mapped nor listed with a reason"]
    assert [*check.news(inventory, more)] == [f"{name}: + brand_new"]
    if not REVIEWS[name].may_map_more:
        fewer = {**inventory, name: inventory[name][1:]}
        assert [*check.compare(fewer)] == [
            f"{name}: {inventory[name][0]} is known here, and the package does not have it"
        ]


def test_a_parameter_that_no_package_has_is_reported(inventory: Inventory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(VENDORS, "openai-chat", replace(VENDORS["openai-chat"], max_tokens="max_new_tokens"))
    problems = [*check.compare_requests(inventory)]
    assert problems[0] == "openai-chat:gpt-5.2: max_new_tokens is sent, and openai has no such parameter"


def test_a_fact_without_a_source_and_older_tables_are_reported() -> None:
    facts = (VendorFact({"reasoning": "x"}, as_of="2026-11-15"), VendorFact({"reasoning": "y"}, source="a page"))
    tables = (replace(FACTS.tables[0], version="0.0.1"),)
    problems = [*check.compare_sources(replace(FACTS, vendors=(VendorEntry("mine", facts),), shared={}, tables=tables))]
    assert len(problems) == 3
    assert "has no source" in problems[0]
    assert "has no date" in problems[1]
    assert "0.0.1 there" in problems[2]


def test_facts_that_vendors_share_and_later_ones_win() -> None:
    gemini = VENDORS["gemini"]
    assert gemini.for_model("gemini-2.5-flash").provider_tools == "alone"
    assert gemini.for_model("gemini-2.5-flash").reasoning == "level-budget"
    assert gemini.for_model("gemini-3-pro").provider_tools == "mixed"
    assert VENDORS["anthropic"].for_model("claude-3-5-haiku").default_max_tokens == 8192
