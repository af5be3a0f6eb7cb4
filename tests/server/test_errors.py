"""Every error has its status, and none of ours tells a stranger anything."""

from __future__ import annotations

import inspect
import logging

import pytest

from everturn import errors
from everturn.errors import EverturnError
from everturn.server.errors import ERROR_TABLE, REQUEST_ERRORS, RequestError, error_response

ALL = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, EverturnError)]


@pytest.mark.parametrize("kind", [kind for kind in ALL if kind is not EverturnError], ids=lambda kind: kind.__name__)
def test_every_error_has_a_row(kind: type[EverturnError]) -> None:
    assert kind in ERROR_TABLE, f"say in server/errors.py what becomes of {kind.__name__}"


def test_what_is_not_there_never_says_which() -> None:
    for kind in (errors.UnknownSession, errors.UnknownGate, errors.UnknownFile, errors.UnknownTurn):
        missing, other = (
            error_response(kind("there is no session ses_1")),
            error_response(kind("session ses_2 belongs to theirs")),
        )
        assert missing.status == 404
        assert (missing.body(), missing.headers) == (other.body(), other.headers)


def test_our_own_faults_are_in_the_log_under_a_name_and_nowhere_else(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        response = error_response(ValueError("the password is swordfish"))
    assert response.status == 500
    assert b"swordfish" not in response.body()
    name = response.view.message.rsplit(" ", 1)[1]
    assert name in caplog.text
    assert "swordfish" in caplog.text


def test_an_error_of_a_kind_that_nobody_listed_is_ours(caplog: pytest.LogCaptureFixture) -> None:
    class Surprise(EverturnError): ...

    assert error_response(Surprise("secret")).status == 500
    assert b"secret" not in error_response(Surprise("secret")).body()


@pytest.mark.parametrize(("seconds", "header"), [(0.2, "1"), (7.1, "8"), (1e9, "86400")])
def test_whoever_asks_too_much_is_told_when_to_come_again(seconds: float, header: str) -> None:
    assert error_response(errors.TooMuch("slower", seconds)).headers == {"retry-after": header}


def test_whoever_is_not_known_is_told_what_to_show() -> None:
    response = error_response(errors.NotRecognised("key evk_123 was revoked"))
    assert response.status == 401
    assert response.headers["www-authenticate"].startswith("Bearer")
    assert b"evk_123" not in response.body()


@pytest.mark.parametrize("code", sorted(REQUEST_ERRORS))
def test_a_refusal_has_a_text(code: str) -> None:
    row = REQUEST_ERRORS[code]
    response = error_response(RequestError(code, "" if row.text else "because"))
    assert response.status == row.status
    assert response.view.message
