"""How thorough hypothesis is: `ci` on every change, `long` when there is time (`--hypothesis-profile=long`)."""

import gc
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, is_hypothesis_test, settings

# Tests share helpers as `tests.helpers.simulated_driver`; with import-mode=importlib nothing else puts the root there.
ROOT = str(Path(__file__).parent.parent)
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

from tests.helpers import call_records  # noqa: E402

call_records.install()

PROPERTY_TIMEOUT = 600  # seconds

pytest.register_assert_rewrite("everturn.testing.contracts", "tests.helpers.simulated_driver")

# The same examples every time: a change is judged by what it changed. The other profile is there to explore.
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=100)
settings.register_profile("long", deadline=None, max_examples=2_500, print_blob=True)
# Of a seeded bug only that it is found is of interest, and not how small the example can be made.
settings.register_profile("mutant", settings.get_profile("ci"), phases=[Phase.explicit, Phase.generate])
# A few of them: for what is run once more, on another Python (scripts/pythons).
settings.register_profile("quick", settings.get_profile("ci"), max_examples=10)
settings.load_profile("ci")

# What a shell starts in the background ignores this signal, and so would every server that a test starts. Told to quit,
# each of them would be waited for in vain, for half a minute.
signal.signal(signal.SIGQUIT, signal.SIG_DFL)


RUN_ONCE = tuple(str(Path(__file__).parent / name) for name in ("core", "turn"))  # nothing in them waits for a clock


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with what waits: with `--dist worksteal` one worker waits for servers while the other computes."""
    items.sort(key=lambda item: item.get_closest_marker("live") is None)
    can_rerun = config.pluginmanager.hasplugin("rerunfailures")
    for item in items:
        # What fails there fails for a reason: it is not run once more.
        if can_rerun and str(item.path).startswith(RUN_ONCE):
            item.add_marker(pytest.mark.flaky(reruns=0))
        # The limit is there to find what hangs. A test of a property is a hundred tests in one, on a shared machine.
        # So is a story that is told again with a death after each of its events, which is not run once more.
        is_many = is_hypothesis_test(getattr(item, "obj", None)) or str(item.path).startswith(RUN_ONCE)
        is_limited = config.getoption("timeout", None) is not None  # as the processes of mutants are
        if is_many and not is_limited and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(PROPERTY_TIMEOUT))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Collecting all tests makes a million objects that stay: the garbage collector need not look at them again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()  # or what nobody needs any more would stay too
        gc.freeze()


def pytest_sessionfinish() -> None:
    if pool := sys.modules.get("tests.helpers.schema_pool"):
        pool.drop_borrowed_schemas()


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """Let a lone surrogate in what a test logs or fails with not end the worker: it goes to its parent as UTF-8."""
    return _clean_all((yield))


def _clean_all(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_clean_all(key): _clean_all(item) for key, item in value.items()}
    return type(value)(map(_clean_all, value)) if type(value) in (list, tuple) else value


@pytest.fixture(autouse=True)
def _records() -> Iterator[None]:
    """Whatever a test starts had been judged, once."""
    call_records.forget()
    yield
    call_records.check()
    call_records.forget()
