"""Bridge to Inspect: datasets of recordings as its tasks, runs as its solvers, checks as its scorers, results as its logs.

    @task
    def refunds() -> Task:
        return to_inspect("refunds", model="openai:gpt-5.2", tools=[find_order, refund])

    $ inspect eval refunds.py --model none --epochs 5 --epochs-reducer pass_k_5

The model under test is one of ours: Inspect's own `--model` is not asked. What a run did is in the store of its sample
under `everturn`, so a kept log can be scored again.
"""

from __future__ import annotations

from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Unpack

from everturn.agent import Agent
from everturn.core.ports import Model
from everturn.errors import ConfigError
from everturn.evals.branches import read_samples
from everturn.evals.bridges.inspect_messages import EXTRA, short_conversation, to_messages, to_output
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
from everturn.evals.checks import CheckResult
from everturn.evals.dataset import Case, Dataset
from everturn.evals.evaluate import SAMPLES, make_setup
from everturn.evals.report import EvalReport, SampleResult
from everturn.evals.sample import apply_checks, run_case
from everturn.evals.trajectory import Trajectory, make_trajectory
from everturn.replay.recording import Recording
from everturn.version import __version__

try:
    _dataset: Any = import_module("inspect_ai.dataset")
    _log: Any = import_module("inspect_ai.log")
    _scorer: Any = import_module("inspect_ai.scorer")
    _solver: Any = import_module("inspect_ai.solver")
    _task: Any = import_module("inspect_ai").Task
except ImportError as error:
    raise missing_library("inspect_ai", EXTRA, error) from None

RUN: Final = "everturn"
"""The key in the store of a sample that says what the run did."""
DIVERGENCE: Final = "everturn_divergence"
SCORER: Final = "everturn_checks"
NO_RUN: Final = "the solver does not say what its agent did: use agent_solver(agent) or recorded_solver(dataset)"
ONE_MESSAGE: Final = "agent_solver takes samples with one user message; use recorded_solver for longer conversations"


def to_inspect(
    dataset: Dataset | str | Path,
    *,
    agent: Agent[Any] | None = None,
    judge: Model | str | None = None,
    **how: Unpack[CaseOptions],
) -> Any:
    """Return the Inspect `Task` of a dataset: a sample for each recording, scored by its checks.

    Args:
        dataset: A dataset, or the folder of one.
        agent: An agent that answers the messages instead; its tools run.
        judge: The model of checks of kind `judge`.
        how: Without an agent: what a case is run with, as for `evaluate`; `depth` is `turn` by default.

    Raises:
        ConfigError: something does not fit together; the text says what.
    """
    dataset = dataset if isinstance(dataset, Dataset) else Dataset.read(dataset)
    solver = recorded_solver(dataset, **how) if agent is None else agent_solver(agent)
    samples = [_to_sample(case) for case in dataset.cases]
    return _task(
        dataset=_dataset.MemoryDataset(samples, name=dataset.name),
        solver=solver,
        scorer=check_scorer(dataset, judge=judge),
        name=dataset.name,
    )


def _to_sample(case: Case) -> Any:
    target = make_trajectory(case.recording).text
    return _dataset.Sample(id=case.name, input=question_of(case.recording), target=target)


# Solvers ------------------------------------------------------------------------------------------------------------


def recorded_solver(dataset: Dataset | str | Path, **how: Unpack[CaseOptions]) -> Any:
    """Return a solver that runs the case of a sample again: at depth `turn`, tools are answered from the recording.

    A case that cannot run is an error of its sample.

    Raises:
        ConfigError: something does not fit together; the text says what.
    """
    dataset = dataset if isinstance(dataset, Dataset) else Dataset.read(dataset)
    setup = make_case_setup(dataset, how)
    model = "recorded answers" if setup.model is None else setup.model.name

    def make() -> Any:
        async def solve(state: Any, generate: Any) -> Any:
            run = await run_case(find_case(dataset, str(state.sample_id)), setup)
            state.store.set(DIVERGENCE, describe_divergence(run.divergence))
            return _with_run(state, run.trajectory, model, "" if run.divergence is None else run.divergence.call)

        return solve

    return _solver.solver(name="everturn_recorded")(make)()


def agent_solver(agent: Agent[Any], *, deps: Any = None) -> Any:
    """Return a solver that runs an agent on the message of a sample. Its tools run."""

    def make() -> Any:
        async def solve(state: Any, generate: Any) -> Any:
            if len(state.messages) != 1:
                raise ConfigError(ONE_MESSAGE)
            return _with_run(state, await run_agent(agent, state.input_text, deps), agent.name)

        return solve

    return _solver.solver(name="everturn_agent")(make)()


def _with_run(state: Any, run: Trajectory, model: str, divergent: str = "") -> Any:
    state.store.set(RUN, dump_run(run))
    state.messages = to_messages(run.recording, divergent)
    state.output = to_output(run.text, model, run.usage)
    state.completed = True
    return state


# Scorer -------------------------------------------------------------------------------------------------------------


def check_scorer(dataset: Dataset | str | Path, *, judge: Model | str | None = None) -> Any:
    """Return a scorer that applies the checks of a dataset: correct if all pass and the run is not divergent.

    Each check is in the metadata of the score. The values are `C` and `I`, so reducers such as `pass_k` count them.

    Raises:
        ConfigError: there are checks of kind `judge`, and no judge.
    """
    dataset = dataset if isinstance(dataset, Dataset) else Dataset.read(dataset)
    setup = make_setup(dataset, judge=judge)

    def make() -> Any:
        async def score(state: Any, target: Any) -> Any:
            values = state.store.get(RUN)
            if values is None:
                raise ConfigError(NO_RUN)
            case, run = find_case(dataset, str(state.sample_id)), load_run(values)
            results = await apply_checks(checks_of(dataset, case), run, make_trajectory(case.recording), setup)
            return _to_score(results, state.store.get(DIVERGENCE, ""), run.text)

        return score

    metrics = [_scorer.accuracy(), _scorer.stderr()]
    return _scorer.scorer(metrics=metrics, name=SCORER)(make)()


def _to_score(results: Any, divergence: str, answer: str) -> Any:
    checks: tuple[CheckResult, ...] = tuple(results)
    passed = not divergence and all(check.passed for check in checks)
    lines = [f"divergent: {divergence}"] if divergence else []
    lines += [f"{'passed' if check.passed else 'failed'}: {_line(check)}" for check in checks]
    return _scorer.Score(
        value=_scorer.CORRECT if passed else _scorer.INCORRECT,
        answer=answer,
        explanation="\n".join(lines),
        metadata={"checks": {check.name: check.passed for check in checks}, "divergence": divergence},
    )


def _line(check: CheckResult) -> str:
    return f"{check.name}: {check.reason}" if check.reason else check.name


# Logs ---------------------------------------------------------------------------------------------------------------


def to_inspect_log(report: EvalReport, dataset: Dataset | str | Path, run: str | Path | None = None) -> Any:
    """Return the results of `everturn eval` as an Inspect `EvalLog`.

    Args:
        report: The results.
        dataset: What was evaluated.
        run: The folder of the run (`--run`), which has the conversation of each sample. Without it a sample has the
            question and the answer, and the whole conversation only if it is the recorded one.

    Raises:
        ConfigError: the report has a case that the dataset does not have.
    """
    dataset = dataset if isinstance(dataset, Dataset) else Dataset.read(dataset)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    model = report.model or "recorded answers"
    spec = _log.EvalSpec(
        created=now,
        task=report.dataset,
        model=f"everturn/{model}",
        dataset=_log.EvalDataset(
            name=report.dataset, samples=len(report.cases), sample_ids=[case.name for case in report.cases]
        ),
        config=_log.EvalConfig(epochs=report.samples, epochs_reducer=_reducers(report.samples)),
        packages={"everturn": __version__},
        metadata={"depth": report.depth, "exit_code": report.exit_code},
    )
    samples = [
        _to_log_sample(find_case(dataset, case.name), sample, run, model)
        for case in report.cases
        for sample in case.samples
    ]
    stats = _log.EvalStats(started_at=now, completed_at=now)
    return _log.EvalLog(status="success", eval=spec, samples=samples, stats=stats, results=_to_results(report))


def write_inspect_log(
    report: EvalReport, dataset: Dataset | str | Path, file: str | Path, run: str | Path | None = None
) -> None:
    """Write the results of `everturn eval` as a log of Inspect, which `inspect view` shows; see `to_inspect_log`."""
    _log.write_eval_log(to_inspect_log(report, dataset, run), str(file))


def _reducers(samples: int) -> list[str] | None:
    return ["mean", f"pass_at_{samples}", f"pass_k_{samples}"] if samples > 1 else None


def _to_log_sample(case: Case, sample: SampleResult, run: str | Path | None, model: str) -> Any:
    trajectory, question = make_trajectory(case.recording), question_of(case.recording)
    conversation = _conversation(case, sample, run)
    score = _to_score(sample.checks, describe_divergence(sample.divergence), sample.text)
    if conversation is None:
        messages = short_conversation(question, sample.text)
    else:
        messages = to_messages(conversation, "" if sample.divergence is None else sample.divergence.call)
    error = None
    if sample.status == "error":
        score = _scorer.Score(value=_scorer.INCORRECT, explanation=sample.error)
        error = _log.EvalError(message=sample.error, traceback=sample.error, traceback_ansi=sample.error)
    return _log.EvalSample(
        id=case.name,
        epoch=sample.sample,
        input=question,
        target=trajectory.text,
        messages=messages,
        output=to_output(sample.text, model),
        scores={SCORER: score},
        metadata={
            "status": sample.status,
            "actions": list(sample.actions),
            "decisions": list(sample.decisions),
            "steps": sample.steps,
            "tokens": sample.tokens,
            "cost": sample.cost,
        },
        error=error,
    )


def _conversation(case: Case, sample: SampleResult, run: str | Path | None) -> Recording | None:
    """Return the log of a sample: of its last turn, if the run has it; the recording, if the sample reproduced it."""
    if run is not None:
        own = [log for number, _, log in read_samples(case, Path(run) / SAMPLES) if number == sample.sample]
        if own:
            return own[-1]
    return case.recording if sample.is_reproduced else None


def _to_results(report: EvalReport) -> Any:
    """Return the figures, each as the reducer of Inspect with which it would come to the same."""
    total, k = sum(len(case.samples) for case in report.cases), report.samples
    values = zip(_reducers(k) or [None], [report.pass_at(1), report.pass_at(k), report.pass_hat(k)], strict=False)
    scores = [
        _log.EvalScore(
            name=SCORER,
            scorer=SCORER,
            reducer=reducer,
            scored_samples=len(report.cases),
            metrics={"accuracy": _log.EvalMetric(name="accuracy", value=value)},
        )
        for reducer, value in values
    ]
    errors = sum(sample.status == "error" for case in report.cases for sample in case.samples)
    return _log.EvalResults(total_samples=total, completed_samples=total - errors, scores=scores)
