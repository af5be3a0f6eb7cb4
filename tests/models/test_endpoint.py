"""A key that a provider repeats is not told, not even a part of it."""

import pytest

from everturn.models.endpoint import redact_key

KEY = "sk-live-0123456789abcdef"


@pytest.mark.parametrize(
    ("text", "told"),
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
def test_no_part_of_a_key_is_told_that_could_be_one(text: str, told: str) -> None:
    assert redact_key(text, KEY) == told


@pytest.mark.parametrize("key", ["", "short"])
def test_what_is_too_short_to_be_a_secret_is_left_alone(key: str) -> None:
    assert redact_key("a short text", key) == "a short text"
