"""What an MCP server calls itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from everturn.mcp.session import McpSession


@pytest.mark.parametrize(
    ("info", "title"),
    [
        (SimpleNamespace(name="hotel", version="1.2"), "hotel 1.2"),
        (SimpleNamespace(name="hotel", version=""), "hotel"),
        (None, ""),
    ],
)
def test_a_server_without_a_version_has_no_blank_at_the_end_of_its_name(info: Any, title: str) -> None:
    session = McpSession.__new__(McpSession)
    session._session = SimpleNamespace(server_info=info)  # pyright: ignore[reportAttributeAccessIssue]
    assert session.title == title
