"""No regular expression in the source can be made slow by a text; see `expressions.py`."""

from __future__ import annotations

import re

import pytest

from tests.security.expressions import Expression, expressions, is_searched, slow, uses

# What these read is an operator's, a developer's or git's, and no stranger's.
TRUSTED = {
    "everturn.config.layers.VARIABLE": "names of environment variables",
    "everturn.config.toml_positions._STRING": "the configuration file",
    "everturn.mcp.config._REFERENCE": "the file of MCP servers",
    "config/load.py": "the configuration file",
    "config/toml_edit.py": "the configuration file",
    "everturn.localization._OPTION": "the catalogues",
    "tools/snapshots/git_objects.py": "what `git --version` says",
    "everturn.server.routes.js_sandbox._SCRIPT": "a page of ours",
}
# Only ever held against the whole of a text, by `parsing.check_gap`.
WHOLE = {"BLANKS", "LINES"}


@pytest.mark.timeout(180)  # hundreds of expressions
def test_no_expression_that_reads_untrusted_text_can_be_made_slow() -> None:
    used = uses()
    every = expressions()
    assert len(every) > 200  # so many are there
    found = {
        expression.where: text
        for expression in every
        if expression.where.partition(":")[0] not in TRUSTED
        and (
            text := slow(expression, is_searched(expression, used) and expression.where.rpartition(".")[2] not in WHOLE)
        )
    }
    assert not found


@pytest.mark.parametrize(
    "pattern",
    [
        r"\$\{x:-(?:[^$}]|\$[a-z]\w*)*\}",  # exponential
        r"(a+)+b",
        r"\s*\S+\s*$",  # with the square
        r"([a-z]+)\.([a-z]+)",
    ],
)
def test_an_expression_that_goes_back_is_found(pattern: str) -> None:
    assert slow(Expression("here", pattern, 0))


@pytest.mark.parametrize("pattern", [r"[a-z]{1,64}=", r"(?:[^\"\\]|\\.)*+\"", r"a|b", r"^\w+$"])
def test_an_expression_that_does_not_is_not(pattern: str) -> None:
    assert not slow(Expression("here", pattern, int(re.ASCII)), is_searched=False)
