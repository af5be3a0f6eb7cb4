"""Evaluation of a dataset: runs every case k times at one depth, and reports what passed.

With a folder, everything that was requested is in files there: an evaluation that was killed continues with the same
call, and no request whose answer had arrived is sent again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from everturn.config.modules import load_object
from everturn.core.canonical_json import hash_values
from everturn.core.ports import Model, Tool
from everturn.core.rules.policy import Rule
from everturn.errors import ConfigError
from everturn.evals.change import EvalChange
from everturn.evals.checks import Check, CheckFunction
from everturn.evals.dataset import Case, Dataset
from everturn.evals.recorded_world import Match, OnMiss
from everturn.evals.report import CaseResult, EvalReport, SampleResult
from everturn.evals.run_turn import Depth
from everturn.evals.sample import EvalSetup, apply_checks, run_sample
from everturn.evals.trajectory import make_trajectory
from everturn.models.registry import get_model
from everturn.replay.what_if import Change, what_if
from everturn.tools.groups import ToolGroup

RUN_FILE: Final = "run.json"
SAMPLES: Final = "samples"
OTHER_RUN: Final = "{folder} has another evaluation (its {what} differs); choose another folder, or delete this one"
PARALLEL: Final = 4
Progress = Callable[[CaseResult], None]


async def evaluate(
    dataset: Dataset | str | Path,
    *,
    depth: Depth = "pure",
    change: EvalChange | None = None,
    model: Model | str | None = None,
    tools: Iterable[Tool | ToolGroup] = (),
    rules: Sequence[Rule] = (),
    samples: int = 1,
    match: Match = "identity",
    on_miss: OnMiss = "stop",
    allow_tools: Iterable[str] = (),
    judge: Model | str | None = None,
    fork_at: int = 0,
    folder: str | Path | None = None,
    against: EvalReport | None = None,
    divergent_limit: float = 0.0,
    parallel: int = PARALLEL,
    progress: Progress | None = None,
) -> EvalReport:
    """Evaluate a dataset, and return the report.

    Args:
        dataset: A dataset, or the folder of one.
        depth: `pure` (recorded answers, nothing runs), `step` (the model is asked at each recorded step), `turn` (the
            model answers freely, tools are answered from the recording) or `live` (tools run).
        change: What differs from the recordings.
        model: The model to ask; None: the recorded answers.
        tools: Today's tools. Depth `live` runs them; the others use what they declare.
        rules: The permission rules of the app.
        samples: How often each case is run.
        match: What makes a tool the recorded one: its identity, or only its name.
        on_miss: What a `read_only` call does at depth `turn` if it is not in the recording.
        allow_tools: Tools that are neither `read_only` nor `idempotent` and may run at depth `live`.
        judge: The model of checks of kind `judge`; not the model under test.
        fork_at: At depth `turn`, the step of the last turn after which the model answers. Up to it, the answers are
            the recorded ones.
        folder: Where the run is kept, so that it can be continued.
        against: An earlier report to compare with, instead of the recordings.
        divergent_limit: The share of divergent samples that is accepted.
        parallel: How many samples run at once.
        progress: Called with the result of each case.

    Raises:
        ConfigError: something does not fit together; the text says what.
    """
    dataset = dataset if isinstance(dataset, Dataset) else Dataset.read(dataset)
    setup = make_setup(
        dataset,
        depth=depth,
        change=change,
        model=model,
        tools=tools,
        rules=rules,
        match=match,
        on_miss=on_miss,
        allow_tools=allow_tools,
        judge=judge,
        fork_at=fork_at,
    )
    if samples < 1:
        raise ConfigError(f"each case runs at least once, so there cannot be {samples} samples")
    if samples > 1 and setup.model is None:
        raise ConfigError("several samples need a model: recorded answers are the same every time")
    change, under_test = setup.change, setup.model
    files = None if folder is None else _open_folder(Path(folder), dataset, setup, samples)
    baselines = {} if against is None else {case.name: case.pass_rate for case in against.cases}
    limit = asyncio.Semaphore(max(parallel, 1))
    results: list[CaseResult] = []

    async def run_case(case: Case) -> CaseResult:
        checks = [*dataset.checks, *case.checks]

        async def run(number: int) -> SampleResult:
            async with limit:
                path = None if files is None else files / f"{case.name}.{number}"
                return await run_sample(case, checks, setup, number, path)

        done = await asyncio.gather(*(run(number) for number in range(1, samples + 1)))
        recorded = make_trajectory(case.recording)
        before = [check for check in checks if not (isinstance(check, Check) and check.kind == "judge")]
        baseline = baselines.get(case.name)
        if baseline is None:
            baseline = float(all(item.passed for item in await apply_checks(before, recorded, recorded, setup)))
        actions = tuple(str(call) for call in recorded.actions)
        result = CaseResult(case.name, tuple(done), baseline, actions, _prompt_diff(case, change))
        if progress is not None:
            progress(result)
        return result

    if depth == "pure":
        for case in dataset.cases:
            results.append(await run_case(case))
    else:
        results = list(await asyncio.gather(*(run_case(case) for case in dataset.cases)))
    return EvalReport(
        dataset.name,
        depth,
        tuple(results),
        samples,
        "" if under_test is None else under_test.name,
        "the recordings" if against is None else "another report",
        divergent_limit,
        change.for_models if under_test is None else (),
        fork_at,
    )


def make_setup(
    dataset: Dataset,
    *,
    depth: Depth = "pure",
    change: EvalChange | None = None,
    model: Model | str | None = None,
    tools: Iterable[Tool | ToolGroup] = (),
    rules: Sequence[Rule] = (),
    match: Match = "identity",
    on_miss: OnMiss = "stop",
    allow_tools: Iterable[str] = (),
    judge: Model | str | None = None,
    fork_at: int = 0,
) -> EvalSetup:
    """Make what all cases of a dataset are run with; the arguments are those of `evaluate`.

    Raises:
        ConfigError: something does not fit together; the text says what.
    """
    change = change or EvalChange()
    named = model or change.model
    under_test = None if not named else get_model(named) if isinstance(named, str) else named
    if depth == "live" and under_test is None:
        raise ConfigError("depth live runs your tools, and needs a model: pass `--model NAME` (in Python: model=…)")
    if depth == "pure" and under_test is not None:
        raise ConfigError("depth pure uses no model: choose depth step, turn or live, or leave the model out")
    if fork_at < 0 or (fork_at and (depth != "turn" or under_test is None)):
        raise ConfigError(
            "a fork is after a step (1 or more) at depth turn, and a model answers from there: pass `--model NAME` "
            "(in Python: model=…)"
        )
    tools_by_name = _flatten(tools)
    if under_test is not None:
        _check_tools_known(dataset, tools_by_name)
    return EvalSetup(
        depth,
        change,
        under_test,
        tools_by_name,
        rules,
        match,
        on_miss,
        _emulator(under_test) if on_miss == "emulate" else None,
        frozenset(allow_tools),
        _python_checks(dataset),
        _judge(dataset, judge, under_test),
        fork_at,
    )


def _check_tools_known(dataset: Dataset, tools: Mapping[str, Tool]) -> None:
    called = {call.tool for case in dataset.cases for call in make_trajectory(case.recording).calls if call.identity}
    clients = {
        client.name
        for case in dataset.cases
        for event in case.recording.events
        for client in getattr(getattr(event, "options", None), "clients", ())
    }
    if missing := sorted(called - set(tools) - clients):
        raise ConfigError(
            "the model needs the description and schema of the tools, which recordings do not have: pass the "
            f"tools ({', '.join(missing)}) with `--tools FILE` (in Python: tools=…)"
        )


def _flatten(tools: Iterable[Tool | ToolGroup]) -> dict[str, Tool]:
    flat = (tool for item in tools for tool in (item.tools if isinstance(item, ToolGroup) else (item,)))
    return {tool.spec.name: tool for tool in flat}


def _prompt_diff(case: Case, change: EvalChange) -> tuple[str, ...]:
    return () if change.system is None else tuple(what_if(case.recording, Change(change.system)).prompt)


def _python_checks(dataset: Dataset) -> dict[str, CheckFunction]:
    names = {
        str(check.values["function"])
        for check in (*dataset.checks, *(check for case in dataset.cases for check in case.checks))
        if isinstance(check, Check) and check.kind == "python"
    }
    return {name: load_object(name, dataset.folder) for name in names}


def _judge(dataset: Dataset, judge: Model | str | None, under_test: Model | None) -> Any:
    checks = (*dataset.checks, *(check for case in dataset.cases for check in case.checks))
    if not any(isinstance(check, Check) and check.kind == "judge" for check in checks):
        return None
    from everturn.evals.judge import make_judge

    return make_judge(judge, under_test)


def _emulator(model: Model | None) -> Any:
    if model is None:
        raise ConfigError("on_miss=emulate needs a model that emulates the tools: pass a model")
    from everturn.evals.judge import make_emulator

    return make_emulator(model)


def _open_folder(folder: Path, dataset: Dataset, setup: EvalSetup, samples: int) -> Path:
    """Make the folder of a run, or check that it is the folder of this one.

    Raises:
        ConfigError: it has another evaluation.
    """
    settings: dict[str, Any] = {
        "dataset": hash_values(*(case.name for case in dataset.cases))
        + hash_values(*(hash_values(case.recording.dump().hex()) for case in dataset.cases)),
        "depth": setup.depth,
        "model": "" if setup.model is None else setup.model.name,
        "change": hash_values(msgspec.to_builtins(setup.change)),
        "rules": hash_values(msgspec.to_builtins(list(setup.rules))),
        "tools": {name: tool.spec.identity for name, tool in sorted(setup.tools.items())},
        "match": setup.match,
        "on_miss": setup.on_miss,
        "samples": samples,
        "fork_at": setup.fork_at or None,
    }
    file = folder / RUN_FILE
    if file.is_file():
        earlier = msgspec.json.decode(file.read_bytes())
        # More samples may be added to a run: those that are there stay.
        if differing := [key for key in settings if key != "samples" and earlier.get(key) != settings[key]]:
            raise ConfigError(OTHER_RUN.format(folder=folder, what=differing[0]))
    (folder / SAMPLES).mkdir(parents=True, exist_ok=True)
    file.write_bytes(msgspec.json.format(msgspec.json.encode(settings), indent=2))
    return folder / SAMPLES
