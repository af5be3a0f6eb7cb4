"""Bridge to pydantic-evals: datasets of recordings run under its `Dataset.evaluate`, with our checks as its evaluators.

    cases = to_pydantic_evals(Dataset.read("refunds"))
    report = await cases.evaluate(recorded_task("refunds", model="openai:gpt-5.2", tools=[find_order, refund]))

A task returns the answer as text, so evaluators of pydantic-evals (`Contains`, `LLMJudge`) read it as that. What the run
did is in the attribute `everturn` of each case of the report: the calls, the status, and the log.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Unpack

from everturn.agent import Agent
from everturn.config.modules import load_object
from everturn.errors import ConfigError
from everturn.evals.bridges.runs import (
    CaseOptions,
    checks_of,
    describe_divergence,
    dump_run,
    find_case,
    load_run,
    make_case_setup,
    missing_library,
    question_of,
    run_agent,
)
from everturn.evals.checks import Check, CheckFunction, make_check
from everturn.evals.dataset import Case, Dataset
from everturn.evals.report import EvalReport, SampleResult
from everturn.evals.sample import EvalSetup, apply_checks, run_case
from everturn.evals.trajectory import Trajectory, make_trajectory
from everturn.replay.recording import Recording

EXTRA: Final = "pydantic-evals"
try:
    _dataset: Any = import_module("pydantic_evals.dataset")
    _evaluators: Any = import_module("pydantic_evals.evaluators")
    _reporting: Any = import_module("pydantic_evals.reporting")
except ImportError as error:
    raise missing_library("pydantic_evals", EXTRA, error) from None

RUN: Final = "everturn"
"""The attribute of a case in a report that says what the run did."""
DIVERGENCE: Final = "everturn.divergence"
"""The attribute that says where the run left the recording; "" if it did not."""
NO_RUN: Final = "the task does not say what its agent did: evaluate with agent_task(agent) or recorded_task(dataset)"
Task = Callable[[Mapping[str, str]], Awaitable[str]]


# Dataset and evaluators ---------------------------------------------------------------------------------------------


def to_pydantic_evals(dataset: Dataset | str | Path, *, judge: str = "") -> Any:
    """Return the `pydantic_evals.Dataset` of a dataset of ours: a case for each recording, an evaluator for each check.

    The inputs of a case are `{"case": name, "message": text}`, its expected output is the recorded answer, and its
    metadata has the recording. `to_file` writes all of it; `from_file` needs
    `custom_evaluator_types=[EverturnCheck, NotDivergent]`. Python functions of a `Case` cannot be written.

    Args:
        dataset: A dataset, or the folder of one.
        judge: The model of checks of kind `judge`, by its name.

    Raises:
        ConfigError: the dataset cannot be read.
    """
    dataset = dataset if isinstance(dataset, Dataset) else Dataset.read(dataset)
    cases = [_to_case(dataset, case, judge) for case in dataset.cases]
    kind = _dataset.Dataset[dict[str, str], str, dict[str, str]]
    return kind(name=dataset.name, cases=cases, evaluators=[NotDivergent()])


def _to_case(dataset: Dataset, case: Case, judge: str) -> Any:
    folder = "" if dataset.folder is None else str(dataset.folder)
    return _dataset.Case(
        name=case.name,
        inputs={"case": case.name, "message": question_of(case.recording)},
        expected_output=make_trajectory(case.recording).text,
        metadata={"recording": case.recording.dump().decode()},
        evaluators=[_to_evaluator(check, folder, judge) for check in checks_of(dataset, case)],
    )


def _to_evaluator(check: Check | CheckFunction, folder: str, judge: str) -> EverturnCheck:
    if not isinstance(check, Check):
        return EverturnCheck(check)
    needs_folder, needs_judge = check.kind == "python", check.kind == "judge"
    return EverturnCheck(
        {"kind": check.kind, **check.values}, folder if needs_folder else "", judge if needs_judge else ""
    )


@dataclass(repr=False)
class EverturnCheck(_evaluators.Evaluator):
    """A check of ours as an evaluator: an assertion with the name and the reason of the check.

    `check` is a table of `dataset.toml`, or a function. It reads what the run did from the attribute `everturn`, which
    `agent_task` and `recorded_task` set, and the recording from the metadata of the case.
    """

    check: Any
    folder: str = ""  # where a Python check is looked up
    judge: str = ""  # the model of a check of kind judge

    def get_default_evaluation_name(self) -> str:
        """The name of the check."""
        check = self._check()
        return check.name if isinstance(check, Check) else getattr(check, "__name__", "function")

    async def evaluate(self, ctx: Any) -> Any:
        """Apply the check to a run.

        Raises:
            ConfigError: the task is not one of ours, or there is no such check.
        """
        if RUN not in ctx.attributes:
            raise ConfigError(NO_RUN)
        run, check = load_run(ctx.attributes[RUN]), self._check()
        recorded = _recorded(ctx.metadata) or run
        [result] = await apply_checks([check], run, recorded, self._setup(check))
        return _evaluators.EvaluationReason(result.passed, result.reason or None)

    def _check(self) -> Check | CheckFunction:
        return make_check(self.check) if isinstance(self.check, dict) else self.check  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]

    def _setup(self, check: Check | CheckFunction) -> EvalSetup:
        if not isinstance(check, Check) or check.kind not in ("python", "judge"):
            return EvalSetup()
        if check.kind == "judge":
            from everturn.evals.judge import make_judge

            return EvalSetup(judge=make_judge(self.judge, None))
        name = str(check.values["function"])
        return EvalSetup(functions={name: load_object(name, Path(self.folder) if self.folder else None)})


def _recorded(metadata: object) -> Trajectory | None:
    text = metadata.get("recording") if isinstance(metadata, Mapping) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return make_trajectory(Recording.load(text.encode())) if isinstance(text, str) else None


@dataclass(repr=False)
class NotDivergent(_evaluators.Evaluator):
    """The run made only calls that its recording answers; the reason shows both calls. Nothing for tasks without one."""

    def evaluate(self, ctx: Any) -> Any:
        """Say whether the run left its recording."""
        if DIVERGENCE not in ctx.attributes:
            return {}
        divergence = ctx.attributes[DIVERGENCE]
        return {"not_divergent": _evaluators.EvaluationReason(not divergence, divergence or None)}


# Tasks --------------------------------------------------------------------------------------------------------------


def recorded_task(dataset: Dataset | str | Path, **how: Unpack[CaseOptions]) -> Task:
    """Return a task that runs the cases of a dataset again: at depth `turn`, tools are answered from the recording.

    `how` are the arguments of `evaluate` that say what a case is run with: `depth` (here `turn` by default), `change`,
    `model`, `tools`, `rules`, `match`, `on_miss`, `allow_tools`. A case that cannot run is a failure of the report.

    Raises:
        ConfigError: something does not fit together; the text says what.
    """
    dataset = dataset if isinstance(dataset, Dataset) else Dataset.read(dataset)
    setup = make_case_setup(dataset, how)

    async def recorded(inputs: Mapping[str, str]) -> str:
        run = await run_case(find_case(dataset, inputs["case"]), setup)
        _dataset.set_eval_attribute(DIVERGENCE, describe_divergence(run.divergence))
        _report_run(run.trajectory)
        return run.trajectory.text

    return recorded


def agent_task(agent: Agent[Any], *, deps: Any = None) -> Task:
    """Return a task that runs an agent on the message of each case. Its tools run: nothing is answered from a recording.

    The inputs of the cases are texts, or objects with the key `message`, as those of `to_pydantic_evals`.
    """

    async def run(inputs: Mapping[str, str] | str) -> str:
        trajectory = await run_agent(agent, inputs if isinstance(inputs, str) else inputs["message"], deps)
        _report_run(trajectory)
        return trajectory.text

    run.__name__ = agent.name or "agent"
    return run


def _report_run(run: Trajectory) -> None:
    _dataset.set_eval_attribute(RUN, dump_run(run))
    for name, value in (("steps", run.steps), ("tool_calls", len(run.calls)), ("tokens", run.tokens)):
        _dataset.increment_eval_metric(name, value)


# Reports ------------------------------------------------------------------------------------------------------------


def to_pydantic_report(report: EvalReport, dataset: Dataset | str | Path) -> Any:
    """Return the results of `everturn eval` as a `pydantic_evals.reporting.EvaluationReport`: to print, or as a baseline.

    A sample whose case could not run is a failure; a divergent one has a failed assertion `not_divergent`.

    Raises:
        ConfigError: the report has a case that the dataset does not have.
    """
    dataset = dataset if isinstance(dataset, Dataset) else Dataset.read(dataset)
    cases: list[Any] = []
    failures: list[Any] = []
    for result in report.cases:
        case = find_case(dataset, result.name)
        for sample in result.samples:
            (failures if sample.status == "error" else cases).append(_to_report_case(case, sample, report))
    name = f"everturn eval, depth {report.depth}" + (f", {report.model}" if report.model else "")
    return _reporting.EvaluationReport(name=name, cases=cases, failures=failures, dataset_name=report.dataset)


def _to_report_case(case: Case, sample: SampleResult, report: EvalReport) -> Any:
    common = {
        "name": f"{case.name} [{sample.sample}/{report.samples}]" if report.samples > 1 else case.name,
        "inputs": {"case": case.name, "message": question_of(case.recording)},
        "metadata": {"recording": case.recording.dump().decode()},
        "expected_output": make_trajectory(case.recording).text,
        "source_case_name": case.name if report.samples > 1 else None,
    }
    if sample.status == "error":
        return _reporting.ReportCaseFailure(error_message=sample.error, error_stacktrace="", **common)
    assertions = {check.name: _assertion(check.name, check.passed, check.reason) for check in sample.checks}
    if report.depth == "turn":
        divergence = describe_divergence(sample.divergence)
        assertions["not_divergent"] = _assertion("not_divergent", not divergence, divergence)
    return _reporting.ReportCase(
        output=sample.text,
        metrics={"steps": sample.steps, "tokens": sample.tokens},
        attributes={"actions": list(sample.actions), "decisions": list(sample.decisions)},
        scores={},
        labels={},
        assertions=assertions,
        task_duration=0.0,  # ours are not measured: a replay takes another time than the turn did
        total_duration=0.0,
        **common,
    )


def _assertion(name: str, passed: bool, reason: str) -> Any:
    source = _evaluators.EvaluatorSpec(name="EverturnCheck", arguments=None)
    return _evaluators.EvaluationResult(name=name, value=passed, reason=reason or None, source=source)
