"""Report of an evaluation: the results as data. Writers of its formats are in `report_formats`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

from everturn.evals.checks import CheckResult
from everturn.evals.recorded_world import Divergence
from everturn.evals.statistics import PairedDifference, paired_difference, pass_at_k, pass_hat_k

SampleStatus = Literal["passed", "failed", "divergent", "error"]
PASSED: Final = 0
FAILED: Final = 1
DIVERGENT: Final = 2
ERROR: Final = 3


class SampleResult(Struct, frozen=True, omit_defaults=True):
    """One run of a case."""

    sample: int
    status: SampleStatus
    checks: tuple[CheckResult, ...] = ()
    divergence: Divergence | None = None
    decisions: tuple[str, ...] = ()  # calls about which permission rules decide otherwise
    text: str = ""  # the answer
    actions: tuple[str, ...] = ()  # the calls that act and ran
    steps: int = 0
    tokens: int = 0
    cost: float = 0.0
    requests: int = 0  # requests to a model, by this process
    agreement: float | None = None  # share of the steps with the recorded next action; depth step
    is_reproduced: bool = False  # the log is the recorded one, event for event
    error: str = ""
    seconds: float = 0.0  # that this process took to run and judge it

    @property
    def reasons(self) -> list[str]:
        """Why it did not pass."""
        lines = [
            f"{check.name}: {check.reason}" if check.reason else check.name for check in self.checks if not check.passed
        ]
        if self.divergence is not None:
            beside = f" (recorded: {self.divergence.recorded})" if self.divergence.recorded else ""
            call = f": {self.divergence.call}" if self.divergence.call else ""
            lines.insert(0, f"divergent: {self.divergence.reason}{call}{beside}")
        return [self.error, *lines] if self.error else lines


class CaseResult(Struct, frozen=True, omit_defaults=True):
    """The samples of one case."""

    name: str
    samples: tuple[SampleResult, ...]
    baseline: float = 1.0  # share of passed checks runs before: the recording, or another report
    recorded_actions: tuple[str, ...] = ()
    prompt_diff: tuple[str, ...] = ()  # how the system prompt differs

    @property
    def passed(self) -> int:
        """How many samples passed."""
        return sum(sample.status == "passed" for sample in self.samples)

    @property
    def pass_rate(self) -> float:
        """The share of samples that passed."""
        return self.passed / len(self.samples) if self.samples else 0.0

    @property
    def status(self) -> SampleStatus:
        """The worst status of its samples: error, failed, divergent, passed."""
        statuses = {sample.status for sample in self.samples}
        order: tuple[SampleStatus, ...] = ("error", "failed", "divergent")
        worst: SampleStatus = "passed"
        for status in reversed(order):
            worst = status if status in statuses else worst
        return worst


class EvalReport(Struct, frozen=True, omit_defaults=True):
    """The results of an evaluation."""

    dataset: str
    depth: str
    cases: tuple[CaseResult, ...]
    samples: int = 1
    model: str = ""  # "": the recorded answers
    baseline: str = "the recordings"
    divergent_limit: float = 0.0  # the share of divergent samples that is accepted
    not_tested: tuple[str, ...] = ()  # what of the change had no effect, because the answers are the recorded ones
    fork_at: int = 0  # the step after which the model answered; 0: it answered all of them

    @property
    def counts(self) -> Mapping[str, int]:
        """Cases by status."""
        return {
            status: sum(case.status == status for case in self.cases)
            for status in ("passed", "failed", "divergent", "error")
        }

    @property
    def divergent_share(self) -> float:
        """The share of samples that are divergent."""
        samples = [sample for case in self.cases for sample in case.samples]
        return sum(sample.status == "divergent" for sample in samples) / len(samples) if samples else 0.0

    def pass_at(self, k: int) -> float:
        """The mean of pass@k over the cases."""
        return self._mean([pass_at_k(len(case.samples), case.passed, k) for case in self.cases])

    def pass_hat(self, k: int) -> float:
        """The mean of pass^k over the cases."""
        return self._mean([pass_hat_k(len(case.samples), case.passed, k) for case in self.cases])

    @staticmethod
    def _mean(values: list[float]) -> float:
        return sum(values) / len(values) if values else 0.0

    @property
    def difference(self) -> PairedDifference | None:
        """The paired difference of the pass rates to the baseline."""
        if not self.cases:
            return None
        return paired_difference([case.pass_rate for case in self.cases], [case.baseline for case in self.cases])

    @property
    def cost(self) -> float:
        """US dollars of all samples, as far as prices are known."""
        return sum(sample.cost for case in self.cases for sample in case.samples)

    @property
    def requests(self) -> int:
        """Requests to a model by this process."""
        return sum(sample.requests for case in self.cases for sample in case.samples)

    @property
    def exit_code(self) -> int:
        """0: everything passed; 1: a case failed; 2: more samples are divergent than accepted; 3: a case could not run."""
        counts = self.counts
        if counts["failed"]:
            return FAILED
        if self.divergent_share > self.divergent_limit:
            return DIVERGENT
        return ERROR if counts["error"] else PASSED

    @property
    def summary(self) -> str:
        """One line."""
        counts = ", ".join(f"{count} {status}" for status, count in self.counts.items() if count)
        depth = f"{self.depth}, forked after step {self.fork_at}" if self.fork_at else self.depth
        return f"{len(self.cases)} {'case' if len(self.cases) == 1 else 'cases'} at depth {depth}: {counts}"
