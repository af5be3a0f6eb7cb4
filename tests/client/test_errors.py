"""Every word a server has for what went wrong is an error here, and the same one where there is one."""

from __future__ import annotations

import msgspec
import pytest

from everturn import api, errors
from everturn.client.http import build_error
from everturn.errors import ConfigError, EverturnError, ServerUnavailable
from everturn.server.errors import ERROR_TABLE, REQUEST_ERRORS


def error_for(status: int, code: str) -> EverturnError:
    return build_error(
        status, msgspec.json.encode(api.ErrorResponse(error=api.ErrorView(code=code, message="so it is"))), 1.0
    )


@pytest.mark.parametrize("code", sorted({*REQUEST_ERRORS, *(row.code for row in ERROR_TABLE.values())}))
def test_no_word_is_unknown(code: str) -> None:
    status = {row.code: row.status for row in (*REQUEST_ERRORS.values(), *ERROR_TABLE.values())}[code]
    error = error_for(status, code)
    assert str(error) == "so it is"
    assert isinstance(error, ServerUnavailable) or status < 500 or type(error).__name__ != "EverturnError"


@pytest.mark.parametrize(
    "kind", [kind for kind in ERROR_TABLE if ERROR_TABLE[kind].status < 500 and not issubclass(kind, errors.HookError)]
)
def test_what_was_refused_there_is_caught_as_it_would_be_here(kind: type[EverturnError]) -> None:
    assert isinstance(error_for(ERROR_TABLE[kind].status, ERROR_TABLE[kind].code), kind)


def test_what_makes_no_sense_makes_none_over_the_wire() -> None:
    assert type(error_for(422, "unfit")) is ConfigError
    assert type(error_for(503, "fetch_failed")) is ServerUnavailable
    assert type(build_error(502, b"<html>", 0.0)) is ServerUnavailable
