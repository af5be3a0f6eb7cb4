"""Thought signatures of Gemini: made and recognized by the provider, and required by one family of models."""

from __future__ import annotations

import base64

from everturn.testing.provider.signatures import is_sealed, seal_reasoning

# Accepted as the signature of a call that another model made.
SKIP = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")


def is_third(model: str) -> bool:
    """Whether a model is of the family that gives its calls ids, and requires its signatures back."""
    return model.startswith("gemini-3")


def signature(model: str, text: str) -> str:
    """The signature of a part: opaque bytes for clients, so it is sent in base64."""
    return base64.b64encode(seal_reasoning("gem", model, text).encode()).decode()


def is_signature(model: str, value: str) -> bool:
    """Whether this provider made the signature, for this model."""
    try:
        return is_sealed("gem", model, base64.b64decode(value.replace("-", "+").replace("_", "/")).decode())
    except ValueError:
        return False
