"""What we have to say to a model where a format leaves us no other way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from everturn.core.canonical import canonical
from everturn.core.parts import NoticePart

GO_ON = "Go on."  # where a history ends with the model's own words, and it must be asked something
INTERRUPTED = "(interrupted)"  # where the assistant must have said something, and had no time to


def must_fit(schema: Mapping[str, Any]) -> str:
    """What a model is told of a schema where nothing holds it to that."""
    return (
        "Your answer in the end, when no more calls are needed, must be JSON that fits this schema, and nothing else:\n"
        + canonical(schema)
    )


def notice(part: NoticePart) -> str:
    """What the runtime says, marked so that it is not taken for a person's words."""
    return f"<notice kind={part.kind!r}>\n{part.text}\n</notice>"
