"""The text format of Prometheus, read strictly: whatever is not exactly as the format has it raises."""

from __future__ import annotations

import re
from typing import NamedTuple

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\\\|\\"|\\n)*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (NaN|[+-]Inf|-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)")
SUFFIXES = {"counter": ("",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}


class Sample(NamedTuple):
    name: str
    labels: tuple[tuple[str, str], ...]
    value: float


def read(data: bytes) -> dict[str, tuple[str, list[Sample]]]:
    """Family → its type and its samples."""
    text = data.decode("utf-8", "strict")
    assert text.endswith("\n"), "the last line ends too"
    assert "\r" not in text
    families: dict[str, tuple[str, list[Sample]]] = {}
    helped, current, seen = "", "", set[tuple[str, tuple[tuple[str, str], ...]]]()
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            helped = line.split(" ", 3)[2]
            assert re.fullmatch(NAME, helped), line
            assert helped not in families, f"twice: {line}"
        elif line.startswith("# TYPE "):
            _, _, current, kind = line.split(" ")
            assert current == helped, line
            assert kind in SUFFIXES, line
            families[current] = (kind, [])
        else:
            found = SAMPLE.fullmatch(line)
            assert found is not None, f"not a sample: {line!r}"
            sample = Sample(found[1], tuple(labels(found[2] or "")), float(found[3].replace("Inf", "inf")))
            kind, samples = families[current]
            assert any(sample.name == current + suffix for suffix in SUFFIXES[kind]), f"{sample.name} in {current}"
            assert (sample.name, sample.labels) not in seen, f"twice: {line}"
            seen.add((sample.name, sample.labels))
            samples.append(sample)
    for name, (kind, samples) in families.items():
        assert samples, f"{name} says nothing"
        if kind == "counter":
            assert all(sample.value >= 0 for sample in samples)
        if kind == "histogram":
            check_buckets(name, samples)
    return families


def labels(text: str) -> list[tuple[str, str]]:
    pairs = re.findall(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"', text)
    names = [name for name, _ in pairs]
    assert len(names) == len(set(names)), f"a label twice: {text}"
    return [(name, re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], value)) for name, value in pairs]


def check_buckets(name: str, samples: list[Sample]) -> None:
    series: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = {}
    counts: dict[tuple[tuple[str, str], ...], float] = {}
    for sample in samples:
        rest = tuple(pair for pair in sample.labels if pair[0] != "le")
        if sample.name == f"{name}_bucket":
            bound = dict(sample.labels)["le"]
            series.setdefault(rest, []).append((float(bound.replace("Inf", "inf")), sample.value))
        elif sample.name == f"{name}_count":
            counts[rest] = sample.value
    for key, buckets in series.items():
        assert buckets == sorted(buckets)
        assert [value for _, value in buckets] == sorted(value for _, value in buckets)
        assert buckets[-1] == (float("inf"), counts[key])
