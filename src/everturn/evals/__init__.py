"""Evals: runs recorded sessions again with a change, and reports which of them still do what they must.

A case is a recording and checks. There are four depths: `pure` (recorded answers, nothing runs), `step` (a model is
asked at each recorded step), `turn` (a model answers freely, and tools are answered from the recording) and `live`.

- `dataset`: cases in a folder: recordings, and a `dataset.toml` with checks; made from sessions
- `change`: what differs from the recordings: instructions, rules, parameters, model
- `checks`: what a run must fulfil: built-in kinds, and Python functions
- `trajectory`: what a turn did, as checks see it
- `recorded_world`: answers tool calls and gates from a recording; a call that is not in it stops the turn
- `run_turn`: runs one recorded turn again in an app
- `step_model`: depth step: asks a model at each step, and answers as recorded
- `sample`: one run of a case at one depth, and its checks
- `judge`: a model that decides by a rubric whether an answer passes
- `evaluate`: runs all cases k times; continues a run that was killed
- `branches`: the samples of a case as sibling answers of one session, for the compare view
- `statistics`: pass@k, pass^k, paired differences
- `report`, `report_formats`: the results, as JSON, JUnit, Markdown and HTML
- `pytest_plugin`: every case of a dataset as a test
"""

from everturn.evals.change import EvalChange
from everturn.evals.checks import Check, CheckResult, make_check
from everturn.evals.dataset import Case, Dataset, make_dataset, make_rated_dataset
from everturn.evals.evaluate import evaluate
from everturn.evals.report import CaseResult, EvalReport, SampleResult
from everturn.evals.statistics import PairedDifference, paired_difference, pass_at_k, pass_hat_k
from everturn.evals.trajectory import EvalCall, Trajectory, make_trajectory

__all__ = [
    "Case",
    "CaseResult",
    "Check",
    "CheckResult",
    "Dataset",
    "EvalCall",
    "EvalChange",
    "EvalReport",
    "PairedDifference",
    "SampleResult",
    "Trajectory",
    "evaluate",
    "make_check",
    "make_dataset",
    "make_rated_dataset",
    "make_trajectory",
    "paired_difference",
    "pass_at_k",
    "pass_hat_k",
]
