"""Sample: one run of a case at one depth, judged by its checks."""

from __future__ import annotations

import inspect
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from everturn.core.canonical_json import parse_object
from everturn.core.chunks import Chunk
from everturn.core.events import TurnEvent
from everturn.core.parts import Usage
from everturn.core.ports import Model, Tool
from everturn.core.requests import ModelRequest
from everturn.core.rules.policy import Rule
from everturn.core.store_ports import Store
from everturn.errors import ConfigError, EverturnError, ModelError
from everturn.evals.change import EvalChange
from everturn.evals.checks import DEFAULT_CHECKS, Check, CheckFunction, CheckOutcome, CheckResult
from everturn.evals.dataset import Case
from everturn.evals.recorded_world import Divergence, Emulator, Match, OnMiss, RecordedWorld, find_divergence
from everturn.evals.report import SampleResult
from everturn.evals.run_turn import Depth, ForkedModel, TurnRun, Wrap, run_turn
from everturn.evals.step_model import StepAnswer, StepJournal, TeacherForcedModel, recorded_action
from everturn.evals.trajectory import EvalCall, Trajectory, make_trajectory
from everturn.replay.compare import normalize_recording
from everturn.replay.model import RecordedStep, collect_steps
from everturn.replay.play import replay_offline
from everturn.replay.recording import Recording
from everturn.replay.what_if import Change, ChangedDecision, what_if
from everturn.stores.memory import MemoryStore
from everturn.stores.registry import get_store

BROKEN: Final = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
Judge = Callable[[Check, Trajectory, Trajectory, Path | None], Awaitable[CheckOutcome]]


class EvalSetup(Struct, frozen=True):
    """What all cases of an evaluation are run with."""

    depth: Depth = "pure"
    change: EvalChange = EvalChange()
    model: Model | None = None  # None: the recorded answers
    tools: Mapping[str, Tool] = {}
    rules: Sequence[Rule] = ()
    match: Match = "identity"
    on_miss: OnMiss = "stop"
    emulate: Emulator | None = None
    allowed: frozenset[str] = frozenset()
    functions: Mapping[str, CheckFunction] = {}  # Python checks of TOML files, by their names
    judge: Judge | None = None
    fork_at: int = 0  # the last step of the last turn that is kept as recorded; 0: the model answers all of them


class CountingModel:
    """Counts the requests to a model."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.requests = 0

    @property
    def name(self) -> str:
        """The name of the model."""
        return self._model.name

    def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Count, and ask."""
        self.requests += 1
        return self._model.stream(request)


class CaseRun(Struct, frozen=True):
    """A case that was run once, before its checks."""

    trajectory: Trajectory
    divergence: Divergence | None = None
    decisions: tuple[str, ...] = ()
    agreement: float | None = None
    requests: int = 0
    kept: Usage = Usage()  # of the recorded steps before a fork


async def run_sample(
    case: Case, checks: Sequence[Check | CheckFunction], setup: EvalSetup, number: int, files: Path | None
) -> SampleResult:
    """Run a case once and apply its checks; errors of the recording become a result.

    `files` is the beginning of the names of the sample's files: with it, a run that was killed is continued.
    """
    began = time.perf_counter()
    recorded = make_trajectory(case.recording)
    try:
        run = await run_case(case, setup, files)
    except (EverturnError, *BROKEN) as error:
        reason = f"{type(error).__name__}: {error}"
        return SampleResult(number, "error", error=reason, seconds=time.perf_counter() - began)
    results = await apply_checks(checks, run.trajectory, recorded, setup, files)
    status = "divergent" if run.divergence else "passed" if all(result.passed for result in results) else "failed"
    trajectory = run.trajectory
    return SampleResult(
        number,
        status,
        tuple(results),
        run.divergence,
        run.decisions,
        trajectory.text,
        tuple(str(call) for call in trajectory.actions),
        trajectory.steps,
        trajectory.tokens - run.kept.input - run.kept.output if setup.model is not None else 0,
        trajectory.cost - (run.kept.cost or 0.0) if setup.model is not None else 0.0,
        run.requests,
        run.agreement,
        _is_same(case.recording, trajectory.recording),
        seconds=time.perf_counter() - began,
    )


async def run_case(case: Case, setup: EvalSetup, files: Path | None = None) -> CaseRun:
    """Run a case once, without its checks.

    Raises:
        EverturnError: the recording cannot be run again, or the model failed.
    """
    return await _RUNNERS[setup.depth](case, make_trajectory(case.recording), setup, files)


async def apply_checks(
    checks: Sequence[Check | CheckFunction],
    run: Trajectory,
    recorded: Trajectory,
    setup: EvalSetup,
    files: Path | None = None,
) -> list[CheckResult]:
    """Apply checks to a run."""
    results: list[CheckResult] = []
    for number, check in enumerate(checks or DEFAULT_CHECKS, 1):
        name = check.name if isinstance(check, Check) else getattr(check, "__name__", f"check {number}")
        function: CheckFunction = check
        if isinstance(check, Check) and check.kind == "python":
            function = setup.functions[check.values["function"]]
        if isinstance(check, Check) and check.kind == "judge":
            path = None if files is None else files.with_name(f"{files.name}.judge-{number}.jsonl")
            verdict = await setup.judge(check, run, recorded, path) if setup.judge else "there is no judge model"
        else:
            verdict = function(run, recorded)
            if inspect.isawaitable(verdict):
                verdict = await verdict
        passed = verdict is None or verdict is True
        results.append(CheckResult(name, passed, verdict if isinstance(verdict, str) else ""))
    return results


def _is_same(recorded: Recording, run: Recording) -> bool:
    if recorded is run:
        return False  # nothing was run
    old = cut_to_turns(recorded)
    return bool(run.events) and normalize_recording(old) == normalize_recording(cut_to_turns(run))


def cut_to_turns(recording: Recording) -> Recording:
    """Return only the events of the turns that are evaluated."""
    turns = set(recording.turns)
    events = tuple(event for event in recording.events if isinstance(event, TurnEvent) and event.turn in turns)
    return replace(recording, events=events, turn="", below=(), edited=())


# Depth pure ---------------------------------------------------------------------------------------------------------


async def _run_pure(case: Case, recorded: Trajectory, setup: EvalSetup, files: Path | None) -> CaseRun:
    change = setup.change
    if change.is_empty and not setup.rules:
        played = await replay_offline(case.recording)
        return CaseRun(make_trajectory(replace(played, turn=case.recording.turn)))
    rules = change.rules if change.rules is not None else setup.rules or None
    specs = {name: tool.spec for name, tool in setup.tools.items()}
    result = what_if(case.recording, Change(change.system, rules, change.own_rules, specs))
    decided = {decision.id: decision for decision in result.calls}
    calls = tuple(_decide(call, decided.get(call.call)) for call in recorded.calls)
    lines = tuple(f"{item.call}: {item.was}; {item.now}" for item in result.calls)
    return CaseRun(replace(recorded, calls=calls), decisions=lines)


def _decide(call: EvalCall, decision: ChangedDecision | None) -> EvalCall:
    if decision is None:
        return call
    if decision.action == "deny":
        return replace(call, decision="deny", has_run=False, approved=None)
    return replace(call, decision=decision.action, approved=True if decision.action == "ask" else None)


# Depths turn and live -----------------------------------------------------------------------------------------------


async def _run_turns(case: Case, recorded: Trajectory, setup: EvalSetup, files: Path | None) -> CaseRun:
    model = None if setup.model is None else CountingModel(setup.model)
    logs: list[Recording] = []
    divergence: Divergence | None = None
    forks = _Forks(case.recording, setup.fork_at)
    for number, turn in enumerate(case.recording.turns, 1):
        how = _turn_run(setup, model)
        how = how if how.model is None or not setup.fork_at else replace(how, wrap=forks.wrap(turn))
        log = await _finished_log(case.recording, turn, how, files, number)
        if _is_unanswered(log, how):
            failed = make_trajectory(log)
            raise ModelError(failed.problem, kind=failed.problem_kind)
        logs.append(log)
        if setup.depth == "turn" and divergence is None:
            divergence = _divergence(case.recording, turn, setup, log)
    trajectory = _without_stopped(make_trajectory(_join(case.recording, logs)), divergence)
    decisions = _changed_decisions(recorded, trajectory)
    requests = 0 if model is None else model.requests
    return CaseRun(trajectory, divergence, decisions, requests=requests, kept=forks.kept)


class _Forks:
    """Where the turns of a recording are forked: the last one after a step, and those before it not at all.

    Raises:
        ConfigError: the last turn has no step after this one.
    """

    def __init__(self, recording: Recording, last: int) -> None:
        self._last_turn, self._last = recording.turns[-1], last
        self.kept = Usage()
        if not last:
            return
        steps = collect_steps(recording)
        count = sum(turn == self._last_turn for turn, _ in steps)
        if last >= count:
            raise ConfigError(f"there is nothing to answer after step {last}: the last turn has {count} steps")
        for (turn, number), step in steps.items():
            if turn in recording.turns and (turn != self._last_turn or number <= last):
                self.kept = self.kept + step.usage

    def wrap(self, turn: str) -> Wrap:
        """Return what makes the model of a turn."""
        is_last = turn == self._last_turn
        return lambda model, steps: ForkedModel(model, steps, self._last if is_last else max(steps, default=0))


def _turn_run(setup: EvalSetup, model: Model | None) -> TurnRun:
    rules = setup.change.rules if setup.change.rules is not None else setup.rules
    return TurnRun(
        setup.depth,
        setup.change,
        model,
        setup.tools,
        rules,
        setup.match,
        setup.on_miss,
        setup.emulate,
        setup.allowed,
    )


async def _finished_log(recording: Recording, turn: str, how: TurnRun, files: Path | None, number: int) -> Recording:
    """Run a turn, or return its log if an earlier process has finished it."""
    if files is None:
        return await run_turn(recording, turn, how, MemoryStore())
    done, database = files.with_name(f"{files.name}.{number}.jsonl"), files.with_name(f"{files.name}.{number}.db")
    if done.exists():
        return Recording.read(done)
    store: Store = get_store(str(database))
    try:
        log = await run_turn(recording, turn, how, store)
    finally:
        await store.aclose()
    if not _is_unanswered(log, how):  # the next run asks again
        unfinished = done.with_suffix(".part")
        log.write(unfinished)
        unfinished.replace(done)
    for leftover in database.parent.glob(f"{database.name}*"):
        if leftover.is_dir():
            shutil.rmtree(leftover)
        else:
            leftover.unlink()
    return log


def _is_unanswered(log: Recording, how: TurnRun) -> bool:
    """Whether the model that is asked failed: this says nothing about the change."""
    return how.model is not None and make_trajectory(log).status == "failed"


def _divergence(recording: Recording, turn: str, setup: EvalSetup, log: Recording) -> Divergence | None:
    world, trajectory = RecordedWorld(recording, turn, setup.match, setup.tools), make_trajectory(log)
    if found := find_divergence(world, trajectory.calls, setup.on_miss == "stop"):
        return found
    if trajectory.problem_kind == "replay":  # the recorded model is asked something else than was recorded
        denied = next((str(call) for call in trajectory.calls if call.decision == "deny"), "")
        return Divergence(trajectory.problem, denied)
    return None


def _without_stopped(trajectory: Trajectory, divergence: Divergence | None) -> Trajectory:
    """Return what a run did without the call that stopped it: the log has its start, and its tool did not run."""
    if divergence is None:
        return trajectory
    calls = tuple(
        replace(call, has_run=False) if str(call) == divergence.call and call.state != "completed" else call
        for call in trajectory.calls
    )
    return replace(trajectory, calls=calls)


def _join(recording: Recording, logs: Sequence[Recording]) -> Recording:
    """Return one recording of the turns of a sample, each of which ran with the recorded history before it."""
    if len(logs) == 1:
        return logs[0]
    events = tuple(event for log in logs for event in cut_to_turns(log).events)
    return Recording(events, recording.session)


def _changed_decisions(recorded: Trajectory, run: Trajectory) -> tuple[str, ...]:
    """List the calls about which permission rules decided otherwise than in the recording."""
    before = {call.call: call for call in recorded.calls}
    return tuple(
        f"{call.call} {call}: was {before[call.call].decision or 'not decided'}; is {call.decision}"
        for call in run.calls
        if call.call in before
        and str(before[call.call]) == str(call)
        and call.decision
        and before[call.call].decision != call.decision
    )


# Depth step ---------------------------------------------------------------------------------------------------------


async def _run_steps(case: Case, recorded: Trajectory, setup: EvalSetup, files: Path | None) -> CaseRun:
    journal = StepJournal(None if files is None else files.with_name(f"{files.name}.steps.jsonl"))
    requests = 0
    steps = {key: step for key, step in collect_steps(case.recording).items() if key[0] in case.recording.turns}
    for turn in case.recording.turns:
        if all(journal.find(*key) for key in steps if key[0] == turn):
            continue  # an earlier process has asked for all of them
        forced = _Forcing(turn, journal)
        how = replace(_turn_run(setup, setup.model), wrap=forced.wrap)
        log = make_trajectory(await run_turn(case.recording, turn, how, MemoryStore()))
        requests += forced.requests if setup.model is not None else 0
        if not all(journal.find(*key) for key in steps if key[0] == turn):
            raise ModelError(log.problem or "a recorded step was not reached", kind=log.problem_kind or "replay")
    answers = [answer for turn in case.recording.turns for answer in journal.of_turn(turn)]
    agreeing = sum(answer.action == recorded_action(steps[answer.turn, answer.step]) for answer in answers)
    trajectory = _proposed(recorded, answers, setup)
    return CaseRun(trajectory, agreement=agreeing / len(steps) if steps else 1.0, requests=requests)


class _Forcing:
    """Makes the teacher-forced model of a turn, and counts its requests."""

    def __init__(self, turn: str, journal: StepJournal) -> None:
        self._turn, self._journal = turn, journal
        self._model: TeacherForcedModel | None = None

    def wrap(self, model: Model, steps: Mapping[int, RecordedStep]) -> Model:
        self._model = TeacherForcedModel(model, self._turn, steps, self._journal)
        return self._model

    @property
    def requests(self) -> int:
        return 0 if self._model is None else self._model.requests


def _proposed(recorded: Trajectory, answers: Sequence[StepAnswer], setup: EvalSetup) -> Trajectory:
    """Return what the model proposed at each recorded step, as a trajectory: its calls did not run."""
    known = {(call.call.rsplit("-", 1)[0], str(call)): call for call in recorded.calls}
    calls: list[EvalCall] = []
    usage = Usage()
    for answer in answers:
        usage = usage + answer.usage
        for number, ((tool, arguments), text) in enumerate(zip(answer.calls, answer.action, strict=True), 1):
            step = f"{answer.turn}-{answer.step}"
            if (call := known.get((step, text))) is None:
                is_read = tool in setup.tools and setup.tools[tool].spec.read_only
                call = EvalCall(
                    f"{step}-{number}",
                    tool,
                    "",
                    parse_object(arguments) or {},
                    has_run=True,
                    acts=not is_read,
                    state="proposed",
                )
            calls.append(call)
    texts = [answer.text for answer in answers if answer.text]
    return replace(recorded, text=texts[-1] if texts else "", calls=tuple(calls), steps=len(answers), usage=usage)


_RUNNERS: Final[Mapping[Depth, Callable[[Case, Trajectory, EvalSetup, Path | None], Awaitable[CaseRun]]]] = {
    "pure": _run_pure,
    "step": _run_steps,
    "turn": _run_turns,
    "live": _run_turns,
}
