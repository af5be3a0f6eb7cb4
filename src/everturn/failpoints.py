"""Failpoints: named places in the code where a test can inject a crash or an error:
`hit_failpoint("store.commit.after")`.

Without a plan a failpoint costs one check of a variable. A test installs a plan, or an environment variable does so in
a child process; nothing in production does. `tools/chaos/plan.py` in the repository has plans written as JSON.
"""

from __future__ import annotations

from collections.abc import Callable

FailpointPlan = Callable[[str], None]

_plan: FailpointPlan | None = None


def hit_failpoint(point: str) -> None:
    """Reach a failpoint. A plan may kill the process here, stop it, or raise."""
    if _plan is not None:
        _plan(point)


def is_active() -> bool:
    """Whether a plan is installed: check this before building a name that costs something."""
    return _plan is not None


def install_plan(plan: FailpointPlan | None) -> None:
    """Install a plan; None removes it."""
    global _plan
    _plan = plan
