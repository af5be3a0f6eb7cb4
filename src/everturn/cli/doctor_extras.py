"""What is installed beside the core → which extras are here, whole and new enough."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import metadata
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from everturn.cli.doctor_checks import Check, installing

if TYPE_CHECKING:
    from everturn.config.loading import Loaded

EXTRAS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "server": (
        "everturn serve",
        {"starlette": "starlette", "uvicorn": "uvicorn", "h11": "h11", "pyjwt": "jwt", "uvloop": "uvloop"},
    ),
    "tui": (
        "everturn chat on the whole screen, completion",
        {
            "shtab": "shtab",
            "textual": "textual",
            "rich": "rich",
            "markdown-it-py": "markdown_it",
            "pygments": "pygments",
        },
    ),
    "code": ("run_python and run_javascript", {"pydantic-monty": "pydantic_monty", "quickjs-ng": "quickjs"}),
    "shell": ("rules for shell commands", {"tree-sitter": "tree_sitter", "tree-sitter-bash": "tree_sitter_bash"}),
    "mcp": (
        "tools of MCP servers",
        {"mcp": "mcp", "mcp-types": "mcp_types", "anyio": "anyio", "httpx2": "httpx2", "jsonschema": "jsonschema"},
    ),
    "prices": ("what requests cost", {"genai-prices": "genai_prices"}),
    "postgres": ("sessions in PostgreSQL", {"asyncpg": "asyncpg"}),
    "cluster": (
        "many workers",
        {"asyncpg": "asyncpg", "granian": "granian", "nats-py": "nats", "restate-sdk": "restate"},
    ),
    "otel": (
        "traces to a collector",
        {"opentelemetry-sdk": "opentelemetry.sdk", "opentelemetry-exporter-otlp-proto-http": "opentelemetry.exporter"},
    ),
    "pydantic-ai": ("models of pydantic-ai", {"pydantic-ai-slim": "pydantic_ai"}),
    "litellm": ("models of litellm", {"litellm": "litellm"}),
}
"""Extra → what it is for, and its packages with the names by which they are imported."""

BRIDGES: Final = frozenset({"pydantic-ai", "litellm"})
"""What `everturn[all]` does not bring."""


def extras(needed: Mapping[str, str]) -> list[Check]:
    """Each of them; one that the configuration needs, for the reason given, is broken if it is not here."""
    found = [installed(extra, needed.get(extra, "")) for extra in EXTRAS]
    gone = [check for check in found if check.state == "absent" and check.name not in BRIDGES]
    if len(gone) > 1:
        found.append(Check("Extras", "all", "absent", f"{len(gone)} of those above at once", installing("all")))
    return found


def installed(extra: str, needed: str = "") -> Check:
    """Whether the packages of an extra are here, and new enough."""
    purpose, packages = EXTRAS[extra]
    wanted = _wanted()
    here, gone, wrong = list[str](), list[str](), list[str]()
    for package, module in packages.items():
        try:
            version = metadata.version(package)
        except metadata.PackageNotFoundError:
            gone.append(package)
            continue
        here.append(f"{package} {version}")
        if not _is_there(module):
            wrong.append(f"{package} has no module {module}")
        elif not _fits(version, wanted.get(package, "")):
            wrong.append(f"{package} {version} is not {wanted[package]}")
    mend = installing(extra, upgrade=True) if wrong else installing(extra) if gone else ""
    lacking = f"without {', '.join(gone)}" if gone and here else ""
    reason = f"{needed} needs it" if gone and needed else ""
    said = "; ".join(filter(None, [purpose, ", ".join(wrong or here), lacking, reason]))
    state = "broken" if wrong or reason else "absent" if gone else "ok"
    return Check("Extras", extra, state, said, mend)


def needed_by(loaded: Loaded) -> dict[str, str]:
    """The extras without which what is configured cannot be had, each with the key that says so."""
    config = loaded.config
    url = str(config.store.url)
    keys = {
        "mcp": "[mcp]" if any(not server.disabled for server in config.mcp.values()) else "",
        "code": "[tools] code" if config.tools.code else "",
        "shell": "[tools] shell" if config.tools.shell else "",
        "postgres": "[store] url" if url.startswith(("postgres:", "postgresql:")) else "",
        "otel": "[telemetry] otlp" if config.telemetry.otlp else "",
    }
    return {extra: key for extra, key in keys.items() if key}


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # what is around it is broken
        return False


def _wanted() -> dict[str, str]:
    """Package → the versions that we want of it."""
    try:
        asked = metadata.requires("everturn") or []
    except metadata.PackageNotFoundError:
        return {}
    found = (re.match(r"([\w.-]+)(?:\[[^]]*\])?\s*([^;]*)", one) for one in asked)
    return {one[1]: one[2].strip() for one in found if one is not None}


def _fits(version: str, wanted: str) -> bool:
    """Whether a version is among those wanted; only `>=` and `<` are read, for only these are written."""
    have = _numbers(version)
    rules = re.findall(r"(>=|<)\s*([\d.]+)", wanted)
    return all(have >= _numbers(number) if rule == ">=" else have < _numbers(number) for rule, number in rules)


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()
