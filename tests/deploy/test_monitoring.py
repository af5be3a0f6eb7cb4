"""Alert rules and dashboard: every metric in them is one that the code exports, with labels that it has."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from everturn import errors
from everturn.core.parts import Finish
from everturn.telemetry.metric_families import ALL, PROCESS, MetricFamily

ROOT = Path(__file__).parent.parent.parent
DEPLOY = ROOT / "deploy"
FAMILIES = {family.name: family for family in (*ALL, *PROCESS)}
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((DEPLOY / "prometheus" / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
]
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana" / "everturn.json").read_text(encoding="utf-8"))
PANELS: list[dict[str, Any]] = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
TARGETS = [(panel["title"], target) for panel in PANELS for target in panel["targets"]]
EXPRESSIONS = [*(rule["expr"] for rule in RULES), *(target["expr"] for _, target in TARGETS)]
OF_THE_SCRAPER = {"job", "instance", "le"}

_METRIC = re.compile(r"\b((?:everturn|process)_[a-z_]+)(\{[^}]*\})?")
_BY = re.compile(r"\bby \(([^)]*)\)")


def family_of(name: str) -> MetricFamily:
    """The family of a series: histograms have three."""
    for suffix in ("_bucket", "_sum", "_count"):
        if name.endswith(suffix) and name.removesuffix(suffix) in FAMILIES:
            family = FAMILIES[name.removesuffix(suffix)]
            assert family.kind == "histogram", name
            return family
    assert name in FAMILIES, f"no process exports {name}"
    assert FAMILIES[name].kind != "histogram", f"{name} is a histogram: its series are {name}_bucket and so on"
    return FAMILIES[name]


def problems(expression: str) -> list[str]:
    """What is wrong with the metrics of an expression."""
    found = list[str]()
    labels = set[str]()
    for name, selector in _METRIC.findall(expression):
        family = family_of(name)
        labels |= {*family.labels}
        unknown = {*re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selector)} - {*family.labels} - OF_THE_SCRAPER
        found += [f"{name} has no label {label}" for label in sorted(unknown)]
        if family.kind != "gauge" and f"rate({name}" not in expression:
            found.append(f"{name} only grows: take its rate")
    named = {label.strip() for group in _BY.findall(expression) for label in group.split(",")}
    return found + [f"no metric here has a label {label}" for label in sorted(named - labels - OF_THE_SCRAPER)]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_names_metrics_and_labels_that_the_code_exports(expression: str) -> None:
    assert problems(expression) == []
    assert expression.count("(") == expression.count(")")


def test_the_check_finds_what_it_is_there_for() -> None:
    assert problems("sum by (tenant) (everturn_turns_underway)") == ["no metric here has a label tenant"]
    assert problems('everturn_service_up{of="nats"}') == ["everturn_service_up has no label of"]
    assert problems("sum(everturn_turns_started_total)") == ["everturn_turns_started_total only grows: take its rate"]
    for name in ("everturn_no_such_total", "everturn_turn_seconds"):
        with pytest.raises(AssertionError):
            problems(name)


def test_what_is_of_the_whole_store_is_not_added_up() -> None:
    for expression in EXPRESSIONS:
        for name in ("gates_waiting", "sessions_quarantined", "wake_lag_seconds"):
            assert name not in expression or expression.startswith("max("), expression


def test_an_alert_says_what_happened_and_what_to_do() -> None:
    assert len({rule["alert"] for rule in RULES}) == len(RULES) >= 8
    for rule in RULES:
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
        assert set(rule["annotations"]) == {"summary", "action"}
        assert rule["labels"]["severity"] in ("page", "ticket")


def test_values_of_labels_in_the_rules_are_values_that_the_code_writes() -> None:
    """The kind of a store's error is the name of its class; the others are words in turn_metrics.py."""
    turns = (ROOT / "src/everturn/telemetry/turn_metrics.py").read_text(encoding="utf-8")
    for rule in RULES:
        for kind in re.findall(r'kind="(\w+)"', rule["expr"]):
            assert issubclass(getattr(errors, kind), errors.EverturnError)
        for outcome in re.findall(r'outcome="(\w+)"', rule["expr"]):
            assert f'"{outcome}"' in turns
        for finish in re.findall(r'finish="(\w+)"', rule["expr"]):
            assert finish in get_args(Finish)


def test_panels_have_ids_of_their_own_and_do_not_overlap() -> None:
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    places = set[tuple[int, int]]()
    for panel in DASHBOARD["panels"]:
        grid = panel["gridPos"]
        cells = {
            (x, y) for x in range(grid["x"], grid["x"] + grid["w"]) for y in range(grid["y"], grid["y"] + grid["h"])
        }
        assert not cells & places
        assert max(x for x, _ in cells) < 24
        places |= cells


def test_every_family_that_the_operations_page_calls_important_is_on_the_dashboard() -> None:
    shown = " ".join(target["expr"] for _, target in TARGETS)
    missing = [name for name in FAMILIES if name.startswith("everturn_") and name not in shown]
    assert missing == sorted(set(missing) & ALLOWED_MISSING, key=missing.index)


ALLOWED_MISSING = {
    "everturn_" + name
    for name in (
        *("http_requests_underway", "streams_revoked_total", "deliveries_total", "slow_readers_total"),
        *("turns_suspended_total", "gate_seconds", "calls_started_total", "call_seconds", "late_results_total"),
        *("spans_total", "spans_lost_total", "draining", "info"),
    )
}
