"""Extras check: which extras are installed, complete and recent enough."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import metadata
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from everturn.cli.doctor.checks import DoctorCheck, install_command

if TYPE_CHECKING:
    from everturn.config.load import LoadedConfig

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
    "documents": ("text of PDF attachments", {"pypdf": "pypdf"}),
    "shell": ("rules for shell commands", {"tree-sitter": "tree_sitter", "tree-sitter-bash": "tree_sitter_bash"}),
    "mcp": (
        "tools of MCP servers",
        {"mcp": "mcp", "mcp-types": "mcp_types", "anyio": "anyio", "httpx2": "httpx2", "jsonschema": "jsonschema"},
    ),
    "prices": ("what requests cost", {"genai-prices": "genai_prices"}),
    "postgres": ("sessions in PostgreSQL", {"asyncpg": "asyncpg"}),
    "encryption": ("encryption of stored content", {"cryptography": "cryptography"}),
    "passwords": ("logins with passwords", {"argon2-cffi": "argon2"}),
    "cluster": (
        "many workers",
        {"asyncpg": "asyncpg", "granian": "granian", "nats-py": "nats", "restate-sdk": "restate"},
    ),
    "temporal": ("Temporal as the engine", {"asyncpg": "asyncpg", "temporalio": "temporalio"}),
    "otel": (
        "traces to a collector",
        {"opentelemetry-sdk": "opentelemetry.sdk", "opentelemetry-exporter-otlp-proto-http": "opentelemetry.exporter"},
    ),
    "azure": ("Azure OpenAI with Microsoft Entra ID", {"azure-identity": "azure.identity"}),
    "vertex": ("models of Vertex AI", {"google-auth": "google.auth"}),
    "bedrock": ("models of Amazon Bedrock with credentials in files, SSO or roles", {"botocore": "botocore"}),
    "pydantic-ai": ("models of pydantic-ai", {"pydantic-ai-slim": "pydantic_ai"}),
    "litellm": ("models of litellm", {"litellm": "litellm"}),
    "pydantic-evals": ("evals in pydantic-evals", {"pydantic-evals": "pydantic_evals"}),
    "inspect": ("evals in Inspect", {"inspect-ai": "inspect_ai"}),
}
"""Extra → its purpose, and its packages with the names by which they are imported."""

NOT_IN_ALL: Final = frozenset({"azure", "vertex", "bedrock", "pydantic-ai", "litellm", "pydantic-evals", "inspect"})
"""Extras that `everturn[all]` does not include."""


def check_extras(needed: Mapping[str, str]) -> list[DoctorCheck]:
    """Check every extra; one that is missing is broken if the configuration needs it, for the given reason."""
    checks = [check_extra(extra, needed.get(extra, "")) for extra in EXTRAS]
    absent = [check for check in checks if check.state == "absent" and check.name not in NOT_IN_ALL]
    if len(absent) > 1:
        checks.append(
            DoctorCheck("Extras", "all", "absent", f"{len(absent)} of those above at once", install_command("all"))
        )
    return checks


def check_extra(extra: str, needed: str = "") -> DoctorCheck:
    """Check whether the packages of an extra are installed and recent enough."""
    purpose, packages = EXTRAS[extra]
    wanted = _required_versions()
    present, missing, wrong = list[str](), list[str](), list[str]()
    for package, module in packages.items():
        try:
            version = metadata.version(package)
        except metadata.PackageNotFoundError:
            missing.append(package)
            continue
        present.append(f"{package} {version}")
        if not _is_importable(module):
            wrong.append(f"{package} has no module {module}")
        elif not _fits(version, wanted.get(package, "")):
            wrong.append(f"{package} {version} is not {wanted[package]}")
    fix = install_command(extra, upgrade=True) if wrong else install_command(extra) if missing else ""
    lacking = f"without {', '.join(missing)}" if missing and present else ""
    reason = f"{needed} needs it" if missing and needed else ""
    detail = "; ".join(filter(None, [purpose, ", ".join(wrong or present), lacking, reason]))
    state = "broken" if wrong or reason else "absent" if missing else "ok"
    return DoctorCheck("Extras", extra, state, detail, fix)


def find_required_extras(loaded: LoadedConfig) -> dict[str, str]:
    """Return the extras that the configuration needs, each with the key that needs it."""
    config = loaded.config
    url = str(config.store.url)
    keys = {
        "mcp": "[mcp]" if any(not server.disabled for server in config.mcp.values()) else "",
        "code": "[tools] code" if config.tools.code else "",
        "shell": "[tools] shell" if config.tools.shell else "",
        "postgres": "[store] url" if url.startswith(("postgres:", "postgresql:")) else "",
        "temporal": "[cluster] temporal" if config.cluster.temporal else "",
        "passwords": "[auth] passwords" if config.auth.passwords else "",
        "otel": "[telemetry] otlp" if config.telemetry.otlp else "",
    }
    return {extra: key for extra, key in keys.items() if key}


def _is_importable(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # a parent package is broken
        return False


def _required_versions() -> dict[str, str]:
    """Return the required versions of each package."""
    try:
        lines = metadata.requires("everturn") or []
    except metadata.PackageNotFoundError:
        return {}
    matches = (re.match(r"([\w.-]+)(?:\[[^]]*\])?\s*([^;]*)", line) for line in lines)
    return {match[1]: match[2].strip() for match in matches if match is not None}


def _fits(version: str, wanted: str) -> bool:
    """Whether a version meets the requirement; only `>=` and `<` are parsed, because pyproject.toml uses no others."""
    have = _numbers(version)
    rules = re.findall(r"(>=|<)\s*([\d.]+)", wanted)
    return all(have >= _numbers(number) if rule == ">=" else have < _numbers(number) for rule, number in rules)


def _numbers(version: str) -> tuple[int, ...]:
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, match[0].split("."))) if match else ()
