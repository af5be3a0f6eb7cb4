"""A key that a provider repeats is not told, not even a part of it."""

import traceback
from types import SimpleNamespace
from typing import Any

import pytest

from everturn.errors import ModelError
from everturn.models.endpoint import Endpoint, redact_key

KEY = "sk-live-0123456789abcdef"


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        (f"wrong key {KEY}.", "wrong key ***."),
        (f"{KEY}{KEY}", "******"),
        (f"wrong key {KEY[:-5]}", "wrong key ***"),  # the text was cut off in the middle of it
        (f"wrong key {KEY[:8]}", "wrong key ***"),
        (f"wrong key {KEY[:7]}", f"wrong key {KEY[:7]}"),
        (f"not {KEY[:12]}XYZ", "not ***XYZ"),
        ("nothing of it", "nothing of it"),
    ],
)
def test_no_part_of_a_key_is_told_that_could_be_one(text: str, redacted: str) -> None:
    assert redact_key(text, KEY) == redacted


@pytest.mark.parametrize("key", ["", "short"])
def test_what_is_too_short_to_be_a_secret_is_left_alone(key: str) -> None:
    assert redact_key("a short text", key) == "a short text"


def test_no_error_in_the_chain_keeps_the_key() -> None:
    unused: Any = SimpleNamespace(base_url="https://api.example.com", headers={}, names=())
    endpoint = Endpoint(unused, unused, unused, KEY)

    def fail() -> None:
        try:
            raise ValueError(KEY)
        except ValueError as error:
            raise ModelError(f"wrong key {KEY}", "key") from error

    with pytest.raises(ModelError) as caught, endpoint.redacting_key():
        fail()
    assert (str(caught.value), caught.value.kind) == ("wrong key ***", "key")
    assert KEY not in "".join(traceback.format_exception(caught.value))
