"""Ratings: what people say about answers, thumbs up or down with a reason."""

from __future__ import annotations

from typing import Final, Literal

Rating = Literal["up", "down", ""]
"""`up` and `down` are the thumbs; "" is no rating."""

MAX_REASON: Final = 2_000  # characters of the reason of a rating
