"""Everything that leaves: each place in the source that opens a connection passes the egress policy, or is listed here
with the reason why it need not: whose word it goes by."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent.parent / "src/everturn"
OPENS = frozenset(
    (
        *("ClientSession", "AsyncClient", "AsyncHTTPTransport", "HTTPTransport", "TCPConnector", "UnixConnector"),
        *("open_connection", "create_connection", "open_unix_connection", "urlopen", "build_opener"),
        *("HTTPConnection", "HTTPSConnection", "ws_connect", "sse_client", "websocket_client", "streamablehttp_client"),
    )
)
"""What opens a connection, by the names that the libraries which are used here have for it."""

POLICED = {
    "egress/fetch.py": "fetch_url: the guard judges every hop",
    "egress/client.py": "documents and endpoints that providers and MCP servers name",
    "mcp/http.py": "own origin of the server; everything else by the policy",
    "mcp/oauth.py": "through `Bounded`, which asks the policy",
}
"""Goes by somebody else's word, and passes the guard."""

LISTED = {
    "cells/router.py": "the cells, by the operator's configuration; no redirects are followed",
    "config/available_models.py": "model servers at addresses that the person typed or configured, and vendors of ours",
    "cli/doctor/server.py": "the server that the person runs, by their own configuration",
    "cli/doctor/services.py": "PostgreSQL, NATS, Restate: addresses of the operator's configuration",
    "cli/commands/accounts.py": "a port of this machine, to see whether a server runs there",
    "cli/config_options.py": "the database of the store that the person names, to see whether it answers",
    "cli/store/server.py": "the process that has the person's own store, by a file beside it that only they can read",
    "client/http.py": "the server that a person names to the client",
    "config/discovery.py": "known ports of this machine, to find model servers",
    "engine/restate/http.py": "Restate, by the operator's configuration",
    "mcp/session.py": "the protocol's own session, over streams that were opened elsewhere",
    "sandbox/resource_probes.py": "runs inside a sandbox, against its own loopback",
    "transport/live.py": "model providers, by the operator's configuration; no redirects are followed",
}
"""Goes by the word of the person or the operator alone."""

TESTING = "testing/"  # doubles that are published; they serve, and connect to themselves


def opened(text: str) -> set[str]:
    """What of it a source calls."""
    calls = (node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    names = {func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "") for func in calls}
    return names & OPENS


@cache
def clients() -> dict[str, set[str]]:
    texts = {str(file.relative_to(SOURCE)): file.read_text(encoding="utf-8") for file in SOURCE.rglob("*.py")}
    named = {
        name: text for name, text in texts.items() if any(opener in text for opener in OPENS)
    }  # most are not parsed
    found = {name: opened(text) for name, text in named.items() if not name.startswith(TESTING)}
    return {name: calls for name, calls in found.items() if calls}


def test_every_client_passes_the_policy_or_is_listed_with_a_reason() -> None:
    unknown = clients().keys() - POLICED.keys() - LISTED.keys()
    assert not unknown, f"{sorted(unknown)}: whose word does it go by? Pass egress.Policy or egress.fetch, or list it"


def test_nothing_is_listed_that_opens_no_connection() -> None:
    assert {*POLICED, *LISTED} - clients().keys() == set()


@pytest.mark.parametrize("name", POLICED)
def test_who_goes_by_somebody_elses_word_asks_the_guard(name: str) -> None:
    text = (SOURCE / name).read_text(encoding="utf-8")
    assert any(word in text for word in ("guard.resolve(", "_guard.resolve(", "policy.request(", "login_policy(")), name


@pytest.mark.parametrize(
    "planted",
    ["import aiohttp\naiohttp.ClientSession()", "import httpx\nasync def f():\n    httpx.AsyncClient(auth=1)",
     "from urllib.request import urlopen\nurlopen('http://x')", "import asyncio\nasyncio.open_connection('x', 1)"],
)  # fmt: skip
def test_a_new_client_is_found(planted: str) -> None:
    assert opened(planted)
