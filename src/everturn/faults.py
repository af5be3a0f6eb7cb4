"""Named places where a test may let the world end: `faults.hit("store.commit.after")`.

Free when off: one look at a variable. A plan is installed by a test, or in a process that is told to by its
environment; nothing in production does. See `everturn.testing.chaos` for plans.
"""

from __future__ import annotations

from collections.abc import Callable

Plan = Callable[[str], None]

_plan: Plan | None = None


def hit(point: str) -> None:
    """This place is reached. A plan may kill the process here, stop it, or raise."""
    if _plan is not None:
        _plan(point)


def is_on() -> bool:
    """Whether a plan is installed: ask before making up a name that costs something."""
    return _plan is not None


def install(plan: Plan | None) -> None:
    """Follow a plan from now on; None: no longer."""
    global _plan
    _plan = plan
