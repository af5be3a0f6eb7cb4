"""Loading: imports what the first request of a model needs, before there is a request.

Importing an HTTP client and tables of prices takes most of a second, and a thread does not help much: an event loop stands
still while another thread loads a large module. So an App loads its models when it is made or, if an event loop runs
already, when it starts. A model without `load` has nothing to load.
"""

from __future__ import annotations

from collections.abc import Callable


def load(model: object) -> None:
    """Load a model, or anything that it is made of."""
    load_itself: Callable[[], None] | None = getattr(model, "load", None)
    if load_itself is not None:
        load_itself()
