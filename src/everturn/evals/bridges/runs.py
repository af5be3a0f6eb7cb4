"""A case or an agent run once, as the bridges need it: the run and its checks are two steps there.

What a run did travels as JSON values from the step that runs to the step that checks: both libraries write them into
their own reports and logs, so that those can be checked again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypedDict

import msgspec
from msgspec.structs import replace

from everturn.agent import Agent
from everturn.app import App
from everturn.core.events import TurnStarted
from everturn.core.ports import Model, Tool
from everturn.core.rules.policy import Rule
from everturn.errors import ConfigError, TurnError
from everturn.evals.change import EvalChange
from everturn.evals.checks import DEFAULT_CHECKS, Check, CheckFunction
from everturn.evals.dataset import Case, Dataset
from everturn.evals.evaluate import make_setup
from everturn.evals.recorded_world import Divergence, Match, OnMiss
from everturn.evals.run_turn import Depth
from everturn.evals.sample import EvalSetup
from everturn.evals.trajectory import Trajectory, make_trajectory
from everturn.replay.recording import Recording
from everturn.tools.groups import ToolGroup

SESSION: Final = "eval"
NO_CASE: Final = "the dataset {dataset} has no case {case!r}; it has: {names}"
WAITS: Final = (
    "the agent waits for a person: no one approves calls in an eval. Use a dataset whose recording has the approval, "
    "or tools with approval='auto'"
)


class CaseOptions(TypedDict, total=False):
    """What a case is run with: these arguments of `evaluate`."""

    depth: Depth
    change: EvalChange | None
    model: Model | str | None
    tools: Iterable[Tool | ToolGroup]
    rules: Sequence[Rule]
    match: Match
    on_miss: OnMiss
    allow_tools: Iterable[str]
    fork_at: int


def make_case_setup(dataset: Dataset, how: CaseOptions) -> EvalSetup:
    """Make what the cases of a dataset are run with, at depth `turn` by default; their checks come later.

    Raises:
        ConfigError: something does not fit together; the text says what.
    """
    cases = [Case(case.name, case.recording) for case in dataset.cases]
    how.setdefault("depth", "turn")
    return make_setup(Dataset(dataset.name, cases, (), dataset.folder), **how)


def missing_library(module: str, extra: str, error: ImportError) -> ModuleNotFoundError:
    """Return the error for a library that is not installed; it says how to install it."""
    return ModuleNotFoundError(f"{module} cannot be imported: pip install 'everturn[{extra}]' ({error})", name=module)


def find_case(dataset: Dataset, name: str) -> Case:
    """Return a case by its name.

    Raises:
        ConfigError: there is none.
    """
    for case in dataset.cases:
        if case.name == name:
            return case
    names = ", ".join(case.name for case in dataset.cases)
    raise ConfigError(NO_CASE.format(dataset=dataset.name, case=name, names=names))


def question_of(recording: Recording) -> str:
    """Return the message that started the last turn of a recording."""
    starts = [event.input for event in recording.events if isinstance(event, TurnStarted)]
    return next((message.text for message in reversed(starts) if message is not None), "")


def checks_of(dataset: Dataset, case: Case) -> list[Check | CheckFunction]:
    """List the checks of a case, those of the whole dataset included; without any, the default ones."""
    return [*dataset.checks, *case.checks] or list(DEFAULT_CHECKS)


async def run_agent(agent: Agent[Any], message: str, deps: Any = None) -> Trajectory:
    """Run an agent on a message, in an app of its own; its tools run.

    Raises:
        ConfigError: it waits for a person.
    """
    async with App(agents=[agent]) as app:
        try:
            result = await app.run(agent, message, session=SESSION, deps=deps)
        except TurnError:  # a turn that failed is a result, too: checks look at its status
            pass
        else:
            if result.status == "waiting":
                raise ConfigError(WAITS)
        return make_trajectory(await Recording.from_session(app.store, SESSION))


def dump_run(run: Trajectory) -> dict[str, Any]:
    """Write what a run did as JSON values, with its log as text."""
    values = msgspec.to_builtins(replace(run, recording=Recording(())))
    return {**values, "recording": run.recording.dump().decode()}


def load_run(values: Mapping[str, Any]) -> Trajectory:
    """Read what `dump_run` wrote.

    Raises:
        UnreadableLog: the log in it cannot be read.
    """
    recording = Recording.load(str(values["recording"]).encode())
    return replace(msgspec.convert({**values, "recording": {"events": []}}, Trajectory), recording=recording)


def describe_divergence(divergence: Divergence | None) -> str:
    """Return a divergence as a line with both calls; "" without one."""
    if divergence is None:
        return ""
    call = f": {divergence.call}" if divergence.call else ""
    beside = f" (recorded: {divergence.recorded})" if divergence.recorded else ""
    return f"{divergence.reason}{call}{beside}"
